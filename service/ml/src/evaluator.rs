//! Metrics of a relation, as a fold over its partitions.

use std::any::Any;

use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;

use crate::{Params, Result};

/// A fold over record batches. Partitions are folded apart and merged in partition order, so the result does not depend
/// on timing.
pub trait Accumulator: Send {
    /// Folds in a batch that has just the columns that were asked for, in that order.
    fn update(&mut self, record_batch: &RecordBatch) -> Result<()>;
    /// Folds in another accumulator of the same kind.
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()>;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

pub trait Evaluator: Send + Sync {
    /// The columns the accumulator reads, checked against the schema.
    fn columns(&self, params: &Params, schema: &Schema) -> Result<Vec<String>>;
    fn accumulator(&self, params: &Params) -> Result<Box<dyn Accumulator>>;
    /// The metric that `metricName` asks for.
    fn evaluate(&self, params: &Params, accumulator: Box<dyn Accumulator>) -> Result<f64>;
}
