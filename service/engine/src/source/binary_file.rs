//! Format `binaryFile`: a file a row.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::provider_as_source;
use datafusion::execution::context::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStoreExt;

use super::listing::{Files, ListedFile, store_error};
use super::options::Options;
use super::record_scan::batch_of;
use crate::data_type::timestamp_type;
use crate::{Conf, Error, Result};

const CONTENT: usize = 3;

pub(super) async fn read(
    _state: &SessionState,
    _conf: &Conf,
    files: Files,
    wanted: Option<&Schema>,
    _options: &Options,
) -> Result<(LogicalPlan, SchemaRef)> {
    if wanted.is_some() {
        return Err(Error::Unsupported { feature: "a schema of one's own for binaryFile".into() });
    }
    let mut fields = vec![
        Arc::new(Field::new("path", DataType::Utf8, false)),
        Arc::new(Field::new("modificationTime", timestamp_type(), false)),
        Arc::new(Field::new("length", DataType::Int64, false)),
        Arc::new(Field::new("content", DataType::Binary, true)),
    ];
    fields.extend(files.partition_columns.iter().cloned());
    let schema = Arc::new(Schema::new(fields));
    let table = FileTable { schema: schema.clone(), files: Arc::new(files) };
    let plan = LogicalPlanBuilder::scan("source", provider_as_source(Arc::new(table)), None)?.build()?;
    Ok((plan, schema))
}

#[derive(Debug)]
struct FileTable {
    schema: SchemaRef,
    files: Arc<Files>,
}

#[async_trait]
impl TableProvider for FileTable {
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
        let projected = Arc::new(self.schema.project(&projection)?);
        let num_files = self.files.files.len();
        if num_files == 0 {
            return Ok(Arc::new(EmptyExec::new(projected)));
        }
        let num_partitions = state.config().target_partitions().clamp(1, num_files);
        let partitions = (0..num_partitions).map(|partition| -> Arc<dyn PartitionStream> {
            let bound = |partition: usize| partition * num_files / num_partitions;
            Arc::new(FileStream {
                schema: self.schema.clone(),
                projected: projected.clone(),
                projection: projection.clone(),
                files: self.files.clone(),
                range: bound(partition)..bound(partition + 1),
            })
        });
        Ok(Arc::new(StreamingTableExec::try_new(projected.clone(), partitions.collect(), None, [], false, limit)?))
    }
}

#[derive(Debug, Clone)]
struct FileStream {
    schema: SchemaRef,
    projected: SchemaRef,
    projection: Vec<usize>,
    files: Arc<Files>,
    range: std::ops::Range<usize>,
}

impl PartitionStream for FileStream {
    fn schema(&self) -> &SchemaRef {
        &self.projected
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let stream = self.clone();
        let rows = futures::stream::iter(self.range.clone()).then(move |file| {
            let stream = stream.clone();
            async move { stream.row(&stream.files.files[file]).await }
        });
        Box::pin(RecordBatchStreamAdapter::new(self.projected.clone(), rows.err_into()))
    }
}

impl FileStream {
    async fn row(&self, file: &ListedFile) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.projection.len());
        for column in &self.projection {
            columns.push(match *column {
                0 => Arc::new(StringArray::from(vec![self.files.location.uri_of(&file.meta.location)])),
                1 => {
                    let micros = file.meta.last_modified.timestamp_micros();
                    Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone("UTC"))
                }
                2 => Arc::new(Int64Array::from(vec![file.meta.size as i64])),
                CONTENT => {
                    let got = self.files.store().get(&file.meta.location).await.map_err(store_error)?;
                    let bytes = got.bytes().await.map_err(store_error)?;
                    Arc::new(BinaryArray::from(vec![bytes.as_ref()]))
                }
                column => file.partition_values[column - CONTENT - 1].to_array_of_size(1)?,
            });
        }
        batch_of(&self.schema, &self.projection, columns, 1)
    }
}
