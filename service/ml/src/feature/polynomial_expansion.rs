//! `PolynomialExpansion`: all products of up to so many of a vector's elements.

use std::sync::Arc;

use arrow::datatypes::Schema;
use udt::VectorRow;

use super::columns::check_new;
use super::vectors;
use crate::evaluation::column;
use crate::{Check, Error, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.PolynomialExpansion",
    model_class: None,
    params,
    kind: Kind::Transformer(&PolynomialExpansion),
};

fn params() -> Vec<Param> {
    vec![
        Param::int("degree", 2, Check::AtLeast(1.0)),
        Param::unset("inputCol", ParamType::String),
        Param::output_col(),
    ]
}

struct PolynomialExpansion;

impl Transformer for PolynomialExpansion {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        column::vector(schema, input)?;
        check_new(schema, output)?;
        let degree = params.int("degree")? as usize;
        Ok(vec![TransformStep::Append {
            output: Arc::new(udt::field::vector_field(output)),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| {
                vectors::map(&columns[0], |row, builder| {
                    let terms = Terms::of(row, degree)?;
                    match row {
                        VectorRow::Dense(_) => {
                            let mut dense = vec![0.0; terms.size];
                            terms.places.iter().zip(&terms.values).for_each(|(place, v)| dense[*place as usize] = *v);
                            builder.append_dense(&dense);
                        }
                        VectorRow::Sparse { .. } => builder.append_sparse(terms.size, &terms.places, &terms.values),
                    }
                    Ok(())
                })
            }),
        }])
    }
}

/// The products that are not zero, but for the empty one, which is place 0 of the expansion and is left out.
#[derive(Default)]
struct Terms {
    size: usize,
    places: Vec<i32>,
    values: Vec<f64>,
}

/// How many products of up to `degree` of `width` elements there are: a binomial coefficient; `None` beyond a vector's
/// greatest size.
fn num_terms(width: usize, degree: usize) -> Option<usize> {
    let mut count: u128 = 1;
    for i in 1..=degree {
        count = count * (width + i) as u128 / i as u128;
        if count > i32::MAX as u128 {
            return None;
        }
    }
    Some(count as usize)
}

impl Terms {
    fn of(row: VectorRow<'_>, degree: usize) -> Result<Terms> {
        let too_many = || Error::InvalidRow {
            message: format!("a vector of {} elements has too many products of degree {degree}", row.size()),
        };
        let mut terms = Terms { size: num_terms(row.size(), degree).ok_or_else(too_many)? - 1, ..Terms::default() };
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        row.for_each(|index, value| {
            indices.push(index);
            values.push(value);
        });
        terms.expand(&indices, &values, row.size(), degree, 1.0, 0);
        Ok(terms)
    }

    /// Adds the products of the first `width` elements, times `factor`, from place `first` of the expansion on; returns
    /// the place after the last.
    fn expand(&mut self, indices: &[usize], values: &[f64], width: usize, degree: usize, factor: f64, first: usize) -> usize {
        let end = first + num_terms(width, degree).unwrap_or_default();
        let (Some((index, indices)), Some((value, values)), 1..) = (indices.split_last(), values.split_last(), degree)
        else {
            if factor != 0.0 && first > 0 {
                self.places.push(first as i32 - 1);
                self.values.push(factor);
            }
            return end;
        };
        let (mut power, mut place) = (factor, first);
        for exponent in 0..=degree {
            if power == 0.0 {
                break;
            }
            place = self.expand(indices, values, *index, degree - exponent, power, place);
            power *= value;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_stand_in_sparks_order() {
        let terms = Terms::of(VectorRow::Dense(&[2.0, 3.0]), 2).unwrap();
        assert_eq!((terms.size, terms.values), (5, vec![2.0, 4.0, 3.0, 6.0, 9.0]));
        let wide = VectorRow::Sparse { size: 1_000_000, indices: &[], values: &[] };
        assert!(Terms::of(wide, 9).is_err());
    }
}
