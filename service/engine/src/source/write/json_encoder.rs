//! Rows as JSON objects.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Field, FieldRef, Fields};

use super::encoder::ValueRules;
use crate::data_type::SparkType;
use crate::show::string_column;
use crate::source::json_text::push_quoted;
use crate::{Conf, Error, Result};

/// Appends a row as an object. Fields that are null are left out unless they are to be kept.
pub(super) fn push_object(
    fields: &Fields,
    columns: &[ArrayRef],
    row: usize,
    rules: &ValueRules,
    keeps_nulls: bool,
    conf: &Conf,
    text: &mut String,
) -> Result<()> {
    let writer = JsonWriter { rules, keeps_nulls, conf };
    writer.object(fields, columns, row, text)
}

/// Appends one value.
pub(in crate::source) fn push_value(
    field: &Field,
    column: &ArrayRef,
    row: usize,
    rules: &ValueRules,
    keeps_nulls: bool,
    conf: &Conf,
    text: &mut String,
) -> Result<()> {
    JsonWriter { rules, keeps_nulls, conf }.value(field, column, row, text)
}

struct JsonWriter<'a> {
    rules: &'a ValueRules,
    keeps_nulls: bool,
    conf: &'a Conf,
}

impl JsonWriter<'_> {
    fn object(&self, fields: &Fields, columns: &[ArrayRef], row: usize, text: &mut String) -> Result<()> {
        text.push('{');
        let mut is_first = true;
        for (field, column) in fields.iter().zip(columns) {
            let is_null = is_null(column, row);
            if is_null && !self.keeps_nulls {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                text.push(',');
            }
            push_quoted(field.name(), text);
            text.push(':');
            self.value(field, column, row, text)?;
        }
        text.push('}');
        Ok(())
    }

    fn value(&self, field: &Field, column: &ArrayRef, row: usize, text: &mut String) -> Result<()> {
        if is_null(column, row) {
            text.push_str("null");
            return Ok(());
        }
        match SparkType::of(field) {
            SparkType::Array(element) => {
                let values = column.as_list_opt::<i32>().ok_or_else(|| unexpected(field))?.value(row);
                self.array(element, &values, text)
            }
            SparkType::Map { key, value } => {
                let entries = column.as_map_opt().ok_or_else(|| unexpected(field))?.value(row);
                let keys = string_column(entries.column(0), key, self.conf)?;
                text.push('{');
                for entry in 0..keys.len() {
                    if entry > 0 {
                        text.push(',');
                    }
                    push_quoted(keys.value(entry), text);
                    text.push(':');
                    self.value(value, entries.column(1), entry, text)?;
                }
                text.push('}');
                Ok(())
            }
            SparkType::Struct(fields) => {
                let rows = column.as_struct_opt().ok_or_else(|| unexpected(field))?;
                self.object(fields, rows.columns(), row, text)
            }
            SparkType::Udt(udt) => self.value(&Field::new(field.name(), udt.storage.clone(), true), column, row, text),
            SparkType::Binary => {
                let bytes = column.as_binary_opt::<i32>().ok_or_else(|| unexpected(field))?.value(row);
                push_quoted(&base64(bytes), text);
                Ok(())
            }
            SparkType::Date | SparkType::Timestamp | SparkType::TimestampNtz => {
                let date_time = self.rules.date_time(column, field, row).ok_or_else(|| unexpected(field))?;
                push_quoted(&date_time, text);
                Ok(())
            }
            atomic => {
                let printed = string_column(&column.slice(row, 1), field, self.conf)?;
                let printed = printed.value(0);
                let is_number = match atomic {
                    SparkType::Float | SparkType::Double => !printed.ends_with(|c: char| c.is_ascii_alphabetic()),
                    SparkType::Boolean
                    | SparkType::Byte
                    | SparkType::Short
                    | SparkType::Integer
                    | SparkType::Long
                    | SparkType::Decimal { .. } => true,
                    _ => false,
                };
                if is_number {
                    text.push_str(printed);
                } else {
                    push_quoted(printed, text);
                }
                Ok(())
            }
        }
    }

    fn array(&self, element: &FieldRef, values: &ArrayRef, text: &mut String) -> Result<()> {
        text.push('[');
        for position in 0..values.len() {
            if position > 0 {
                text.push(',');
            }
            self.value(element, values, position, text)?;
        }
        text.push(']');
        Ok(())
    }
}

fn is_null(column: &ArrayRef, row: usize) -> bool {
    column.data_type().is_null() || column.is_null(row)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * position) & 63) as usize];
            text.push(if position <= chunk.len() { digit as char } else { '=' });
        }
    }
    text
}

fn unexpected(field: &Field) -> Error {
    Error::Bug { invariant: format!("column {} has the type of its schema", field.name()) }
}
