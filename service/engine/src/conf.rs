//! A session's configuration: what a client set, and Spark's defaults for what it reads.

mod defaults;

use std::collections::BTreeMap;

use chrono_tz::Tz;

use crate::{Error, Result};

/// The configuration of one session. Any key may be set, as in Spark; the keys that mean something to this engine are
/// checked when they are set.
#[derive(Debug, Clone, Default)]
pub struct Conf {
    explicit: BTreeMap<String, String>,
}

impl Conf {
    pub fn new() -> Conf {
        Conf::default()
    }

    /// The value that was set, or Spark's default.
    pub fn get(&self, key: &str) -> Option<String> {
        match self.explicit.get(key) {
            Some(value) => Some(value.clone()),
            None if key == TIME_ZONE => Some(defaults::machine_time_zone().to_string()),
            None => defaults::find(key).map(str::to_string),
        }
    }

    /// Sets a key.
    ///
    /// # Errors
    /// [`Error::CannotModifyConf`] for keys that belong to the server, [`Error::InvalidConfValue`] for values that the
    /// key cannot have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        if defaults::is_fixed(key) {
            return Err(Error::CannotModifyConf { key: key.into() });
        }
        check(key, value)?;
        self.explicit.insert(key.into(), value.into());
        Ok(())
    }

    /// Sets a key that belongs to the server (its address, say), which clients can read only.
    pub fn set_fixed(&mut self, key: &str, value: &str) {
        self.explicit.insert(key.into(), value.into());
    }

    /// Goes back to the default.
    pub fn unset(&mut self, key: &str) -> Result<()> {
        if defaults::is_fixed(key) {
            return Err(Error::CannotModifyConf { key: key.into() });
        }
        self.explicit.remove(key);
        Ok(())
    }

    /// Whether the key is one of Spark's that a session may set.
    pub fn is_modifiable(&self, key: &str) -> bool {
        !defaults::is_fixed(key) && (defaults::find(key).is_some() || key == TIME_ZONE)
    }

    /// The keys that start with `prefix` (all without one) and their values, defaults included.
    pub fn all(&self, prefix: Option<&str>) -> Vec<(String, String)> {
        let defaults = defaults::all().map(|(key, value)| (key.to_string(), value.to_string()));
        let mut all: BTreeMap<String, String> = defaults.collect();
        all.insert(TIME_ZONE.into(), defaults::machine_time_zone().to_string());
        all.extend(self.explicit.clone());
        all.into_iter().filter(|(key, _)| key.starts_with(prefix.unwrap_or_default())).collect()
    }

    /// The keys that were set and their values.
    pub fn explicit(&self) -> impl Iterator<Item = (&str, &str)> {
        self.explicit.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    fn is_true(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    /// Whether `a` and `A` are different columns.
    pub fn case_sensitive(&self) -> bool {
        self.is_true("spark.sql.caseSensitive")
    }

    /// Whether overflow, invalid casts and the like are errors rather than nulls.
    pub fn ansi(&self) -> bool {
        self.is_true("spark.sql.ansi.enabled")
    }

    /// The zone in which timestamps are shown and read.
    pub fn session_time_zone(&self) -> TimeZone {
        match self.explicit.get(TIME_ZONE) {
            // `set` has refused names that are no zone.
            Some(name) => parse_time_zone(name).unwrap_or(TimeZone::Region(Tz::UTC)),
            None => TimeZone::Region(defaults::machine_time_zone()),
        }
    }

    /// Whether the type name `TIMESTAMP` means the type without a time zone.
    pub fn timestamp_is_ntz(&self) -> bool {
        self.get("spark.sql.timestampType").is_some_and(|value| value.eq_ignore_ascii_case("TIMESTAMP_NTZ"))
    }

    /// In how many partitions a shuffle results.
    pub fn shuffle_partitions(&self) -> usize {
        self.get("spark.sql.shuffle.partitions").and_then(|value| value.trim().parse().ok()).unwrap_or(200)
    }
}

const TIME_ZONE: &str = "spark.sql.session.timeZone";

/// A time zone as Spark names them: a region, or a fixed offset such as `+02:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeZone {
    Region(Tz),
    Offset(chrono::FixedOffset),
}

impl TimeZone {
    /// The zone's offset from UTC at an instant, in seconds. Before zones were kept, it is the zone's local mean time.
    pub fn offset_s(&self, epoch_s: i64) -> i64 {
        use chrono::{Offset, TimeZone as _};
        match self {
            TimeZone::Offset(offset) => offset.local_minus_utc().into(),
            TimeZone::Region(zone) => match chrono::DateTime::from_timestamp(epoch_s, 0) {
                Some(instant) => zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc().into(),
                None => 0,
            },
        }
    }

    /// The instant, in microseconds, of a local time in microseconds. A time that occurs twice is its first occurrence; one
    /// that the clocks skip is moved by what they skip.
    pub fn micros_from_local(&self, local_micros: i64) -> Option<i64> {
        let shifted = |offset_s: i64| local_micros.checked_sub(offset_s.checked_mul(1_000_000)?);
        let local_s = local_micros.div_euclid(1_000_000);
        // A change of the clocks within a day: the offsets a day earlier and later are the ones before and after it.
        let (before, after) = (self.offset_s(local_s - 86_400), self.offset_s(local_s + 86_400));
        let is_at = |offset_s: i64| self.offset_s(local_s - offset_s) == offset_s;
        if is_at(before) || !is_at(after) { shifted(before) } else { shifted(after) }
    }

