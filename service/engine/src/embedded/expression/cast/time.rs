//! Dates and timestamps, to and from each other, text and numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, PrimitiveArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Date32Type, Float64Type, Int64Type, TimestampMicrosecondType};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

use super::text::trimmed;
use super::{Mode, invalid_input, number};
use crate::embedded::expression::coercion::{is_float, is_integral};
use crate::embedded::expression::zone::Zone;
use crate::{Conf, Error, Result};

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Days since 1970 of a date.
pub fn days(date: NaiveDate) -> i32 {
    (date - NaiveDate::default()).num_days() as i32
}

/// The date that is so many days after 1970-01-01.
pub fn date(days: i32) -> Option<NaiveDate> {
    NaiveDate::default().checked_add_signed(chrono::Duration::days(days.into()))
}

pub fn from_text(array: &ArrayRef, target: &DataType, mode: Mode, conf: &Conf) -> Result<ArrayRef> {
    let texts = array.as_string::<i32>();
    let zone = Zone::of(conf);
    match target {
        DataType::Date32 => {
            let mut values = Vec::with_capacity(texts.len());
            for text in texts {
                values.push(checked(text, target, mode, |text| Ok(parse_date(text, &zone).map(days)))?);
            }
            Ok(Arc::new(Date32Array::from(values)))
        }
        DataType::Timestamp(_, with_zone) => {
            let mut values = Vec::with_capacity(texts.len());
            for text in texts {
                values.push(checked(text, target, mode, |text| {
                    Ok(match with_zone {
                        Some(_) => parse_timestamp(text, &zone),
                        None => parse_local(text).map(|(local, _)| local.and_utc().timestamp_micros()),
                    })
                })?);
            }
            Ok(Arc::new(TimestampMicrosecondArray::from(values).with_timezone_opt(with_zone.clone())))
        }
        _ => Err(Error::Bug { invariant: format!("{target} is a date or a time") }),
    }
}

fn checked<T>(
    text: Option<&str>,
    target: &DataType,
    mode: Mode,
    parse: impl Fn(&str) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let Some(text) = text else { return Ok(None) };
    match parse(trimmed(text))? {
        None if mode == Mode::Ansi => Err(invalid_input(text, "STRING", target)),
        value => Ok(value),
    }
}

/// A date as a cast reads it: `2024`, `2024-1`, `2024-01-31`, each with anything after a `T` or a space.
pub fn parse_date(text: &str, zone: &Zone) -> Option<NaiveDate> {
    match text.to_ascii_lowercase().as_str() {
        "epoch" => return Some(NaiveDate::default()),
        "today" | "now" => return zone.local(chrono::Utc::now().timestamp_micros()).map(|local| local.date()),
        "yesterday" => return zone.local(chrono::Utc::now().timestamp_micros())?.date().pred_opt(),
        "tomorrow" => return zone.local(chrono::Utc::now().timestamp_micros())?.date().succ_opt(),
        _ => {}
    }
    let (date, rest) = split_date(text)?;
    (rest.is_empty() || rest.starts_with(['T', ' '])).then_some(date)
}

/// The date a text begins with, and what follows it.
fn split_date(text: &str) -> Option<(NaiveDate, &str)> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (year, rest) = digits(unsigned, 4, 7)?;
    let (month, rest) = match rest.strip_prefix('-') {
        Some(rest) => digits(rest, 1, 2)?,
        None => (1, rest),
    };
    let (day, rest) = match rest.strip_prefix('-') {
        Some(rest) => digits(rest, 1, 2)?,
        None => (1, rest),
    };
    Some((NaiveDate::from_ymd_opt(sign * year as i32, month, day)?, rest))
}

fn digits(text: &str, min: usize, max: usize) -> Option<(u32, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    if count < min || count > max {
        return None;
    }
    Some((text[..count].parse().ok()?, &text[count..]))
}

/// A timestamp as a cast reads it, in the zone it names or else in the session's.
pub fn parse_timestamp(text: &str, zone: &Zone) -> Option<i64> {
    let now = || chrono::Utc::now().timestamp_micros();
    let midnight = |date: NaiveDate| zone.instant(date.and_time(NaiveTime::MIN));
    match text.to_ascii_lowercase().as_str() {
        "epoch" => return Some(0),
        "now" => return Some(now()),
        "today" => return Some(midnight(zone.local(now())?.date())),
        "yesterday" => return Some(midnight(zone.local(now())?.date().pred_opt()?)),
        "tomorrow" => return Some(midnight(zone.local(now())?.date().succ_opt()?)),
        _ => {}
    }
    let (local, named) = parse_local(text)?;
    let zone = if named.is_empty() { *zone } else { Zone::parse(named).ok()? };
    Some(zone.instant(local))
}

