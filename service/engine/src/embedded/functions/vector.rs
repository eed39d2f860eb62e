//! Spark ML's vectors as arrays, and back.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Float64Type};
use udt::{VectorArray, VectorBuilder};

use super::array::range;
use super::kernel::Kernel;
use super::{Call, Function, function};
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::array_of;
use crate::{Error, Result};

pub const FUNCTIONS: &[Function] = &[
    function("vector_to_array", 1, 2, to_array),
    function("array_to_vector", 1, 1, from_array),
    function("unwrap_udt", 1, 1, unwrap),
];

fn broken(source: udt::Error) -> Error {
    Error::Extension { source: Box::new(source) }
}

/// `vector_to_array(vector, "float64" | "float32")`.
fn to_array(mut call: Call<'_>) -> Result<Typed> {
    let element = match call.arguments.get(1) {
        Some(name) => match call.constant_string(name)?.as_str() {
            "float64" => DataType::Float64,
            "float32" => DataType::Float32,
            other => {
                return Err(call.mismatch("INVALID_ARG_VALUE", format!("dtype {other} is neither float64 nor float32")));
            }
        },
        None => DataType::Float64,
    };
    call.arguments.truncate(1);
    let [vector] = call.take()?;
    if !udt::field::is_vector(&vector.field) {
        return Err(call.unexpected(&vector, "VECTOR"));
    }
    let nullable = vector.nullable();
    let field = Arc::new(Field::new("element", element.clone(), false));
    let kernel = Kernel::new("vector_to_array", DataType::List(field.clone()), nullable);
    Ok(kernel.call(vec![vector], move |arguments, num_rows| {
        let vectors = VectorArray::try_new(arguments[0].as_ref()).map_err(broken)?;
        let (values, lengths) = match vectors.as_dense_rows() {
            Some((width, values)) => (values.to_vec(), vec![width; num_rows]),
            None => spread(&vectors, num_rows)?,
        };
        let values: ArrayRef = match element {
            DataType::Float32 => Arc::new(values.iter().map(|value| Some(*value as f32)).collect::<Float32Array>()),
            _ => Arc::new(Float64Array::from(values)),
        };
        let nulls = arguments[0].nulls().cloned();
        Ok(Arc::new(ListArray::try_new(field.clone(), OffsetBuffer::from_lengths(lengths), values, nulls)?))
    }))
}

fn spread(vectors: &VectorArray, num_rows: usize) -> Result<(Vec<f64>, Vec<usize>)> {
    let mut values = Vec::new();
    let mut lengths = Vec::with_capacity(num_rows);
    for row in 0..num_rows {
        if vectors.is_null(row) {
            lengths.push(0);
            continue;
        }
        let vector = vectors.row(row).map_err(broken)?;
        let start = values.len();
        values.resize(start + vector.size(), 0.0);
        vector.for_each(|index, value| values[start + index] = value);
        lengths.push(vector.size());
    }
    Ok((values, lengths))
}

/// `array_to_vector(array)`: dense vectors.
fn from_array(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[array_of(DataType::Float64)])?;
    let [array] = call.take()?;
    let field = udt::field::vector_field("").with_nullable(array.nullable());
    let kernel = Kernel {
        output: Arc::new(field),
        raises: true,
        ..Kernel::new("array_to_vector", udt::field::vector_data_type(), true)
    };
    Ok(kernel.call(vec![array], |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let values = list.values().as_primitive::<Float64Type>();
        let mut vectors = VectorBuilder::with_capacity(num_rows, values.len() / num_rows.max(1));
        for row in 0..num_rows {
            let own = range(list, row);
            if list.is_null(row) {
                vectors.append_null();
            } else if own.clone().any(|at| values.is_null(at)) {
                return Err(Error::Row {
                    class: "NULL_IN_VECTOR",
                    message: format!("an array with a null cannot become a vector (row {row})"),
                    parameters: vec![],
                });
            } else {
                vectors.append_dense(&values.values()[own]);
            }
        }
        Ok(vectors.finish())
    }))
}

/// The struct that a user-defined type is stored as.
fn unwrap(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    let mut metadata = value.field.metadata().clone();
    let keys = [udt::field::UDT_JVM_CLASS, udt::field::UDT_PYTHON_CLASS, udt::field::UDT_SERIALIZED_PYTHON_CLASS];
    let is_marked = keys.iter().any(|key| metadata.contains_key(*key));
    if !is_marked && !udt::field::is_vector(&value.field) {
        return Err(call.unexpected(&value, "UserDefinedType"));
    }
    for key in keys {
        metadata.remove(key);
    }
    let field = value.field.as_ref().clone().with_metadata(metadata);
    Ok(Typed { expr: value.expr, field: Arc::new(field) })
}
