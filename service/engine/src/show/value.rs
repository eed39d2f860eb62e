//! A column's values as text.

use std::fmt::Write;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, DecimalType, DurationMicrosecondType, Field, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalYearMonthType,
    Time64NanosecondType, TimestampMicrosecondType,
};
use udt::field::{MATRIX_JVM_CLASS, VECTOR_JVM_CLASS};
use udt::vector::java_double;
use udt::{VectorArray, VectorRow};

use super::{date_time, interval};
use crate::conf::TimeZone;
use crate::data_type::{SparkType, Udt};
use crate::{Conf, Error, Result};

/// What the text is for. The two differ in nulls inside nested values and in binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `CAST(x AS STRING)`: `null`, and binary as the UTF-8 it holds.
    Cast,
    /// `df.show()`: `NULL`, and binary as `[41 42]`.
    Show,
}

/// Spark's `CAST(x AS STRING)` of a whole column.
pub fn string_column(array: &ArrayRef, field: &Field, conf: &Conf) -> Result<StringArray> {
    styled_column(array, field, Style::Cast, conf)
}

/// A column's values as text; null where the value is null.
///
/// # Errors
/// [`Error::Unsupported`] for Arrow types that are no Spark types, [`Error::Arrow`] for values out of Spark's range.
pub fn styled_column(array: &ArrayRef, field: &Field, style: Style, conf: &Conf) -> Result<StringArray> {
    let array = canonical(array, field)?;
    let context = Context { style, zone: conf.session_time_zone() };
    let write = writer(&array, field, &context)?;
    let nulls = array.logical_nulls();
    let mut builder = StringBuilder::with_capacity(array.len(), array.len() * 8);
    let mut text = String::new();
    for row in 0..array.len() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            builder.append_null();
        } else {
            text.clear();
            write(row, &mut text)?;
            builder.append_value(&text);
        }
    }
    Ok(builder.finish())
}

struct Context {
    style: Style,
    zone: TimeZone,
}

impl Context {
    fn null(&self) -> &'static str {
        match self.style {
            Style::Cast => "null",
            Style::Show => "NULL",
        }
    }
}

/// Appends the text of a row that is not null.
type Writer<'a> = Box<dyn Fn(usize, &mut String) -> Result<()> + 'a>;

/// The array in the Arrow type that this engine holds its Spark type in, so that a writer meets one type a Spark type.
fn canonical(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let spark_type = SparkType::of(field);
    let wanted = spark_type.arrow_type();
    match spark_type {
        SparkType::Udt(_) | SparkType::Foreign(_) => Ok(array.clone()),
        _ if array.data_type() == &wanted => Ok(array.clone()),
        _ if spark_type.is_nested() && array.data_type().is_nested() => match array.data_type() {
            DataType::List(_) | DataType::Map(..) | DataType::Struct(_) => Ok(array.clone()),
            _ => Ok(arrow::compute::cast(array, &wanted)?),
        },
        _ => Ok(arrow::compute::cast(array, &wanted)?),
    }
}

fn primitive<'a, T: ArrowPrimitiveType>(
    array: &'a ArrayRef,
    format: impl Fn(T::Native, &mut String) + 'a,
) -> Result<Writer<'a>> {
    let values = array.as_primitive_opt::<T>().ok_or_else(|| unexpected(array))?.values();
    Ok(Box::new(move |row, text| {
        format(values[row], text);
        Ok(())
    }))
}

/// Integers and the like print as Rust prints them.
fn displayed<T: ArrowPrimitiveType<Native: std::fmt::Display>>(array: &ArrayRef) -> Result<Writer<'_>> {
    primitive::<T>(array, |value, text| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{value}");
    })
}

