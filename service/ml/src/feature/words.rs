//! Columns of lists of words.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};

use crate::evaluation::column;
use crate::{Error, Result};

fn element() -> Field {
    Field::new("element", DataType::Utf8, true)
}

/// A column of lists of words.
pub fn field(name: &str) -> Field {
    Field::new(name, DataType::List(Arc::new(element())), true)
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// # Errors
/// The column is missing, or holds no text.
pub fn check_text(schema: &Schema, name: &str) -> Result<()> {
    let field = column::field(schema, name)?;
    match is_text(field.data_type()) {
        true => Ok(()),
        false => Err(invalid(format!("Input type must be string type but got {}.", column::spark_class(field)))),
    }
}

/// # Errors
/// The column is missing, or holds no lists of text.
pub fn check_words(schema: &Schema, name: &str) -> Result<()> {
    let field = column::field(schema, name)?;
    match field.data_type() {
        DataType::List(element) | DataType::LargeList(element) if is_text(element.data_type()) => Ok(()),
        _ => Err(column::wrong_type(name, "array<string>", field)),
    }
}

fn invalid(message: String) -> Error {
    Error::InvalidData { class: String::new(), message: format!("requirement failed: {message}") }
}

/// Every row's words; `None` for a null row.
///
/// # Errors
/// A null among the words.
pub fn each(column: &ArrayRef, mut visit: impl FnMut(Option<Vec<&str>>) -> Result<()>) -> Result<()> {
    let column = cast(column, &DataType::List(Arc::new(element())))?;
    let lists = column.as_list::<i32>();
    let words = lists.values().as_string::<i32>();
    for row in 0..lists.len() {
        if lists.is_null(row) {
            visit(None)?;
            continue;
        }
        let range = lists.value_offsets()[row] as usize..lists.value_offsets()[row + 1] as usize;
        let found: Option<Vec<&str>> = range.map(|i| words.is_valid(i).then(|| words.value(i))).collect();
        let found = found.ok_or_else(|| Error::InvalidRow { message: format!("a word in row {row} is null") })?;
        visit(Some(found))?;
    }
    Ok(())
}

/// A column of the words that `split` finds in each text.
///
/// # Errors
/// None but Arrow's own.
pub fn of_texts(column: &ArrayRef, split: impl Fn(&str) -> Vec<String>) -> Result<ArrayRef> {
    let texts = cast(column, &DataType::Utf8)?;
    let mut lists = Vec::with_capacity(texts.len());
    lists.extend(texts.as_string::<i32>().iter().map(|text| text.map(&split)));
    Ok(from_lists(lists))
}

/// Lists of words as a column.
pub fn from_lists(lists: Vec<Option<Vec<String>>>) -> ArrayRef {
    let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.as_ref().map_or(0, Vec::len)));
    let nulls = NullBuffer::from_iter(lists.iter().map(Option::is_some));
    let words: StringArray = lists.into_iter().flatten().flatten().map(Some).collect();
    Arc::new(ListArray::new(Arc::new(element()), offsets, Arc::new(words), Some(nulls)))
}
