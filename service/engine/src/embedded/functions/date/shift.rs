//! Dates and timestamps moved, and the distances between them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, Float64Array, PrimitiveArray, TimestampMicrosecondArray};
use arrow::datatypes::{
    DataType, Date32Type, DurationMicrosecondType, Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType,
};
use chrono::{Datelike, Months, NaiveDate, NaiveDateTime, NaiveTime};

use super::super::string::texts;
use super::super::{Call, kernel};
use super::end_of_month;
use crate::embedded::expression::Typed;
use crate::embedded::expression::cast::time::{date, days, micros};
use crate::embedded::expression::coercion::timestamp_type;
use crate::embedded::expression::zone::Zone;
use crate::{Error, Result};

/// `date_add` (sign 1) and `date_sub` (sign -1).
pub fn add_days(mut call: Call<'_>, sign: i32) -> Result<Typed> {
    call.cast_arguments(&[DataType::Date32, DataType::Int32])?;
    Ok(kernel::strict(format!("date_add {sign}"), call.arguments, DataType::Date32, move |arguments, _| {
        let (dates, days) = (arguments[0].as_primitive::<Date32Type>(), arguments[1].as_primitive::<Int32Type>());
        let moved: Date32Array =
            arrow::compute::binary(dates, days, |day: i32, count: i32| day.wrapping_add(count.wrapping_mul(sign)))?;
        Ok(Arc::new(moved))
    }))
}

fn plus_months(date: NaiveDate, months: i32) -> Option<NaiveDate> {
    if months >= 0 {
        date.checked_add_months(Months::new(months as u32))
    } else {
        date.checked_sub_months(Months::new(months.unsigned_abs()))
    }
}

pub fn add_months(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Date32, DataType::Int32])?;
    Ok(kernel::strict("add_months", call.arguments, DataType::Date32, |arguments, _| {
        let rows = arguments[0].as_primitive::<Date32Type>().iter().zip(arguments[1].as_primitive::<Int32Type>());
        Ok(Arc::new(rows.map(|(day, months)| Some(days(plus_months(date(day?)?, months?)?))).collect::<Date32Array>()))
    }))
}

/// Months of 31 days between two instants; whole when both are the same day of the month or its last.
fn months_apart(end: NaiveDateTime, start: NaiveDateTime) -> f64 {
    let months = f64::from((end.year() - start.year()) * 12 + end.month() as i32 - start.month() as i32);
    let is_last = |at: NaiveDateTime| end_of_month(at.date()) == at.date();
    if end.day() == start.day() || (is_last(end) && is_last(start)) {
        return months;
    }
    let seconds_in_month =
        |at: NaiveDateTime| f64::from(at.day()) * 86_400.0 + (at.time() - NaiveTime::MIN).num_seconds() as f64;
    months + (seconds_in_month(end) - seconds_in_month(start)) / (31.0 * 86_400.0)
}

pub fn months_between(mut call: Call<'_>) -> Result<Typed> {
    let rounds = match call.arguments.get(2) {
        Some(flag) => call.constant_boolean(flag)?,
        None => true,
    };
    call.arguments.truncate(2);
    call.cast_arguments(&[timestamp_type(), timestamp_type()])?;
    let zone = Zone::of(call.conf());
    let name = format!("months_between in {zone:?} rounded {rounds}");
    Ok(kernel::strict(name, call.arguments, DataType::Float64, move |arguments, _| {
        let (ends, starts) = (micros(&arguments[0])?, micros(&arguments[1])?);
        let rows = ends.iter().zip(&starts).map(|(end, start)| {
            let months = months_apart(zone.local(end?)?, zone.local(start?)?);
            Some(if rounds { (months * 1e8).round() / 1e8 } else { months })
        });
        Ok(Arc::new(rows.collect::<Float64Array>()))
    }))
}

fn weekday(name: &str) -> Option<u32> {
    Some(match name.trim().to_uppercase().as_str() {
        "MO" | "MON" | "MONDAY" => 0,
        "TU" | "TUE" | "TUESDAY" => 1,
        "WE" | "WED" | "WEDNESDAY" => 2,
        "TH" | "THU" | "THURSDAY" => 3,
        "FR" | "FRI" | "FRIDAY" => 4,
        "SA" | "SAT" | "SATURDAY" => 5,
        "SU" | "SUN" | "SUNDAY" => 6,
        _ => return None,
    })
}

