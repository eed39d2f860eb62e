//! A scan of text files: a format turns pieces of text into columns, this turns it into a table.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::provider_as_source;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::TryStreamExt;
use object_store::ObjectMeta;

use super::chunks::{Chunk, ChunkReader, Framing, Split, plan_splits};
use super::listing::Files;
use crate::{Error, Result};

/// How a format reads its records.
pub(super) trait RecordFormat: Debug + Send + Sync + 'static {
    /// The columns of the files, without those of directories.
    fn schema(&self) -> &SchemaRef;

    fn framing(&self) -> Framing;

    /// Decodes the records of a piece. The result holds the columns of `projection`, in that order.
    fn decode(&self, chunk: &Chunk, file: &ObjectMeta, projection: &[usize]) -> Result<RecordBatch>;
}

/// Plans the scan of `files` in a format.
pub(super) fn plan(format: Arc<dyn RecordFormat>, files: Files) -> Result<(LogicalPlan, SchemaRef)> {
    let mut fields: Vec<_> = format.schema().fields().iter().cloned().collect();
    fields.extend(files.partition_columns.iter().cloned());
    let schema = Arc::new(Schema::new(fields));
    let table = RecordTable { schema: schema.clone(), format, files: Arc::new(files) };
    let plan = LogicalPlanBuilder::scan("source", provider_as_source(Arc::new(table)), None)?.build()?;
    Ok((plan, schema))
}

#[derive(Debug)]
struct RecordTable {
    /// The format's columns, then those of directories.
    schema: SchemaRef,
    format: Arc<dyn RecordFormat>,
    files: Arc<Files>,
}

#[async_trait]
impl TableProvider for RecordTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
        let projection: Vec<usize> = match projection {
            Some(projection) => projection.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let schema = Arc::new(self.schema.project(&projection)?);
        let metas: Vec<ObjectMeta> = self.files.files.iter().map(|file| file.meta.clone()).collect();
        let splits = plan_splits(&metas, self.format.framing(), state.config().target_partitions())?;
        if splits.is_empty() {
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let partitions = splits.into_iter().map(|splits| -> Arc<dyn PartitionStream> {
            Arc::new(SplitStream {
                schema: schema.clone(),
                projection: projection.clone(),
                splits,
                format: self.format.clone(),
                files: self.files.clone(),
            })
        });
        Ok(Arc::new(StreamingTableExec::try_new(schema.clone(), partitions.collect(), None, [], false, limit)?))
    }
}

/// One partition of the scan.
#[derive(Debug, Clone)]
struct SplitStream {
    schema: SchemaRef,
    projection: Vec<usize>,
    splits: Vec<Split>,
    format: Arc<dyn RecordFormat>,
    files: Arc<Files>,
}

struct Position {
    stream: SplitStream,
    next_split: usize,
    /// The split being read and its file.
    open: Option<(ChunkReader, usize)>,
    /// The rest of a decoded batch that is larger than batches shall be.
    pending: Option<RecordBatch>,
    batch_size: usize,
}

impl PartitionStream for SplitStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch_size = context.session_config().batch_size().max(1);
        let position = Position { stream: self.clone(), next_split: 0, open: None, pending: None, batch_size };
        let batches = futures::stream::try_unfold(position, |mut position| async move {
            let batch = position.next_batch().await?;
            Ok::<_, datafusion::error::DataFusionError>(batch.map(|batch| (batch, position)))
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches.into_stream()))
    }
}

impl Position {
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.pending.take() {
                if batch.num_rows() > self.batch_size {
                    self.pending = Some(batch.slice(self.batch_size, batch.num_rows() - self.batch_size));
                }
                return Ok(Some(batch.slice(0, self.batch_size.min(batch.num_rows()))));
            }
            let Some((reader, file)) = &mut self.open else {
                let Some(split) = self.stream.splits.get(self.next_split) else { return Ok(None) };
                self.next_split += 1;
                let meta = &self.stream.files.files[split.file].meta;
                let framing = self.stream.format.framing();
                let reader =
                    ChunkReader::open(self.stream.files.store(), meta, framing, split.range.clone()).await?;
                self.open = Some((reader, split.file));
                continue;
            };
            let file = *file;
            match reader.next().await? {
                None => self.open = None,
                Some(chunk) => {
                    let batch = self.stream.decode(&chunk, file)?;
                    self.pending = (batch.num_rows() > 0).then_some(batch);
                }
            }
        }
    }
}

impl SplitStream {
    fn decode(&self, chunk: &Chunk, file: usize) -> Result<RecordBatch> {
        let num_columns = self.format.schema().fields().len();
        let file = &self.files.files[file];
        let in_file: Vec<usize> = self.projection.iter().copied().filter(|column| *column < num_columns).collect();
        let decoded = self.format.decode(chunk, &file.meta, &in_file)?;
        let num_rows = decoded.num_rows();
        let mut decoded_columns = decoded.columns().iter();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.projection.len());
        for column in &self.projection {
            columns.push(match column.checked_sub(num_columns) {
                Some(partition_column) => file.partition_values[partition_column].to_array_of_size(num_rows)?,
                None => match decoded_columns.next() {
                    Some(decoded) => decoded.clone(),
                    None => return Err(Error::Bug { invariant: "a format decodes the columns asked for".into() }),
                },
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// A batch of these columns, which may be none.
pub(super) fn batch_of(schema: &Schema, projection: &[usize], columns: Vec<ArrayRef>, num_rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(schema.project(projection)?), columns, &options)?)
}
