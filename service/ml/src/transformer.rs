//! What turns a relation into another, row by row and lazily.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{FieldRef, Schema};

use crate::{Params, Result};

/// A pure function of columns: arrays of `num_rows` rows in, one array of `num_rows` rows out.
pub type ColumnFunction = Arc<dyn Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync>;

/// One step over the input's columns. Steps run in order; each sees the columns of the ones before.
#[derive(Clone)]
pub enum TransformStep {
    /// Appends a column. Its field carries the type, the user-defined type and Spark's `ml_attr` metadata.
    Append { output: FieldRef, inputs: Vec<String>, function: ColumnFunction },
    /// Keeps the rows for which the function (of boolean type, no nulls) is true.
    Filter { inputs: Vec<String>, function: ColumnFunction },
    /// Drops columns: names a step needed only for itself.
    Drop { columns: Vec<String> },
}

pub trait Transformer: Send + Sync {
    /// The steps over a relation of this schema.
    ///
    /// # Errors
    /// A missing input column, a wrong type, an output column that exists already.
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>>;
}
