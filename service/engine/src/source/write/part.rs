//! What one partition of the plan writes: a file, or one for each directory its rows belong to.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, make_array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, IntervalUnit, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use futures::TryStreamExt;
use object_store::buffered::BufWriter;
use parquet::arrow::AsyncArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use uuid::Uuid;

use super::encoder::{Encoding, TextEncoder};
use crate::show::string_column;
use crate::source::location::Location;
use crate::source::partitioning::{NULL_DIRECTORY, escape};
use crate::{Conf, Error, Result};

/// What all parts of a write share.
#[derive(Debug)]
pub(super) struct PartLayout {
    pub encoding: Encoding,
    /// The columns of a file, and those of directories, by position.
    pub file_columns: Vec<usize>,
    pub partition_columns: Vec<usize>,
    pub schema: SchemaRef,
    pub conf: Conf,
    pub rows_max: usize,
    pub job: Uuid,
}

/// More files than this are not held open at once: the one that was opened first is closed, and a second file continues
/// it.
const OPEN_FILES_MAX: usize = 64;

/// Writes the rows of a partition. Gives the names of the files, relative to the staging directory.
pub(super) async fn write_part(
    staging: Location,
    layout: Arc<PartLayout>,
    partition: usize,
    mut rows: SendableRecordBatchStream,
) -> Result<Vec<String>> {
    let mut part = Part { staging, layout, partition, open: HashMap::new(), files: Vec::new() };
    while let Some(batch) = rows.try_next().await? {
        let batch = part.in_schema(&batch)?;
        if batch.num_rows() == 0 {
            continue;
        }
        if part.layout.partition_columns.is_empty() {
            part.write("", &batch).await?;
        } else {
            for (directory, rows) in part.by_directory(&batch)? {
                let rows = take_record_batch(&batch, &UInt32Array::from(rows))?;
                part.write(&directory, &rows).await?;
            }
        }
    }
    // Of a relation without rows one empty file remains, which holds the schema.
    if part.partition == 0 && part.files.is_empty() && part.layout.partition_columns.is_empty() {
        part.open_file("").await?;
    }
    part.close_all().await?;
    Ok(part.files)
}

struct Part {
    staging: Location,
    layout: Arc<PartLayout>,
    partition: usize,
    open: HashMap<String, OpenFile>,
    files: Vec<String>,
}

struct OpenFile {
    writer: FileWriter,
    num_rows: usize,
    /// When it was opened, counted in files.
    opened: usize,
}

enum FileWriter {
    Parquet { storage: SchemaRef, writer: Box<AsyncArrowWriter<BufWriter>> },
    Text { encoder: Arc<TextEncoder>, out: Box<dyn AsyncWrite + Send + Unpin> },
}

