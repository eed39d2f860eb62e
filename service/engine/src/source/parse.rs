//! Text to values, with the leniency Spark has for dates and times.

use crate::conf::{TimeZone, parse_time_zone};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Days since 1970-01-01 of `[+-]y…y[-[m]m[-[d]d]]`, followed by nothing or by a blank or `T` and anything.
pub fn parse_date(text: &str) -> Option<i32> {
    let (days, rest) = date_prefix(text.trim())?;
    (rest.is_empty() || rest.starts_with([' ', 'T'])).then(|| i32::try_from(days).ok()).flatten()
}

/// Microseconds since the epoch of a date, optionally with a time `[h]h:[m]m[:[s]s[.fraction]]` after a blank or `T`, and a
/// zone. Without a zone it is local time in `zone`.
pub fn parse_timestamp(text: &str, zone: &TimeZone) -> Option<i64> {
    let (local_micros, named_zone) = parse_local_timestamp(text)?;
    match named_zone {
        Some(named) => named.micros_from_local(local_micros),
        None => zone.micros_from_local(local_micros),
    }
}

/// Microseconds of local time, and the zone if the text names one.
pub(super) fn parse_local_timestamp(text: &str) -> Option<(i64, Option<TimeZone>)> {
    let (days, rest) = date_prefix(text.trim())?;
    let midnight = days.checked_mul(MICROS_PER_DAY)?;
    let Some(time) = rest.strip_prefix([' ', 'T']) else { return rest.is_empty().then_some((midnight, None)) };
    let end = time.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(time.len());
    let (clock, zone) = time.split_at(end);
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, fraction_micros(fraction)?),
        None => (clock, 0),
    };
    let mut parts = clock.split(':').map(|part| short_number(part, 2));
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let micros = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction;
    let zone = match zone.trim() {
        "" => None,
        name => Some(parse_time_zone(name)?),
    };
    Some((midnight.checked_add(micros)?, zone))
}

pub(super) fn fraction_micros(digits: &str) -> Option<i64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let six: String = digits.chars().chain(std::iter::repeat('0')).take(6).collect();
    is_number.then(|| six.parse().ok()).flatten()
}

fn short_number(text: &str, digits_max: usize) -> Option<i64> {
    let is_number = (1..=digits_max).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// The date a text begins with, and what follows it.
fn date_prefix(text: &str) -> Option<(i64, &str)> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let year_length = number(unsigned);
    if !(4..=7).contains(&year_length) {
        return None;
    }
    let (year, mut rest) = unsigned.split_at(year_length);
    let part = |rest: &mut &str| -> Option<i64> {
        let Some(after) = rest.strip_prefix('-') else { return Some(1) };
        let length = number(after);
        let (digits, left) = after.split_at(length);
        *rest = left;
        short_number(digits, 2)
    };
    let month = part(&mut rest)?;
    let day = part(&mut rest)?;
    Some((days_from_civil(sign * year.parse::<i64>().ok()?, month, day)?, rest))
}

/// Days since 1970-01-01 of a date that exists. (Howard Hinnant, "chrono-compatible low-level date algorithms".)
pub(super) fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Conf;

    #[test]
    fn dates_are_read_leniently() {
        for (text, days) in [
            ("1970-01-01", Some(0)),
            ("2020-1-2", Some(18263)),
            ("2020", Some(18262)),
            ("2020-02-30", None),
            ("2020-01-02 03:04", Some(18263)),
            ("2020-01-02x", None),
            ("20-01-02", None),
            ("", None),
            ("é", None),
            ("-0001-01-01", Some(-719893)),
        ] {
            assert_eq!(parse_date(text), days, "{text}");
        }
    }

    #[test]
    fn timestamps_are_read_in_their_zone() {
        let mut conf = Conf::new();
        conf.set("spark.sql.session.timeZone", "America/New_York").unwrap();
        let zone = conf.session_time_zone();
        for (text, micros) in [
            ("1970-01-01 00:00:00", Some(18_000_000_000)),
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1970-01-01 00:00:00.5+01:00", Some(-3_599_500_000)),
            ("1970-01-01", Some(18_000_000_000)),
            ("1970-01-01 1:2", Some(18_000_000_000 + 3_720_000_000)),
            // The clock goes from 2:00 to 3:00 that night.
            ("2020-03-08 02:30:00", Some(1_583_652_600_000_000)),
            ("1970-01-01 24:00:00", None),
            ("1970-01-01 Mars", None),
            ("12:30:00", None),
        ] {
            assert_eq!(parse_timestamp(text, &zone), micros, "{text}");
        }
    }
}
