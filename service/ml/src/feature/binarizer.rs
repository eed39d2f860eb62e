//! `Binarizer`: one where a number is above a threshold, else zero.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use udt::Vector;

use super::{columns, vectors};
use crate::evaluation::column;
use crate::ml_attr::Attribute;
use crate::{Check, Error, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.Binarizer",
    model_class: None,
    params,
    kind: Kind::Transformer(&Binarizer),
};

fn params() -> Vec<Param> {
    let mut params = columns::params();
    params.push(Param::double("threshold", 0.0, Check::Any));
    params.push(Param::unset("thresholds", ParamType::DoubleArray));
    params
}

struct Binarizer;

impl Transformer for Binarizer {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let pairs = columns::pairs(params)?;
        let thresholds = match params.is_set("thresholds") {
            true => params.doubles("thresholds")?,
            false => vec![params.double("threshold")?; pairs.len()],
        };
        if thresholds.len() != pairs.len() {
            let message = format!(
                "requirement failed: Binarizer {} has mismatched Params for multi-column transform. Params (inputCols, \
                 thresholds) should have equal lengths, but they have different lengths: ({}, {}).",
                params.uid,
                pairs.len(),
                thresholds.len()
            );
            return Err(Error::InvalidData { class: String::new(), message });
        }
        let mut steps = Vec::new();
        for ((input, output), threshold) in pairs.into_iter().zip(thresholds) {
            let field = column::field(schema, &input)?;
            columns::check_new(schema, &output)?;
            let inputs = vec![input];
            steps.push(match field.data_type() {
                DataType::Float64 => TransformStep::Append {
                    output: Arc::new(Attribute::binary().mark(Field::new(&output, DataType::Float64, false))),
                    inputs,
                    function: Arc::new(move |columns, _| numbers(&columns[0], threshold)),
                },
                _ if udt::field::is_vector(field) => TransformStep::Append {
                    output: Arc::new(udt::field::vector_field(&output)),
                    inputs,
                    function: Arc::new(move |columns, _| binarized(&columns[0], threshold)),
                },
                _ => {
                    let message = format!("Data type {} is not supported.", column::spark_class(field));
                    return Err(Error::InvalidData { class: String::new(), message });
                }
            });
        }
        Ok(steps)
    }
}

fn numbers(column: &ArrayRef, threshold: f64) -> Result<ArrayRef> {
    let is_above = |v: Option<f64>| if v.is_some_and(|v| v > threshold) { 1.0 } else { 0.0 };
    let values: Vec<f64> = column.as_primitive::<Float64Type>().iter().map(is_above).collect();
    Ok(Arc::new(Float64Array::from(values)))
}

fn binarized(column: &ArrayRef, threshold: f64) -> Result<ArrayRef> {
    vectors::map(column, |row, builder| {
        let mut values = row.to_vector().to_dense();
        values.iter_mut().for_each(|v| *v = if *v > threshold { 1.0 } else { 0.0 });
        builder.append_vector(&Vector::Dense(values).compressed());
        Ok(())
    })
}
