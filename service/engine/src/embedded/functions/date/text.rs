//! Dates and timestamps to and from text, by a pattern.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Date32Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};

use super::super::Call;
use super::super::kernel::{self, Kernel};
use super::super::string::texts;
use super::pattern::Pattern;
use crate::embedded::expression::Typed;
use crate::embedded::expression::cast::time::{days, micros};
use crate::embedded::expression::cast::{Mode, cast_to};
use crate::embedded::expression::coercion::{is_numeric, timestamp_type};
use crate::embedded::expression::zone::Zone;
use crate::{Error, Result};

const DEFAULT_PATTERN: &str = "yyyy-MM-dd HH:mm:ss";

/// Compiles patterns, keeping the last.
#[derive(Default)]
struct Patterns {
    last: Option<(String, Pattern)>,
}

impl Patterns {
    fn get(&mut self, text: &str) -> Result<&Pattern> {
        if self.last.as_ref().is_none_or(|(last, _)| last != text) {
            self.last = Some((text.into(), Pattern::parse(text)?));
        }
        match &self.last {
            Some((_, pattern)) => Ok(pattern),
            None => Err(Error::Bug { invariant: "the pattern was just parsed".into() }),
        }
    }
}

/// CANNOT_PARSE_TIMESTAMP.
fn unreadable(text: &str) -> Error {
    Error::Row {
        class: "CANNOT_PARSE_TIMESTAMP",
        message: format!(
            "Text '{text}' could not be parsed. Use `try_to_timestamp` to tolerate invalid input string and return NULL \
             instead."
        ),
        parameters: vec![
            ("func", "`try_to_timestamp`".into()),
            ("message", format!("Text '{text}' could not be parsed")),
        ],
    }
}

fn mode(call: &Call<'_>, is_try: bool) -> Mode {
    if is_try { Mode::Try } else { Mode::of(call.conf()) }
}

