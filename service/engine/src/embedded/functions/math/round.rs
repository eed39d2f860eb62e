//! `round`, `bround`, `ceil` and `floor`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};

use super::super::Call;
use super::super::arithmetic::overflowed;
use super::super::kernel::{self, Kernel};
use super::{not_a_number, places};
use crate::Result;
use crate::embedded::expression::Typed;
use crate::embedded::expression::cast::{Mode, number, text};
use crate::embedded::expression::coercion::{is_float, is_integral};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    Away,
    Even,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toward {
    Up,
    Down,
}

/// How the digits past a scale are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drop {
    Nearest(Ties),
    Directed(Toward),
}

/// Drops so many digits from the end of a decimal's.
fn drop_digits(digits: i128, count: u32, drop: Drop) -> i128 {
    let Some(divisor) = 10i128.checked_pow(count) else { return 0 };
    let (quotient, rest) = (digits.div_euclid(divisor), digits.rem_euclid(divisor));
    let is_up = match drop {
        Drop::Directed(Toward::Up) => rest > 0,
        Drop::Directed(Toward::Down) => false,
        Drop::Nearest(ties) => {
            let twice = rest * 2;
            if twice == divisor {
                match ties {
                    Ties::Away => digits > 0,
                    Ties::Even => quotient % 2 != 0,
                }
            } else {
                twice > divisor
            }
        }
    };
    quotient + i128::from(is_up)
}

/// A double rounded by its shortest decimal text, as Java's BigDecimal of it.
fn round_double(double: f64, places: i32, drop: Drop) -> f64 {
    if !double.is_finite() || double == 0.0 {
        return double;
    }
    let Some((digits, scale)) = text::decimal(&format!("{double:e}")) else { return double };
    if scale <= places {
        return double;
    }
    let rounded = drop_digits(digits, (scale - places) as u32, drop);
    format!("{rounded}e{}", -places).parse().unwrap_or(double)
}

pub fn round(mut call: Call<'_>, ties: Ties) -> Result<Typed> {
    let places = places(&call)?;
    let ansi = call.ansi();
    call.arguments.truncate(1);
    let [value] = call.take()?;
    let value = if matches!(value.data_type(), DataType::Utf8 | DataType::Null) {
        call.cast(value, &DataType::Float64)?
    } else {
        value
    };
    let drop = Drop::Nearest(ties);
    let data_type = value.data_type().clone();
    match data_type {
        DataType::Decimal128(precision, scale) => Ok(decimal(value, precision, scale, places, drop)),
        _ if is_float(&data_type) => {
            let output = data_type.clone();
            Ok(kernel::strict(format!("round {drop:?} {places}"), vec![value], data_type, move |arguments, _| {
                if output == DataType::Float32 {
                    let floats = arguments[0].as_primitive::<arrow::datatypes::Float32Type>();
                    let rounded: PrimitiveArray<arrow::datatypes::Float32Type> = floats.unary(|float| {
                        let exact = text::decimal(&format!("{float:e}"));
                        match exact {
                            Some((digits, scale)) if float.is_finite() && float != 0.0 && scale > places => {
                                let rounded = drop_digits(digits, (scale - places) as u32, drop);
                                format!("{rounded}e{}", -places).parse().unwrap_or(float)
                            }
                            _ => float,
                        }
                    });
                    return Ok(Arc::new(rounded) as ArrayRef);
                }
                let rounded: Float64Array =
                    arguments[0].as_primitive::<Float64Type>().unary(|double| round_double(double, places, drop));
                Ok(Arc::new(rounded))
            }))
        }
        _ if is_integral(&data_type) => {
            if places >= 0 {
                return Ok(value);
            }
            let nullable = value.nullable();
            let name = format!("round {drop:?} {places}, ansi {ansi}");
            let kernel = Kernel { raises: ansi, ..Kernel::new(name, data_type.clone(), nullable) };
            Ok(kernel.call(vec![value], move |arguments, _| {
                let longs = arrow::compute::cast(&arguments[0], &DataType::Int64)?;
                let count = places.unsigned_abs();
                let mut rounded = Vec::with_capacity(longs.len());
                for long in longs.as_primitive::<Int64Type>() {
                    let Some(long) = long else {
                        rounded.push(None);
                        continue;
                    };
                    let wide = drop_digits(long.into(), count, drop).saturating_mul(10i128.saturating_pow(count));
                    match i64::try_from(wide) {
                        Ok(long) => rounded.push(Some(long)),
                        Err(_) if ansi => return Err(overflowed(&data_type, "")),
                        Err(_) => rounded.push(Some(wide as i64)),
                    }
                }
                let rounded: ArrayRef = Arc::new(PrimitiveArray::<Int64Type>::from(rounded));
                let mode = if ansi { Mode::Ansi } else { Mode::Legacy };
                number::convert(&rounded, &data_type, mode)
            }))
        }
        _ => Err(not_a_number(&call, &value)),
    }
}

