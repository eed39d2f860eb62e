//! Dates and timestamps.

mod parts;
mod pattern;
mod shift;
mod text;
mod truncate;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, PrimitiveArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Date32Type, Float64Type, Int32Type, Int64Type};
use chrono::{Datelike, NaiveDate};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Cast, Expr};

use super::kernel::{self, Kernel};
use super::{Call, Function, function};
use crate::embedded::expression::Typed;
use crate::embedded::expression::cast::time::{date, days, micros};
use crate::embedded::expression::coercion::timestamp_type;
use crate::embedded::expression::zone::Zone;
use crate::{Error, Result};

pub use shift::{add_days, shift_by_interval};

pub const FUNCTIONS: &[Function] = &[
    function("current_date", 0, 0, current_date),
    function("curdate", 0, 0, current_date),
    function("current_timestamp", 0, 0, current_timestamp),
    function("now", 0, 0, current_timestamp),
    function("localtimestamp", 0, 0, local_timestamp),
    function("current_timezone", 0, 0, |call| {
        Ok(Typed::literal(ScalarValue::from(call.conf().session_time_zone().name())))
    }),
    function("date_add", 2, 2, |call| add_days(call, 1)),
    function("dateadd", 2, 2, |call| add_days(call, 1)),
    function("date_sub", 2, 2, |call| add_days(call, -1)),
    function("datediff", 2, 2, difference),
    function("date_diff", 2, 2, difference),
    function("add_months", 2, 2, shift::add_months),
    function("months_between", 2, 3, shift::months_between),
    function("year", 1, 1, |call| parts::of_date(call, |date| date.year())),
    function("quarter", 1, 1, |call| parts::of_date(call, |date| (date.month0() / 3 + 1) as i32)),
    function("month", 1, 1, |call| parts::of_date(call, |date| date.month() as i32)),
    function("day", 1, 1, |call| parts::of_date(call, |date| date.day() as i32)),
    function("dayofmonth", 1, 1, |call| parts::of_date(call, |date| date.day() as i32)),
    function("dayofweek", 1, 1, |call| parts::of_date(call, |date| date.weekday().num_days_from_sunday() as i32 + 1)),
    function("weekday", 1, 1, |call| parts::of_date(call, |date| date.weekday().num_days_from_monday() as i32)),
    function("dayofyear", 1, 1, |call| parts::of_date(call, |date| date.ordinal() as i32)),
    function("weekofyear", 1, 1, |call| parts::of_date(call, |date| date.iso_week().week() as i32)),
    function("hour", 1, 1, |call| parts::of_time(call, 3_600_000_000, 24)),
    function("minute", 1, 1, |call| parts::of_time(call, 60_000_000, 60)),
    function("second", 1, 1, |call| parts::of_time(call, 1_000_000, 60)),
    function("dayname", 1, 1, |call| parts::named(call, "EEE")),
    function("monthname", 1, 1, |call| parts::named(call, "MMM")),
    function("extract", 2, 2, parts::part),
    function("date_part", 2, 2, parts::part),
    function("datepart", 2, 2, parts::part),
    function("last_day", 1, 1, last_day),
    function("next_day", 2, 2, shift::next_day),
    function("trunc", 2, 2, truncate::date),
    function("date_trunc", 2, 2, truncate::timestamp),
    function("to_date", 1, 2, |call| text::to_date(call, false)),
    function("try_to_date", 1, 2, |call| text::to_date(call, true)),
    function("date", 1, 1, |call| text::to_date(call, false)),
    function("to_timestamp", 1, 2, |call| text::to_timestamp(call, false, true)),
    function("to_timestamp_ltz", 1, 2, |call| text::to_timestamp(call, false, true)),
    function("to_timestamp_ntz", 1, 2, |call| text::to_timestamp(call, false, false)),
    function("try_to_timestamp", 1, 2, |call| text::to_timestamp(call, true, true)),
    function("timestamp", 1, 1, |call| text::to_timestamp(call, false, true)),
    function("date_format", 2, 2, text::format),
    function("unix_timestamp", 0, 2, text::unix_timestamp),
    function("to_unix_timestamp", 1, 2, text::unix_timestamp),
    function("from_unixtime", 1, 2, text::from_unixtime),
    function("make_date", 3, 3, make_date),
    function("make_timestamp", 6, 7, make_timestamp),
    function("unix_date", 1, 1, unix_date),
    function("date_from_unix_date", 1, 1, date_from_unix_date),
    function("unix_seconds", 1, 1, |call| since_epoch(call, 1_000_000)),
    function("unix_millis", 1, 1, |call| since_epoch(call, 1_000)),
    function("unix_micros", 1, 1, |call| since_epoch(call, 1)),
    function("timestamp_seconds", 1, 1, |call| from_epoch(call, 1_000_000)),
    function("timestamp_millis", 1, 1, |call| from_epoch(call, 1_000)),
    function("timestamp_micros", 1, 1, |call| from_epoch(call, 1)),
    function("from_utc_timestamp", 2, 2, |call| shift::between_zones(call, true)),
    function("to_utc_timestamp", 2, 2, |call| shift::between_zones(call, false)),
    function("timestampdiff", 3, 3, shift::timestamp_difference),
    function("timestampadd", 3, 3, shift::timestamp_add),
];

