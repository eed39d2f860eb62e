//! `ElementwiseProduct`: multiplies each vector by one of weights, element by element.

use std::sync::Arc;

use arrow::datatypes::Schema;

use super::columns::check_new;
use super::vectors;
use crate::evaluation::column;
use crate::ml_attr::AttributeGroup;
use crate::{Error, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer, Value};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.ElementwiseProduct",
    model_class: None,
    params,
    kind: Kind::Transformer(&ElementwiseProduct),
};

fn params() -> Vec<Param> {
    vec![
        Param::unset("inputCol", ParamType::String),
        Param::output_col(),
        Param::unset("scalingVec", ParamType::Vector),
    ]
}

struct ElementwiseProduct;

impl Transformer for ElementwiseProduct {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        column::vector(schema, input)?;
        check_new(schema, output)?;
        let Some(Value::Vector(scale)) = params.get("scalingVec") else {
            return Err(Error::ParamNotSet { operator: params.uid.clone(), param: "scalingVec".into() });
        };
        let scale = scale.to_dense();
        Ok(vec![TransformStep::Append {
            output: Arc::new(AttributeGroup::Size(scale.len()).mark(udt::field::vector_field(output))),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| vectors::scaled(&columns[0], None, &scale)),
        }])
    }
}
