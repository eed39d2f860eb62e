//! Literals as Spark prints them in a column's name.

use spark_connect_proto::expression::Literal;
use spark_connect_proto::expression::literal::LiteralType;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

pub(super) fn text(literal: &Literal) -> String {
    let Some(value) = &literal.literal_type else { return "NULL".into() };
    match value {
        LiteralType::Null(_) => "NULL".into(),
        LiteralType::Boolean(value) => value.to_string(),
        LiteralType::Byte(value) | LiteralType::Short(value) | LiteralType::Integer(value) => value.to_string(),
        LiteralType::Long(value) => value.to_string(),
        LiteralType::Float(value) => java_decimal(&format!("{value:e}"), value.is_finite()),
        LiteralType::Double(value) => java_decimal(&format!("{value:e}"), value.is_finite()),
        LiteralType::Decimal(value) => value.value.clone(),
        LiteralType::String(value) => value.clone(),
        LiteralType::Binary(bytes) => {
            format!("X'{}'", bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>())
        }
        LiteralType::Date(days) => format!("DATE '{}'", date(i64::from(*days))),
        LiteralType::Timestamp(micros) => format!("TIMESTAMP '{}'", timestamp(*micros)),
        LiteralType::TimestampNtz(micros) => format!("TIMESTAMP_NTZ '{}'", timestamp(*micros)),
        LiteralType::TimestampNtzNanos(value) => format!("TIMESTAMP_NTZ '{}'", timestamp(value.epoch_micros)),
        LiteralType::TimestampLtzNanos(value) => format!("TIMESTAMP '{}'", timestamp(value.epoch_micros)),
        LiteralType::Time(value) => format!("TIME '{}'", time(value.nano / 1000)),
        LiteralType::YearMonthInterval(months) => year_month(i64::from(*months)),
        LiteralType::DayTimeInterval(micros) => day_time(*micros),
        LiteralType::CalendarInterval(value) => calendar(value.months, value.days, value.microseconds),
        LiteralType::Array(array) => format!("[{}]", list(&array.elements)),
        LiteralType::Struct(value) => format!("{{{}}}", list(&value.elements)),
        LiteralType::Map(map) => {
            let entries =
                map.keys.iter().zip(&map.values).map(|(key, value)| format!("{} -> {}", text(key), text(value)));
            format!("map({})", entries.collect::<Vec<_>>().join(", "))
        }
        LiteralType::SpecializedArray(array) => specialized(array),
    }
}

fn list(values: &[Literal]) -> String {
    values.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn specialized(array: &spark_connect_proto::expression::literal::SpecializedArray) -> String {
    use spark_connect_proto::expression::literal::specialized_array::ValueType;
    fn join<T>(values: &[T], show: impl Fn(&T) -> String) -> String {
        format!("[{}]", values.iter().map(show).collect::<Vec<_>>().join(", "))
    }
    match &array.value_type {
        None => "[]".into(),
        Some(ValueType::Bools(v)) => join(&v.values, bool::to_string),
        Some(ValueType::Ints(v)) => join(&v.values, i32::to_string),
        Some(ValueType::Longs(v)) => join(&v.values, i64::to_string),
        Some(ValueType::Floats(v)) => join(&v.values, |v| java_decimal(&format!("{v:e}"), v.is_finite())),
        Some(ValueType::Doubles(v)) => join(&v.values, |v| java_decimal(&format!("{v:e}"), v.is_finite())),
        Some(ValueType::Strings(v)) => join(&v.values, String::clone),
    }
}

/// Java's form of a floating number, from Rust's shortest digits in scientific form.
fn java_decimal(scientific: &str, is_finite: bool) -> String {
    if !is_finite {
        return match scientific {
            "inf" => "Infinity".into(),
            "-inf" => "-Infinity".into(),
            _ => "NaN".into(),
        };
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest.replace('.', "")),
        None => ("", mantissa.replace('.', "")),
    };
    let is_zero = digits.chars().all(|c| c == '0');
    if !is_zero && !(-3..7).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        return format!("{sign}{first}.{}E{exponent}", if rest.is_empty() { "0" } else { rest });
    }
    let point = exponent + 1;
    if point <= 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize));
    }
    let point = point as usize;
    if digits.len() <= point {
        return format!("{sign}{digits}{}.0", "0".repeat(point - digits.len()));
    }
    let (whole, fraction) = digits.split_at(point);
    format!("{sign}{whole}.{fraction}")
}

