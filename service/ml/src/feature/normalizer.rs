//! `Normalizer`: scales each vector to unit norm.

use std::sync::Arc;

use arrow::datatypes::Schema;
use udt::VectorRow;

use super::columns::check_new;
use super::vectors;
use crate::evaluation::column;
use crate::{Check, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.Normalizer",
    model_class: None,
    params,
    kind: Kind::Transformer(&Normalizer),
};

fn params() -> Vec<Param> {
    vec![
        Param::unset("inputCol", ParamType::String),
        Param::output_col(),
        Param::double("p", 2.0, Check::AtLeast(1.0)),
    ]
}

struct Normalizer;

impl Transformer for Normalizer {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        column::vector(schema, input)?;
        check_new(schema, output)?;
        let p = params.double("p")?;
        Ok(vec![TransformStep::Append {
            output: Arc::new(udt::field::vector_field(output)),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| {
                vectors::map(&columns[0], |row, builder| {
                    let norm = norm(row.values(), p);
                    // a vector of zeros stays what it is
                    let factor = if norm == 0.0 { 1.0 } else { 1.0 / norm };
                    let values: Vec<f64> = row.values().iter().map(|v| v * factor).collect();
                    match row {
                        VectorRow::Dense(_) => builder.append_dense(&values),
                        VectorRow::Sparse { size, indices, .. } => builder.append_sparse(size, indices, &values),
                    }
                    Ok(())
                })
            }),
        }])
    }
}

fn norm(values: &[f64], p: f64) -> f64 {
    let magnitudes = values.iter().map(|v| v.abs());
    if p == 1.0 {
        magnitudes.sum()
    } else if p == 2.0 {
        values.iter().map(|v| v * v).sum::<f64>().sqrt()
    } else if p.is_infinite() {
        magnitudes.fold(0.0, f64::max)
    } else {
        magnitudes.map(|v| v.powf(p)).sum::<f64>().powf(1.0 / p)
    }
}
