//! Keys of ours in a session's configuration, read as what they mean. A value that cannot be is refused by its key.

use std::time::Duration;

use crate::session::Session;
use crate::{Error, Result};

type Expected = &'static str;

const TIME: Expected = "a time such as 90s, 5min or 2h";

/// # Errors
/// [`Error::InvalidConf`], as of all functions here.
pub fn number(session: &Session, key: &'static str, expected: Expected) -> Result<Option<u64>> {
    read(session, key, expected, |text| text.parse().ok())
}

pub fn number_of_at_least_1(session: &Session, key: &'static str) -> Result<Option<usize>> {
    let positive = |text: &str| text.parse().ok().filter(|number| *number > 0);
    read(session, key, "a whole number of at least 1", positive)
}

pub fn flag(session: &Session, key: &'static str) -> Result<bool> {
    let flag = |text: &str| text.to_ascii_lowercase().parse().ok();
    Ok(read(session, key, "true or false", flag)?.unwrap_or(false))
}

pub fn time(session: &Session, key: &'static str) -> Result<Option<Duration>> {
    read(session, key, TIME, parse_time)
}

pub fn text(session: &Session, key: &'static str) -> Result<Option<String>> {
    read(session, key, "a text", |text| Some(text.to_string()))
}

/// A place in a file system or an object store; nothing when it is empty.
pub fn location(session: &Session, key: &'static str) -> Result<Option<String>> {
    let location = |text: &str| match text {
        "" => Some(None),
        text => (text.starts_with('/') || text.contains("://")).then(|| Some(text.to_string())),
    };
    Ok(read(session, key, "an absolute path or a URL", location)?.flatten())
}

fn read<T>(
    session: &Session,
    key: &'static str,
    expected: Expected,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>> {
    let Some(value) = session.engine.conf().get(key) else { return Ok(None) };
    match parse(value.trim()) {
        Some(parsed) => Ok(Some(parsed)),
        None => Err(Error::InvalidConf { key, value, expected }),
    }
}

/// As Spark writes times: a whole number and a unit, seconds where there is none.
fn parse_time(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let milliseconds = match unit.trim() {
        "ms" => 1,
        "" | "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(milliseconds).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_spark_writes_them() {
        for (text, milliseconds) in [("3", 3000), ("250ms", 250), ("2 s", 2000), ("5min", 300_000), ("1d", 86_400_000)]
        {
            assert_eq!(parse_time(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "-1s", "1.5s", "3 weeks", "99999999999999999d"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
