//! What a client fetches from a model or a summary.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;

use crate::{Model, Value};

/// An argument of a fetched method.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    Value(Value),
    /// A relation; the caller resolves it where an attribute asks for rows.
    Relation,
}

/// The answer to a fetch.
pub enum Attribute {
    Value(Value),
    /// Rows that the model holds. The schema carries Spark's types and metadata.
    Rows(RecordBatch),
    /// Another model.
    Model(Arc<dyn Model>),
}
