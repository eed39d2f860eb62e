//! Rows that a client sends: an Arrow stream, and a schema that says what Spark calls and types them.

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use arrow::ipc::reader::StreamReader;
use bytes::Bytes;
use prost::Message;
use spark_connect_proto as proto;

use super::{Resolution, rows_frame};
use crate::embedded::Frame;
use crate::{Error, Result, data_type};

impl Resolution<'_> {
    pub(super) fn local(&self, message: &proto::LocalRelation) -> Result<Frame> {
        let schema = message.schema.as_deref().filter(|schema| !schema.is_empty());
        let data = message.data.as_ref().filter(|data| !data.is_empty());
        self.local_rows(data.map(std::slice::from_ref).unwrap_or_default(), schema)
    }

    pub(super) fn cached_local(&self, message: &proto::CachedLocalRelation) -> Result<Frame> {
        let local = proto::LocalRelation::decode(self.artifact(&message.hash)?)
            .map_err(|error| Error::InvalidPlan { detail: format!("cached local relation: {error}") })?;
        self.local(&local)
    }

    pub(super) fn chunked_local(&self, message: &proto::ChunkedCachedLocalRelation) -> Result<Frame> {
        let chunks = message.data_hashes.iter().map(|hash| self.artifact(hash)).collect::<Result<Vec<_>>>()?;
        let schema = match message.schema_hash.as_deref().filter(|hash| !hash.is_empty()) {
            Some(hash) => {
                let text = self.artifact(hash)?;
                let text = String::from_utf8(text.to_vec())
                    .map_err(|_| Error::InvalidPlan { detail: "the cached schema is no text".into() })?;
                Some(text)
            }
            None => None,
        };
        self.local_rows(&chunks, schema.as_deref())
    }

    fn artifact(&self, hash: &str) -> Result<Bytes> {
        self.session
            .artifact(&format!("cache/{hash}"))
            .or_else(|| self.session.artifact(hash))
            .ok_or_else(|| Error::InvalidPlan { detail: format!("Not found any cached local relation with the hash: {hash}") })
    }

    fn local_rows(&self, streams: &[Bytes], schema: Option<&str>) -> Result<Frame> {
        let declared = schema.map(data_type::schema_from_text).transpose()?;
        let mut found: Option<SchemaRef> = None;
        let mut batches = Vec::new();
        for stream in streams {
            let reader = StreamReader::try_new(Cursor::new(stream), None)?;
            found.get_or_insert_with(|| reader.schema());
            for batch in reader {
                batches.push(batch?);
            }
        }
        let schema = match (declared, found) {
            (None, None) => {
                return Err(Error::InvalidPlan { detail: "local relation with neither rows nor schema".into() });
            }
            (Some(declared), None) => Arc::new(declared),
            (None, Some(found)) => Arc::new(Schema::new(found.fields().iter().map(spark_field).collect::<Vec<_>>())),
            (Some(declared), Some(found)) => {
                if declared.fields().len() != found.fields().len() {
                    return Err(Error::InvalidPlan {
                        detail: format!(
                            "local relation has {} columns, its schema {}",
                            found.fields().len(),
                            declared.fields().len()
                        ),
                    });
                }
                Arc::new(declared)
            }
        };
        let batches = batches.iter().map(|batch| conformed(batch, &schema)).collect::<Result<Vec<_>>>()?;
        rows_frame(&self.context, schema, batches, self.session.engine().options().target_partitions)
    }
}

/// The batch with the types of `schema`, column by column.
pub fn conformed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| {
            if column.data_type() == field.data_type() {
                return Ok(Arc::clone(column));
            }
            Ok(cast(column, field.data_type())?)
        })
        .collect::<Result<_>>()?;
    for (column, field) in columns.iter().zip(schema.fields()) {
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(Error::InvalidPlan {
                detail: format!("column {} is not nullable, but its rows hold null", field.name()),
            });
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn spark_field(field: &Arc<Field>) -> Field {
    field.as_ref().clone().with_data_type(spark_type(field.data_type()))
}

/// The one Arrow type that holds a Spark type here, for the several that clients send.
pub fn spark_type(data_type: &DataType) -> DataType {
    let nested = |field: &Arc<Field>, name: &str| Arc::new(spark_field(field).with_name(name));
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(_, Some(_)) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
        DataType::Dictionary(_, values) => spark_type(values),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => DataType::List(nested(element, "element")),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(spark_field).collect::<Fields>()),
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(members) if members.len() == 2 => {
                let members: Fields =
                    vec![nested(&members[0], "key"), nested(&members[1], "value")].into_iter().collect();
                let entries = Field::new("entries", DataType::Struct(members), false);
                DataType::Map(Arc::new(entries), *sorted)
            }
            _ => data_type.clone(),
        },
        other => other.clone(),
    }
}
