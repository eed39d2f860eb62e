//! `IndexToString`: the level that an index stands for.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Schema};

use super::columns::check_new;
use crate::evaluation::column;
use crate::ml_attr::Attribute;
use crate::{Error, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.IndexToString",
    model_class: None,
    params,
    kind: Kind::Transformer(&IndexToString),
};

fn params() -> Vec<Param> {
    vec![
        Param::unset("inputCol", ParamType::String),
        Param::unset("labels", ParamType::StringArray),
        Param::output_col(),
    ]
}

struct IndexToString;

impl Transformer for IndexToString {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        let field = column::numeric(schema, input)?;
        check_new(schema, output)?;
        // the labels that are set, else the column's own
        let set = params.strings("labels").ok().filter(|labels| !labels.is_empty());
        let labels = set.or_else(|| Attribute::of_column(field).and_then(|attribute| attribute.values()));
        let labels = labels.ok_or_else(|| Error::ParamNotSet { operator: params.uid.clone(), param: "labels".into() })?;
        Ok(vec![TransformStep::Append {
            output: Arc::new(Field::new(output, DataType::Utf8, true)),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| named(&columns[0], &labels)),
        }])
    }
}

fn named(column: &ArrayRef, labels: &[String]) -> Result<ArrayRef> {
    let indices = cast(column, &DataType::Float64)?;
    let name = |index: Option<f64>| {
        let index = index.unwrap_or(f64::NAN);
        let label = if index >= 0.0 { labels.get(index as usize) } else { None };
        label.map(|label| Some(label.as_str())).ok_or_else(|| Error::InvalidRow {
            message: format!("[USER_RAISED_EXCEPTION] Unseen index: {} ?? SQLSTATE: P0001", index as i64),
        })
    };
    Ok(Arc::new(indices.as_primitive::<Float64Type>().iter().map(name).collect::<Result<StringArray>>()?))
}