impl Part {
    /// The batch with Spark's names and types.
    fn in_schema(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let fields = self.layout.schema.fields();
        let columns = batch.columns().iter().zip(fields).map(|(column, field)| cast(column, field.data_type()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = columns.collect::<Result<_>>()?;
        Ok(RecordBatch::try_new_with_options(self.layout.schema.clone(), columns, &options)?)
    }

    /// The rows of each directory, directories in the order of their first rows.
    fn by_directory(&self, batch: &RecordBatch) -> Result<Vec<(String, Vec<u32>)>> {
        let mut directories = vec![String::new(); batch.num_rows()];
        for (position, column) in self.layout.partition_columns.iter().enumerate() {
            let field = self.layout.schema.field(*column);
            let texts = string_column(batch.column(*column), field, &self.layout.conf)?;
            for (row, directory) in directories.iter_mut().enumerate() {
                let value = match texts.is_valid(row) && !texts.value(row).is_empty() {
                    true => escape(texts.value(row)),
                    false => NULL_DIRECTORY.to_string(),
                };
                if position > 0 {
                    directory.push('/');
                }
                directory.push_str(&format!("{}={value}", escape(field.name())));
            }
        }
        let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
        let mut group_of: HashMap<String, usize> = HashMap::new();
        for (row, directory) in directories.into_iter().enumerate() {
            let group = *group_of.entry(directory.clone()).or_insert_with(|| {
                groups.push((directory, Vec::new()));
                groups.len() - 1
            });
            groups[group].1.push(row as u32);
        }
        Ok(groups)
    }

    async fn write(&mut self, directory: &str, batch: &RecordBatch) -> Result<()> {
        let mut rest = batch.project(&self.layout.file_columns)?;
        while rest.num_rows() > 0 {
            if !self.open.contains_key(directory) {
                self.open_file(directory).await?;
            }
            let Some(file) = self.open.get_mut(directory) else {
                return Err(Error::Bug { invariant: "an opened file is open".into() });
            };
            let room = (self.layout.rows_max - file.num_rows).min(rest.num_rows());
            file.writer.write(&rest.slice(0, room)).await?;
            file.num_rows += room;
            rest = rest.slice(room, rest.num_rows() - room);
            if file.num_rows == self.layout.rows_max
                && let Some(file) = self.open.remove(directory)
            {
                file.writer.close().await?;
            }
        }
        Ok(())
    }

    async fn open_file(&mut self, directory: &str) -> Result<()> {
        if self.open.len() >= OPEN_FILES_MAX {
            let oldest = self.open.iter().min_by_key(|(_, file)| file.opened).map(|(directory, _)| directory.clone());
            if let Some(file) = oldest.and_then(|directory| self.open.remove(&directory)) {
                file.writer.close().await?;
            }
        }
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let counter = self.files.iter().filter(|name| name.rsplit_once('/').map_or("", |(d, _)| d) == directory).count();
        // Spark joins the counter with a dot in partition directories.
        let joint = if directory.is_empty() { '-' } else { '.' };
        let (partition, job) = (self.partition, self.layout.job);
        let extension = self.layout.encoding.extension();
        let name = format!("{prefix}part-{partition:05}-{job}{joint}c{counter:03}{extension}");
        let out = BufWriter::new(self.staging.store.clone(), self.staging.below(&name)?.path);
        let writer = FileWriter::open(&self.layout.encoding, out).await?;
        self.open.insert(directory.to_string(), OpenFile { writer, num_rows: 0, opened: self.files.len() });
        self.files.push(name);
        Ok(())
    }

    async fn close_all(&mut self) -> Result<()> {
        for (_, file) in self.open.drain() {
            file.writer.close().await?;
        }
        Ok(())
    }
}

impl FileWriter {
    async fn open(encoding: &Encoding, out: BufWriter) -> Result<FileWriter> {
        match encoding {
            Encoding::Parquet { storage, properties, .. } => {
                let options =
                    ArrowWriterOptions::new().with_properties(properties.clone()).with_skip_arrow_metadata(true);
                let writer = AsyncArrowWriter::try_new_with_options(out, storage.clone(), options).map_err(written)?;
                Ok(FileWriter::Parquet { storage: storage.clone(), writer: Box::new(writer) })
            }
            Encoding::Text { encoder, compression, .. } => {
                let mut out = compression.convert_async_writer(out)?;
                let head = encoder.head();
                out.write_all(&head).await.map_err(io)?;
                Ok(FileWriter::Text { encoder: encoder.clone(), out })
            }
        }
    }

    async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            FileWriter::Parquet { storage, writer } => {
                let fields = storage.fields().iter();
                let columns = batch.columns().iter().zip(fields).map(|(column, field)| stored(column, field.data_type()));
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let columns = columns.collect::<Result<_>>()?;
                let batch = RecordBatch::try_new_with_options(storage.clone(), columns, &options)?;
                writer.write(&batch).await.map_err(written)
            }
            FileWriter::Text { encoder, out } => {
                let mut text = Vec::new();
                encoder.encode(batch, &mut text)?;
                out.write_all(&text).await.map_err(io)
            }
        }
    }

    async fn close(self) -> Result<()> {
        match self {
            FileWriter::Parquet { writer, .. } => writer.close().await.map(|_| ()).map_err(written),
            FileWriter::Text { mut out, .. } => out.shutdown().await.map_err(io),
        }
    }
}

fn cast(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if column.data_type() == wanted { Ok(column.clone()) } else { Ok(arrow::compute::cast(column, wanted)?) }
}

/// The column as the file holds it. Months of an interval are plain integers there.
fn stored(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    let is_months = column.data_type() == &DataType::Interval(IntervalUnit::YearMonth) && wanted == &DataType::Int32;
    if is_months {
        let integers = column.to_data().into_builder().data_type(DataType::Int32).build()?;
        return Ok(make_array(integers));
    }
    cast(column, wanted)
}

fn written(error: parquet::errors::ParquetError) -> Error {
    Error::Arrow { source: arrow::error::ArrowError::from(error) }
}

fn io(source: std::io::Error) -> Error {
    Error::Io { path: "the file being written".into(), source }
}
