//! `DCT`: the discrete cosine transform of each vector (DCT-II, scaled to be orthogonal), and its inverse.

use std::collections::HashMap;
use std::f64::consts::PI;
use std::sync::Arc;

use arrow::datatypes::Schema;

use super::columns::check_new;
use super::vectors;
use crate::evaluation::column;
use crate::{Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.DCT",
    model_class: None,
    params,
    kind: Kind::Transformer(&Dct),
};

fn params() -> Vec<Param> {
    vec![Param::unset("inputCol", ParamType::String), Param::boolean("inverse", false), Param::output_col()]
}

struct Dct;

impl Transformer for Dct {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        column::vector(schema, input)?;
        check_new(schema, output)?;
        let inverse = params.boolean("inverse")?;
        Ok(vec![TransformStep::Append {
            output: Arc::new(udt::field::vector_field(output)),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| {
                let mut cosines: HashMap<usize, Vec<f64>> = HashMap::new();
                vectors::map(&columns[0], |row, builder| {
                    let values = row.to_vector().to_dense();
                    let cosines = cosines.entry(values.len()).or_insert_with(|| quarter_turns(values.len()));
                    builder.append_dense(&transformed(&values, cosines, inverse));
                    Ok(())
                })
            }),
        }])
    }
}

/// The cosines of every multiple of `PI / 2 / size`, once around.
fn quarter_turns(size: usize) -> Vec<f64> {
    (0..4 * size).map(|i| (PI * i as f64 / (2 * size) as f64).cos()).collect()
}

fn transformed(values: &[f64], cosines: &[f64], inverse: bool) -> Vec<f64> {
    let size = values.len();
    let scale = |frequency: usize| (if frequency == 0 { 1.0 } else { 2.0 } / size as f64).sqrt();
    let wave = |place: usize, frequency: usize| cosines[(2 * place + 1) * frequency % (4 * size)];
    let of_frequency = |k: usize| scale(k) * values.iter().enumerate().map(|(n, v)| v * wave(n, k)).sum::<f64>();
    let of_place = |n: usize| values.iter().enumerate().map(|(k, v)| scale(k) * v * wave(n, k)).sum::<f64>();
    (0..size).map(|i| if inverse { of_place(i) } else { of_frequency(i) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_undoes_the_transform() {
        let values = [3.0, -1.0, 0.0, 2.5, 7.0];
        let cosines = quarter_turns(values.len());
        let back = transformed(&transformed(&values, &cosines, false), &cosines, true);
        back.iter().zip(values).for_each(|(back, value)| assert!((back - value).abs() < 1e-14));
    }
}