/// The start of the query: DataFusion puts one instant for all calls of it.
fn current_timestamp(call: Call<'_>) -> Result<Typed> {
    let config = call.resolver.state.config_options();
    let now = datafusion::functions::datetime::now(config).call(vec![]);
    let cast = Expr::Cast(Cast::new(Box::new(now), timestamp_type()));
    Ok(Typed::new(cast, timestamp_type(), false))
}

fn current_date(call: Call<'_>) -> Result<Typed> {
    let conf = call.conf();
    let now = current_timestamp(call)?;
    crate::embedded::expression::coercion::implicit(now, &DataType::Date32, conf)
}

fn local_timestamp(call: Call<'_>) -> Result<Typed> {
    let conf = call.conf();
    let now = current_timestamp(call)?;
    let target = DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None);
    crate::embedded::expression::coercion::implicit(now, &target, conf)
}

fn difference(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Date32, DataType::Date32])?;
    Ok(kernel::strict("datediff", call.arguments, DataType::Int32, |arguments, _| {
        let (end, start) = (arguments[0].as_primitive::<Date32Type>(), arguments[1].as_primitive::<Date32Type>());
        let difference: PrimitiveArray<Int32Type> =
            arrow::compute::binary(end, start, |end, start| end.wrapping_sub(start))?;
        Ok(Arc::new(difference))
    }))
}

/// The last day of a date's month.
pub fn end_of_month(date: NaiveDate) -> NaiveDate {
    let (year, month) = if date.month() == 12 { (date.year() + 1, 1) } else { (date.year(), date.month() + 1) };
    NaiveDate::from_ymd_opt(year, month, 1).and_then(|first| first.pred_opt()).unwrap_or(date)
}

fn last_day(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Date32])?;
    Ok(kernel::strict("last_day", call.arguments, DataType::Date32, |arguments, _| {
        let last: Date32Array =
            arguments[0].as_primitive::<Date32Type>().unary_opt(|day| Some(days(end_of_month(date(day)?))));
        Ok(Arc::new(last))
    }))
}

/// DATETIME_FIELD_OUT_OF_BOUNDS.
fn out_of_bounds(detail: String) -> Error {
    Error::Row {
        class: "DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION",
        message: format!("{detail}. If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error."),
        parameters: vec![("rangeMessage", detail), ("ansiConfig", "\"spark.sql.ansi.enabled\"".into())],
    }
}

fn make_date(mut call: Call<'_>) -> Result<Typed> {
    let ansi = call.ansi();
    call.cast_arguments(&[DataType::Int32, DataType::Int32, DataType::Int32])?;
    let nullable = !ansi || call.arguments.iter().any(Typed::nullable);
    let kernel = Kernel { raises: ansi, ..Kernel::new(format!("make_date, ansi {ansi}"), DataType::Date32, nullable) };
    Ok(kernel.call(call.arguments, move |arguments, num_rows| {
        let columns: Vec<_> = arguments.iter().map(|column| column.as_primitive::<Int32Type>()).collect();
        let mut dates = Vec::with_capacity(num_rows);
        for row in 0..num_rows {
            if columns.iter().any(|column| column.is_null(row)) {
                dates.push(None);
                continue;
            }
            let (year, month, day) = (columns[0].value(row), columns[1].value(row), columns[2].value(row));
            let made = u32::try_from(month)
                .ok()
                .zip(u32::try_from(day).ok())
                .and_then(|(month, day)| NaiveDate::from_ymd_opt(year, month, day));
            if made.is_none() && ansi {
                return Err(out_of_bounds(format!("Invalid date: year {year}, month {month}, day {day}")));
            }
            dates.push(made.map(days));
        }
        Ok(Arc::new(Date32Array::from(dates)))
    }))
}

