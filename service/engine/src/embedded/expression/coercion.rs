//! Spark's implicit casts, written into the expression so that results have Spark's types.

use arrow::datatypes::{DataType, Field, TimeUnit};
use std::sync::Arc;

use super::Typed;
use super::cast::{Mode, cast_to};
use super::typed::same_type;
use crate::{Conf, Result};

pub const MAX_DECIMAL_PRECISION: u8 = 38;

/// The type of `timestamp`: microseconds of an instant.
pub fn timestamp_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The type of `array<element>` with nullable elements.
pub fn array_of(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", element, true)))
}

/// The type of `map<key, value>` with nullable values.
pub fn map_of(key: DataType, value: DataType) -> DataType {
    map_of_fields(Field::new("key", key, false), Field::new("value", value, true))
}

pub fn map_of_fields(key: Field, value: Field) -> DataType {
    let entries = DataType::Struct(vec![key.with_name("key").with_nullable(false), value.with_name("value")].into());
    DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
}

pub fn is_integral(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64)
}

pub fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

pub fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(_, _))
}

pub fn is_numeric(data_type: &DataType) -> bool {
    is_integral(data_type) || is_float(data_type) || is_decimal(data_type)
}

pub fn is_date_or_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(_, _))
}

fn rank(data_type: &DataType) -> Option<usize> {
    let order =
        [DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64, DataType::Float32, DataType::Float64];
    order.iter().position(|other| other == data_type)
}