/// Instants of texts by patterns.
fn by_pattern(
    call: &Call<'_>,
    text: Typed,
    pattern: Typed,
    is_try: bool,
    zone: Zone,
    output: DataType,
) -> Result<Typed> {
    let raises = mode(call, is_try) == Mode::Ansi;
    let text = call.cast(text, &DataType::Utf8)?;
    let pattern = call.cast(pattern, &DataType::Utf8)?;
    let name = format!("read time in {zone:?}, raises {raises}");
    let kernel = Kernel { raises: true, ..Kernel::new(name, output.clone(), true) };
    Ok(kernel.call(vec![text, pattern], move |arguments, _| {
        let mut patterns = Patterns::default();
        let mut instants = Vec::with_capacity(arguments[0].len());
        for (text, pattern) in texts(&arguments[0]).iter().zip(texts(&arguments[1])) {
            let (Some(text), Some(pattern)) = (text, pattern) else {
                instants.push(None);
                continue;
            };
            let found = patterns.get(pattern)?.read(text);
            if found.is_none() && raises {
                return Err(unreadable(text));
            }
            instants.push(found.map(|(local, named)| (local, named.unwrap_or(zone).instant(local))));
        }
        Ok(match &output {
            DataType::Date32 => {
                Arc::new(instants.iter().map(|at| at.map(|(local, _)| days(local.date()))).collect::<Date32Array>())
            }
            DataType::Int64 => Arc::new(
                instants.iter().map(|at| at.map(|(_, instant)| instant.div_euclid(1_000_000))).collect::<Int64Array>(),
            ),
            DataType::Timestamp(_, None) => Arc::new(
                instants
                    .iter()
                    .map(|at| at.map(|(local, _)| local.and_utc().timestamp_micros()))
                    .collect::<TimestampMicrosecondArray>(),
            ),
            _ => {
                let instants = instants.iter().map(|at| at.map(|(_, instant)| instant));
                Arc::new(instants.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
            }
        })
    }))
}

pub fn to_date(mut call: Call<'_>, is_try: bool) -> Result<Typed> {
    let mut arguments = std::mem::take(&mut call.arguments);
    let value = arguments.remove(0);
    match arguments.pop() {
        Some(pattern) if value.data_type() == &DataType::Utf8 => {
            by_pattern(&call, value, pattern, is_try, Zone::of(call.conf()), DataType::Date32)
        }
        _ => cast_to(value, &DataType::Date32, mode(&call, is_try), call.conf()),
    }
}

pub fn to_timestamp(mut call: Call<'_>, is_try: bool, with_zone: bool) -> Result<Typed> {
    let mut arguments = std::mem::take(&mut call.arguments);
    let value = arguments.remove(0);
    let output = if with_zone { timestamp_type() } else { DataType::Timestamp(TimeUnit::Microsecond, None) };
    match arguments.pop() {
        Some(pattern) if value.data_type() == &DataType::Utf8 => {
            by_pattern(&call, value, pattern, is_try, Zone::of(call.conf()), output)
        }
        _ => cast_to(value, &output, mode(&call, is_try), call.conf()),
    }
}

pub fn format(mut call: Call<'_>) -> Result<Typed> {
    let [value, pattern] = call.take()?;
    let value = match value.data_type() {
        DataType::Timestamp(_, None) => value,
        _ => call.cast(value, &timestamp_type())?,
    };
    formatted(&call, value, pattern)
}

fn formatted(call: &Call<'_>, value: Typed, pattern: Typed) -> Result<Typed> {
    let pattern = call.cast(pattern, &DataType::Utf8)?;
    let session = Zone::of(call.conf());
    let name = format!("date_format in {session:?}");
    Ok(kernel::raising(name, vec![value, pattern], DataType::Utf8, move |arguments, _| {
        let is_instant = matches!(arguments[0].data_type(), DataType::Timestamp(_, Some(_)));
        let zone = if is_instant { session } else { Zone::Named(chrono_tz::UTC) };
        let mut patterns = Patterns::default();
        let mut written = Vec::with_capacity(arguments[0].len());
        for (instant, pattern) in micros(&arguments[0])?.iter().zip(texts(&arguments[1])) {
            written.push(match (instant, pattern) {
                (Some(instant), Some(pattern)) => match zone.local(instant) {
                    Some(local) => Some(patterns.get(pattern)?.format(local, &zone, instant)?),
                    None => None,
                },
                _ => None,
            });
        }
        Ok(Arc::new(StringArray::from(written)))
    }))
}

/// Seconds since 1970 of now, a text by a pattern, a date or a timestamp.
pub fn unix_timestamp(mut call: Call<'_>) -> Result<Typed> {
    let mut arguments = std::mem::take(&mut call.arguments);
    let zone = Zone::of(call.conf());
    if arguments.is_empty() {
        let now = datafusion::functions::datetime::now(call.resolver.state.config_options()).call(vec![]);
        let cast = datafusion::logical_expr::Cast::new(Box::new(now), timestamp_type());
        let now = Typed::new(datafusion::logical_expr::Expr::Cast(cast), timestamp_type(), false);
        return call.cast(now, &DataType::Int64);
    }
    let value = arguments.remove(0);
    if value.data_type() == &DataType::Utf8 {
        let pattern = arguments.pop().unwrap_or_else(|| Typed::literal(DEFAULT_PATTERN.into()));
        return by_pattern(&call, value, pattern, false, zone, DataType::Int64);
    }
    if is_numeric(value.data_type()) {
        return Err(call.unexpected(&value, "STRING, DATE or TIMESTAMP"));
    }
    let instant = call.cast(value, &timestamp_type())?;
    call.cast(instant, &DataType::Int64)
}

/// A text of seconds since 1970.
pub fn from_unixtime(mut call: Call<'_>) -> Result<Typed> {
    let mut arguments = std::mem::take(&mut call.arguments);
    let seconds = call.cast(arguments.remove(0), &DataType::Int64)?;
    let pattern = arguments.pop().unwrap_or_else(|| Typed::literal(DEFAULT_PATTERN.into()));
    let instant = kernel::strict("seconds as timestamp", vec![seconds], timestamp_type(), |arguments, _| {
        let instants: TimestampMicrosecondArray =
            arguments[0].as_primitive::<Int64Type>().unary(|seconds| seconds.saturating_mul(1_000_000));
        Ok(Arc::new(instants.with_timezone("UTC")))
    });
    formatted(&call, instant, pattern)
}
