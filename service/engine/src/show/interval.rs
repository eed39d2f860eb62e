//! Intervals as Spark prints them.

use std::fmt::Write;

use super::date_time::push_fraction;
use crate::data_type::{DayTimeUnit, YearMonthUnit};

/// `INTERVAL '1 02:03:04.5' DAY TO SECOND`
pub fn push_day_time(micros: i64, start: DayTimeUnit, end: DayTimeUnit, text: &mut String) {
    let rest = micros.unsigned_abs();
    let units = [DayTimeUnit::Day, DayTimeUnit::Hour, DayTimeUnit::Minute, DayTimeUnit::Second];
    let names = ["DAY", "HOUR", "MINUTE", "SECOND"];
    let sizes = [86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000];
    text.push_str("INTERVAL '");
    if micros < 0 {
        text.push('-');
    }
    for (position, unit) in units.into_iter().enumerate() {
        if unit < start || unit > end {
            continue;
        }
        // The first unit takes all that is larger, the others what is left.
        let within = if unit == start { rest } else { rest % sizes[position - 1] };
        let value = within / sizes[position];
        // Writing into a string cannot fail.
        let _ = match unit {
            DayTimeUnit::Day => write!(text, "{value}"),
            _ if unit == start => write!(text, "{value:02}"),
            DayTimeUnit::Hour => write!(text, " {value:02}"),
            DayTimeUnit::Minute | DayTimeUnit::Second => write!(text, ":{value:02}"),
        };
    }
    if end == DayTimeUnit::Second {
        push_fraction((rest % 1_000_000) as i64, text);
    }
    push_units(names[start as usize], names[end as usize], text);
}

/// `INTERVAL '1-2' YEAR TO MONTH`
pub fn push_year_month(months: i32, start: YearMonthUnit, end: YearMonthUnit, text: &mut String) {
    let rest = months.unsigned_abs();
    let sign = if months < 0 { "-" } else { "" };
    let names = ["YEAR", "MONTH"];
    let _ = match (start, end) {
        (YearMonthUnit::Year, YearMonthUnit::Year) => write!(text, "INTERVAL '{sign}{}", rest / 12),
        (YearMonthUnit::Month, _) => write!(text, "INTERVAL '{sign}{rest}"),
        (YearMonthUnit::Year, YearMonthUnit::Month) => write!(text, "INTERVAL '{sign}{}-{}", rest / 12, rest % 12),
    };
    push_units(names[start as usize], names[end as usize], text);
}

fn push_units(start: &str, end: &str, text: &mut String) {
    let _ = match start == end {
        true => write!(text, "' {start}"),
        false => write!(text, "' {start} TO {end}"),
    };
}

/// `1 years 2 months 25 days 5 hours 6 minutes 7.5 seconds`
pub fn push_calendar(months: i32, days: i32, micros: i64, text: &mut String) {
    let mut parts = Vec::new();
    let mut part = |value: i64, unit: &str| {
        if value != 0 {
            parts.push(format!("{value} {unit}"));
        }
    };
    part((months / 12).into(), "years");
    part((months % 12).into(), "months");
    part(days.into(), "days");
    part(micros / 3_600_000_000, "hours");
    part(micros / 60_000_000 % 60, "minutes");
    let second_micros = micros % 60_000_000;
    if second_micros != 0 {
        let mut seconds = String::from(if second_micros < 0 { "-" } else { "" });
        let _ = write!(seconds, "{}", second_micros.abs() / 1_000_000);
        push_fraction(second_micros.abs() % 1_000_000, &mut seconds);
        parts.push(format!("{seconds} seconds"));
    }
    text.push_str(&if parts.is_empty() { "0 seconds".to_string() } else { parts.join(" ") });
}
