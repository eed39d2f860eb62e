//! Frames run: plans optimized, executed, and their rows given Spark's names.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::{StreamExt, TryStreamExt};

use super::Session;
use crate::Result;
use crate::embedded::Frame;
use crate::embedded::operator::in_order;
use crate::embedded::relation::{Grow, visible_only};

impl Session {
    /// Runs a frame. Rows come partition by partition, in order, under Spark's names; hidden columns are left out.
    ///
    /// # Errors
    /// What goes wrong before the first row; later errors are in the stream.
    pub async fn run(&self, frame: &Frame) -> Result<SendableRecordBatchStream> {
        let schema = output_schema(frame);
        let streams = self.streams(frame).await?;
        Ok(in_order(schema, streams))
    }

    /// Runs a frame and gathers its rows. At least the schema is there: no rows come as no batches.
    pub async fn collect(&self, frame: &Frame) -> Result<Vec<RecordBatch>> {
        let stream = self.run(frame).await?;
        Ok(stream.try_collect().await?)
    }

    /// One stream for each partition of the physical plan.
    pub async fn streams(&self, frame: &Frame) -> Result<Vec<SendableRecordBatchStream>> {
        let state = self.state();
        let physical = self.physical(&state, frame).await?;
        execute(&physical, &state.task_ctx(), frame)
    }

    pub(in crate::embedded) async fn physical(
        &self,
        state: &SessionState,
        frame: &Frame,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan: LogicalPlan = visible_only(frame.clone())?.plan;
        Ok(Grow(Box::pin(state.create_physical_plan(&plan))).await?)
    }
}

/// Starts all partitions of a frame's physical plan.
pub(in crate::embedded) fn execute(
    physical: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    frame: &Frame,
) -> Result<Vec<SendableRecordBatchStream>> {
    let schema = output_schema(frame);
    (0..physical.output_partitioning().partition_count())
        .map(|partition| Ok(named(physical.execute(partition, Arc::clone(context))?, Arc::clone(&schema))))
        .collect()
}

/// What a client sees of a frame, with every column nullable: no plan is held to what it says about nulls.
fn output_schema(frame: &Frame) -> SchemaRef {
    let fields: Vec<Field> =
        frame.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    Arc::new(Schema::new(fields))
}

/// Gives the rows of a plan Spark's names and types.
fn named(stream: SendableRecordBatchStream, schema: SchemaRef) -> SendableRecordBatchStream {
    let target = Arc::clone(&schema);
    let batches = stream.map(move |batch| {
        let batch = batch?;
        let columns: Vec<ArrayRef> = batch
            .columns()
            .iter()
            .zip(target.fields())
            .map(|(column, field)| {
                if column.data_type() == field.data_type() {
                    Ok(Arc::clone(column))
                } else {
                    cast(column, field.data_type())
                }
            })
            .collect::<arrow::error::Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&target), columns, &options)?)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}