fn writer<'a>(array: &'a ArrayRef, field: &'a Field, context: &'a Context) -> Result<Writer<'a>> {
    match SparkType::of(field) {
        SparkType::Null => Ok(Box::new(|_, text| {
            text.push_str(context.null());
            Ok(())
        })),
        SparkType::Boolean => {
            let values = array.as_boolean_opt().ok_or_else(|| unexpected(array))?;
            Ok(Box::new(|row, text| {
                text.push_str(if values.value(row) { "true" } else { "false" });
                Ok(())
            }))
        }
        SparkType::Byte => displayed::<Int8Type>(array),
        SparkType::Short => displayed::<Int16Type>(array),
        SparkType::Integer => displayed::<Int32Type>(array),
        SparkType::Long => displayed::<Int64Type>(array),
        SparkType::Float => primitive::<Float32Type>(array, |value, text| text.push_str(&java_float(value))),
        SparkType::Double => primitive::<Float64Type>(array, |value, text| text.push_str(&java_double(value))),
        SparkType::Decimal { precision, scale } => primitive::<Decimal128Type>(array, move |value, text| {
            text.push_str(&Decimal128Type::format_decimal(value, precision, scale));
        }),
        SparkType::String | SparkType::Char(_) | SparkType::Varchar(_) => {
            let values = array.as_string_opt::<i32>().ok_or_else(|| unexpected(array))?;
            Ok(Box::new(|row, text| {
                text.push_str(values.value(row));
                Ok(())
            }))
        }
        SparkType::Binary => binary(array, context),
        SparkType::Date => primitive::<Date32Type>(array, |days, text| date_time::push_date(days.into(), text)),
        SparkType::Timestamp => primitive::<TimestampMicrosecondType>(array, |micros, text| {
            let offset_s = context.zone.offset_s(micros.div_euclid(1_000_000));
            date_time::push_timestamp(i128::from(micros) + i128::from(offset_s) * 1_000_000, text);
        }),
        SparkType::TimestampNtz => primitive::<TimestampMicrosecondType>(array, |micros, text| {
            date_time::push_timestamp(micros.into(), text);
        }),
        SparkType::Time { .. } => primitive::<Time64NanosecondType>(array, |nanos, text| {
            date_time::push_time(nanos / 1000, text);
        }),
        SparkType::DayTimeInterval { start, end } => {
            primitive::<DurationMicrosecondType>(array, move |micros, text| {
                interval::push_day_time(micros, start, end, text);
            })
        }
        SparkType::YearMonthInterval { start, end } => {
            primitive::<IntervalYearMonthType>(array, move |months, text| {
                interval::push_year_month(months, start, end, text);
            })
        }
        SparkType::CalendarInterval => primitive::<IntervalMonthDayNanoType>(array, |value, text| {
            interval::push_calendar(value.months, value.days, value.nanoseconds / 1000, text);
        }),
        SparkType::Array(element) => list(array, element, context),
        SparkType::Map { key, value } => map(array, key, value, context),
        SparkType::Struct(_) => structure(array, context),
        SparkType::Udt(udt) => user_defined(array, udt, context),
        SparkType::Foreign(data_type) => Err(Error::Unsupported { feature: format!("a value of type {data_type}") }),
    }
}

fn binary<'a>(array: &'a ArrayRef, context: &'a Context) -> Result<Writer<'a>> {
    let values = array.as_binary_opt::<i32>().ok_or_else(|| unexpected(array))?;
    Ok(match context.style {
        Style::Cast => Box::new(|row, text| {
            text.push_str(&String::from_utf8_lossy(values.value(row)));
            Ok(())
        }),
        Style::Show => Box::new(|row, text| {
            let bytes: Vec<String> = values.value(row).iter().map(|byte| format!("{byte:02X}")).collect();
            text.push('[');
            text.push_str(&bytes.join(" "));
            text.push(']');
            Ok(())
        }),
    })
}

/// The writer of a part of nested values, which writes nulls too. It owns its array.
struct Part {
    array: ArrayRef,
    field: Field,
}

impl Part {
    fn new(array: &ArrayRef, field: &Field) -> Result<Part> {
        Ok(Part { array: canonical(array, field)?, field: field.clone() })
    }

