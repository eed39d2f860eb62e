//! The options of a source or sink: keys match without their case, as in Spark.

use std::collections::BTreeMap;

use crate::{Error, Result};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    values: BTreeMap<String, String>,
}

impl<K: AsRef<str>, V: Into<String>> FromIterator<(K, V)> for Options {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(pairs: T) -> Options {
        let values = pairs.into_iter().map(|(key, value)| (key.as_ref().to_lowercase(), value.into())).collect();
        Options { values }
    }
}

impl Options {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(&key.to_lowercase()).map(String::as_str)
    }

    /// The value under the first of several names for one option that is set.
    pub(super) fn first(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.get(key))
    }

    pub(super) fn flag(&self, format: &str, key: &str, default: bool) -> Result<bool> {
        match self.get(key) {
            None => Ok(default),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
            Some(value) => Err(invalid(format, key, value, "expected true or false")),
        }
    }

    /// An option of at most one character; none when it is set to nothing.
    pub(super) fn character(&self, format: &str, keys: &[&str], default: Option<char>) -> Result<Option<char>> {
        let Some(value) = self.first(keys) else { return Ok(default) };
        let unescaped = match value {
            "\\t" => "\t",
            "\\\\" => "\\",
            "\\0" | "\u{0}" => "",
            value => value,
        };
        let mut chars = unescaped.chars();
        match (chars.next(), chars.next()) {
            (first, None) => Ok(first),
            _ => Err(invalid(format, keys[0], value, "expected a single character")),
        }
    }

    pub(super) fn number<T: std::str::FromStr>(&self, format: &str, key: &str) -> Result<Option<T>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => {
                value.trim().parse().map(Some).map_err(|_| invalid(format, key, value, "expected a number"))
            }
        }
    }

    /// Refuses options that would change the result and cannot be honoured.
    pub(super) fn refuse(&self, format: &str, keys: &[&str]) -> Result<()> {
        match keys.iter().find(|key| self.get(key).is_some_and(|value| !value.is_empty())) {
            Some(key) => Err(Error::Unsupported { feature: format!("option {key} of {format}") }),
            None => Ok(()),
        }
    }

    /// Text is UTF-8 here; another encoding is refused.
    pub(super) fn require_utf8(&self, format: &str) -> Result<()> {
        match self.first(&["encoding", "charset"]) {
            Some(name) if !["utf-8", "utf8", "us-ascii"].contains(&name.to_lowercase().as_str()) => {
                Err(Error::Unsupported { feature: format!("encoding {name} of {format}") })
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn invalid(format: &str, option: &str, value: &str, detail: &str) -> Error {
    Error::InvalidOption { format: format.into(), option: option.into(), value: value.into(), detail: detail.into() }
}

/// What becomes of records that do not fit the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseMode {
    Permissive,
    DropMalformed,
    FailFast,
}

impl ParseMode {
    pub fn of(options: &Options) -> ParseMode {
        // Spark warns of an unknown mode and goes on with the default.
        match options.get("mode").unwrap_or_default().to_uppercase().as_str() {
            "DROPMALFORMED" => ParseMode::DropMalformed,
            "FAILFAST" => ParseMode::FailFast,
            _ => ParseMode::Permissive,
        }
    }
}
