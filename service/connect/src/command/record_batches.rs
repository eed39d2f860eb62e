//! Record batches as messages: each an Arrow IPC stream of its own, of a size that clients take, in chunks where a row is
//! larger than that.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use spark_connect_proto::execute_plan_response::ArrowBatch;

use super::Chunking;
use crate::Result;

/// Spark's own: `spark.connect.grpc.arrow.maxBatchSize`.
const MESSAGE_BYTES: usize = 4 << 20;
const CHUNK_BYTES_MIN: usize = 1 << 10;
/// Spark's default of `spark.sql.execution.arrow.maxRecordsPerBatch`.
const ROWS_MAX: usize = 10_000;

#[derive(Debug, Clone)]
pub struct Limits {
    pub rows_max: usize,
    pub bytes: usize,
    /// None: a record batch is one message, however large.
    pub chunk_bytes: Option<usize>,
    /// The zone that timestamps are labelled with.
    pub time_zone: String,
}

impl Limits {
    /// `rows_max` as Spark has it: zero or less is no limit.
    pub fn new(rows_max: Option<i64>, chunking: Chunking, time_zone: String) -> Limits {
        let rows_max = match rows_max {
            None => ROWS_MAX,
            Some(rows) => usize::try_from(rows).ok().filter(|rows| *rows > 0).unwrap_or(usize::MAX),
        };
        let preferred = chunking.preferred_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let preferred = preferred.filter(|bytes| (CHUNK_BYTES_MIN..=MESSAGE_BYTES).contains(bytes));
        let chunk_bytes = chunking.is_allowed.then(|| preferred.unwrap_or(MESSAGE_BYTES));
        Limits { rows_max, bytes: MESSAGE_BYTES, chunk_bytes, time_zone }
    }
}

/// Turns record batches of any size into messages.
pub struct Encoder {
    schema: SchemaRef,
    limits: Limits,
    pending: Vec<RecordBatch>,
    pending_rows: usize,
    pending_bytes: usize,
    rows_sent: i64,
    has_sent: bool,
}

impl Encoder {
    pub fn new(schema: &Schema, limits: Limits) -> Result<Encoder> {
        let schema = Arc::new(wire_schema(schema, &limits.time_zone));
        Ok(Encoder {
            schema,
            limits,
            pending: Vec::new(),
            pending_rows: 0,
            pending_bytes: 0,
            rows_sent: 0,
            has_sent: false,
        })
    }

    /// Takes a record batch in; what is ready comes out.
    pub fn push(&mut self, record_batch: RecordBatch) -> Result<Vec<ArrowBatch>> {
        let record_batch = relabel(&record_batch, &self.schema)?;
        let mut messages = Vec::new();
        let bytes_per_row = bytes(&record_batch).div_ceil(record_batch.num_rows().max(1)).max(1);
        let rows_fitting = (self.limits.bytes / bytes_per_row).clamp(1, self.limits.rows_max);
        let mut at = 0;
        while at < record_batch.num_rows() {
            let room = rows_fitting.min(self.limits.rows_max - self.pending_rows);
            let num_rows = room.min(record_batch.num_rows() - at);
            self.pending.push(record_batch.slice(at, num_rows));
            self.pending_rows += num_rows;
            self.pending_bytes += num_rows * bytes_per_row;
            at += num_rows;
            if self.pending_rows >= self.limits.rows_max || self.pending_bytes + bytes_per_row > self.limits.bytes {
                messages.extend(self.flush()?);
            }
        }
        Ok(messages)
    }

    /// What is left. A result without rows is one message that has its schema.
    pub fn finish(&mut self) -> Result<Vec<ArrowBatch>> {
        if self.pending_rows > 0 || !self.has_sent { self.flush() } else { Ok(Vec::new()) }
    }

