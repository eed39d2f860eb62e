//! Dates and times as Spark prints them: four-digit years, a sign beyond them, no trailing zeros of the fraction.

use std::fmt::Write;

const MICROS_PER_DAY: i128 = 86_400_000_000;

/// Year, month and day of a day since 1970-01-01, in the proleptic Gregorian calendar. Works for any day, unlike the
/// calendars of libraries, which end before Arrow's do. (Howard Hinnant, "chrono-compatible low-level date algorithms".)
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

pub fn push_date(days: i64, text: &mut String) {
    let (year, month, day) = civil_from_days(days);
    let sign = match year {
        ..0 => "-",
        10_000.. => "+",
        _ => "",
    };
    // Writing into a string cannot fail.
    let _ = write!(text, "{sign}{:04}-{month:02}-{day:02}", year.abs());
}

/// Microseconds of local time since 1970-01-01 00:00.
pub fn push_timestamp(local_micros: i128, text: &mut String) {
    push_date(local_micros.div_euclid(MICROS_PER_DAY) as i64, text);
    text.push(' ');
    push_time(local_micros.rem_euclid(MICROS_PER_DAY) as i64, text);
}

/// Microseconds since midnight.
pub fn push_time(micros: i64, text: &mut String) {
    let seconds = micros / 1_000_000;
    let _ = write!(text, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    push_fraction(micros % 1_000_000, text);
}

/// The fraction of a second, without trailing zeros.
pub fn push_fraction(micros: i64, text: &mut String) {
    if micros != 0 {
        let digits = format!("{micros:06}");
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
}