fn make_timestamp(mut call: Call<'_>) -> Result<Typed> {
    let ansi = call.ansi();
    let mut types = vec![DataType::Int32; 5];
    types.extend([DataType::Float64, DataType::Utf8]);
    call.cast_arguments(&types)?;
    let zone = Zone::of(call.conf());
    let kernel = Kernel {
        raises: true,
        ..Kernel::new(format!("make_timestamp in {zone:?}, ansi {ansi}"), timestamp_type(), true)
    };
    Ok(kernel.call(call.arguments, move |arguments, num_rows| {
        let fields: Vec<_> = arguments[..5].iter().map(|column| column.as_primitive::<Int32Type>()).collect();
        let seconds = arguments[5].as_primitive::<Float64Type>();
        let mut instants = Vec::with_capacity(num_rows);
        for row in 0..num_rows {
            if arguments.iter().any(|column| column.is_null(row)) {
                instants.push(None);
                continue;
            }
            let zone = match arguments.get(6) {
                Some(zones) => Zone::parse(zones.as_string::<i32>().value(row))?,
                None => zone,
            };
            let at = |field: usize| u32::try_from(fields[field].value(row)).ok();
            let micros = (seconds.value(row) * 1e6).round() as i64;
            let is_leap = micros == 60_000_000;
            let made = (|| {
                let date = NaiveDate::from_ymd_opt(fields[0].value(row), at(1)?, at(2)?)?;
                let base = date.and_hms_opt(at(3)?, at(4)?, 0)?;
                ((0..60_000_000).contains(&micros) || is_leap).then(|| base + chrono::Duration::microseconds(micros))
            })();
            if made.is_none() && ansi {
                return Err(out_of_bounds("Invalid timestamp field".into()));
            }
            instants.push(made.map(|local| zone.instant(local)));
        }
        Ok(Arc::new(TimestampMicrosecondArray::from(instants).with_timezone("UTC")))
    }))
}

fn unix_date(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Date32])?;
    Ok(kernel::strict("unix_date", call.arguments, DataType::Int32, |arguments, _| {
        Ok(arrow::compute::cast(&arguments[0], &DataType::Int32)?)
    }))
}

fn date_from_unix_date(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Int32])?;
    Ok(kernel::strict("date_from_unix_date", call.arguments, DataType::Date32, |arguments, _| {
        Ok(arrow::compute::cast(&arguments[0], &DataType::Date32)?)
    }))
}

fn since_epoch(mut call: Call<'_>, unit_micros: i64) -> Result<Typed> {
    call.cast_arguments(&[timestamp_type()])?;
    Ok(kernel::strict(format!("since epoch in {unit_micros}"), call.arguments, DataType::Int64, move |arguments, _| {
        let values: PrimitiveArray<Int64Type> = micros(&arguments[0])?.unary(|micros| micros.div_euclid(unit_micros));
        Ok(Arc::new(values) as ArrayRef)
    }))
}

fn from_epoch(mut call: Call<'_>, unit_micros: i64) -> Result<Typed> {
    if unit_micros == 1_000_000 && !crate::embedded::expression::coercion::is_integral(call.arguments[0].data_type()) {
        return call.cast_arguments(&[timestamp_type()]).and_then(|()| {
            let [value] = call.take()?;
            Ok(value)
        });
    }
    call.cast_arguments(&[DataType::Int64])?;
    Ok(kernel::strict(format!("from epoch in {unit_micros}"), call.arguments, timestamp_type(), move |arguments, _| {
        let values: TimestampMicrosecondArray =
            arguments[0].as_primitive::<Int64Type>().unary(|count| count.saturating_mul(unit_micros));
        Ok(Arc::new(values.with_timezone("UTC")))
    }))
}
