//! Columns of labels, predictions, scores and weights as doubles, with what is wrong in them named.

use std::borrow::Cow;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use udt::VectorArray;

use crate::{Error, Params, Result};

/// The field of a column, by Spark's case-insensitive rule when no name matches exactly.
///
/// # Errors
/// [`Error::ColumnNotFound`]
pub fn field<'a>(schema: &'a Schema, name: &str) -> Result<&'a Field> {
    let fields = schema.fields();
    let exact = fields.iter().find(|field| field.name() == name);
    let found = exact.or_else(|| fields.iter().find(|field| field.name().to_lowercase() == name.to_lowercase()));
    found.map(AsRef::as_ref).ok_or_else(|| Error::ColumnNotFound {
        name: name.into(),
        available: fields.iter().map(|field| field.name().clone()).collect(),
    })
}

/// The field of a column that holds numbers.
///
/// # Errors
/// [`Error::ColumnNotFound`], [`Error::ColumnType`]
pub fn numeric<'a>(schema: &'a Schema, name: &str) -> Result<&'a Field> {
    let field = field(schema, name)?;
    match field.data_type().is_numeric() {
        true => Ok(field),
        false => Err(wrong_type(name, "numeric", field)),
    }
}

pub fn wrong_type(name: &str, expected: &str, field: &Field) -> Error {
    let found = if udt::field::is_vector(field) { "vector".into() } else { field.data_type().to_string() };
    Error::ColumnType { column: name.into(), expected: expected.into(), found }
}

/// The weight column, if one is set and not the empty string.
///
/// # Errors
/// As [`numeric`].
pub fn weight<'a>(params: &'a Params, schema: &Schema) -> Result<Option<&'a str>> {
    match params.column("weightCol") {
        Some(name) => numeric(schema, name).map(|_| Some(name)),
        None => Ok(None),
    }
}

/// A numeric column as doubles.
///
/// # Errors
/// [`Error::InvalidData`] when a value is null, with how many.
pub fn doubles(array: &ArrayRef, what: &str) -> Result<Float64Array> {
    if array.null_count() > 0 {
        let message = format!("{what} is null in {} of {} rows", array.null_count(), array.len());
        return Err(Error::InvalidData { class: "INVALID_TRAINING_DATA.NULL_LABEL".into(), message });
    }
    let cast = cast(array, &DataType::Float64)?;
    Ok(cast.as_primitive::<Float64Type>().clone())
}

/// Weights as doubles; ones when there is no weight column.
///
/// # Errors
/// [`Error::InvalidData`] when a weight is null, negative, NaN or infinite.
pub fn weights<'a>(array: Option<&ArrayRef>, num_rows: usize) -> Result<Cow<'a, [f64]>> {
    let Some(array) = array else { return Ok(Cow::Owned(vec![1.0; num_rows])) };
    let weights = doubles(array, "the weight")?;
    if let Some(bad) = weights.values().iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
        let message = format!("illegal sample weight value: {bad}, weights must be finite and not negative");
        return Err(Error::InvalidData { class: "INVALID_TRAINING_DATA.WEIGHT".into(), message });
    }
    Ok(Cow::Owned(weights.values().to_vec()))
}

/// The score of the positive class: a double column, or the second element of a vector.
///
/// # Errors
/// A null, or a vector of fewer than two elements.
pub fn scores(array: &ArrayRef) -> Result<Vec<f64>> {
    if array.data_type().is_numeric() {
        return Ok(doubles(array, "the score")?.values().to_vec());
    }
    let vectors = VectorArray::try_new(array.as_ref())?;
    if let Some((width, values)) = vectors.as_dense_rows()
        && width > 1
    {
        return Ok(values.chunks_exact(width).map(|row| row[1]).collect());
    }
    (0..vectors.len()).map(|row| element(&vectors, row, 1)).collect()
}

/// One element of a row's vector.
///
/// # Errors
/// A null row, or a vector that is too short.
pub fn element(vectors: &VectorArray, row: usize, index: usize) -> Result<f64> {
    let vector = vectors.row(row)?;
    if vector.size() <= index {
        let message = format!("a vector has {} elements where at least {} are needed", vector.size(), index + 1);
        return Err(Error::InvalidRow { message });
    }
    Ok(match vector {
        udt::VectorRow::Dense(values) => values[index],
        udt::VectorRow::Sparse { indices, values, .. } => {
            indices.binary_search(&(index as i32)).map_or(0.0, |position| values[position])
        }
    })
}
