//! Rows that statements and functions answer with, under the names and types that are promised.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, ListArray, MapArray, RecordBatch, StringArray,
    StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use spark_connect_proto::Relation;

use super::document::KeptWarning;
use crate::command::sql::ready;
use crate::{Result, Session};

/// A table under construction.
#[derive(Default)]
pub struct Answer {
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl Answer {
    pub fn new() -> Answer {
        Answer::default()
    }

    fn with(mut self, name: &str, column: ArrayRef) -> Answer {
        self.fields.push(Field::new(name, column.data_type().clone(), true));
        self.columns.push(column);
        self
    }

    pub fn texts(self, name: &str, values: Vec<Option<String>>) -> Answer {
        self.with(name, Arc::new(StringArray::from(values)))
    }

    pub fn ints(self, name: &str, values: Vec<Option<i32>>) -> Answer {
        self.with(name, Arc::new(Int32Array::from(values)))
    }

    pub fn longs(self, name: &str, values: Vec<Option<i64>>) -> Answer {
        self.with(name, Arc::new(Int64Array::from(values)))
    }

    pub fn doubles(self, name: &str, values: Vec<Option<f64>>) -> Answer {
        self.with(name, Arc::new(Float64Array::from(values)))
    }

    pub fn flags(self, name: &str, values: Vec<Option<bool>>) -> Answer {
        self.with(name, Arc::new(BooleanArray::from(values)))
    }

    /// Times as RFC 3339.
    pub fn times(self, name: &str, values: Vec<Option<String>>) -> Answer {
        let micros = |text: Option<String>| {
            chrono::DateTime::parse_from_rfc3339(&text?).ok().map(|time| time.timestamp_micros())
        };
        let values = values.into_iter().map(micros);
        let column = TimestampMicrosecondArray::from_iter(values);
        let data_type = engine::data_type::timestamp_type();
        let column: ArrayRef = Arc::new(column.with_data_type(data_type));
        self.with(name, column)
    }

    pub fn text_lists(self, name: &str, values: Vec<Vec<String>>) -> Answer {
        let offsets = OffsetBuffer::from_lengths(values.iter().map(Vec::len));
        let items: StringArray = values.into_iter().flatten().map(Some).collect();
        let element = Arc::new(Field::new("element", DataType::Utf8, true));
        self.with(name, Arc::new(ListArray::new(element, offsets, Arc::new(items), None)))
    }

    pub fn double_lists(self, name: &str, values: Vec<Vec<f64>>) -> Answer {
        let offsets = OffsetBuffer::from_lengths(values.iter().map(Vec::len));
        let items: Float64Array = values.into_iter().flatten().map(Some).collect();
        let element = Arc::new(Field::new("element", DataType::Float64, true));
        self.with(name, Arc::new(ListArray::new(element, offsets, Arc::new(items), None)))
    }

    /// Lists of structs of a text and something else.
    pub fn struct_lists(self, name: &str, lengths: Vec<usize>, fields: [&str; 2], columns: [ArrayRef; 2]) -> Answer {
        let fields: Fields = fields
            .iter()
            .zip(&columns)
            .map(|(name, column)| Arc::new(Field::new(*name, column.data_type().clone(), true)))
            .collect();
        let structs = StructArray::new(fields.clone(), columns.to_vec(), None);
        let element = Arc::new(Field::new("element", DataType::Struct(fields), true));
        let offsets = OffsetBuffer::from_lengths(lengths);
        self.with(name, Arc::new(ListArray::new(element, offsets, Arc::new(structs), None)))
    }

    pub fn warnings(self, name: &str, values: Vec<Vec<KeptWarning>>) -> Answer {
        let lengths = values.iter().map(Vec::len).collect();
        let all: Vec<KeptWarning> = values.into_iter().flatten().collect();
        let codes: StringArray = all.iter().map(|warning| Some(warning.code.as_str())).collect();
        let messages: StringArray = all.iter().map(|warning| Some(warning.message.as_str())).collect();
        self.struct_lists(name, lengths, ["code", "message"], [Arc::new(codes), Arc::new(messages)])
    }

    pub fn text_maps(self, name: &str, values: Vec<BTreeMap<String, String>>) -> Answer {
        let items: StringArray = values.iter().flat_map(BTreeMap::values).map(Some).collect();
        self.maps(name, &values, Arc::new(items))
    }

    pub fn double_maps(self, name: &str, values: Vec<BTreeMap<String, f64>>) -> Answer {
        let items: Float64Array = values.iter().flat_map(BTreeMap::values).copied().map(Some).collect();
        self.maps(name, &values, Arc::new(items))
    }

    pub fn int_maps(self, name: &str, values: Vec<BTreeMap<String, i32>>) -> Answer {
        let items: Int32Array = values.iter().flat_map(BTreeMap::values).copied().map(Some).collect();
        self.maps(name, &values, Arc::new(items))
    }

    fn maps<V>(self, name: &str, values: &[BTreeMap<String, V>], items: ArrayRef) -> Answer {
        let keys: StringArray = values.iter().flat_map(BTreeMap::keys).map(Some).collect();
        let fields: Fields =
            vec![Field::new("key", DataType::Utf8, false), Field::new("value", items.data_type().clone(), true)].into();
        let entries = StructArray::new(fields.clone(), vec![Arc::new(keys), items], None);
        let field = Arc::new(Field::new("entries", DataType::Struct(fields), false));
        let offsets = OffsetBuffer::from_lengths(values.iter().map(BTreeMap::len));
        self.with(name, Arc::new(MapArray::new(field, offsets, entries, None, false)))
    }

    pub fn finish(self) -> Result<RecordBatch> {
        let options = arrow::array::RecordBatchOptions::new()
            .with_row_count(Some(self.columns.first().map_or(0, |column| column.len())));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(self.fields)), self.columns, &options)?)
    }

    /// As the answer of a statement.
    pub fn relation(self, session: &Session) -> Result<Relation> {
        let batch = self.finish()?;
        ready(session, &batch.schema(), &[batch])
    }
}

/// The answer of a statement that only does something.
pub fn nothing(session: &Session) -> Result<Relation> {
    Answer::new().relation(session)
}
