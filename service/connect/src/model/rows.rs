//! Rows in memory, and frames over them.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use engine::embedded::extension::{Extended, PlanTransform, TransformInput};
use engine::embedded::{Extensions, Frame};
use parking_lot::Mutex;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{MlRelation, Relation};

use crate::{Error, Result, Session};

/// What a query gave, once: later steps see the same rows.
#[derive(Debug, Clone)]
pub struct Rows {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

impl Rows {
    /// Runs a frame.
    pub async fn collect(session: &Session, frame: &Frame) -> Result<Rows> {
        let batches = session.engine.collect(frame).await?;
        let schema = batches.first().map_or_else(|| frame.schema(), RecordBatch::schema);
        Ok(Rows { schema, batches })
    }

    pub fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// One column, batch by batch.
    pub fn column(&self, index: usize) -> Vec<ArrayRef> {
        self.batches.iter().map(|batch| Arc::clone(batch.column(index))).collect()
    }

    /// The rows that a test of their position passes.
    pub fn filter(&self, keep: impl Fn(usize) -> bool) -> Result<Rows> {
        let mut start = 0;
        let mut batches = Vec::with_capacity(self.batches.len());
        for batch in &self.batches {
            let mask: BooleanArray = (start..start + batch.num_rows()).map(|row| Some(keep(row))).collect();
            start += batch.num_rows();
            let kept = filter_record_batch(batch, &mask)?;
            if kept.num_rows() > 0 {
                batches.push(kept);
            }
        }
        Ok(Rows { schema: Arc::clone(&self.schema), batches })
    }

    /// All rows of these and of others of the same schema.
    pub fn and(&self, others: &Rows) -> Rows {
        let batches = self.batches.iter().chain(&others.batches).cloned().collect();
        Rows { schema: Arc::clone(&self.schema), batches }
    }

    pub async fn frame(&self, session: &Session) -> Result<Frame> {
        resolved(session, Extended::Rows(self.batches.clone(), Arc::clone(&self.schema))).await
    }
}

/// A frame with the steps of a transform over it.
pub async fn transformed(session: &Session, frame: Frame, plan_transform: PlanTransform) -> Result<Frame> {
    let input = TransformInput::Frame(Box::new(frame));
    resolved(session, Extended::Transform { input, plan_transform }).await
}

/// Resolves what is no relation of a client's.
async fn resolved(session: &Session, extended: Extended) -> Result<Frame> {
    struct Once(Mutex<Option<Extended>>);

    #[async_trait]
    impl Extensions for Once {
        async fn resolve_ml(&self, _: &engine::embedded::Session, _: &MlRelation) -> engine::Result<Extended> {
            let extended = self.0.lock().take();
            extended.ok_or_else(|| Error::Bug { invariant: "ready rows are resolved once" }.into_engine())
        }
    }

    let relation = Relation { common: None, rel_type: Some(RelType::MlRelation(Box::default())) };
    Ok(Box::pin(session.engine.resolve(&relation, &Once(Mutex::new(Some(extended))))).await?)
}

/// A field of a schema by name, and where it is.
pub fn find(schema: &Schema, name: &str, is_case_sensitive: bool) -> Option<usize> {
    let same =
        |known: &str| if is_case_sensitive { known == name } else { known.to_lowercase() == name.to_lowercase() };
    schema.fields().iter().position(|field| same(field.name()))
}

pub fn names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}