    fn flush(&mut self) -> Result<Vec<ArrowBatch>> {
        let pending = std::mem::take(&mut self.pending);
        (self.pending_rows, self.pending_bytes) = (0, 0);
        let record_batch = match <[RecordBatch; 1]>::try_from(pending) {
            Ok([record_batch]) => record_batch,
            Err(pending) => concat_batches(&self.schema, &pending)?,
        };
        let data = ipc_stream(&self.schema, &record_batch)?;
        let row_count = record_batch.num_rows() as i64;
        let start_offset = Some(self.rows_sent);
        self.rows_sent += row_count;
        self.has_sent = true;
        let Some(chunk_bytes) = self.limits.chunk_bytes else {
            return Ok(vec![ArrowBatch {
                row_count,
                data,
                start_offset,
                chunk_index: None,
                num_chunks_in_batch: None,
            }]);
        };
        let num_chunks = data.len().div_ceil(chunk_bytes);
        let chunks = (0..num_chunks).map(|index| {
            let from = index * chunk_bytes;
            ArrowBatch {
                row_count,
                data: data.slice(from..data.len().min(from + chunk_bytes)),
                start_offset,
                chunk_index: Some(index as i64),
                num_chunks_in_batch: Some(num_chunks as i64),
            }
        });
        Ok(chunks.collect())
    }
}

/// The same rows under the schema that goes out.
pub fn relabel(record_batch: &RecordBatch, wire: &SchemaRef) -> Result<RecordBatch> {
    let columns = record_batch.columns().iter().zip(wire.fields());
    let columns: Result<Vec<_>, _> = columns
        .map(|(column, field)| {
            if column.data_type() == field.data_type() {
                Ok(Arc::clone(column))
            } else {
                cast(column, field.data_type())
            }
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(record_batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(wire), columns?, &options)?)
}

/// One record batch as a whole Arrow IPC stream.
pub fn ipc_stream(schema: &Schema, record_batch: &RecordBatch) -> Result<Bytes> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
    writer.write(record_batch)?;
    writer.finish()?;
    Ok(Bytes::from(writer.into_inner()?))
}

/// Bytes of the rows themselves, not of the buffers they may be a slice of.
fn bytes(record_batch: &RecordBatch) -> usize {
    let columns = record_batch.columns().iter();
    columns
        .map(|column| column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size()))
        .sum()
}

/// The schema without what only this server reads of it, timestamps in the session's zone.
pub fn wire_schema(schema: &Schema, time_zone: &str) -> Schema {
    Schema::new(fields(schema.fields(), time_zone))
}

fn fields(fields: &Fields, time_zone: &str) -> Fields {
    fields.iter().map(|inner| field(inner, time_zone)).collect()
}

fn field(field: &Field, time_zone: &str) -> Field {
    Field::new(field.name(), data_type(field.data_type(), time_zone), field.is_nullable())
}

