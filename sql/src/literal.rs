//! Number, date and binary literals, with the types Spark gives them.

use spark_connect_proto::Expression;
use spark_connect_proto::expression::cast::EvalMode;
use spark_connect_proto::expression::literal::{Decimal, LiteralType};

use crate::error::{Error, unsupported};
use crate::message::{cast, literal, string};

const PRECISION_MAX: usize = 38;

fn invalid(text: &str, type_name: &'static str, reason: &str) -> Error {
    Error::InvalidLiteral { literal: text.into(), type_name, reason: reason.into() }
}

/// A number as written, suffix included, and whether sqlparser cut an `L` from it.
pub(crate) fn number(text: &str, long_suffix: bool) -> Result<Expression, Error> {
    let upper = text.to_ascii_uppercase();
    let range = |type_name| invalid(text, type_name, "not a number in the range of the type");
    let value = if long_suffix {
        LiteralType::Long(upper.parse().map_err(|_| range("BIGINT"))?)
    } else if let Some(digits) = upper.strip_suffix("BD") {
        return decimal(text, digits);
    } else if let Some(digits) = upper.strip_suffix('S') {
        LiteralType::Short(digits.parse::<i16>().map_err(|_| range("SMALLINT"))?.into())
    } else if let Some(digits) = upper.strip_suffix('Y') {
        LiteralType::Byte(digits.parse::<i8>().map_err(|_| range("TINYINT"))?.into())
    } else if let Some(digits) = upper.strip_suffix('F') {
        let value: f32 = digits.parse().map_err(|_| range("FLOAT"))?;
        LiteralType::Float(if value.is_finite() { value } else { return Err(range("FLOAT")) })
    } else if upper.ends_with('D') || upper.contains('E') {
        let value: f64 = upper.trim_end_matches('D').parse().map_err(|_| range("DOUBLE"))?;
        LiteralType::Double(if value.is_finite() { value } else { return Err(range("DOUBLE")) })
    } else if upper.contains('.') {
        return decimal(text, &upper);
    } else if let Ok(value) = upper.parse::<i32>() {
        LiteralType::Integer(value)
    } else if let Ok(value) = upper.parse::<i64>() {
        LiteralType::Long(value)
    } else {
        return decimal(text, &upper);
    };
    Ok(literal(value))
}

fn decimal(text: &str, digits: &str) -> Result<Expression, Error> {
    let wrong = |reason| invalid(text, "DECIMAL", reason);
    let (mantissa, exponent) = digits.split_once('E').unwrap_or((digits, "0"));
    let exponent: i32 = exponent.parse().map_err(|_| wrong("not a number"))?;
    if exponent.unsigned_abs() as usize > PRECISION_MAX {
        return Err(wrong("more than 38 digits"));
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !whole.chars().chain(fraction.chars()).all(|c| c.is_ascii_digit()) {
        return Err(wrong("not a number"));
    }
    // Shift the point by the exponent, then read the type off the digits.
    let mut all: String = format!("{whole}{fraction}");
    let mut scale = fraction.len() as i32 - exponent;
    while scale < 0 {
        all.push('0');
        scale += 1;
    }
    let scale = scale as usize;
    let mut significant = all.trim_start_matches('0').to_string();
    while significant.len() < scale {
        significant.insert(0, '0');
    }
    let precision = significant.len().max(scale).max(1);
    if precision > PRECISION_MAX {
        return Err(wrong("more than 38 digits"));
    }
    let (whole, fraction) = significant.split_at(significant.len() - scale);
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if scale > 0 { "." } else { "" };
    Ok(literal(LiteralType::Decimal(Decimal {
        value: format!("{sign}{whole}{point}{fraction}"),
        precision: Some(precision as i32),
        scale: Some(scale as i32),
    })))
}

/// `X'1F'`; an odd number of digits gets a zero in front, as Spark does.
pub(crate) fn binary(text: &str) -> Result<Expression, Error> {
    let wrong = || invalid(&format!("X'{text}'"), "BINARY", "not hexadecimal digits");
    let padded = if text.len() % 2 == 1 { format!("0{text}") } else { text.to_string() };
    let bytes: Option<Vec<u8>> = padded
        .as_bytes()
        .chunks_exact(2)
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect();
    Ok(literal(LiteralType::Binary(bytes.ok_or_else(wrong)?.into())))
}

/// `DATE '..'` and its kind. A timestamp is a cast in ANSI mode, so that the session's time zone decides what it means.
pub(crate) fn typed(type_name: &str, text: &str) -> Result<Expression, Error> {
    match type_name {
        "DATE" => date(text)
            .map(|days| literal(LiteralType::Date(days)))
            .ok_or_else(|| invalid(&format!("'{text}'"), "DATE", "expected year, year-month or year-month-day")),
        "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIMESTAMP_NTZ" => {
            let type_text =
                if type_name == "TIMESTAMP_LTZ" { "timestamp".into() } else { type_name.to_ascii_lowercase() };
            Ok(cast(string(text), type_text, EvalMode::Ansi))
        }
        other => unsupported(format!("the literal type {other}")),
    }
}

/// Days since 1970-01-01 of `[+-]y..y[-m[-d]]`, by the proleptic Gregorian calendar.
fn date(text: &str) -> Option<i32> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    // A time after the date is cut, as Spark's cast from string does.
    let digits = digits.split(['T', ' ']).next()?;
    let parts: Vec<&str> = digits.split('-').collect();
    let number = |at: usize, lengths: std::ops::RangeInclusive<usize>| match parts.get(at) {
        None => Some(1),
        Some(part) if lengths.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()) => {
            part.parse::<i64>().ok()
        }
        Some(_) => None,
    };
    if parts.len() > 3 {
        return None;
    }
    let (year, month, day) = (sign * number(0, 4..=7)?, number(1, 1..=2)?, number(2, 1..=2)?);
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Count years from March, so that the leap day comes last.
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    i32::try_from(era * 146_097 + day_of_era - 719_468).ok()
}
