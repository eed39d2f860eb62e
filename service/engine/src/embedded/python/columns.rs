//! Columns on their way to a worker and back: the same values under the types that Python libraries expect.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use arrow::util::display::FormatOptions;

use crate::embedded::expression::same_type;
use crate::embedded::relation::spark_type;
use crate::{Error, Result};

/// The field as a worker sees it: instants are labelled with the session's zone.
pub fn worker_field(field: &Field, zone: &Arc<str>) -> Field {
    field.clone().with_data_type(worker_type(field.data_type(), zone)).with_metadata(Default::default())
}

fn worker_type(data_type: &DataType, zone: &Arc<str>) -> DataType {
    let nested = |field: &FieldRef| Arc::new(worker_field(field, zone));
    match data_type {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some(Arc::clone(zone))),
        DataType::List(element) => DataType::List(nested(element)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(nested).collect::<Fields>()),
        DataType::Map(entries, is_sorted) => DataType::Map(nested(entries), *is_sorted),
        other => other.clone(),
    }
}

/// The column under a worker's type.
pub fn to_worker(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if column.data_type() == data_type { Ok(Arc::clone(column)) } else { Ok(cast(column, data_type)?) }
}

/// A worker's column under the type that its function declares.
///
/// # Errors
/// [`Error::ArrowTypeMismatch`] where it is of another type, whatever its values are.
pub fn from_worker(column: &ArrayRef, declared: &FieldRef, function: &str) -> Result<ArrayRef> {
    if column.data_type() == declared.data_type() {
        return Ok(Arc::clone(column));
    }
    let found = spark_type(column.data_type());
    // A column of nothing but nulls may have no type of its own.
    if !same_type(&found, declared.data_type()) && found != DataType::Null {
        return Err(Error::ArrowTypeMismatch {
            operation: function.to_owned(),
            expected: crate::data_type::sql_name(declared),
            found: crate::data_type::sql_name(&Field::new("", found, true)),
        });
    }
    let options = CastOptions { safe: false, format_options: FormatOptions::default() };
    Ok(cast_with_options(column, declared.data_type(), &options)?)
}
