//! INTERVAL literals: from values and units to a year-month, day-time or calendar interval.

use spark_connect_proto::Expression;
use spark_connect_proto::expression::literal::{CalendarInterval, LiteralType};

use crate::dialect::unit_name;
use crate::error::Error;
use crate::message::literal;

const MICROS_PER_SECOND: i128 = 1_000_000;
const MICROS_PER_DAY: i128 = 86_400 * MICROS_PER_SECOND;

/// A sum of units, kept apart as Spark does: months, days and time do not convert into each other.
#[derive(Debug, Default)]
struct Sum {
    months: i128,
    days: i128,
    micros: i128,
    has_months: bool,
    has_time: bool,
}

/// The literal for pairs of a value and a unit.
pub(crate) fn from_units(pairs: &[(String, &'static str)]) -> Result<Expression, Error> {
    let mut sum = Sum::default();
    for (value, unit) in pairs {
        sum.add(value, unit)?;
    }
    sum.literal(&pairs.iter().map(|(value, unit)| format!("{value} {unit}")).collect::<Vec<_>>().join(" "))
}

/// The literal for `INTERVAL 'text'`, where the units stand in the text.
pub(crate) fn from_text(text: &str) -> Result<Expression, Error> {
    let lower = text.trim().to_ascii_lowercase();
    let words: Vec<&str> = lower.strip_prefix("interval").unwrap_or(&lower).split_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(2) {
        return Err(invalid(text, "expected pairs of a number and a unit"));
    }
    let mut pairs = Vec::new();
    for pair in words.chunks_exact(2) {
        let [value, unit] = pair else { continue };
        let unit = unit_name(unit).ok_or_else(|| invalid(text, "unknown unit"))?;
        pairs.push(((*value).to_string(), unit));
    }
    from_units(&pairs)
}

/// The literal for `INTERVAL '1 02:03' DAY TO MINUTE` and its kind.
pub(crate) fn from_range(text: &str, from: &'static str, to: &str) -> Result<Expression, Error> {
    let trimmed = text.trim();
    let (sign, digits) = match trimmed.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    const TIME: [&str; 4] = ["day", "hour", "minute", "second"];
    let units: Vec<&'static str> = if (from, to) == ("year", "month") {
        vec!["year", "month"]
    } else {
        let place = |unit: &str| TIME.iter().position(|u| *u == unit);
        match (place(from), place(to)) {
            (Some(start), Some(end)) if start < end => TIME[start..=end].to_vec(),
            _ => return Err(invalid(text, "no such range of units")),
        }
    };
    let parts: Vec<&str> = digits.split(if from == "year" { &['-'][..] } else { &[' ', ':'][..] }).collect();
    if parts.len() != units.len() || parts.iter().any(|part| part.is_empty()) {
        return Err(invalid(text, "the fields do not match the units"));
    }
    let pairs: Vec<_> = parts.iter().zip(units).map(|(part, unit)| (format!("{sign}{part}"), unit)).collect();
    from_units(&pairs)
}

fn invalid(text: &str, reason: &str) -> Error {
    Error::InvalidLiteral { literal: format!("'{text}'"), type_name: "INTERVAL", reason: reason.into() }
}

impl Sum {
    fn add(&mut self, value: &str, unit: &str) -> Result<(), Error> {
        let wrong = || invalid(value, "not a number for this unit");
        let scaled = |micros: i128| scale(value, micros).ok_or_else(wrong);
        let whole = || value.trim().parse::<i64>().map(i128::from).map_err(|_| wrong());
        match unit {
            "year" => self.months += whole()? * 12,
            "month" => self.months += whole()?,
            "week" => self.days += whole()? * 7,
            "day" => self.days += whole()?,
            "hour" => self.micros += whole()? * 3600 * MICROS_PER_SECOND,
            "minute" => self.micros += whole()? * 60 * MICROS_PER_SECOND,
            "second" => self.micros += scaled(MICROS_PER_SECOND)?,
            "millisecond" => self.micros += scaled(1000)?,
            _ => self.micros += scaled(1)?,
        }
        self.has_months |= matches!(unit, "year" | "month");
        self.has_time |= !matches!(unit, "year" | "month");
        Ok(())
    }

    fn literal(&self, text: &str) -> Result<Expression, Error> {
        let overflow = || invalid(text, "out of range");
        let months = i32::try_from(self.months).map_err(|_| overflow())?;
        if !self.has_time {
            return Ok(literal(LiteralType::YearMonthInterval(months)));
        }
        if !self.has_months {
            let micros = i64::try_from(self.days * MICROS_PER_DAY + self.micros).map_err(|_| overflow())?;
            return Ok(literal(LiteralType::DayTimeInterval(micros)));
        }
        let days = i32::try_from(self.days).map_err(|_| overflow())?;
        let microseconds = i64::try_from(self.micros).map_err(|_| overflow())?;
        Ok(literal(LiteralType::CalendarInterval(CalendarInterval { months, days, microseconds })))
    }
}

/// A decimal number of units of `micros` microseconds each; digits below a microsecond are cut.
fn scale(value: &str, micros: i128) -> Option<i128> {
    let value = value.trim();
    let (sign, digits) = match value.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, value.strip_prefix('+').unwrap_or(value)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if digits.len() > 30 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let number = |text: &str| if text.is_empty() { Some(0i128) } else { text.parse::<u64>().ok().map(i128::from) };
    let power = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some(sign * (number(whole)? * micros + number(fraction)? * micros / power))
}
