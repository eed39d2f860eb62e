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

/// Spark's text where a type of columns is expected, such as `numeric`.
pub fn wrong_type(name: &str, expected: &str, field: &Field) -> Error {
    Error::ColumnType { column: name.into(), expected: expected.into(), found: format!("of type {}", simple_type(field)) }
}

const VECTOR_TYPE: &str = "struct<type:tinyint,size:int,indices:array<int>,values:array<double>>";

/// The field of a column that holds vectors.
///
/// # Errors
/// [`Error::ColumnNotFound`], [`Error::ColumnType`]
pub fn vector<'a>(schema: &'a Schema, name: &str) -> Result<&'a Field> {
    let field = field(schema, name)?;
    if udt::field::is_vector(field) {
        return Ok(field);
    }
    Err(Error::ColumnType {
        column: name.into(),
        expected: format!("class {}:{VECTOR_TYPE}", udt::field::VECTOR_JVM_CLASS),
        found: format!("class org.apache.spark.sql.types.{}$:{}", spark_class(field), simple_type(field)),
    })
}

/// Spark's name of a type in SQL: `double`, `array<int>`.
pub fn simple_type(field: &Field) -> String {
    match field.data_type() {
        _ if udt::field::is_vector(field) => VECTOR_TYPE.into(),
        DataType::Boolean => "boolean".into(),
        DataType::Int8 => "tinyint".into(),
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "int".into(),
        DataType::Int64 => "bigint".into(),
        DataType::Float32 => "float".into(),
        DataType::Float64 => "double".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".into(),
        DataType::Date32 => "date".into(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::List(element) | DataType::LargeList(element) => format!("array<{}>", simple_type(element)),
        other => other.to_string().to_lowercase(),
    }
}

/// Spark's class of a type: `DoubleType`.
pub fn spark_class(field: &Field) -> String {
    match field.data_type() {
        _ if udt::field::is_vector(field) => udt::field::VECTOR_JVM_CLASS.into(),
        DataType::Boolean => "BooleanType".into(),
        DataType::Int8 => "ByteType".into(),
        DataType::Int16 => "ShortType".into(),
        DataType::Int32 => "IntegerType".into(),
        DataType::Int64 => "LongType".into(),
        DataType::Float32 => "FloatType".into(),
        DataType::Float64 => "DoubleType".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "StringType".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BinaryType".into(),
        DataType::Date32 => "DateType".into(),
        DataType::Decimal128(precision, scale) => format!("DecimalType({precision},{scale})"),
        DataType::List(element) | DataType::LargeList(element) => {
            format!("ArrayType({},{})", spark_class(element), element.is_nullable())
        }
        other => other.to_string(),
    }
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
