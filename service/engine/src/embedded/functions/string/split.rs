//! Texts taken apart at delimiters.

use std::sync::Arc;

use arrow::array::{Array, AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field, Int32Type};
use regex::Regex;

use super::pattern::Patterns;
use super::texts;
use crate::embedded::expression::Typed;
use crate::embedded::functions::{Call, kernel};
use crate::{Error, Result};

/// `split(text, pattern, limit)`.
pub fn by_pattern(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.len() == 2 {
        call.arguments.push(Typed::literal((-1i32).into()));
    }
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8, DataType::Int32])?;
    let element = Arc::new(Field::new("element", DataType::Utf8, false));
    let output = DataType::List(element.clone());
    Ok(kernel::raising("split", call.arguments, output, move |arguments, _| {
        let limits = arguments[2].as_primitive::<Int32Type>();
        let mut patterns = Patterns::default();
        let mut lists = ListBuilder::new(StringBuilder::new()).with_field(element.clone());
        for (row, (text, pattern)) in texts(&arguments[0]).iter().zip(texts(&arguments[1])).enumerate() {
            match (text, pattern) {
                (Some(text), Some(pattern)) if limits.is_valid(row) => {
                    let limit = usize::try_from(limits.value(row)).unwrap_or(0);
                    lists.append_value(pieces(text, pattern, patterns.get(pattern)?, limit).into_iter().map(Some));
                }
                _ => lists.append_null(),
            }
        }
        Ok(Arc::new(lists.finish()))
    }))
}

/// The pieces between matches, as Java cuts them: a match of nothing at the start gives no empty piece; 0 is no limit.
fn pieces<'t>(text: &'t str, pattern: &str, regex: &Regex, limit: usize) -> Vec<&'t str> {
    if pattern.is_empty() {
        let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        if limit > 0 {
            starts.truncate(limit);
        }
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let mut cut: Vec<&str> = starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect();
        if cut.is_empty() {
            cut.push("");
        }
        return cut;
    }
    let mut cut = Vec::new();
    let mut start = 0;
    for found in regex.find_iter(text) {
        if limit > 0 && cut.len() + 1 == limit {
            break;
        }
        if found.end() == 0 || (found.is_empty() && found.start() == text.len()) {
            continue;
        }
        cut.push(&text[start..found.start()]);
        start = found.end();
    }
    cut.push(&text[start..]);
    cut
}

/// `split_part(text, delimiter, n)`: the n-th part, from the end if negative, empty if there is none.
pub fn part(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8, DataType::Int32])?;
    Ok(kernel::raising("split_part", call.arguments, DataType::Utf8, |arguments, num_rows| {
        let (sources, delimiters) = (texts(&arguments[0]), texts(&arguments[1]));
        let indices = arguments[2].as_primitive::<Int32Type>();
        let mut parts = Vec::with_capacity(num_rows);
        for row in 0..num_rows {
            if sources.is_null(row) || delimiters.is_null(row) || indices.is_null(row) {
                parts.push(None);
                continue;
            }
            let (text, delimiter, index) = (sources.value(row), delimiters.value(row), indices.value(row));
            if index == 0 {
                return Err(Error::Row {
                    class: "INVALID_INDEX_OF_ZERO",
                    message:
                        "The index 0 is invalid. An index shall be either < 0 or > 0 (the first element has index 1)."
                            .into(),
                    parameters: vec![],
                });
            }
            let all: Vec<&str> = if delimiter.is_empty() { vec![text] } else { text.split(delimiter).collect() };
            let position = if index > 0 { i64::from(index) - 1 } else { all.len() as i64 + i64::from(index) };
            parts.push(Some(usize::try_from(position).ok().and_then(|at| all.get(at).copied()).unwrap_or("")));
        }
        Ok(Arc::new(StringArray::from(parts)))
    }))
}

/// `substring_index(text, delimiter, n)`: what stands before the n-th delimiter, or after the n-th from the end.
pub fn before_delimiter(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8, DataType::Int32])?;
    Ok(kernel::strict("substring_index", call.arguments, DataType::Utf8, |arguments, _| {
        let counts = arguments[2].as_primitive::<Int32Type>();
        let rows =
            texts(&arguments[0]).iter().zip(texts(&arguments[1])).zip(counts).map(|((text, delimiter), count)| {
                let (text, delimiter, count) = (text?, delimiter?, count?);
                if delimiter.is_empty() || count == 0 {
                    return Some("");
                }
                let found = if count > 0 {
                    text.match_indices(delimiter).nth(count as usize - 1).map(|(at, _)| &text[..at])
                } else {
                    text.rmatch_indices(delimiter)
                        .nth(count.unsigned_abs() as usize - 1)
                        .map(|(at, _)| &text[at + delimiter.len()..])
                };
                Some(found.unwrap_or(text))
            });
        Ok(Arc::new(rows.collect::<StringArray>()))
    }))
}