/// The decimal type that holds every value of an integral type.
pub fn decimal_of(data_type: &DataType) -> Option<(u8, i8)> {
    match data_type {
        DataType::Int8 => Some((3, 0)),
        DataType::Int16 => Some((5, 0)),
        DataType::Int32 => Some((10, 0)),
        DataType::Int64 => Some((20, 0)),
        DataType::Decimal128(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

/// The decimal type of an operand, which for an integral literal is as narrow as its value.
pub fn decimal_of_operand(value: &Typed) -> Option<(u8, i8)> {
    use datafusion::common::ScalarValue;
    let digits = |number: i64| (number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1) as u8;
    match value.value() {
        Some(ScalarValue::Int8(Some(number))) => Some((digits((*number).into()), 0)),
        Some(ScalarValue::Int16(Some(number))) => Some((digits((*number).into()), 0)),
        Some(ScalarValue::Int32(Some(number))) => Some((digits((*number).into()), 0)),
        Some(ScalarValue::Int64(Some(number))) => Some((digits(*number), 0)),
        _ => decimal_of(value.data_type()),
    }
}

fn wider_decimal(left: (u8, i8), right: (u8, i8)) -> DataType {
    let scale = left.1.max(right.1);
    let whole = (left.0 as i16 - left.1 as i16).max(right.0 as i16 - right.1 as i16);
    let precision = (whole + scale as i16).min(MAX_DECIMAL_PRECISION.into()) as u8;
    DataType::Decimal128(precision, scale.min(precision as i8))
}

/// The narrowest type both convert to without text, or nothing.
fn tightest(left: &DataType, right: &DataType, conf: &Conf) -> Option<DataType> {
    if same_type(left, right) {
        return Some(merge_nullability(left, right));
    }
    match (left, right) {
        (DataType::Null, other) | (other, DataType::Null) => Some(other.clone()),
        _ if is_decimal(left) || is_decimal(right) => {
            if is_float(left) || is_float(right) {
                return Some(DataType::Float64);
            }
            Some(wider_decimal(decimal_of(left)?, decimal_of(right)?))
        }
        _ if is_numeric(left) && is_numeric(right) => {
            let wider = if rank(left)? >= rank(right)? { left } else { right };
            if wider == &DataType::Float32 && conf.ansi() { Some(DataType::Float64) } else { Some(wider.clone()) }
        }
        (DataType::Date32, DataType::Timestamp(_, _)) => Some(right.clone()),
        (DataType::Timestamp(_, _), DataType::Date32) => Some(left.clone()),
        (DataType::Timestamp(_, _), DataType::Timestamp(_, _)) => Some(timestamp_type()),
        _ => None,
    }
}

fn merge_nullability(left: &DataType, right: &DataType) -> DataType {
    match (left, right) {
        (DataType::List(l), DataType::List(r)) => DataType::List(merge_fields(l, r)),
        (DataType::Map(l, sorted), DataType::Map(r, _)) => DataType::Map(merge_fields(l, r), *sorted),
        (DataType::Struct(l), DataType::Struct(r)) => {
            DataType::Struct(l.iter().zip(r).map(|(l, r)| merge_fields(l, r)).collect())
        }
        _ => left.clone(),
    }
}

fn merge_fields(left: &Arc<Field>, right: &Arc<Field>) -> Arc<Field> {
    let data_type = merge_nullability(left.data_type(), right.data_type());
    let nullable = left.is_nullable() || right.is_nullable();
    Arc::new(left.as_ref().clone().with_data_type(data_type).with_nullable(nullable))
}

/// The type both sides of an operator, or all branches of a conditional, are cast to.
pub fn wider(left: &DataType, right: &DataType, conf: &Conf) -> Option<DataType> {
    if let Some(found) = tightest(left, right, conf) {
        return Some(found);
    }
    match (left, right) {
        (DataType::Utf8, other) | (other, DataType::Utf8) => wider_with_string(other, conf),
        (DataType::List(l), DataType::List(r)) => {
            let element = wider(l.data_type(), r.data_type(), conf)?;
            let nullable = l.is_nullable() || r.is_nullable();
            Some(DataType::List(Arc::new(Field::new("element", element, nullable))))
        }
        (DataType::Map(l, _), DataType::Map(r, _)) => {
            let (DataType::Struct(l), DataType::Struct(r)) = (l.data_type(), r.data_type()) else { return None };
            let key = wider(l[0].data_type(), r[0].data_type(), conf)?;
            let value = wider(l[1].data_type(), r[1].data_type(), conf)?;
            let nullable = l[1].is_nullable() || r[1].is_nullable();
            Some(map_of_fields(Field::new("key", key, false), Field::new("value", value, nullable)))
        }
        (DataType::Struct(l), DataType::Struct(r)) if l.len() == r.len() => {
            let mut fields = Vec::with_capacity(l.len());
            for (l, r) in l.iter().zip(r) {
                if !l.name().eq_ignore_ascii_case(r.name()) {
                    return None;
                }
                let data_type = wider(l.data_type(), r.data_type(), conf)?;
                fields.push(Field::new(l.name(), data_type, l.is_nullable() || r.is_nullable()));
            }
            Some(DataType::Struct(fields.into()))
        }
        _ => None,
    }
}

/// Under ANSI text becomes the other side's type (widest of its kind); without it, the other side becomes text.
fn wider_with_string(other: &DataType, conf: &Conf) -> Option<DataType> {
    let is_nested = matches!(other, DataType::List(_) | DataType::Map(_, _) | DataType::Struct(_));
    if is_nested {
        return None;
    }
    if !conf.ansi() {
        return (other != &DataType::Binary && other != &DataType::Boolean).then_some(DataType::Utf8);
    }
    Some(match other {
        _ if is_integral(other) => DataType::Int64,
        _ if is_float(other) || is_decimal(other) => DataType::Float64,
        _ => other.clone(),
    })
}

/// The type two compared values are cast to.
pub fn compared(left: &DataType, right: &DataType, conf: &Conf) -> Option<DataType> {
    match (left, right) {
        (DataType::Utf8, other) | (other, DataType::Utf8) if !conf.ansi() && other != &DataType::Utf8 => match other {
            DataType::List(_) | DataType::Map(_, _) | DataType::Struct(_) => None,
            DataType::Null => Some(DataType::Utf8),
            other => Some(other.clone()),
        },
        (DataType::Boolean, other) | (other, DataType::Boolean) if is_numeric(other) && !conf.ansi() => {
            Some(other.clone())
        }
        _ => wider(left, right, conf),
    }
}

/// The type all of some values are cast to; `None` when two of them have no common type.
pub fn common_type<'a>(values: impl IntoIterator<Item = &'a Typed>, conf: &Conf) -> Option<DataType> {
    let mut values: Vec<&Typed> = values.into_iter().collect();
    // Text goes last, so that the order of the others does not matter: (1, 'a', 2.0D) is what (1, 2.0D, 'a') is.
    values.sort_by_key(|value| value.data_type() == &DataType::Utf8);
    let mut values = values.into_iter();
    let first = values.next()?.data_type().clone();
    values.try_fold(first, |found, value| wider(&found, value.data_type(), conf))
}

/// Casts each value to the type, where it is not of it already.
pub fn cast_all(values: Vec<Typed>, data_type: &DataType, conf: &Conf) -> Result<Vec<Typed>> {
    values.into_iter().map(|value| implicit(value, data_type, conf)).collect()
}

/// An implicit cast, in the session's mode.
pub fn implicit(value: Typed, data_type: &DataType, conf: &Conf) -> Result<Typed> {
    if value.data_type() == data_type {
        return Ok(value);
    }
    cast_to(value, data_type, Mode::of(conf), conf)
}