pub fn next_day(mut call: Call<'_>) -> Result<Typed> {
    let ansi = call.ansi();
    call.cast_arguments(&[DataType::Date32, DataType::Utf8])?;
    let kernel = kernel::Kernel {
        raises: ansi,
        ..kernel::Kernel::new(format!("next_day, ansi {ansi}"), DataType::Date32, true)
    };
    Ok(kernel.call(call.arguments, move |arguments, _| {
        let mut next = Vec::with_capacity(arguments[0].len());
        for (day, name) in arguments[0].as_primitive::<Date32Type>().iter().zip(texts(&arguments[1])) {
            let (Some(day), Some(name)) = (day, name) else {
                next.push(None);
                continue;
            };
            let wanted = weekday(name);
            if wanted.is_none() && ansi {
                return Err(Error::Row {
                    class: "ILLEGAL_DAY_OF_WEEK",
                    message: format!("Illegal input for day of week: {name}."),
                    parameters: vec![("string", name.into())],
                });
            }
            next.push(wanted.zip(date(day)).map(|(wanted, from)| {
                let ahead = (wanted + 6 - from.weekday().num_days_from_monday()) % 7 + 1;
                day + ahead as i32
            }));
        }
        Ok(Arc::new(Date32Array::from(next)))
    }))
}

/// `from_utc_timestamp` and `to_utc_timestamp`.
pub fn between_zones(mut call: Call<'_>, from_utc: bool) -> Result<Typed> {
    call.cast_arguments(&[timestamp_type(), DataType::Utf8])?;
    let name = format!("between zones, from UTC {from_utc}");
    Ok(kernel::raising(name, call.arguments, timestamp_type(), move |arguments, _| {
        let mut moved = Vec::with_capacity(arguments[0].len());
        for (instant, zone) in micros(&arguments[0])?.iter().zip(texts(&arguments[1])) {
            let (Some(instant), Some(zone)) = (instant, zone) else {
                moved.push(None);
                continue;
            };
            let zone = Zone::parse(zone)?;
            let utc = chrono::DateTime::from_timestamp_micros(instant).map(|instant| instant.naive_utc());
            moved.push(if from_utc {
                zone.local(instant).map(|local| local.and_utc().timestamp_micros())
            } else {
                utc.map(|local| zone.instant(local))
            });
        }
        Ok(Arc::new(TimestampMicrosecondArray::from(moved).with_timezone("UTC")))
    }))
}

/// An interval as months, days and microseconds.
fn interval_at(array: &ArrayRef, row: usize) -> Result<(i32, i32, i64)> {
    match array.data_type() {
        DataType::Duration(_) => Ok((0, 0, array.as_primitive::<DurationMicrosecondType>().value(row))),
        DataType::Interval(IntervalUnit::YearMonth) => {
            Ok((array.as_primitive::<IntervalYearMonthType>().value(row), 0, 0))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let interval = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            Ok((interval.months, interval.days, interval.nanoseconds / 1000))
        }
        other => Err(Error::Unsupported { feature: format!("arithmetic with {other}") }),
    }
}

/// A date, timestamp or interval plus or minus an interval.
pub fn shift_by_interval(left: &ArrayRef, right: &ArrayRef, is_minus: bool, zone: &Zone) -> Result<ArrayRef> {
    use arrow::compute::kernels::numeric;
    let sign = if is_minus { -1 } else { 1 };
    match left.data_type() {
        DataType::Date32 => {
            let dates = left.as_primitive::<Date32Type>();
            let mut moved = Vec::with_capacity(left.len());
            for row in 0..left.len() {
                if left.is_null(row) || right.is_null(row) {
                    moved.push(None);
                    continue;
                }
                let (months, count, _) = interval_at(right, row)?;
                let start = date(dates.value(row)).and_then(|start| plus_months(start, months * sign));
                moved.push(start.map(|start| days(start) + count * sign));
            }
            Ok(Arc::new(Date32Array::from(moved)))
        }
        DataType::Timestamp(_, with_zone) => {
            let instants = micros(left)?;
            let mut moved = Vec::with_capacity(left.len());
            for row in 0..left.len() {
                if left.is_null(row) || right.is_null(row) {
                    moved.push(None);
                    continue;
                }
                let (months, count, time) = interval_at(right, row)?;
                let zone = if with_zone.is_some() { *zone } else { Zone::Named(chrono_tz::UTC) };
                let instant = instants.value(row);
                let base = if months == 0 && count == 0 {
                    Some(instant)
                } else {
                    zone.local(instant).and_then(|local| {
                        let day =
                            plus_months(local.date(), months * sign)? + chrono::Duration::days((count * sign).into());
                        Some(zone.instant(day.and_time(local.time())))
                    })
                };
                moved.push(base.map(|base| base + time * i64::from(sign)));
            }
            Ok(Arc::new(TimestampMicrosecondArray::from(moved).with_timezone_opt(with_zone.clone())))
        }
        _ if is_minus => Ok(numeric::sub(left, right)?),
        _ => Ok(numeric::add(left, right)?),
    }
}