/// The wall clock a text shows, and the zone it names (empty for none).
fn parse_local(text: &str) -> Option<(NaiveDateTime, &str)> {
    let (date, rest) = split_date(text)?;
    let Some(rest) = rest.strip_prefix(['T', ' ']) else {
        return rest.is_empty().then(|| (date.and_time(NaiveTime::MIN), ""));
    };
    if rest.is_empty() {
        return Some((date.and_time(NaiveTime::MIN), ""));
    }
    let (hour, rest) = digits(rest, 1, 2)?;
    let (minute, rest) = match rest.strip_prefix(':') {
        Some(rest) => digits(rest, 1, 2)?,
        None => (0, rest),
    };
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => digits(rest, 1, 2)?,
        None => (0, rest),
    };
    let (micros, rest) = match rest.strip_prefix('.') {
        Some(rest) => {
            let count = rest.bytes().take_while(u8::is_ascii_digit).count();
            let fraction = &rest[..count.min(6)];
            let micros: u32 = format!("{fraction:0<6}").parse().ok()?;
            (micros, &rest[count..])
        }
        None => (0, rest),
    };
    let named = rest.trim();
    if !named.is_empty() && Zone::parse(named).is_err() {
        return None;
    }
    Some((date.and_hms_micro_opt(hour, minute, second, micros)?, named))
}

/// Between dates, timestamps and numbers.
pub fn convert(array: &ArrayRef, from: &DataType, to: &DataType, mode: Mode, zone: &Zone) -> Result<ArrayRef> {
    let utc = |values: TimestampMicrosecondArray| -> ArrayRef {
        let DataType::Timestamp(_, with_zone) = to else { return Arc::new(values) };
        Arc::new(values.with_timezone_opt(with_zone.clone()))
    };
    match (from, to) {
        (DataType::Date32, DataType::Timestamp(_, with_zone)) => {
            Ok(utc(array.as_primitive::<Date32Type>().unary_opt(|day| match with_zone {
                Some(_) => date(day).map(|date| zone.instant(date.and_time(NaiveTime::MIN))),
                None => Some(i64::from(day) * MICROS_PER_DAY),
            })))
        }
        (DataType::Timestamp(_, with_zone), DataType::Date32) => {
            let days: Date32Array = micros(array)?.unary_opt(|micros| match with_zone {
                Some(_) => zone.local(micros).map(|local| days(local.date())),
                None => i32::try_from(micros.div_euclid(MICROS_PER_DAY)).ok(),
            });
            Ok(Arc::new(days))
        }
        (DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, None)) => Ok(utc(
            micros(array)?.unary_opt(|micros| zone.local(micros).map(|local| local.and_utc().timestamp_micros()))
        )),
        (DataType::Timestamp(_, None), DataType::Timestamp(_, Some(_))) => {
            Ok(utc(micros(array)?.unary_opt(|micros| {
                chrono::DateTime::from_timestamp_micros(micros).map(|local| zone.instant(local.naive_utc()))
            })))
        }
        (DataType::Timestamp(_, _), DataType::Timestamp(_, _)) => Ok(utc(micros(array)?)),
        (DataType::Timestamp(_, _), DataType::Boolean) => {
            let truths = micros(array)?.iter().map(|micros| micros.map(|micros| micros != 0)).collect::<Vec<_>>();
            Ok(Arc::new(arrow::array::BooleanArray::from(truths)))
        }
        (DataType::Timestamp(_, _), to) if is_integral(to) => {
            let seconds: PrimitiveArray<Int64Type> = micros(array)?.unary(|micros| micros.div_euclid(1_000_000));
            number::convert(&(Arc::new(seconds) as ArrayRef), to, mode)
        }
        (DataType::Timestamp(_, _), to) => {
            let seconds: PrimitiveArray<Float64Type> = micros(array)?.unary(|micros| micros as f64 / 1e6);
            number::convert(&(Arc::new(seconds) as ArrayRef), to, mode)
        }
        (from, DataType::Timestamp(_, _)) if is_integral(from) => {
            let seconds = arrow::compute::cast(array, &DataType::Int64)?;
            Ok(utc(seconds.as_primitive::<Int64Type>().unary(|seconds| seconds.saturating_mul(1_000_000))))
        }
        (from, DataType::Timestamp(_, _)) if is_float(from) || matches!(from, DataType::Decimal128(_, _)) => {
            let seconds = number::convert(array, &DataType::Float64, mode)?;
            Ok(utc(seconds
                .as_primitive::<Float64Type>()
                .unary_opt(|seconds| seconds.is_finite().then_some((seconds * 1e6) as i64))))
        }
        _ => Ok(arrow::array::new_null_array(to, array.len())),
    }
}

/// A timestamp column's microseconds, whatever its unit.
pub fn micros(array: &ArrayRef) -> Result<TimestampMicrosecondArray> {
    let DataType::Timestamp(_, with_zone) = array.data_type() else {
        return Err(Error::Bug { invariant: format!("{} is a timestamp", array.data_type()) });
    };
    let target = DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, with_zone.clone());
    let cast = arrow::compute::cast(array, &target)?;
    Ok(cast.as_primitive::<TimestampMicrosecondType>().clone())
}
