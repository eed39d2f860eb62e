//! Rows drawn by their position in their partition.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, UInt64Array};
use arrow::compute::{filter_record_batch, take_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;

use super::random::XorShiftRandom;

/// Draws each row with a chance, or several times.
#[derive(Debug)]
pub enum Sampler {
    /// Keeps a row whose uniform deviate lies in `[lower, upper)`.
    Bernoulli { random: XorShiftRandom, lower: f64, upper: f64 },
    /// Repeats a row a Poisson-distributed number of times.
    Poisson { random: XorShiftRandom, mean: f64 },
    /// Appends the row's uniform deviate as a column.
    Uniform { random: XorShiftRandom, schema: SchemaRef },
}

impl Sampler {
    pub fn apply(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let num_rows = batch.num_rows();
        match self {
            Sampler::Bernoulli { random, lower, upper } => {
                let keep: BooleanArray = (0..num_rows)
                    .map(|_| {
                        let deviate = random.next_double();
                        Some(*lower <= deviate && deviate < *upper)
                    })
                    .collect();
                Ok(filter_record_batch(batch, &keep)?)
            }
            Sampler::Poisson { random, mean } => {
                let rows: UInt64Array = (0..num_rows as u64)
                    .flat_map(|row| std::iter::repeat_n(row, random.next_poisson(*mean)))
                    .collect::<Vec<u64>>()
                    .into();
                Ok(take_record_batch(batch, &rows)?)
            }
            Sampler::Uniform { random, schema } => {
                let deviates: Float64Array = (0..num_rows).map(|_| random.next_double()).collect::<Vec<_>>().into();
                let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
                columns.push(Arc::new(deviates));
                Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
            }
        }
    }
}