fn date(days: i64) -> String {
    // Days from the first of March of year 0, so that the leap day ends a year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn time(micros: i64) -> String {
    let seconds = micros.div_euclid(MICROS_PER_SECOND);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hour:02}:{minute:02}:{second:02}{}", fraction(micros.rem_euclid(MICROS_PER_SECOND)))
}

/// In UTC: the session's time zone is not known here.
fn timestamp(micros: i64) -> String {
    format!("{} {}", date(micros.div_euclid(MICROS_PER_DAY)), time(micros.rem_euclid(MICROS_PER_DAY)))
}

fn fraction(micros: i64) -> String {
    if micros == 0 { String::new() } else { format!(".{}", format!("{micros:06}").trim_end_matches('0')) }
}

fn year_month(months: i64) -> String {
    let sign = if months < 0 { "-" } else { "" };
    let (years, rest) = (months.abs() / 12, months.abs() % 12);
    match (years, rest) {
        (0, rest) => format!("INTERVAL '{sign}{rest}' MONTH"),
        (years, 0) => format!("INTERVAL '{sign}{years}' YEAR"),
        (years, rest) => format!("INTERVAL '{sign}{years}-{rest}' YEAR TO MONTH"),
    }
}

/// From the largest unit that is not zero to the smallest: the message does not tell which the literal was written in.
fn day_time(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let total = micros.unsigned_abs() as i64;
    let seconds = total / MICROS_PER_SECOND;
    let part = fraction(total % MICROS_PER_SECOND);
    let values = [seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
    const UNITS: [&str; 4] = ["DAY", "HOUR", "MINUTE", "SECOND"];
    let used = |at: &usize| values[*at] != 0 || (*at == 3 && !part.is_empty());
    let first = (0..4).find(used).unwrap_or(0);
    let last = (0..4).rev().find(used).unwrap_or(0);
    let mut digits = String::new();
    for (at, value) in values.iter().enumerate().take(last + 1).skip(first) {
        let separator = match at {
            _ if at == first => "",
            1 => " ",
            _ => ":",
        };
        let width = if at == 0 { 1 } else { 2 };
        digits.push_str(&format!("{separator}{value:0width$}"));
    }
    if last == 3 {
        digits.push_str(&part);
    }
    let range = if first == last { UNITS[first].to_string() } else { format!("{} TO {}", UNITS[first], UNITS[last]) };
    format!("INTERVAL '{sign}{digits}' {range}")
}

fn calendar(months: i32, days: i32, micros: i64) -> String {
    let mut parts = Vec::new();
    let seconds = micros / MICROS_PER_SECOND;
    for (value, unit) in [
        (i64::from(months / 12), "years"),
        (i64::from(months % 12), "months"),
        (i64::from(days), "days"),
        (seconds / 3600, "hours"),
        (seconds / 60 % 60, "minutes"),
    ] {
        if value != 0 {
            parts.push(format!("{value} {unit}"));
        }
    }
    let rest = micros % (60 * MICROS_PER_SECOND);
    if rest != 0 || parts.is_empty() {
        let sign = if rest < 0 { "-" } else { "" };
        let rest = rest.abs();
        parts.push(format!("{sign}{}{} seconds", rest / MICROS_PER_SECOND, fraction(rest % MICROS_PER_SECOND)));
    }
    format!("INTERVAL '{}'", parts.join(" "))
}