    /// Writes the rows of `range` with `between` before each but the first.
    fn write(&self, range: std::ops::Range<usize>, context: &Context, text: &mut String) -> Result<()> {
        let write = writer(&self.array, &self.field, context)?;
        for (position, row) in range.enumerate() {
            if position > 0 {
                text.push_str(", ");
            }
            match self.array.is_null(row) {
                true => text.push_str(context.null()),
                false => write(row, text)?,
            }
        }
        Ok(())
    }
}

fn list<'a>(array: &'a ArrayRef, element: &'a Field, context: &'a Context) -> Result<Writer<'a>> {
    let lists = array.as_list_opt::<i32>().ok_or_else(|| unexpected(array))?;
    let elements = Part::new(lists.values(), element)?;
    Ok(Box::new(move |row, text| {
        let offsets = lists.value_offsets();
        text.push('[');
        elements.write(offsets[row] as usize..offsets[row + 1] as usize, context, text)?;
        text.push(']');
        Ok(())
    }))
}

fn map<'a>(array: &'a ArrayRef, key: &'a Field, value: &'a Field, context: &'a Context) -> Result<Writer<'a>> {
    let maps = array.as_map_opt().ok_or_else(|| unexpected(array))?;
    let (keys, values) = (Part::new(maps.keys(), key)?, Part::new(maps.values(), value)?);
    Ok(Box::new(move |row, text| {
        let offsets = maps.value_offsets();
        text.push('{');
        for (position, entry) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
            if position > 0 {
                text.push_str(", ");
            }
            keys.write(entry..entry + 1, context, text)?;
            text.push_str(" -> ");
            values.write(entry..entry + 1, context, text)?;
        }
        text.push('}');
        Ok(())
    }))
}

fn structure<'a>(array: &'a ArrayRef, context: &'a Context) -> Result<Writer<'a>> {
    let rows = array.as_struct_opt().ok_or_else(|| unexpected(array))?;
    let parts: Vec<Part> =
        rows.columns().iter().zip(rows.fields()).map(|(column, field)| Part::new(column, field)).collect::<Result<_>>()?;
    Ok(Box::new(move |row, text| {
        text.push('{');
        for (position, part) in parts.iter().enumerate() {
            if position > 0 {
                text.push_str(", ");
            }
            part.write(row..row + 1, context, text)?;
        }
        text.push('}');
        Ok(())
    }))
}

fn user_defined<'a>(array: &'a ArrayRef, udt: Udt<'a>, context: &'a Context) -> Result<Writer<'a>> {
    match udt.jvm_class {
        Some(VECTOR_JVM_CLASS | "org.apache.spark.mllib.linalg.VectorUDT") => {
            let vectors = VectorArray::try_new(array).map_err(|error| Error::Extension { source: Box::new(error) })?;
            Ok(Box::new(move |row, text| {
                let vector = vectors.row(row).map_err(|error| Error::Extension { source: Box::new(error) })?;
                push_vector(vector, text);
                Ok(())
            }))
        }
        Some(MATRIX_JVM_CLASS | "org.apache.spark.mllib.linalg.MatrixUDT") => matrix(array),
        _ => {
            let storage = Part::new(array, &Field::new("", udt.storage.clone(), true))?;
            Ok(Box::new(move |row, text| storage.write(row..row + 1, context, text)))
        }
    }
}

fn push_vector(vector: VectorRow<'_>, text: &mut String) {
    let join = |text: &mut String, parts: &mut dyn Iterator<Item = String>| {
        text.push('[');
        for (position, part) in parts.enumerate() {
            if position > 0 {
                text.push(',');
            }
            text.push_str(&part);
        }
        text.push(']');
    };
    match vector {
        VectorRow::Dense(values) => join(text, &mut values.iter().map(|value| java_double(*value))),
        VectorRow::Sparse { size, indices, values } => {
            let _ = write!(text, "({size},");
            join(text, &mut indices.iter().map(i32::to_string));
            text.push(',');
            join(text, &mut values.iter().map(|value| java_double(*value)));
            text.push(')');
        }
    }
}

