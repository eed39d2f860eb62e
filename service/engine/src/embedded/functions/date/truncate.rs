//! `trunc` and `date_trunc`.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Date32Array, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Date32Type};
use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use super::super::string::texts;
use super::super::{Call, kernel};
use crate::Result;
use crate::embedded::expression::Typed;
use crate::embedded::expression::cast::time::{self, days, micros};
use crate::embedded::expression::coercion::timestamp_type;
use crate::embedded::expression::zone::Zone;

/// The first day of a date's unit; nothing for a unit that is shorter than a week or unknown.
fn start_of(date: NaiveDate, unit: &str) -> Option<NaiveDate> {
    match unit {
        "YEAR" | "YYYY" | "YY" => NaiveDate::from_ymd_opt(date.year(), 1, 1),
        "QUARTER" => NaiveDate::from_ymd_opt(date.year(), date.month0() / 3 * 3 + 1, 1),
        "MONTH" | "MM" | "MON" => NaiveDate::from_ymd_opt(date.year(), date.month(), 1),
        "WEEK" => Some(date - chrono::Duration::days(date.weekday().num_days_from_monday().into())),
        _ => None,
    }
}

/// `trunc(date, unit)`.
pub fn date(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Date32, DataType::Utf8])?;
    Ok(kernel::nullable("trunc", call.arguments, DataType::Date32, |arguments, _| {
        let rows = arguments[0].as_primitive::<Date32Type>().iter().zip(texts(&arguments[1]));
        let starts = rows.map(|(day, unit)| Some(days(start_of(time::date(day?)?, &unit?.to_uppercase())?)));
        Ok(Arc::new(starts.collect::<Date32Array>()))
    }))
}

fn truncated(local: NaiveDateTime, unit: &str) -> Option<NaiveDateTime> {
    let time = local.time();
    let at = |hour, minute, second, micro| NaiveTime::from_hms_micro_opt(hour, minute, second, micro);
    let micro = time.nanosecond() / 1000;
    let time = match unit {
        "MICROSECOND" => Some(time),
        "MILLISECOND" => at(time.hour(), time.minute(), time.second(), micro / 1000 * 1000),
        "SECOND" => at(time.hour(), time.minute(), time.second(), 0),
        "MINUTE" => at(time.hour(), time.minute(), 0, 0),
        "HOUR" => at(time.hour(), 0, 0, 0),
        "DAY" | "DD" => Some(NaiveTime::MIN),
        unit => return Some(start_of(local.date(), unit)?.and_time(NaiveTime::MIN)),
    };
    Some(local.date().and_time(time?))
}

/// `date_trunc(unit, timestamp)`.
pub fn timestamp(mut call: Call<'_>) -> Result<Typed> {
    let [unit, value] = call.take()?;
    let unit = call.cast(unit, &DataType::Utf8)?;
    let value = if matches!(value.data_type(), DataType::Timestamp(_, None)) {
        value
    } else {
        call.cast(value, &timestamp_type())?
    };
    let output = value.data_type().clone();
    let is_instant = output == timestamp_type();
    let zone = Zone::of(call.conf());
    let name = format!("date_trunc in {zone:?}");
    Ok(kernel::nullable(name, vec![unit, value], output, move |arguments, num_rows| {
        let (units, instants) = (texts(&arguments[0]), micros(&arguments[1])?);
        let rows = (0..num_rows).map(|row| {
            if units.is_null(row) || instants.is_null(row) {
                return None;
            }
            let unit = units.value(row).to_uppercase();
            if is_instant {
                let local = zone.local(instants.value(row))?;
                return truncated(local, &unit).map(|start| zone.instant(start));
            }
            let local = chrono::DateTime::from_timestamp_micros(instants.value(row))?.naive_utc();
            truncated(local, &unit).map(|start| start.and_utc().timestamp_micros())
        });
        let starts: TimestampMicrosecondArray = rows.collect();
        Ok(Arc::new(starts.with_timezone_opt(is_instant.then_some("UTC"))))
    }))
}
