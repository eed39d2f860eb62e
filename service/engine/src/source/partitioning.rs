//! Columns that directories hold: `year=2024/kind=a`.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::ScalarValue;

use super::parse::{parse_date, parse_timestamp};
use crate::data_type::{SparkType, timestamp_type};
use crate::{Conf, Error, Result};

/// The directory that holds the rows whose value is null.
pub(super) const NULL_DIRECTORY: &str = "__HIVE_DEFAULT_PARTITION__";

pub(super) type PartitionColumns = Vec<FieldRef>;

/// The columns that the directories of files name, and their values for each file. The type of a column is the narrowest
/// that holds all its values, or the one the wanted schema says.
pub(super) fn infer(
    directories: &[&[String]],
    wanted: Option<&Schema>,
    conf: &Conf,
) -> Result<(PartitionColumns, Vec<Vec<ScalarValue>>)> {
    let split = |directory: &String| {
        let (name, value) = directory.split_once('=').unwrap_or((directory, ""));
        (unescape(name), (value != NULL_DIRECTORY).then(|| unescape(value)))
    };
    let paths: Vec<Vec<(String, Option<String>)>> =
        directories.iter().map(|names| names.iter().map(split).collect()).collect();
    let names: Vec<String> = match paths.first() {
        Some(first) => first.iter().map(|(name, _)| name.clone()).collect(),
        None => Vec::new(),
    };
    if let Some(other) = paths.iter().find(|path| !path.iter().map(|(name, _)| name).eq(names.iter())) {
        let other: Vec<&str> = other.iter().map(|(name, _)| name.as_str()).collect();
        return Err(Error::InvalidPlan {
            detail: format!("conflicting partition columns: {} and {}", names.join(", "), other.join(", ")),
        });
    }
    let infers_types = conf.get("spark.sql.sources.partitionColumnTypeInference.enabled").as_deref() != Some("false");
    let mut columns = Vec::with_capacity(names.len());
    let mut values: Vec<Vec<ScalarValue>> = vec![Vec::with_capacity(names.len()); paths.len()];
    for (position, name) in names.iter().enumerate() {
        let texts: Vec<Option<&str>> = paths.iter().map(|path| path[position].1.as_deref()).collect();
        let asked = wanted.and_then(|schema| {
            let is_same = |field: &&FieldRef| match conf.case_sensitive() {
                true => field.name() == name,
                false => field.name().eq_ignore_ascii_case(name),
            };
            schema.fields().iter().find(is_same).cloned()
        });
        let field = match asked {
            Some(field) => field,
            None if infers_types => Arc::new(narrowest(&texts, conf).field(name, true)),
            None => Arc::new(SparkType::String.field(name, true)),
        };
        for (row, text) in values.iter_mut().zip(texts) {
            row.push(value(text, &field, conf)?);
        }
        columns.push(field);
    }
    Ok((columns, values))
}

fn narrowest(texts: &[Option<&str>], conf: &Conf) -> SparkType<'static> {
    let all = |holds: &dyn Fn(&str) -> bool| texts.iter().flatten().all(|text| holds(text));
    let zone = conf.session_time_zone();
    if texts.iter().all(Option::is_none) {
        SparkType::String
    } else if all(&|text| text.parse::<i32>().is_ok()) {
        SparkType::Integer
    } else if all(&|text| text.parse::<i64>().is_ok()) {
        SparkType::Long
    } else if all(&|text| text.parse::<f64>().is_ok() && text.contains(|c: char| c.is_ascii_digit())) {
        SparkType::Double
    } else if all(&|text| text.len() == 10 && parse_date(text).is_some()) {
        SparkType::Date
    } else if all(&|text| text.contains(':') && parse_timestamp(text, &zone).is_some()) {
        SparkType::Timestamp
    } else {
        SparkType::String
    }
}

fn value(text: Option<&str>, field: &FieldRef, conf: &Conf) -> Result<ScalarValue> {
    let Some(text) = text else { return Ok(ScalarValue::try_from(field.data_type())?) };
    let parsed = match field.data_type() {
        DataType::Date32 => parse_date(text).map(|days| ScalarValue::Date32(Some(days))),
        other if *other == timestamp_type() => parse_timestamp(text, &conf.session_time_zone())
            .map(|micros| ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into()))),
        other => ScalarValue::Utf8(Some(text.into())).cast_to(other).ok(),
    };
    parsed.ok_or_else(|| Error::Row {
        class: "CAST_INVALID_INPUT",
        message: format!("partition value {text} of column {} is no {}", field.name(), field.data_type()),
        parameters: vec![("expression", text.into())],
    })
}

/// Characters that no directory name may hold, which stand as `%XX` in it.
const ESCAPED: &str = "\"#%'*/:=?\\\u{7f}{[]^";

pub(super) fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii() && (c.is_ascii_control() || ESCAPED.contains(c)) {
            escaped.push_str(&format!("%{:02X}", c as u32));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

fn unescape(name: &str) -> String {
    let bytes = name.as_bytes();
    let mut unescaped = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| name.get(at + 1..at + 3)).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                unescaped.push(byte);
                at += 3;
            }
            None => {
                unescaped.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&unescaped).into_owned()
}