/// Rows of a matrix on lines of their own, columns padded to one width.
fn matrix(array: &ArrayRef) -> Result<Writer<'_>> {
    let rows = array.as_struct_opt().filter(|rows| rows.num_columns() == 7).ok_or_else(|| unexpected(array))?;
    let ints = |column: usize| rows.column(column).as_primitive_opt::<Int32Type>().ok_or_else(|| unexpected(array));
    let list = |column: usize| rows.column(column).as_list_opt::<i32>().ok_or_else(|| unexpected(array));
    let kinds = rows.column(0).as_primitive_opt::<Int8Type>().ok_or_else(|| unexpected(array))?;
    let (num_rows, num_cols) = (ints(1)?, ints(2)?);
    let (col_ptrs, row_indices, values) = (list(3)?, list(4)?, list(5)?);
    let transposed = rows.column(6).as_boolean_opt().ok_or_else(|| unexpected(array))?;
    Ok(Box::new(move |row, text| {
        let (num_rows, num_cols) = (num_rows.value(row).max(0) as usize, num_cols.value(row).max(0) as usize);
        let row_values = values.value(row);
        let doubles = row_values.as_primitive_opt::<Float64Type>().ok_or_else(|| unexpected(array))?.values();
        if kinds.value(row) == 1 {
            let at = |i: usize, j: usize| match transposed.value(row) {
                true => i * num_cols + j,
                false => j * num_rows + i,
            };
            push_dense(num_rows, num_cols, |i, j| doubles.get(at(i, j)).copied().unwrap_or(f64::NAN), text);
            return Ok(());
        }
        let (ptrs, indices) = (col_ptrs.value(row), row_indices.value(row));
        let ptrs = ptrs.as_primitive_opt::<Int32Type>().ok_or_else(|| unexpected(array))?.values();
        let indices = indices.as_primitive_opt::<Int32Type>().ok_or_else(|| unexpected(array))?.values();
        let _ = write!(text, "{num_rows} x {num_cols} CSCMatrix");
        for (major, bounds) in ptrs.windows(2).enumerate() {
            for k in bounds[0].max(0) as usize..bounds[1].max(0) as usize {
                let (Some(minor), Some(value)) = (indices.get(k), doubles.get(k)) else { break };
                let _ = match transposed.value(row) {
                    true => write!(text, "\n({major},{minor}) {}", java_double(*value)),
                    false => write!(text, "\n({minor},{major}) {}", java_double(*value)),
                };
            }
        }
        Ok(())
    }))
}

fn push_dense(num_rows: usize, num_cols: usize, at: impl Fn(usize, usize) -> f64, text: &mut String) {
    let cell = |i: usize, j: usize| java_double(at(i, j));
    let widths: Vec<usize> =
        (0..num_cols).map(|j| (0..num_rows).map(|i| cell(i, j).len()).max().unwrap_or(0) + 2).collect();
    for i in 0..num_rows {
        if i > 0 {
            text.push('\n');
        }
        for (j, width) in widths.iter().enumerate() {
            let _ = write!(text, "{:width$}", cell(i, j));
        }
    }
}

/// A float as Java's `Float.toString` prints it.
pub fn java_float(value: f32) -> String {
    let magnitude = value.abs();
    if value.is_finite() && value != 0.0 && !(1e-3..1e7).contains(&magnitude) {
        let scientific = format!("{value:e}");
        return match scientific.split_once('e') {
            Some((mantissa, exponent)) if mantissa.contains('.') => format!("{mantissa}E{exponent}"),
            Some((mantissa, exponent)) => format!("{mantissa}.0E{exponent}"),
            None => scientific,
        };
    }
    if value.is_finite() { format!("{value:?}") } else { java_double(value.into()) }
}

fn unexpected(array: &ArrayRef) -> Error {
    Error::Bug { invariant: format!("a column of {} is held in its canonical type", array.data_type()) }
}
