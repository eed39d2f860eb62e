//! `RegexTokenizer`: a text's words by a pattern, of the words or of what stands between them.

use std::sync::Arc;

use arrow::datatypes::Schema;
use regex::Regex;

use super::columns::check_new;
use super::words;
use crate::{Check, Error, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.RegexTokenizer",
    model_class: None,
    params,
    kind: Kind::Transformer(&RegexTokenizer),
};

fn params() -> Vec<Param> {
    vec![
        Param::boolean("gaps", true),
        Param::unset("inputCol", ParamType::String),
        Param::int("minTokenLength", 1, Check::AtLeast(0.0)),
        Param::output_col(),
        Param::string("pattern", "\\s+"),
        Param::boolean("toLowercase", true),
    ]
}

struct RegexTokenizer;

impl Transformer for RegexTokenizer {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        words::check_text(schema, input)?;
        check_new(schema, output)?;
        let pattern = compile(params.string("pattern")?)?;
        let (gaps, to_lowercase) = (params.boolean("gaps")?, params.boolean("toLowercase")?);
        let least = params.int("minTokenLength")? as usize;
        let tokens = move |text: &str| {
            let lower = if to_lowercase { text.to_lowercase() } else { text.to_string() };
            let found: Vec<&str> = match gaps {
                true => split(&pattern, &lower),
                false => pattern.find_iter(&lower).map(|found| found.as_str()).collect(),
            };
            found.into_iter().filter(|token| token.encode_utf16().count() >= least).map(String::from).collect()
        };
        Ok(vec![TransformStep::Append {
            output: Arc::new(words::field(output)),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| words::of_texts(&columns[0], &tokens)),
        }])
    }
}

/// As Java splits: no empty token at the end, and none at the start for a match of no width.
fn split<'a>(pattern: &Regex, text: &'a str) -> Vec<&'a str> {
    let (mut tokens, mut start) = (Vec::new(), 0);
    for found in pattern.find_iter(text) {
        if found.end() > 0 && !(found.is_empty() && found.start() == text.len()) {
            tokens.push(&text[start..found.start()]);
            start = found.end();
        }
    }
    if tokens.is_empty() {
        return vec![text];
    }
    tokens.push(&text[start..]);
    while tokens.last().is_some_and(|token| token.is_empty()) {
        tokens.pop();
    }
    tokens
}

/// A Java pattern, whose classes such as `\w` are of ASCII.
///
/// # Errors
/// [`Error::Unsupported`] for what this engine lacks, such as looking around and back.
fn compile(pattern: &str) -> Result<Regex> {
    let mut translated = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            translated.push(c);
            continue;
        }
        match chars.next() {
            Some('w') => translated.push_str("[0-9A-Za-z_]"),
            Some('W') => translated.push_str("[^0-9A-Za-z_]"),
            Some('d') => translated.push_str("[0-9]"),
            Some('D') => translated.push_str("[^0-9]"),
            Some('s') => translated.push_str("[ \\t\\n\\x0B\\x0C\\r]"),
            Some('S') => translated.push_str("[^ \\t\\n\\x0B\\x0C\\r]"),
            Some(other) => translated.extend(['\\', other]),
            None => translated.push('\\'),
        }
    }
    Regex::new(&translated)
        .map_err(|source| Error::Unsupported { feature: format!("the pattern {pattern} ({source})") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_those_of_java() {
        let check = |pattern: &str, text: &str, expected: &[&str]| {
            assert_eq!(split(&compile(pattern).unwrap(), text), expected, "{pattern} {text}");
        };
        check(",", ",a,,b,,", &["", "a", "", "b"]);
        check("", "abc", &["a", "b", "c"]);
        check("\\W", "äb c", &["", "b", "c"]);
        check(",", "", &[""]);
    }

    #[test]
    fn a_pattern_that_looks_around_is_refused() {
        assert!(matches!(compile("(?=a)b"), Err(Error::Unsupported { .. })));
    }
}