    /// The zone's name as Arrow has it.
    pub fn name(&self) -> String {
        match self {
            TimeZone::Region(zone) => zone.name().into(),
            TimeZone::Offset(offset) => offset.to_string(),
        }
    }
}

/// Reads `Europe/Berlin`, `UTC`, `Z`, `+02:00`, `GMT+2`, `UTC-03:30`.
pub fn parse_time_zone(name: &str) -> Option<TimeZone> {
    let name = name.trim();
    if let Ok(zone) = name.parse::<Tz>() {
        return Some(TimeZone::Region(zone));
    }
    if name == "Z" {
        return Some(TimeZone::Region(Tz::UTC));
    }
    let offset = ["UTC", "GMT", "UT"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let (sign, digits) = match offset.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let mut parts = digits.split(':').map(|part| {
        let is_short_number = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        is_short_number.then(|| part.parse::<i32>().ok()).flatten()
    });
    let hours = parts.next()??;
    let minutes = parts.next().unwrap_or(Some(0))?;
    let seconds = parts.next().unwrap_or(Some(0))?;
    let total = hours * 3600 + minutes * 60 + seconds;
    let is_valid = parts.next().is_none() && minutes < 60 && seconds < 60 && total <= 18 * 3600;
    is_valid.then(|| chrono::FixedOffset::east_opt(sign * total)).flatten().map(TimeZone::Offset)
}

/// Refuses values that a key which this engine reads cannot have.
fn check(key: &str, value: &str) -> Result<()> {
    let refuse = |detail: &str| {
        Err(Error::InvalidConfValue { key: key.into(), value: value.into(), detail: detail.into() })
    };
    if key == TIME_ZONE && parse_time_zone(value).is_none() {
        return refuse("expected a region such as Europe/Berlin or an offset such as +01:00");
    }
    let is_boolean = matches!(defaults::find(key), Some("true" | "false"));
    let lower = value.trim().to_lowercase();
    if is_boolean && lower != "true" && lower != "false" {
        return refuse("expected a boolean");
    }
    if key == "spark.sql.timestampType" && !["timestamp_ltz", "timestamp_ntz"].contains(&lower.as_str()) {
        return refuse("expected TIMESTAMP_LTZ or TIMESTAMP_NTZ");
    }
    if key == "spark.sql.shuffle.partitions" && !lower.parse::<usize>().is_ok_and(|number| number > 0) {
        return refuse("expected a positive number");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_create_data_frame_reads_all_exist() {
        let conf = Conf::new();
        for key in [
            "spark.sql.timestampType",
            "spark.sql.session.timeZone",
            "spark.sql.session.localRelationCacheThreshold",
            "spark.sql.session.localRelationSizeLimit",
            "spark.sql.session.localRelationChunkSizeRows",
            "spark.sql.session.localRelationChunkSizeBytes",
            "spark.sql.session.localRelationBatchOfChunksSizeBytes",
            "spark.sql.execution.pandas.convertToArrowArraySafely",
            "spark.sql.execution.pandas.inferPandasDictAsMap",
            "spark.sql.pyspark.inferNestedDictAsStruct.enabled",
            "spark.sql.pyspark.legacy.inferArrayTypeFromFirstElement.enabled",
            "spark.sql.pyspark.legacy.inferMapTypeFromFirstPair.enabled",
            "spark.sql.execution.arrow.useLargeVarTypes",
        ] {
            assert!(conf.get(key).is_some(), "{key}");
            assert!(conf.is_modifiable(key), "{key}");
        }
        assert!(conf.ansi() && !conf.case_sensitive());
    }

    #[test]
    fn a_key_that_was_set_comes_back_and_goes_back() {
        let mut conf = Conf::new();
        conf.set("spark.sql.caseSensitive", "TRUE").unwrap();
        conf.set("my.own.key", "x").unwrap();
        assert!(conf.case_sensitive());
        assert_eq!(conf.explicit().collect::<Vec<_>>(), [("my.own.key", "x"), ("spark.sql.caseSensitive", "TRUE")]);
        assert_eq!(conf.all(Some("my.")), [("my.own.key".to_string(), "x".to_string())]);
        conf.unset("spark.sql.caseSensitive").unwrap();
        assert_eq!(conf.get("spark.sql.caseSensitive").as_deref(), Some("false"));
        assert!(!conf.is_modifiable("my.own.key"));
    }

    #[test]
    fn values_and_keys_that_cannot_be_are_refused() {
        let mut conf = Conf::new();
        for (key, value) in [
            ("spark.sql.session.timeZone", "Mars/Olympus"),
            ("spark.sql.ansi.enabled", "maybe"),
            ("spark.sql.shuffle.partitions", "0"),
            ("spark.sql.timestampType", "X"),
        ] {
            assert!(matches!(conf.set(key, value), Err(Error::InvalidConfValue { .. })), "{key}");
        }
        assert!(matches!(conf.set("spark.sql.warehouse.dir", "x"), Err(Error::CannotModifyConf { .. })));
    }

    #[test]
    fn time_zones_are_regions_or_offsets() {
        let offset = |name: &str| parse_time_zone(name).map(|zone| zone.offset_s(1_600_000_000));
        for (name, expected) in [
            ("America/New_York", Some(-4 * 3600)),
            ("UTC", Some(0)),
            ("Z", Some(0)),
            ("+02:00", Some(7200)),
            ("GMT-3", Some(-10800)),
            ("UTC+05:30", Some(19800)),
            ("+19:00", None),
            ("+2:60", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(offset(name), expected, "{name}");
        }
    }
}
