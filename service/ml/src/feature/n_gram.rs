//! `NGram`: each run of so many words as one.

use std::sync::Arc;

use arrow::datatypes::Schema;

use super::columns::check_new;
use super::words;
use crate::{Check, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.NGram",
    model_class: None,
    params,
    kind: Kind::Transformer(&NGram),
};

fn params() -> Vec<Param> {
    vec![
        Param::unset("inputCol", ParamType::String),
        Param::int("n", 2, Check::AtLeast(1.0)),
        Param::output_col(),
    ]
}

struct NGram;

impl Transformer for NGram {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        words::check_words(schema, input)?;
        check_new(schema, output)?;
        let length = params.int("n")? as usize;
        Ok(vec![TransformStep::Append {
            output: Arc::new(words::field(output)),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| {
                let mut lists = Vec::new();
                words::each(&columns[0], |words| {
                    lists.push(words.map(|words| words.windows(length).map(|run| run.join(" ")).collect()));
                    Ok(())
                })?;
                Ok(words::from_lists(lists))
            }),
        }])
    }
}
