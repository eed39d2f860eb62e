//! Text to numbers and booleans.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Decimal128Array, PrimitiveArray, StringArray,
};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};

use super::{Mode, invalid_input};
use crate::Result;

/// What Spark's trimming takes off: spaces and control characters.
pub fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ' || c == '\u{7f}')
}

pub fn from_binary(array: &ArrayRef) -> Result<ArrayRef> {
    let texts = array.as_binary::<i32>().iter().map(|bytes| bytes.map(|bytes| String::from_utf8_lossy(bytes)));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

pub fn to_boolean(array: &ArrayRef, mode: Mode) -> Result<ArrayRef> {
    let mut truths = Vec::with_capacity(array.len());
    for text in array.as_string::<i32>() {
        truths.push(match text {
            None => None,
            Some(text) => match trimmed(text).to_ascii_lowercase().as_str() {
                "t" | "true" | "y" | "yes" | "1" => Some(true),
                "f" | "false" | "n" | "no" | "0" => Some(false),
                _ if mode == Mode::Ansi => return Err(invalid_input(text, "STRING", &DataType::Boolean)),
                _ => None,
            },
        });
    }
    Ok(Arc::new(BooleanArray::from(truths)))
}

pub fn to_number(array: &ArrayRef, target: &DataType, mode: Mode) -> Result<ArrayRef> {
    match target {
        DataType::Int8 => parsed::<Int8Type>(array, target, mode, |text| integer(text, mode)?.try_into().ok()),
        DataType::Int16 => parsed::<Int16Type>(array, target, mode, |text| integer(text, mode)?.try_into().ok()),
        DataType::Int32 => parsed::<Int32Type>(array, target, mode, |text| integer(text, mode)?.try_into().ok()),
        DataType::Int64 => parsed::<Int64Type>(array, target, mode, |text| integer(text, mode)),
        DataType::Float32 => parsed::<Float32Type>(array, target, mode, |text| float::<f32>(text)),
        DataType::Decimal128(precision, scale) => {
            let (precision, scale) = (*precision, *scale);
            let mut values = Vec::with_capacity(array.len());
            for text in array.as_string::<i32>() {
                let Some(text) = text else {
                    values.push(None);
                    continue;
                };
                let Some((digits, text_scale)) = decimal(trimmed(text)) else {
                    if mode == Mode::Ansi {
                        return Err(invalid_input(text, "STRING", target));
                    }
                    values.push(None);
                    continue;
                };
                values
                    .push(super::number::fit_decimal(digits, text_scale, precision, scale, mode, || text.to_string())?);
            }
            Ok(Arc::new(Decimal128Array::from(values).with_precision_and_scale(precision, scale)?))
        }
        _ => parsed::<Float64Type>(array, target, mode, |text| float::<f64>(text)),
    }
}

fn parsed<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    target: &DataType,
    mode: Mode,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let texts = array.as_string::<i32>();
    let mut values = Vec::with_capacity(texts.len());
    for text in texts {
        let value = match text {
            None => None,
            Some(text) => match parse(trimmed(text)) {
                None if mode == Mode::Ansi => return Err(invalid_input(text, "STRING", target)),
                value => value,
            },
        };
        values.push(value);
    }
    Ok(Arc::new(PrimitiveArray::<T>::from_iter(values)))
}

/// A whole number; outside ANSI a fraction is cut off.
fn integer(text: &str, mode: Mode) -> Option<i64> {
    let whole = match text.split_once('.') {
        Some((whole, fraction)) if mode == Mode::Legacy && fraction.bytes().all(|byte| byte.is_ascii_digit()) => {
            if matches!(whole, "" | "+" | "-") {
                return (!fraction.is_empty()).then_some(0);
            }
            whole
        }
        Some(_) => return None,
        None => text,
    };
    whole.parse().ok()
}

/// A floating-point number as Java reads it, and Spark's spellings of infinity and NaN.
fn float<F: std::str::FromStr + From<f32>>(text: &str) -> Option<F> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "+inf" | "infinity" | "+infinity" => return Some(f32::INFINITY.into()),
        "-inf" | "-infinity" => return Some(f32::NEG_INFINITY.into()),
        "nan" => return Some(f32::NAN.into()),
        _ => {}
    }
    let digits = lower.strip_suffix(['d', 'f']).unwrap_or(&lower);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    // Rust reads "+inf" and "-nan", Java does not.
    if digits.contains(|c: char| c.is_ascii_alphabetic() && c != 'e') { None } else { digits.parse().ok() }
}

/// Unscaled digits and scale of a decimal number, with an exponent or without.
pub fn decimal(text: &str) -> Option<(i128, i32)> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let unsigned = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    if unsigned.is_empty() && fraction.is_empty() {
        return None;
    }
    if !unsigned.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Digits past what a decimal holds cannot change a rounded result by more than the last place.
    let room = 38usize.saturating_sub(unsigned.trim_start_matches('0').len());
    let fraction = &fraction[..fraction.len().min(room)];
    let digits: i128 = format!("0{unsigned}{fraction}").parse().ok()?;
    let scale = (fraction.len() as i32).checked_sub(exponent)?;
    Some((if whole.starts_with('-') { -digits } else { digits }, scale))
}