/// Microseconds of a unit that is always as long, or months of one that is not.
enum Unit {
    Micros(i64),
    Months(i32),
    Days(i32),
}

fn unit(call: &Call<'_>, argument: &Typed) -> Result<Unit> {
    let name = call.constant_string(argument)?.to_uppercase();
    Ok(match name.as_str() {
        "MICROSECOND" => Unit::Micros(1),
        "MILLISECOND" => Unit::Micros(1_000),
        "SECOND" => Unit::Micros(1_000_000),
        "MINUTE" => Unit::Micros(60_000_000),
        "HOUR" => Unit::Micros(3_600_000_000),
        "DAY" | "DAYOFYEAR" => Unit::Days(1),
        "WEEK" => Unit::Days(7),
        "MONTH" => Unit::Months(1),
        "QUARTER" => Unit::Months(3),
        "YEAR" => Unit::Months(12),
        _ => return Err(call.mismatch("INVALID_PARAMETER_VALUE.DATETIME_UNIT", format!("{name} is no unit of time"))),
    })
}

/// `timestampdiff(unit, start, end)`: whole units.
pub fn timestamp_difference(mut call: Call<'_>) -> Result<Typed> {
    let unit = unit(&call, &call.arguments[0])?;
    call.arguments.remove(0);
    call.cast_arguments(&[timestamp_type(), timestamp_type()])?;
    let zone = Zone::of(call.conf());
    let name = match unit {
        Unit::Micros(length) => format!("timestampdiff {length} micros"),
        Unit::Days(count) => format!("timestampdiff {count} days in {zone:?}"),
        Unit::Months(count) => format!("timestampdiff {count} months in {zone:?}"),
    };
    Ok(kernel::strict(name, call.arguments, DataType::Int64, move |arguments, _| {
        let (starts, ends) = (micros(&arguments[0])?, micros(&arguments[1])?);
        let rows = starts.iter().zip(&ends).map(|(start, end)| {
            let (start, end) = (start?, end?);
            if let Unit::Micros(length) = unit {
                return Some((end - start) / length);
            }
            let (start, end) = (zone.local(start)?, zone.local(end)?);
            match unit {
                Unit::Days(count) => Some((end - start).num_days() / i64::from(count)),
                Unit::Months(count) => {
                    let mut months = (end.year() - start.year()) * 12 + end.month() as i32 - start.month() as i32;
                    let (end_rest, start_rest) = ((end.day(), end.time()), (start.day(), start.time()));
                    if months > 0 && end_rest < start_rest {
                        months -= 1;
                    } else if months < 0 && end_rest > start_rest {
                        months += 1;
                    }
                    Some(i64::from(months / count))
                }
                Unit::Micros(_) => None,
            }
        });
        Ok(Arc::new(rows.collect::<PrimitiveArray<Int64Type>>()))
    }))
}

/// `timestampadd(unit, count, timestamp)`.
pub fn timestamp_add(mut call: Call<'_>) -> Result<Typed> {
    let unit = unit(&call, &call.arguments[0])?;
    call.arguments.remove(0);
    call.cast_arguments(&[DataType::Int64, timestamp_type()])?;
    let zone = Zone::of(call.conf());
    let name = match unit {
        Unit::Micros(length) => format!("timestampadd {length} micros"),
        Unit::Days(count) => format!("timestampadd {count} days in {zone:?}"),
        Unit::Months(count) => format!("timestampadd {count} months in {zone:?}"),
    };
    Ok(kernel::strict(name, call.arguments, timestamp_type(), move |arguments, _| {
        let rows =
            arguments[0].as_primitive::<Int64Type>().iter().zip(micros(&arguments[1])?.iter().collect::<Vec<_>>());
        let moved = rows.map(|(count, instant)| {
            let (count, instant) = (count?, instant?);
            match unit {
                Unit::Micros(length) => instant.checked_add(count.checked_mul(length)?),
                Unit::Days(each) => {
                    let local = zone.local(instant)?;
                    let moved =
                        local.checked_add_signed(chrono::Duration::try_days(count.checked_mul(each.into())?)?)?;
                    Some(zone.instant(moved))
                }
                Unit::Months(each) => {
                    let local = zone.local(instant)?;
                    let months = i32::try_from(count.checked_mul(each.into())?).ok()?;
                    Some(zone.instant(plus_months(local.date(), months)?.and_time(local.time())))
                }
            }
        });
        Ok(Arc::new(moved.collect::<TimestampMicrosecondArray>().with_timezone("UTC")))
    }))
}
