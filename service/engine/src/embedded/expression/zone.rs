//! The session's time zone, in which instants have days and hours.

use chrono::{DateTime, FixedOffset, LocalResult, NaiveDateTime, Offset, TimeZone as _};
use chrono_tz::Tz;

use crate::conf::TimeZone;
use crate::{Conf, Error, Result};

/// A named zone, or an offset such as `+01:00`.
#[derive(Debug, Clone, Copy)]
pub enum Zone {
    Named(Tz),
    Fixed(FixedOffset),
}

impl Zone {
    pub fn of(conf: &Conf) -> Zone {
        conf.session_time_zone().into()
    }

    /// # Errors
    /// INVALID_TIMEZONE for a text that names none.
    pub fn parse(text: &str) -> Result<Zone> {
        crate::conf::parse_time_zone(text).map(Zone::from).ok_or_else(|| Error::Row {
            class: "INVALID_TIMEZONE",
            message: format!(
                "The timezone: {text} is invalid. The timezone must be either a region-based zone ID or a zone offset."
            ),
            parameters: vec![("timeZone", text.into())],
        })
    }

    /// What a clock on the wall shows at an instant.
    pub fn local(&self, micros: i64) -> Option<NaiveDateTime> {
        let instant = DateTime::from_timestamp_micros(micros)?;
        Some(match self {
            Zone::Named(zone) => instant.with_timezone(zone).naive_local(),
            Zone::Fixed(zone) => instant.with_timezone(zone).naive_local(),
        })
    }

    /// Seconds east of Greenwich at an instant.
    pub fn offset_seconds(&self, micros: i64) -> i32 {
        match (self, DateTime::from_timestamp_micros(micros)) {
            (Zone::Named(zone), Some(instant)) => {
                zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc()
            }
            (Zone::Fixed(zone), _) => zone.local_minus_utc(),
            _ => 0,
        }
    }

    /// The instant a clock on the wall shows this; the earlier of two, and past a gap by its length.
    pub fn instant(&self, local: NaiveDateTime) -> i64 {
        match self {
            Zone::Fixed(zone) => local.and_utc().timestamp_micros() - i64::from(zone.local_minus_utc()) * 1_000_000,
            Zone::Named(zone) => match zone.from_local_datetime(&local) {
                LocalResult::Single(instant) | LocalResult::Ambiguous(instant, _) => instant.timestamp_micros(),
                LocalResult::None => {
                    let before = local - chrono::Duration::days(1);
                    let offset = zone.offset_from_utc_datetime(&before).fix().local_minus_utc();
                    local.and_utc().timestamp_micros() - i64::from(offset) * 1_000_000
                }
            },
        }
    }
}

impl From<TimeZone> for Zone {
    fn from(zone: TimeZone) -> Zone {
        match zone {
            TimeZone::Region(zone) => Zone::Named(zone),
            TimeZone::Offset(zone) => Zone::Fixed(zone),
        }
    }
}
