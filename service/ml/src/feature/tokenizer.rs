//! `Tokenizer`: a text's words in lower case, split at every white space.

use std::sync::Arc;

use arrow::datatypes::Schema;

use super::columns::check_new;
use super::words;
use crate::{Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.Tokenizer",
    model_class: None,
    params,
    kind: Kind::Transformer(&Tokenizer),
};

fn params() -> Vec<Param> {
    vec![Param::unset("inputCol", ParamType::String), Param::output_col()]
}

struct Tokenizer;

impl Transformer for Tokenizer {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        words::check_text(schema, input)?;
        check_new(schema, output)?;
        Ok(vec![TransformStep::Append {
            output: Arc::new(words::field(output)),
            inputs: vec![input.into()],
            function: Arc::new(|columns, _| words::of_texts(&columns[0], split)),
        }])
    }
}

/// As Java splits at `\s`: empty words at the end are left out, those before are kept.
fn split(text: &str) -> Vec<String> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\x0B' | '\x0C' | '\r');
    let lower = text.to_lowercase();
    let mut words: Vec<String> = lower.split(is_space).map(String::from).collect();
    while words.len() > 1 && words.last().is_some_and(String::is_empty) {
        words.pop();
    }
    match words.as_slice() {
        // nothing but white space
        [only] if only.is_empty() && !text.is_empty() => Vec::new(),
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_words_at_the_end_are_left_out() {
        assert_eq!(split("A  b "), ["a", "", "b"]);
        assert_eq!(split(""), [""]);
        assert!(split("  ").is_empty());
    }
}
