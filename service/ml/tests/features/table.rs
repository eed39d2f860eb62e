//! Tables of the gold file as record batches, and columns back as the gold file writes them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, ListArray, StringArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Int32Type, Int64Type, Schema};
use arrow::record_batch::RecordBatch;
use serde_json::{Value as Json, json};
use udt::{Vector, VectorArray, VectorBuilder};

/// A double that JSON may lack.
pub fn number(json: &Json) -> Option<f64> {
    match json {
        Json::Null => None,
        Json::String(text) => Some(match text.as_str() {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => f64::NAN,
        }),
        json => json.as_f64(),
    }
}

fn double(value: f64) -> Json {
    match value {
        v if v.is_nan() => json!("NaN"),
        v if v.is_infinite() => json!(if v > 0.0 { "Infinity" } else { "-Infinity" }),
        v => json!(v),
    }
}

fn data_type(json: &Json) -> DataType {
    match json {
        Json::String(name) => match name.as_str() {
            "integer" => DataType::Int32,
            "long" => DataType::Int64,
            "float" => DataType::Float32,
            "double" => DataType::Float64,
            "boolean" => DataType::Boolean,
            _ => DataType::Utf8,
        },
        json if json["type"] == "udt" => udt::field::vector_data_type(),
        json => {
            let nullable = json["containsNull"].as_bool().unwrap();
            DataType::List(Arc::new(Field::new("element", data_type(&json["elementType"]), nullable)))
        }
    }
}

/// The field of Spark's JSON.
pub fn field(json: &Json) -> Field {
    let name = json["name"].as_str().unwrap();
    let field = match json["type"]["type"] == "udt" {
        true => udt::field::vector_field(name),
        false => Field::new(name, data_type(&json["type"]), true),
    };
    let field = field.with_nullable(json["nullable"].as_bool().unwrap());
    match json["metadata"].as_object().unwrap().is_empty() {
        true => field,
        false => udt::field::with_column_metadata(field, &json["metadata"].to_string()),
    }
}

pub fn vector(json: &Json) -> Vector {
    let doubles = |json: &Json| json.as_array().unwrap().iter().map(|v| number(v).unwrap()).collect();
    match json.get("dense") {
        Some(values) => Vector::Dense(doubles(values)),
        None => Vector::Sparse {
            size: json["size"].as_u64().unwrap() as usize,
            indices: json["indices"].as_array().unwrap().iter().map(|i| i.as_i64().unwrap() as i32).collect(),
            values: doubles(&json["values"]),
        },
    }
}

fn column(data_type: &DataType, values: &[&Json]) -> ArrayRef {
    match data_type {
        DataType::Int32 => Arc::new(values.iter().map(|v| v.as_i64().map(|v| v as i32)).collect::<Int32Array>()),
        DataType::Int64 => Arc::new(values.iter().map(|v| v.as_i64()).collect::<Int64Array>()),
        DataType::Float32 => Arc::new(values.iter().map(|v| number(v).map(|v| v as f32)).collect::<Float32Array>()),
        DataType::Float64 => Arc::new(values.iter().map(|v| number(v)).collect::<Float64Array>()),
        DataType::Boolean => Arc::new(values.iter().map(|v| v.as_bool()).collect::<BooleanArray>()),
        DataType::Utf8 => Arc::new(values.iter().map(|v| v.as_str()).collect::<StringArray>()),
        DataType::List(element) => {
            let lists: Vec<Option<&Vec<Json>>> = values.iter().map(|v| v.as_array()).collect();
            let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.map_or(0, Vec::len)));
            let flat: Vec<&Json> = lists.iter().flatten().flat_map(|list| list.iter()).collect();
            let nulls = NullBuffer::from_iter(lists.iter().map(Option::is_some));
            Arc::new(ListArray::new(Arc::clone(element), offsets, column(element.data_type(), &flat), Some(nulls)))
        }
        _ => {
            let mut builder = VectorBuilder::default();
            for value in values {
                if value.is_null() { builder.append_null() } else { builder.append_vector(&vector(value)) }
            }
            builder.finish()
        }
    }
}

/// A whole table.
pub fn batch(table: &Json) -> RecordBatch {
    let fields: Vec<Field> = table["schema"].as_array().unwrap().iter().map(field).collect();
    let rows = table["rows"].as_array().unwrap();
    let values = |i: usize| rows.iter().map(|row| &row[i]).collect::<Vec<&Json>>();
    let columns = fields.iter().enumerate().map(|(i, field)| column(field.data_type(), &values(i))).collect();
    // what Spark says is never null may be null in a table that was made of rows
    let fields: Vec<Field> = fields.into_iter().map(|field| field.with_nullable(true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// One value, as the gold file writes it.
pub fn value(column: &ArrayRef, row: usize) -> Json {
    if column.is_null(row) {
        return Json::Null;
    }
    match column.data_type() {
        DataType::Int32 => json!(column.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => double(f64::from(column.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => double(column.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::List(_) => {
            let list = column.as_list::<i32>().value(row);
            (0..list.len()).map(|i| value(&list, i)).collect()
        }
        _ => vector_json(&VectorArray::try_new(column.as_ref()).unwrap().row(row).unwrap().to_vector()),
    }
}

pub fn vector_json(vector: &Vector) -> Json {
    let doubles = |values: &[f64]| values.iter().map(|v| double(*v)).collect::<Vec<Json>>();
    match vector {
        Vector::Dense(values) => json!({"dense": doubles(values)}),
        Vector::Sparse { size, indices, values } => json!({"size": size, "indices": indices, "values": doubles(values)}),
    }
}

/// Whether two JSON values are one but for rounding.
pub fn is_close(found: &Json, expected: &Json) -> bool {
    match (found, expected) {
        (Json::Number(a), Json::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            a == b || (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1.0)
        }
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_close(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_close(a, b)))
        }
        (a, b) => a == b,
    }
}