fn decimal(value: Typed, precision: u8, scale: i8, places: i32, drop: Drop) -> Typed {
    let scale = i32::from(scale);
    let kept = places.clamp(0, scale);
    let whole = i32::from(precision) - scale + 1;
    let output_precision = if places < 0 { whole.max(-places + 1).min(38) } else { (whole + kept).min(38) };
    let output = DataType::Decimal128(output_precision as u8, kept as i8);
    kernel::strict(format!("round {drop:?} {places}"), vec![value], output, move |arguments, _| {
        let digits = arguments[0].as_primitive::<Decimal128Type>();
        let rounded: Decimal128Array = digits.unary(|digits| {
            if places >= scale {
                return digits;
            }
            let dropped = drop_digits(digits, (scale - places) as u32, drop);
            if places < 0 { dropped.saturating_mul(10i128.saturating_pow(places.unsigned_abs())) } else { dropped }
        });
        Ok(Arc::new(rounded.with_precision_and_scale(output_precision as u8, kept as i8)?))
    })
}

/// `ceil` and `floor`: to a whole number, or to so many places.
pub fn toward(mut call: Call<'_>, toward: Toward) -> Result<Typed> {
    let drop = Drop::Directed(toward);
    let places = if call.arguments.len() == 2 { Some(places(&call)?) } else { None };
    call.arguments.truncate(1);
    let [value] = call.take()?;
    let value = if matches!(value.data_type(), DataType::Utf8 | DataType::Null) {
        call.cast(value, &DataType::Float64)?
    } else {
        value
    };
    if let Some(places) = places {
        let value = match value.data_type() {
            DataType::Decimal128(_, _) => value,
            DataType::Int8 => call.cast(value, &DataType::Decimal128(3, 0))?,
            DataType::Int16 => call.cast(value, &DataType::Decimal128(5, 0))?,
            DataType::Int32 => call.cast(value, &DataType::Decimal128(10, 0))?,
            DataType::Int64 => call.cast(value, &DataType::Decimal128(20, 0))?,
            DataType::Float32 => call.cast(value, &DataType::Decimal128(14, 7))?,
            DataType::Float64 => call.cast(value, &DataType::Decimal128(30, 15))?,
            _ => return Err(not_a_number(&call, &value)),
        };
        let DataType::Decimal128(precision, scale) = *value.data_type() else {
            return Err(not_a_number(&call, &value));
        };
        return Ok(decimal(value, precision, scale, places, drop));
    }
    match value.data_type().clone() {
        data_type if is_integral(&data_type) => call.cast(value, &DataType::Int64),
        DataType::Decimal128(precision, scale) => {
            let output = if scale == 0 { precision } else { (precision - scale as u8 + 1).min(38) };
            let rounded = decimal(value, precision, scale, 0, drop);
            Ok(relabelled(rounded, output))
        }
        data_type if is_float(&data_type) => {
            let value = call.cast(value, &DataType::Float64)?;
            Ok(kernel::strict(format!("whole {toward:?}"), vec![value], DataType::Int64, move |arguments, _| {
                let longs: PrimitiveArray<Int64Type> =
                    arguments[0].as_primitive::<Float64Type>().unary(|double| match toward {
                        Toward::Up => double.ceil() as i64,
                        Toward::Down => double.floor() as i64,
                    });
                Ok(Arc::new(longs))
            }))
        }
        _ => Err(not_a_number(&call, &value)),
    }
}

fn relabelled(value: Typed, precision: u8) -> Typed {
    if value.data_type() == &DataType::Decimal128(precision, 0) {
        return value;
    }
    kernel::strict("whole decimal", vec![value], DataType::Decimal128(precision, 0), move |arguments, _| {
        let digits = arguments[0].as_primitive::<Decimal128Type>().clone();
        Ok(Arc::new(digits.with_precision_and_scale(precision, 0)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_away_from_zero_or_to_even() {
        for (double, places, ties, rounded) in [
            (2.5, 0, Ties::Away, 3.0),
            (-2.5, 0, Ties::Away, -3.0),
            (2.5, 0, Ties::Even, 2.0),
            (3.5, 0, Ties::Even, 4.0),
            (1.005, 2, Ties::Away, 1.01),
            (123.456, -1, Ties::Away, 120.0),
        ] {
            assert_eq!(round_double(double, places, Drop::Nearest(ties)), rounded, "{double} to {places}, {ties:?}");
        }
    }
}
