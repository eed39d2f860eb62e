//! Numbers to numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array, PrimitiveArray};
use arrow::datatypes::{
    DataType, Decimal128Type, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};

use super::Mode;
use crate::data_type::sql_name;
use crate::embedded::expression::coercion::{is_float, is_integral};
use crate::{Error, Result};

/// Converts a column between numeric types.
pub fn convert(array: &ArrayRef, target: &DataType, mode: Mode) -> Result<ArrayRef> {
    let source = array.data_type();
    match target {
        _ if source == target => Ok(array.clone()),
        DataType::Decimal128(precision, scale) => to_decimal(array, *precision, *scale, mode),
        DataType::Float32 | DataType::Float64 => match source {
            DataType::Decimal128(_, scale) => {
                let divisor = 10f64.powi((*scale).into());
                let doubles: PrimitiveArray<Float64Type> =
                    array.as_primitive::<Decimal128Type>().unary(|digits| exact_double(digits, *scale, divisor));
                Ok(arrow::compute::cast(&doubles, target)?)
            }
            _ => Ok(arrow::compute::cast(array, target)?),
        },
        DataType::Int8 => integers::<Int8Type>(array, mode, i8::MIN.into(), i8::MAX.into(), |wide| wide as i8),
        DataType::Int16 => integers::<Int16Type>(array, mode, i16::MIN.into(), i16::MAX.into(), |wide| wide as i16),
        DataType::Int32 => integers::<Int32Type>(array, mode, i32::MIN.into(), i32::MAX.into(), |wide| wide as i32),
        _ => integers::<Int64Type>(array, mode, i64::MIN.into(), i64::MAX.into(), |wide| wide as i64),
    }
}

/// The double nearest to a decimal: exact digits below 2^53 divide with one rounding, others go by way of text.
fn exact_double(digits: i128, scale: i8, divisor: f64) -> f64 {
    if digits.unsigned_abs() < 1 << 53 && scale <= 22 {
        return digits as f64 / divisor;
    }
    format!("{digits}e-{scale}").parse().unwrap_or(f64::NAN)
}

fn integers<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    mode: Mode,
    low: i128,
    high: i128,
    wrap: impl Fn(i128) -> T::Native,
) -> Result<ArrayRef> {
    let source = array.data_type();
    let mut values = Vec::with_capacity(array.len());
    let mut push = |wide: Option<i128>, wrapped: i128, text: &dyn Fn() -> String| -> Result<()> {
        match wide {
            Some(wide) if (low..=high).contains(&wide) => values.push(Some(wrap(wide))),
            _ if mode == Mode::Ansi => return Err(overflow(text(), source, &T::DATA_TYPE)),
            _ if mode == Mode::Try => values.push(None),
            _ => values.push(Some(wrap(wrapped))),
        }
        Ok(())
    };
    let nulls = array.nulls().cloned();
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    match source {
        _ if is_integral(source) => {
            let longs = arrow::compute::cast(array, &DataType::Int64)?;
            for (row, long) in longs.as_primitive::<Int64Type>().values().iter().enumerate() {
                let wide = if is_null(row) { 0 } else { i128::from(*long) };
                push(Some(wide), wide, &|| format!("{long}{}", literal_suffix(source)))?;
            }
        }
        _ if is_float(source) => {
            let doubles = arrow::compute::cast(array, &DataType::Float64)?;
            for (row, double) in doubles.as_primitive::<Float64Type>().values().iter().enumerate() {
                let double = if is_null(row) { 0.0 } else { *double };
                let wide = (!double.is_nan()).then_some(double as i128);
                // Java's own conversion saturates at int, or at long for a long, before it wraps.
                let saturated = if high > i32::MAX.into() { double as i64 as i128 } else { double as i32 as i128 };
                push(wide, saturated, &|| {
                    let suffix = if source == &DataType::Float64 { "D" } else { "" };
                    format!("{}{suffix}", udt::vector::java_double(double))
                })?;
            }
        }
        DataType::Decimal128(_, scale) => {
            let divisor = 10i128.pow((*scale).max(0) as u32);
            for (row, digits) in array.as_primitive::<Decimal128Type>().values().iter().enumerate() {
                let wide = if is_null(row) { 0 } else { digits / divisor };
                push(Some(wide), wide, &|| format!("{}BD", decimal_text(*digits, *scale)))?;
            }
        }
        _ => return Err(Error::Bug { invariant: format!("{source} is a number") }),
    }
    let values = PrimitiveArray::<T>::from_iter(values);
    let nulls = arrow::buffer::NullBuffer::union(values.nulls(), nulls.as_ref());
    Ok(Arc::new(PrimitiveArray::<T>::new(values.values().clone(), nulls)))
}