fn data_type(data_type: &DataType, time_zone: &str) -> DataType {
    let inner = |element: &Field| Arc::new(field(element, time_zone));
    match data_type {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some(time_zone.into())),
        DataType::List(element) => DataType::List(inner(element)),
        DataType::LargeList(element) => DataType::LargeList(inner(element)),
        DataType::FixedSizeList(element, size) => DataType::FixedSizeList(inner(element), *size),
        DataType::Struct(members) => DataType::Struct(fields(members, time_zone)),
        DataType::Map(entries, is_sorted) => DataType::Map(inner(entries), *is_sorted),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::TimeUnit;
    use arrow::ipc::reader::StreamReader;

    use super::*;

    fn rows(from: i64, to: i64) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("id", DataType::Int64, false)]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int64Array::from_iter_values(from..to))]).unwrap()
    }

    fn limits(rows_max: usize, bytes: usize, chunk_bytes: Option<usize>) -> Limits {
        Limits { rows_max, bytes, chunk_bytes, time_zone: "UTC".into() }
    }

    fn encode(limits: Limits, batches: Vec<RecordBatch>) -> Vec<ArrowBatch> {
        let mut encoder = Encoder::new(&rows(0, 0).schema(), limits).unwrap();
        let mut messages: Vec<ArrowBatch> =
            batches.into_iter().flat_map(|record_batch| encoder.push(record_batch).unwrap()).collect();
        messages.extend(encoder.finish().unwrap());
        messages
    }

    #[test]
    fn small_batches_are_joined_and_large_ones_cut() {
        let messages = encode(limits(10, 1 << 20, None), vec![rows(0, 4), rows(4, 8), rows(8, 25)]);
        let shape: Vec<(i64, Option<i64>)> = messages.iter().map(|m| (m.row_count, m.start_offset)).collect();
        assert_eq!(shape, [(10, Some(0)), (10, Some(10)), (5, Some(20))]);
        let mut values = Vec::new();
        for message in &messages {
            for batch in StreamReader::try_new(&message.data[..], None).unwrap() {
                values
                    .extend(batch.unwrap().column(0).as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec());
            }
        }
        assert_eq!(values, (0..25).collect::<Vec<i64>>());
    }

    #[test]
    fn batches_are_cut_by_bytes_too() {
        let messages = encode(limits(1000, 80, None), vec![rows(0, 25)]);
        assert_eq!(messages.iter().map(|m| m.row_count).collect::<Vec<_>>(), [10, 10, 5]);
    }

    #[test]
    fn an_empty_result_is_one_batch_with_the_schema() {
        let messages = encode(limits(10, 1 << 20, None), vec![rows(0, 0)]);
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].row_count, 0);
        let reader = StreamReader::try_new(&messages[0].data[..], None).unwrap();
        assert_eq!(reader.schema().field(0).name(), "id");
    }

    #[test]
    fn chunks_put_together_are_the_batch() {
        let messages = encode(limits(10_000, 1 << 20, Some(1024)), vec![rows(0, 1000)]);
        assert!(messages.len() > 1);
        assert!(messages.iter().enumerate().all(|(at, m)| m.chunk_index == Some(at as i64)));
        assert!(messages.iter().all(|m| m.num_chunks_in_batch == Some(messages.len() as i64)));
        assert!(messages.iter().all(|m| m.row_count == 1000 && m.start_offset == Some(0)));
        let data: Vec<u8> = messages.iter().flat_map(|m| m.data.to_vec()).collect();
        let mut reader = StreamReader::try_new(&data[..], None).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().num_rows(), 1000);
    }

    #[test]
    fn our_metadata_stays_here_and_timestamps_get_the_sessions_zone() {
        let metadata = HashMap::from([("ours".to_string(), "x".to_string())]);
        let text = Field::new("s", DataType::Utf8, true).with_metadata(metadata.clone());
        let nested = Field::new("n", DataType::Struct(vec![text.clone()].into()), true);
        let time = Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true);
        let schema = Arc::new(Schema::new(vec![text.clone(), text, nested, time]));
        let mut limits = limits(10, 1 << 20, None);
        limits.time_zone = "Europe/Berlin".into();
        let mut encoder = Encoder::new(&schema, limits).unwrap();
        let strings = Arc::new(StringArray::from(vec!["a"]));
        let inner = match schema.field(2).data_type() {
            DataType::Struct(fields) => fields.clone(),
            _ => unreachable!(),
        };
        let nested = arrow::array::StructArray::new(inner, vec![strings.clone()], None);
        let times = arrow::array::TimestampMicrosecondArray::from(vec![1]).with_timezone("UTC");
        let columns: Vec<Arc<dyn Array>> = vec![strings.clone(), strings, Arc::new(nested), Arc::new(times)];
        encoder.push(RecordBatch::try_new(schema, columns).unwrap()).unwrap();
        let messages = encoder.finish().unwrap();
        let reader = StreamReader::try_new(&messages[0].data[..], None).unwrap();
        let schema = reader.schema();
        assert!(schema.fields().iter().all(|field| field.metadata().is_empty()));
        assert_eq!(schema.field(1).name(), "s");
        let zone = DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into()));
        assert_eq!(schema.field(3).data_type(), &zone);
    }
}
