//! `skewness` and `kurtosis`, from central moments that merge.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use super::aggregate;
use crate::Result;
use crate::embedded::expression::Typed;
use crate::embedded::functions::Call;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    Skewness,
    Kurtosis,
}

pub fn skewness(call: Call<'_>) -> Result<Typed> {
    shape(call, Shape::Skewness)
}

pub fn kurtosis(call: Call<'_>) -> Result<Typed> {
    shape(call, Shape::Kurtosis)
}

fn shape(mut call: Call<'_>, shape: Shape) -> Result<Typed> {
    let [value] = call.take()?;
    let value = call.cast(value, &DataType::Float64)?;
    let function = ShapeFunction { shape, signature: Signature::exact(vec![DataType::Float64], Volatility::Immutable) };
    let function = Arc::new(AggregateUDF::new_from_impl(function));
    Ok(Typed::new(aggregate(function, vec![value], false, vec![], None), DataType::Float64, true))
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ShapeFunction {
    shape: Shape,
    signature: Signature,
}

impl AggregateUDFImpl for ShapeFunction {
    fn name(&self) -> &str {
        match self.shape {
            Shape::Skewness => "skewness",
            Shape::Kurtosis => "kurtosis",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> datafusion::common::Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> datafusion::common::Result<Vec<FieldRef>> {
        let names = ["count", "mean", "m2", "m3", "m4"];
        let field = |name| Arc::new(Field::new(format_state_name(args.name, name), DataType::Float64, true));
        Ok(names.into_iter().map(field).collect())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> datafusion::common::Result<Box<dyn Accumulator>> {
        Ok(Box::new(Moments { shape: self.shape, sums: [0.0; 5] }))
    }
}

/// Count, mean, and the sums of the second to fourth powers of the distances from the mean.
#[derive(Debug)]
struct Moments {
    shape: Shape,
    sums: [f64; 5],
}

impl Moments {
    /// Pébay's pairwise update (Formulas for Robust, One-Pass Parallel Computation of Covariances and Arbitrary-Order
    /// Statistical Moments, 2008, equations 2.1 to 2.3).
    fn merge(&mut self, other: [f64; 5]) {
        let [n1, mean1, a2, a3, a4] = self.sums;
        let [n2, mean2, b2, b3, b4] = other;
        if n2 == 0.0 {
            return;
        }
        let n = n1 + n2;
        let delta = mean2 - mean1;
        let step = delta / n;
        let m2 = a2 + b2 + delta * step * n1 * n2;
        let m3 = a3 + b3 + step * step * delta * n1 * n2 * (n1 - n2) + 3.0 * step * (n1 * b2 - n2 * a2);
        let m4 = a4
            + b4
            + step * step * step * delta * n1 * n2 * (n1 * n1 - n1 * n2 + n2 * n2)
            + 6.0 * step * step * (n1 * n1 * b2 + n2 * n2 * a2)
            + 4.0 * step * (n1 * b3 - n2 * a3);
        self.sums = [n, mean1 + step * n2, m2, m3, m4];
    }
}

impl Accumulator for Moments {
    fn update_batch(&mut self, values: &[ArrayRef]) -> datafusion::common::Result<()> {
        for value in values[0].as_primitive::<Float64Type>().iter().flatten() {
            self.merge([1.0, value, 0.0, 0.0, 0.0]);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> datafusion::common::Result<ScalarValue> {
        let [n, _, m2, m3, m4] = self.sums;
        let value = (n > 0.0 && m2 != 0.0).then(|| match self.shape {
            Shape::Skewness => n.sqrt() * m3 / (m2 * m2 * m2).sqrt(),
            Shape::Kurtosis => n * m4 / (m2 * m2) - 3.0,
        });
        Ok(ScalarValue::Float64(value))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> datafusion::common::Result<Vec<ScalarValue>> {
        Ok(self.sums.iter().map(|sum| ScalarValue::Float64(Some(*sum))).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> datafusion::common::Result<()> {
        let columns: Vec<_> = states.iter().map(|state| state.as_primitive::<Float64Type>()).collect();
        for row in 0..columns[0].len() {
            let at = |column: usize| columns[column].value(row);
            self.merge([at(0), at(1), at(2), at(3), at(4)]);
        }
        Ok(())
    }
}
