//! `LIKE` and regular expressions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field, Int32Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Like};
use regex::Regex;

use super::texts;
use crate::embedded::expression::Typed;
use crate::embedded::functions::{Call, kernel};
use crate::{Error, Result};

/// Compiles patterns, keeping the last: a column of patterns mostly repeats one.
#[derive(Default)]
pub struct Patterns {
    last: Option<(String, Regex)>,
}

impl Patterns {
    /// # Errors
    /// INVALID_PARAMETER_VALUE.PATTERN for what is no pattern, or one of Java's that is not supported (such as lookaround).
    pub fn get(&mut self, pattern: &str) -> Result<&Regex> {
        let is_known = self.last.as_ref().is_some_and(|(last, _)| last == pattern);
        if !is_known {
            let compiled = Regex::new(pattern).map_err(|error| Error::Row {
                class: "INVALID_PARAMETER_VALUE.PATTERN",
                message: format!("The value of parameter regexp is invalid: '{pattern}' ({error})"),
                parameters: vec![("parameter", "`regexp`".into()), ("value", format!("'{pattern}'"))],
            })?;
            self.last = Some((pattern.into(), compiled));
        }
        match &self.last {
            Some((_, compiled)) => Ok(compiled),
            None => Err(Error::Bug { invariant: "the pattern was just compiled".into() }),
        }
    }
}

/// `like` and `ilike`, with an escape character.
pub fn like(mut call: Call<'_>, ignores_case: bool) -> Result<Typed> {
    let escape = match call.arguments.get(2) {
        Some(escape) => call.constant_string(escape)?.chars().next().unwrap_or('\\'),
        None => '\\',
    };
    call.arguments.truncate(2);
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8])?;
    let [text, pattern] = call.take()?;
    let nullable = text.nullable() || pattern.nullable();
    if let Some(ScalarValue::Utf8(Some(constant))) = pattern.value()
        && !constant.contains(escape)
        && !constant.contains('\\')
        && !ignores_case
    {
        let like = Like::new(false, Box::new(text.expr), Box::new(pattern.expr), None, ignores_case);
        return Ok(Typed::new(Expr::Like(like), DataType::Boolean, nullable));
    }
    let name = format!("like {escape:?} {ignores_case}");
    Ok(kernel::raising(name, vec![text, pattern], DataType::Boolean, move |arguments, _| {
        let mut patterns = Patterns::default();
        let mut truths = Vec::with_capacity(arguments[0].len());
        for (text, pattern) in texts(&arguments[0]).iter().zip(texts(&arguments[1])) {
            truths.push(match (text, pattern) {
                (Some(text), Some(pattern)) => {
                    Some(patterns.get(&as_regex(pattern, escape, ignores_case)?)?.is_match(text))
                }
                _ => None,
            });
        }
        Ok(Arc::new(BooleanArray::from(truths)))
    }))
}

/// A `LIKE` pattern as a regular expression.
fn as_regex(pattern: &str, escape: char, ignores_case: bool) -> Result<String> {
    let mut regex = String::from(if ignores_case { "(?is)^" } else { "(?s)^" });
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            _ if character == escape => match characters.next() {
                Some(next) if next == '_' || next == '%' || next == escape => {
                    regex += &regex::escape(&next.to_string())
                }
                _ => {
                    return Err(Error::Row {
                        class: "INVALID_FORMAT.ESC_IN_THE_MIDDLE",
                        message: format!(
                            "The format is invalid: '{pattern}'. The escape character is not allowed to precede that character."
                        ),
                        parameters: vec![("format", format!("'{pattern}'"))],
                    });
                }
            },
            '%' => regex += ".*",
            '_' => regex.push('.'),
            character => regex += &regex::escape(&character.to_string()),
        }
    }
    regex.push('$');
    Ok(regex)
}

/// Each text with its pattern; null where either is.
fn each<T>(
    arguments: &[ArrayRef],
    mut visit: impl FnMut(usize, &str, &Regex) -> Result<Option<T>>,
) -> Result<Vec<Option<T>>> {
    let mut patterns = Patterns::default();
    let mut out = Vec::with_capacity(arguments[0].len());
    for (row, (text, pattern)) in texts(&arguments[0]).iter().zip(texts(&arguments[1])).enumerate() {
        out.push(match (text, pattern) {
            (Some(text), Some(pattern)) => visit(row, text, patterns.get(pattern)?)?,
            _ => None,
        });
    }
    Ok(out)
}

/// `rlike`.
pub fn matches(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8])?;
    Ok(kernel::raising("rlike", call.arguments, DataType::Boolean, |arguments, _| {
        Ok(Arc::new(BooleanArray::from(each(arguments, |_, text, regex| Ok(Some(regex.is_match(text))))?)))
    }))
}

/// Java's replacement text, `$1` and `\$`, as this library's.
fn replacement(java: &str) -> String {
    let mut out = String::with_capacity(java.len());
    let mut characters = java.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('$') => out.push_str("$$"),
                Some(next) => out.push(next),
                None => {}
            },
            '$' if characters.peek() == Some(&'{') => out.push('$'),
            '$' => {
                let mut group = String::new();
                while let Some(digit) = characters.peek().filter(|c| c.is_ascii_digit()) {
                    group.push(*digit);
                    characters.next();
                }
                if group.is_empty() { out.push_str("$$") } else { out.push_str(&format!("${{{group}}}")) }
            }
            character => out.push(character),
        }
    }
    out
}

