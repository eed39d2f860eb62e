//! Columns of text as columns of a type: the rules of CSV, which JSON's strings share.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder,
    PrimitiveBuilder, StringBuilder, TimestampMicrosecondBuilder, new_null_array,
};
use arrow::compute::kernels::cast_utils::parse_decimal;
use arrow::datatypes::{
    ArrowPrimitiveType, Decimal128Type, Field, Int8Type, Int16Type, Int32Type, Int64Type,
};

use super::date_pattern::DatePattern;
use super::options::Options;
use super::parse::{parse_date, parse_local_timestamp, parse_timestamp};
use crate::conf::{TimeZone, parse_time_zone};
use crate::data_type::{SparkType, simple_string};
use crate::{Conf, Error, Result};

pub(super) type Cell<'a> = Option<Cow<'a, str>>;

/// How the text of a value is read.
#[derive(Debug, Clone)]
pub(super) struct CellRules {
    pub zone: TimeZone,
    pub date_format: Option<DatePattern>,
    pub timestamp_format: Option<DatePattern>,
    pub timestamp_ntz_format: Option<DatePattern>,
    pub nan: String,
    pub positive_infinity: String,
    pub negative_infinity: String,
}

impl CellRules {
    pub fn of(format: &str, options: &Options, conf: &Conf) -> Result<CellRules> {
        let pattern = |key: &str| options.get(key).map(DatePattern::parse).transpose();
        let zone = match options.get("timeZone") {
            Some(name) => parse_time_zone(name)
                .ok_or_else(|| super::options::invalid(format, "timeZone", name, "expected a time zone"))?,
            None => conf.session_time_zone(),
        };
        let text = |key: &str, default: &str| options.get(key).unwrap_or(default).to_string();
        Ok(CellRules {
            zone,
            date_format: pattern("dateFormat")?,
            timestamp_format: pattern("timestampFormat")?,
            timestamp_ntz_format: pattern("timestampNTZFormat")?,
            nan: text("nanValue", "NaN"),
            positive_infinity: text("positiveInf", "Inf"),
            negative_infinity: text("negativeInf", "-Inf"),
        })
    }

    pub fn date(&self, text: &str) -> Option<i32> {
        match &self.date_format {
            Some(pattern) => pattern.date(text),
            None => parse_date(text),
        }
    }

    pub fn timestamp(&self, text: &str) -> Option<i64> {
        match &self.timestamp_format {
            Some(pattern) => pattern.timestamp(text, &self.zone),
            None => parse_timestamp(text, &self.zone),
        }
    }

    pub fn timestamp_ntz(&self, text: &str) -> Option<i64> {
        match &self.timestamp_ntz_format {
            Some(pattern) => pattern.local_timestamp(text),
            None => parse_local_timestamp(text).filter(|(_, zone)| zone.is_none()).map(|(micros, _)| micros),
        }
    }

    /// A double as Java reads it: blanks around it and a type letter behind it are fine.
    pub fn double(&self, text: &str) -> Option<f64> {
        if text == self.nan {
            return Some(f64::NAN);
        }
        if text == self.positive_infinity || text == "Infinity" {
            return Some(f64::INFINITY);
        }
        if text == self.negative_infinity || text == "-Infinity" {
            return Some(f64::NEG_INFINITY);
        }
        let text = text.trim();
        let text = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
        let is_number = text.ends_with(|c: char| c.is_ascii_digit() || c == '.')
            && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
        is_number.then(|| text.parse().ok()).flatten()
    }
}

fn parsed<T: ArrowPrimitiveType>(
    mut builder: PrimitiveBuilder<T>,
    cells: &mut dyn Iterator<Item = Option<&str>>,
    is_bad: &mut [bool],
    parse: impl Fn(&str) -> Option<T::Native>,
) -> ArrayRef {
    for (row, cell) in cells.enumerate() {
        let value = cell.and_then(&parse);
        is_bad[row] |= cell.is_some() && value.is_none();
        builder.append_option(value);
    }
    Arc::new(builder.finish())
}

/// Builds a column. A cell that is no value of the type is null, and its row is marked in `is_bad`.
pub(super) fn column<'a>(
    cells: &mut dyn Iterator<Item = Option<&'a str>>,
    num_rows: usize,
    field: &Field,
    rules: &CellRules,
    is_bad: &mut [bool],
) -> Result<ArrayRef> {
    Ok(match SparkType::of(field) {
        SparkType::String | SparkType::Char(_) | SparkType::Varchar(_) => {
            let mut builder = StringBuilder::with_capacity(num_rows, num_rows * 8);
            cells.for_each(|cell| builder.append_option(cell));
            Arc::new(builder.finish())
        }
        SparkType::Binary => {
            let mut builder = BinaryBuilder::new();
            cells.for_each(|cell| builder.append_option(cell));
            Arc::new(builder.finish())
        }
        SparkType::Boolean => {
            let mut builder = BooleanBuilder::with_capacity(num_rows);
            for (row, cell) in cells.enumerate() {
                let value = cell.and_then(parse_boolean);
                is_bad[row] |= cell.is_some() && value.is_none();
                builder.append_option(value);
            }
            Arc::new(builder.finish())
        }
        SparkType::Byte => parsed(PrimitiveBuilder::<Int8Type>::new(), cells, is_bad, |text| text.parse().ok()),
        SparkType::Short => parsed(PrimitiveBuilder::<Int16Type>::new(), cells, is_bad, |text| text.parse().ok()),
        SparkType::Integer => parsed(PrimitiveBuilder::<Int32Type>::new(), cells, is_bad, |text| text.parse().ok()),
        SparkType::Long => parsed(PrimitiveBuilder::<Int64Type>::new(), cells, is_bad, |text| text.parse().ok()),
        SparkType::Float => parsed(Float32Builder::new(), cells, is_bad, |text| {
            let trimmed = text.trim();
            // Through a double a decimal would be rounded twice.
            trimmed.parse::<f32>().ok().filter(|value| value.is_finite()).or_else(|| rules.double(text).map(|v| v as f32))
        }),
        SparkType::Double => parsed(Float64Builder::new(), cells, is_bad, |text| rules.double(text)),
        SparkType::Decimal { precision, scale } => {
            let builder = Decimal128Builder::new().with_data_type(field.data_type().clone());
            parsed(builder, cells, is_bad, |text| decimal(text, precision, scale))
        }
        SparkType::Date => parsed(Date32Builder::new(), cells, is_bad, |text| rules.date(text)),
        SparkType::Timestamp => {
            let builder = TimestampMicrosecondBuilder::new().with_data_type(field.data_type().clone());
            parsed(builder, cells, is_bad, |text| rules.timestamp(text))
        }
        SparkType::TimestampNtz => {
            parsed(TimestampMicrosecondBuilder::new(), cells, is_bad, |text| rules.timestamp_ntz(text))
        }
        SparkType::Null => new_null_array(field.data_type(), num_rows),
        _ => return Err(Error::Unsupported { feature: format!("reading text as {}", simple_string(field)) }),
    })
}

pub(super) fn parse_boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

pub(super) fn decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let is_number = text.bytes().any(|b| b.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    is_number.then(|| parse_decimal::<Decimal128Type>(text, precision, scale).ok()).flatten()
}
