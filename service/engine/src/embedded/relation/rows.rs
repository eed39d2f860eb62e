//! Rows in memory as a relation.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream;

use super::build::{new_column, table_scan};
use crate::Result;
use crate::embedded::{Column, Frame, ResolveContext};

/// Fewer rows than this are not worth a partition of their own.
const PARTITION_ROWS_MIN: usize = 4096;
const BATCH_ROWS_MAX: usize = 8192;

/// Batches of one partition, in their order. DataFusion's own table in memory would deal them out anew.
struct MemoryPartition {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl fmt::Debug for MemoryPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let num_rows: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        write!(f, "{num_rows} rows")
    }
}

impl PartitionStream for MemoryPartition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = stream::iter(self.batches.clone().into_iter().map(Ok));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

/// A frame of `batches`, whose columns are those of `schema` with Spark's names, in at most `num_partitions` partitions of
/// neighbouring rows.
pub fn rows_frame(
    context: &ResolveContext,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    num_partitions: usize,
) -> Result<Frame> {
    let columns: Vec<Column> =
        schema.fields().iter().map(|field| new_column(context, field.name(), Arc::clone(field))).collect();
    let num_rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let num_partitions = (num_rows / PARTITION_ROWS_MIN).clamp(1, num_partitions.max(1));
    frame_of_partitions(columns, dealt(&batches, num_rows, num_partitions))
}

/// A frame over partitions whose batches hold `columns` in order.
pub fn frame_of_partitions(columns: Vec<Column>, partitions: Vec<Vec<RecordBatch>>) -> Result<Frame> {
    let fields: Vec<Field> =
        columns.iter().map(|column| column.field.as_ref().clone().with_name(&column.internal)).collect();
    let schema = Arc::new(Schema::new(fields));
    let mut streams: Vec<Arc<dyn PartitionStream>> = Vec::with_capacity(partitions.len());
    for batches in partitions {
        let batches = batches.iter().map(|batch| renamed(batch, &schema)).collect::<Result<_>>()?;
        streams.push(Arc::new(MemoryPartition { schema: Arc::clone(&schema), batches }));
    }
    frame_of_streams(columns, schema, streams)
}

/// A frame over streams whose schema has the internal names of `columns`.
pub fn frame_of_streams(
    columns: Vec<Column>,
    schema: SchemaRef,
    streams: Vec<Arc<dyn PartitionStream>>,
) -> Result<Frame> {
    let scan = table_scan(Arc::new(StreamingTable::try_new(schema, streams)?))?;
    let exprs = scan
        .schema()
        .iter()
        .map(|(qualifier, field)| {
            let source = datafusion::common::Column::new(qualifier.cloned(), field.name());
            datafusion::logical_expr::Expr::Column(source).alias(field.name())
        })
        .collect();
    Ok(Frame { plan: super::build::project(scan, exprs)?, columns })
}

fn renamed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options)?;
    Ok(batch)
}

/// Cuts the rows into partitions as even as can be, and into batches of a handy size.
fn dealt(batches: &[RecordBatch], num_rows: usize, num_partitions: usize) -> Vec<Vec<RecordBatch>> {
    let mut partitions = vec![Vec::new(); num_partitions];
    let mut position = 0;
    for batch in batches {
        let mut start = 0;
        while start < batch.num_rows() {
            // The partition whose rows end behind this one.
            let partition = ((position + 1) * num_partitions).div_ceil(num_rows.max(1)).clamp(1, num_partitions) - 1;
            let end_of_partition = (partition + 1) * num_rows / num_partitions;
            let room = end_of_partition.saturating_sub(position).clamp(1, BATCH_ROWS_MAX);
            let length = room.min(batch.num_rows() - start);
            partitions[partition].push(batch.slice(start, length));
            start += length;
            position += length;
        }
    }
    partitions
}
