//! `HashingTF`: how often each word occurs, at a place that its hash gives.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::Schema;
use udt::VectorBuilder;

use super::columns::check_new;
use super::{murmur3, words};
use crate::ml_attr::AttributeGroup;
use crate::{Check, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.HashingTF",
    model_class: None,
    params,
    kind: Kind::Transformer(&HashingTf),
};

fn params() -> Vec<Param> {
    vec![
        Param::boolean("binary", false),
        Param::unset("inputCol", ParamType::String),
        Param::int("numFeatures", 1 << 18, Check::Above(0.0)),
        Param::output_col(),
    ]
}

struct HashingTf;

impl Transformer for HashingTf {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        words::check_words(schema, input)?;
        check_new(schema, output)?;
        let (size, is_binary) = (params.int("numFeatures")? as usize, params.boolean("binary")?);
        Ok(vec![TransformStep::Append {
            output: Arc::new(AttributeGroup::Size(size).mark(udt::field::vector_field(output))),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| {
                let mut builder = VectorBuilder::default();
                words::each(&columns[0], |words| {
                    let Some(words) = words else {
                        builder.append_null();
                        return Ok(());
                    };
                    let mut counts: BTreeMap<i32, f64> = BTreeMap::new();
                    for word in words {
                        let count = counts.entry(murmur3::index(word, size) as i32).or_insert(0.0);
                        *count = if is_binary { 1.0 } else { *count + 1.0 };
                    }
                    let (indices, counts): (Vec<i32>, Vec<f64>) = counts.into_iter().unzip();
                    builder.append_sparse(size, &indices, &counts);
                    Ok(())
                })?;
                Ok(builder.finish())
            }),
        }])
    }
}
