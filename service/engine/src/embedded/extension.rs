//! How models come into plans: as column functions over Arrow, from outside this crate.

use std::sync::Arc;

use spark_connect_proto::MlRelation;
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{FieldRef, Schema};
use async_trait::async_trait;

use super::{Frame, Session};
use crate::{Error, Result};

/// A pure function of columns, row by row: arrays of `num_rows` in, one array of `num_rows` out. An error carries the
/// Spark error class in [`crate::Error::Extension`].
pub type ColumnFunction = Arc<dyn Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync>;

/// What one step of a transformer does to its input. Steps run in order; each sees the columns of the ones before.
#[derive(Clone)]
pub enum TransformStep {
    /// Appends a column, or replaces the column of that name where it stands.
    Append { output: FieldRef, inputs: Vec<String>, name: String, function: ColumnFunction },
    /// Keeps the rows for which the function (of boolean type) is true.
    Filter { inputs: Vec<String>, name: String, function: ColumnFunction },
    /// Keeps only these columns, in this order.
    Select { columns: Vec<String> },
}

/// What a relation of another crate's making turns into.
pub enum Extended {
    /// Steps over an input.
    Transform { input: TransformInput, plan_transform: PlanTransform },
    /// Rows that are ready.
    Rows(Vec<RecordBatch>, Arc<Schema>),
    /// A frame resolved before.
    Frame(Box<Frame>),
}

/// What a transform's steps are applied to.
pub enum TransformInput {
    /// A relation that is yet to be resolved.
    Relation(Box<spark_connect_proto::Relation>),
    /// A frame resolved before, such as the dataset a model was trained on.
    Frame(Box<Frame>),
}

/// Given the input's schema, the steps of a transform: where missing columns and wrong types are found.
pub type PlanTransform = Box<dyn FnOnce(&Schema) -> Result<Vec<TransformStep>> + Send>;

/// Resolves the relations this crate does not know.
#[async_trait]
pub trait Extensions: Send + Sync {
    /// Resolves an ML relation: a model's or a transformer's output, or rows fetched from a model.
    async fn resolve_ml(&self, session: &Session, relation: &MlRelation) -> Result<Extended>;

    /// Resolves a relation of another crate's own kind, such as a call of a model function.
    async fn resolve_extension(&self, _: &Session, extension: &prost_types::Any) -> Result<Extended> {
        Err(Error::Unsupported { feature: format!("relation extension {}", extension.type_url) })
    }
}
