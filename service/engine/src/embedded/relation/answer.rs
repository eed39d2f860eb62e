//! Rows that answer a command or a question about the catalog.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, ListArray, RecordBatch, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Schema};

use super::{Resolution, rows_frame};
use crate::Result;
use crate::embedded::Frame;

/// A column of an answer.
pub enum Cells {
    Text(Vec<Option<String>>),
    Texts(Vec<Option<Vec<String>>>),
    Flags(Vec<bool>),
}

impl Resolution<'_> {
    /// The answer of an operation that only does something.
    pub(in crate::embedded) fn nothing(&self) -> Result<Frame> {
        rows_frame(&self.context, Arc::new(Schema::empty()), Vec::new(), 1)
    }

    pub(in crate::embedded) fn answer<const N: usize>(&self, columns: [(&str, Cells); N]) -> Result<Frame> {
        let element = Arc::new(Field::new("element", DataType::Utf8, true));
        let mut fields = Vec::with_capacity(N);
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(N);
        for (name, cells) in columns {
            match cells {
                Cells::Text(values) => {
                    fields.push(Field::new(name, DataType::Utf8, true));
                    arrays.push(Arc::new(StringArray::from(values)));
                }
                Cells::Flags(values) => {
                    fields.push(Field::new(name, DataType::Boolean, false));
                    arrays.push(Arc::new(BooleanArray::from(values)));
                }
                Cells::Texts(values) => {
                    fields.push(Field::new(name, DataType::List(Arc::clone(&element)), true));
                    let lengths = values.iter().map(|value| value.as_ref().map_or(0, Vec::len));
                    let offsets = OffsetBuffer::from_lengths(lengths);
                    let nulls = values.iter().map(Option::is_some).collect::<Vec<bool>>().into();
                    let items: StringArray = values.into_iter().flatten().flatten().map(Some).collect();
                    arrays.push(Arc::new(ListArray::try_new(
                        Arc::clone(&element),
                        offsets,
                        Arc::new(items),
                        Some(nulls),
                    )?));
                }
            }
        }
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        rows_frame(&self.context, schema, vec![batch], 1)
    }
}

pub fn texts(values: Vec<String>) -> Cells {
    Cells::Text(values.into_iter().map(Some).collect())
}
