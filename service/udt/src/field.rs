//! How a Spark type that Arrow lacks is written on an Arrow field.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};

/// Field metadata key: the JVM class of a user-defined type, such as `org.apache.spark.ml.linalg.VectorUDT`.
pub const UDT_JVM_CLASS: &str = "spark.udt.jvm_class";
/// Field metadata key: the Python class of a user-defined type, such as `pyspark.ml.linalg.VectorUDT`.
pub const UDT_PYTHON_CLASS: &str = "spark.udt.python_class";
/// Field metadata key: the pickled Python class of a user-defined type that has no JVM class.
pub const UDT_SERIALIZED_PYTHON_CLASS: &str = "spark.udt.serialized_python_class";
/// Field metadata key: Spark's `StructField.metadata`, a JSON object. Absent means `{}`.
pub const COLUMN_METADATA: &str = "spark.metadata";
/// Field metadata key: Spark's name of an atomic type that shares its Arrow type with another
/// (`char(n)`, `varchar(n)`, the interval types).
pub const SPARK_TYPE: &str = "spark.type";

pub const VECTOR_JVM_CLASS: &str = "org.apache.spark.ml.linalg.VectorUDT";
pub const VECTOR_PYTHON_CLASS: &str = "pyspark.ml.linalg.VectorUDT";
pub const MATRIX_JVM_CLASS: &str = "org.apache.spark.ml.linalg.MatrixUDT";
pub const MATRIX_PYTHON_CLASS: &str = "pyspark.ml.linalg.MatrixUDT";

fn list_of(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", element, false)))
}

/// The struct that a vector is stored as: `type` 0 sparse, 1 dense (then `size` and `indices` are null).
pub fn vector_data_type() -> DataType {
    DataType::Struct(Fields::from(vec![
        Field::new("type", DataType::Int8, false),
        Field::new("size", DataType::Int32, true),
        Field::new("indices", list_of(DataType::Int32), true),
        Field::new("values", list_of(DataType::Float64), true),
    ]))
}

/// The struct that a matrix is stored as: `type` 0 sparse (compressed columns), 1 dense (column-major unless transposed).
pub fn matrix_data_type() -> DataType {
    DataType::Struct(Fields::from(vec![
        Field::new("type", DataType::Int8, false),
        Field::new("numRows", DataType::Int32, false),
        Field::new("numCols", DataType::Int32, false),
        Field::new("colPtrs", list_of(DataType::Int32), true),
        Field::new("rowIndices", list_of(DataType::Int32), true),
        Field::new("values", list_of(DataType::Float64), true),
        Field::new("isTransposed", DataType::Boolean, false),
    ]))
}

/// A nullable column of vectors.
pub fn vector_field(name: &str) -> Field {
    with_udt(Field::new(name, vector_data_type(), true), VECTOR_JVM_CLASS, VECTOR_PYTHON_CLASS)
}

/// A nullable column of matrices.
pub fn matrix_field(name: &str) -> Field {
    with_udt(Field::new(name, matrix_data_type(), true), MATRIX_JVM_CLASS, MATRIX_PYTHON_CLASS)
}

/// Marks a field as a user-defined type, keeping its other metadata.
pub fn with_udt(field: Field, jvm_class: &str, python_class: &str) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(UDT_JVM_CLASS.into(), jvm_class.into());
    metadata.insert(UDT_PYTHON_CLASS.into(), python_class.into());
    field.with_metadata(metadata)
}

/// Sets Spark's column metadata (a JSON object), keeping the other keys.
pub fn with_column_metadata(field: Field, json: &str) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(COLUMN_METADATA.into(), json.into());
    field.with_metadata(metadata)
}

/// Spark's column metadata as JSON, if any was set.
pub fn column_metadata(field: &Field) -> Option<&str> {
    field.metadata().get(COLUMN_METADATA).map(String::as_str)
}

/// Whether the field is a Spark ML vector. A struct of the right shape without the mark counts too: an Arrow stream from
/// a client carries the mark in its separate JSON schema only.
pub fn is_vector(field: &Field) -> bool {
    match field.metadata().get(UDT_JVM_CLASS) {
        Some(class) => class == VECTOR_JVM_CLASS,
        None => field.metadata().get(UDT_PYTHON_CLASS).is_none() && has_vector_shape(field.data_type()),
    }
}

pub fn is_matrix(field: &Field) -> bool {
    field.metadata().get(UDT_JVM_CLASS).is_some_and(|class| class == MATRIX_JVM_CLASS)
}

fn has_vector_shape(data_type: &DataType) -> bool {
    let DataType::Struct(fields) = data_type else { return false };
    let names: Vec<&str> = fields.iter().map(|f| f.name().as_str()).collect();
    let element = |f: &FieldRef| match f.data_type() {
        DataType::List(e) | DataType::LargeList(e) => Some(e.data_type().clone()),
        _ => None,
    };
    names == ["type", "size", "indices", "values"]
        && fields[0].data_type() == &DataType::Int8
        && fields[1].data_type() == &DataType::Int32
        && element(&fields[2]) == Some(DataType::Int32)
        && element(&fields[3]) == Some(DataType::Float64)
}
