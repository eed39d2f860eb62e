//! Fields of dates and timestamps.

use std::sync::Arc;

use arrow::array::{AsArray, Decimal128Array, PrimitiveArray, StringArray};
use arrow::datatypes::{DataType, Date32Type, DurationMicrosecondType, Int32Type};
use chrono::{Datelike, NaiveDate};

use super::super::{Call, kernel};
use super::pattern::Pattern;
use crate::Result;
use crate::embedded::expression::Typed;
use crate::embedded::expression::cast::time::{date, micros};
use crate::embedded::expression::coercion::timestamp_type;
use crate::embedded::expression::zone::Zone;

pub fn of_date(mut call: Call<'_>, field: fn(NaiveDate) -> i32) -> Result<Typed> {
    call.cast_arguments(&[DataType::Date32])?;
    Ok(kernel::strict(call.name, call.arguments, DataType::Int32, move |arguments, _| {
        let fields: PrimitiveArray<Int32Type> =
            arguments[0].as_primitive::<Date32Type>().unary_opt(|day| Some(field(date(day)?)));
        Ok(Arc::new(fields))
    }))
}

/// A field of the time of day: so many microseconds long, so many of them before it begins again.
pub fn of_time(mut call: Call<'_>, unit_micros: i64, modulus: i64) -> Result<Typed> {
    if let DataType::Duration(_) = call.arguments[0].data_type() {
        return Ok(kernel::strict(
            format!("part {unit_micros}"),
            call.arguments,
            DataType::Int32,
            move |arguments, _| {
                let durations = arguments[0].as_primitive::<DurationMicrosecondType>();
                let fields: PrimitiveArray<Int32Type> =
                    durations.unary(|micros| (micros / unit_micros % modulus) as i32);
                Ok(Arc::new(fields))
            },
        ));
    }
    local_time(&mut call)?;
    let zone = Zone::of(call.conf());
    let name = format!("time part {unit_micros} in {zone:?}");
    Ok(kernel::strict(name, call.arguments, DataType::Int32, move |arguments, _| {
        let is_instant = matches!(arguments[0].data_type(), DataType::Timestamp(_, Some(_)));
        let fields: PrimitiveArray<Int32Type> = micros(&arguments[0])?.unary(|micros| {
            let offset = if is_instant { i64::from(zone.offset_seconds(micros)) * 1_000_000 } else { 0 };
            ((micros + offset).div_euclid(unit_micros)).rem_euclid(modulus) as i32
        });
        Ok(Arc::new(fields))
    }))
}

fn local_time(call: &mut Call<'_>) -> Result<()> {
    let is_local = matches!(call.arguments[0].data_type(), DataType::Timestamp(_, None));
    if is_local { Ok(()) } else { call.cast_arguments(&[timestamp_type()]) }
}

/// A field's name, by the letters of a pattern.
pub fn named(mut call: Call<'_>, letters: &'static str) -> Result<Typed> {
    call.cast_arguments(&[DataType::Date32])?;
    let pattern = Pattern::parse(letters)?;
    let zone = Zone::of(call.conf());
    Ok(kernel::strict(call.name, call.arguments, DataType::Utf8, move |arguments, _| {
        let mut names = Vec::new();
        for day in arguments[0].as_primitive::<Date32Type>() {
            names.push(match day.and_then(date) {
                Some(date) => Some(pattern.format(date.and_time(chrono::NaiveTime::MIN), &zone, 0)?),
                None => None,
            });
        }
        Ok(Arc::new(StringArray::from(names)))
    }))
}

/// `extract(field FROM source)`.
pub fn part(mut call: Call<'_>) -> Result<Typed> {
    let field = call.constant_string(&call.arguments[0])?.to_uppercase();
    call.arguments.remove(0);
    match field.as_str() {
        "YEAR" | "Y" | "YEARS" | "YR" | "YRS" => of_date(Call { name: "year", ..call }, |date| date.year()),
        "YEAROFWEEK" => of_date(Call { name: "yearofweek", ..call }, |date| date.iso_week().year()),
        "QUARTER" | "QTR" => of_date(Call { name: "quarter", ..call }, |date| (date.month0() / 3 + 1) as i32),
        "MONTH" | "MON" | "MONS" | "MONTHS" => of_date(Call { name: "month", ..call }, |date| date.month() as i32),
        "WEEK" | "W" | "WEEKS" => of_date(Call { name: "weekofyear", ..call }, |date| date.iso_week().week() as i32),
        "DAY" | "D" | "DAYS" => of_date(Call { name: "day", ..call }, |date| date.day() as i32),
        "DAYOFWEEK" | "DOW" => {
            of_date(Call { name: "dayofweek", ..call }, |date| date.weekday().num_days_from_sunday() as i32 + 1)
        }
        "DAYOFWEEK_ISO" | "DOW_ISO" => {
            of_date(Call { name: "dayofweek_iso", ..call }, |date| date.weekday().number_from_monday() as i32)
        }
        "DOY" => of_date(Call { name: "dayofyear", ..call }, |date| date.ordinal() as i32),
        "HOUR" | "H" | "HOURS" | "HR" | "HRS" => of_time(call, 3_600_000_000, 24),
        "MINUTE" | "M" | "MIN" | "MINS" | "MINUTES" => of_time(call, 60_000_000, 60),
        "SECOND" | "S" | "SEC" | "SECONDS" | "SECS" => seconds(call),
        _ => Err(call.mismatch("INVALID_EXTRACT_FIELD", format!("cannot extract {field}"))),
    }
}

/// Seconds with their fraction, as `decimal(8,6)`.
fn seconds(mut call: Call<'_>) -> Result<Typed> {
    local_time(&mut call)?;
    Ok(kernel::strict("seconds with fraction", call.arguments, DataType::Decimal128(8, 6), |arguments, _| {
        let seconds: Decimal128Array = micros(&arguments[0])?.unary(|micros| i128::from(micros.rem_euclid(60_000_000)));
        Ok(Arc::new(seconds.with_precision_and_scale(8, 6)?))
    }))
}