pub fn replace(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.len() == 3 {
        call.arguments.push(Typed::literal(1i32.into()));
    }
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8, DataType::Utf8, DataType::Int32])?;
    Ok(kernel::raising("regexp_replace", call.arguments, DataType::Utf8, |arguments, _| {
        let (replacements, starts) = (texts(&arguments[2]), arguments[3].as_primitive::<Int32Type>());
        let rows = each(arguments, |row, text, regex| {
            if replacements.is_null(row) || starts.is_null(row) {
                return Ok(None);
            }
            let skipped = (starts.value(row).max(1) - 1) as usize;
            let from = text.char_indices().nth(skipped).map_or(text.len(), |(at, _)| at);
            let rest = regex.replace_all(&text[from..], replacement(replacements.value(row)).as_str());
            Ok(Some(format!("{}{rest}", &text[..from])))
        })?;
        Ok(Arc::new(StringArray::from(rows)))
    }))
}

fn group_index(regex: &Regex, index: i32, function: &str) -> Result<usize> {
    let num_groups = regex.captures_len() - 1;
    if index >= 0 && index as usize <= num_groups {
        return Ok(index as usize);
    }
    Err(Error::Row {
        class: "INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX",
        message: format!(
            "The value of parameter(s) `idx` in `{function}` is invalid: Expects group index between 0 and {num_groups}, but \
             got {index}."
        ),
        parameters: vec![
            ("parameter", "`idx`".into()),
            ("functionName", format!("`{function}`")),
            ("groupCount", num_groups.to_string()),
            ("groupIndex", index.to_string()),
        ],
    })
}

fn with_group(call: &mut Call<'_>) -> Result<()> {
    if call.arguments.len() == 2 {
        call.arguments.push(Typed::literal(1i32.into()));
    }
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8, DataType::Int32])
}

pub fn extract(mut call: Call<'_>) -> Result<Typed> {
    with_group(&mut call)?;
    Ok(kernel::raising("regexp_extract", call.arguments, DataType::Utf8, |arguments, _| {
        let groups = arguments[2].as_primitive::<Int32Type>();
        let rows = each(arguments, |row, text, regex| {
            if groups.is_null(row) {
                return Ok(None);
            }
            let group = group_index(regex, groups.value(row), "regexp_extract")?;
            let found = regex.captures(text).and_then(|captures| captures.get(group));
            Ok(Some(found.map_or(String::new(), |found| found.as_str().to_string())))
        })?;
        Ok(Arc::new(StringArray::from(rows)))
    }))
}

pub fn extract_all(mut call: Call<'_>) -> Result<Typed> {
    with_group(&mut call)?;
    let element = Arc::new(Field::new("element", DataType::Utf8, true));
    let output = DataType::List(element.clone());
    Ok(kernel::raising("regexp_extract_all", call.arguments, output, move |arguments, _| {
        let groups = arguments[2].as_primitive::<Int32Type>();
        let rows = each(arguments, |row, text, regex| {
            if groups.is_null(row) {
                return Ok(None);
            }
            let group = group_index(regex, groups.value(row), "regexp_extract_all")?;
            let found = regex
                .captures_iter(text)
                .map(|captures| captures.get(group).map_or("", |found| found.as_str()).to_string());
            Ok(Some(found.collect::<Vec<String>>()))
        })?;
        let mut lists = ListBuilder::new(StringBuilder::new()).with_field(element.clone());
        for row in rows {
            match row {
                Some(found) => lists.append_value(found.iter().map(|text| Some(text.as_str()))),
                None => lists.append_null(),
            }
        }
        Ok(Arc::new(lists.finish()))
    }))
}

pub fn substr(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8])?;
    let kernel = kernel::Kernel { raises: true, ..kernel::Kernel::new("regexp_substr", DataType::Utf8, true) };
    Ok(kernel.call(call.arguments, |arguments, _| {
        let rows = each(arguments, |_, text, regex| Ok(regex.find(text).map(|found| found.as_str().to_string())))?;
        Ok(Arc::new(StringArray::from(rows)))
    }))
}

pub fn count(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8])?;
    Ok(kernel::raising("regexp_count", call.arguments, DataType::Int32, |arguments, _| {
        Ok(Arc::new(Int32Array::from(each(arguments, |_, text, regex| {
            Ok(Some(regex.find_iter(text).count() as i32))
        })?)))
    }))
}

pub fn position(mut call: Call<'_>) -> Result<Typed> {
    call.arguments.truncate(2);
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8])?;
    Ok(kernel::raising("regexp_instr", call.arguments, DataType::Int32, |arguments, _| {
        let rows = each(arguments, |_, text, regex| {
            Ok(Some(regex.find(text).map_or(0, |found| text[..found.start()].chars().count() as i32 + 1)))
        })?;
        Ok(Arc::new(Int32Array::from(rows)))
    }))
}
