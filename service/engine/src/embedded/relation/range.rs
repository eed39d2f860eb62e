//! `spark.range`: rows that are counted, not stored.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream;
use spark_connect_proto as proto;

use super::Resolution;
use super::rows::frame_of_streams;
use crate::embedded::Frame;
use crate::{Error, Result};

const BATCH_ROWS: i128 = 8192;

/// The values `start + step * index` for the indices `first..last`.
#[derive(Debug)]
struct RangePartition {
    schema: SchemaRef,
    start: i128,
    step: i128,
    first: i128,
    last: i128,
}

impl PartitionStream for RangePartition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (start, step, last, schema) = (self.start, self.step, self.last, Arc::clone(&self.schema));
        let mut next = self.first;
        let batches = std::iter::from_fn(move || {
            if next >= last {
                return None;
            }
            let end = (next + BATCH_ROWS).min(last);
            let values: Int64Array = (next..end).map(|index| Some((start + step * index) as i64)).collect();
            next = end;
            Some(RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(values) as ArrayRef]).map_err(Into::into))
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream::iter(batches)))
    }
}

impl Resolution<'_> {
    pub(super) fn range(&self, message: &proto::Range) -> Result<Frame> {
        if message.step == 0 {
            return Err(Error::InvalidPlan { detail: "range with a step of 0".into() });
        }
        let (start, end, step) =
            (i128::from(message.start.unwrap_or(0)), i128::from(message.end), i128::from(message.step));
        let distance = if step > 0 { end - start } else { start - end };
        let num_rows = if distance <= 0 { 0 } else { (distance + step.abs() - 1) / step.abs() };
        let num_partitions = match message.num_partitions {
            Some(number) if number > 0 => number as usize,
            Some(number) => {
                return Err(Error::InvalidPlan { detail: format!("range in {number} partitions") });
            }
            None => self.session.engine().options().target_partitions,
        };
        let column = self.column("id", Arc::new(Field::new("id", DataType::Int64, false)));
        let schema = Arc::new(Schema::new(vec![Field::new(&column.internal, DataType::Int64, false)]));
        let count = num_partitions as i128;
        let streams = (0..count)
            .map(|partition| {
                Arc::new(RangePartition {
                    schema: Arc::clone(&schema),
                    start,
                    step,
                    first: partition * num_rows / count,
                    last: (partition + 1) * num_rows / count,
                }) as Arc<dyn PartitionStream>
            })
            .collect();
        frame_of_streams(vec![column], schema, streams)
    }
}