fn literal_suffix(source: &DataType) -> &'static str {
    match source {
        DataType::Int8 => "Y",
        DataType::Int16 => "S",
        DataType::Int64 => "L",
        _ => "",
    }
}

/// A decimal's digits as text, such as `1.20`.
pub fn decimal_text(digits: i128, scale: i8) -> String {
    let scale = scale.max(0) as usize;
    let sign = if digits < 0 { "-" } else { "" };
    let padded = format!("{:0width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn to_decimal(array: &ArrayRef, precision: u8, scale: i8, mode: Mode) -> Result<ArrayRef> {
    let source = array.data_type();
    let mut values: Vec<Option<i128>> = Vec::with_capacity(array.len());
    match source {
        _ if is_integral(source) => {
            let longs = arrow::compute::cast(array, &DataType::Int64)?;
            for long in longs.as_primitive::<Int64Type>() {
                values.push(match long {
                    None => None,
                    Some(long) => fit_decimal(long.into(), 0, precision, scale, mode, || long.to_string())?,
                });
            }
        }
        DataType::Decimal128(_, from) => {
            for digits in array.as_primitive::<Decimal128Type>() {
                values.push(match digits {
                    None => None,
                    Some(digits) => {
                        fit_decimal(digits, (*from).into(), precision, scale, mode, || decimal_text(digits, *from))?
                    }
                });
            }
        }
        _ => {
            let singles = array.as_primitive_opt::<Float32Type>();
            let doubles = arrow::compute::cast(array, &DataType::Float64)?;
            for (row, double) in doubles.as_primitive::<Float64Type>().iter().enumerate() {
                let Some(double) = double else {
                    values.push(None);
                    continue;
                };
                // The shortest text of a float is what Java's BigDecimal is made from.
                let text = match singles {
                    Some(singles) => format!("{:e}", singles.value(row)),
                    None => format!("{double:e}"),
                };
                values.push(match super::text::decimal(&text) {
                    Some((digits, from)) => {
                        fit_decimal(digits, from, precision, scale, mode, || udt::vector::java_double(double))?
                    }
                    None => None,
                });
            }
        }
    }
    Ok(Arc::new(Decimal128Array::from(values).with_precision_and_scale(precision, scale)?))
}

/// Rescales digits, rounding half up.
///
/// # Errors
/// NUMERIC_VALUE_OUT_OF_RANGE when they do not fit, in ANSI mode.
pub fn fit_decimal(
    digits: i128,
    from: i32,
    precision: u8,
    scale: i8,
    mode: Mode,
    text: impl Fn() -> String,
) -> Result<Option<i128>> {
    let limit = 10i128.pow(precision.into());
    match rescaled(digits, from, scale.into()) {
        Some(fitted) if fitted.abs() < limit => Ok(Some(fitted)),
        _ if mode == Mode::Ansi => {
            let text = text();
            Err(Error::Row {
                class: "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
                message: format!(
                    "{text} cannot be represented as Decimal({precision}, {scale}). If necessary set \
                     \"spark.sql.ansi.enabled\" to \"false\" to bypass this error, and return NULL instead."
                ),
                parameters: vec![
                    ("value", text),
                    ("precision", precision.to_string()),
                    ("scale", scale.to_string()),
                    ("config", "\"spark.sql.ansi.enabled\"".into()),
                ],
            })
        }
        _ => Ok(None),
    }
}

/// Digits at another scale, half away from zero; nothing when they overflow.
pub fn rescaled(digits: i128, from: i32, to: i32) -> Option<i128> {
    if digits == 0 {
        return Some(0);
    }
    if to >= from {
        return digits.checked_mul(10i128.checked_pow((to - from) as u32)?);
    }
    let Some(divisor) = 10i128.checked_pow((from - to) as u32) else { return Some(0) };
    let (quotient, rest) = (digits / divisor, digits % divisor);
    let is_half = rest.unsigned_abs() >= divisor.unsigned_abs().div_ceil(2);
    Some(if is_half { quotient + digits.signum() } else { quotient })
}

fn overflow(text: String, source: &DataType, target: &DataType) -> Error {
    let name = |data_type: &DataType| sql_name(&Field::new("", data_type.clone(), true));
    let (source, target) = (name(source), name(target));
    Error::Row {
        class: "CAST_OVERFLOW",
        message: format!(
            "The value {text} of the type \"{source}\" cannot be cast to \"{target}\" due to an overflow. Use `try_cast` \
             to tolerate overflow and return NULL instead."
        ),
        parameters: vec![
            ("value", text),
            ("sourceType", format!("\"{source}\"")),
            ("targetType", format!("\"{target}\"")),
        ],
    }
}
