//! Types as Spark's JSON, which clients send, Parquet footers keep and models store.

use std::sync::Arc;

use arrow::datatypes::{Field, Fields, Schema};
use serde_json::{Map, Value, json};
use udt::field::{column_metadata, with_column_metadata};

use super::ddl::parse_ddl_or_type;
use super::name::{atomic_from_name, type_name};
use super::spark_type::{SparkType, Udt, known_storage};
use crate::{Error, Result};

/// Reads a struct type's JSON.
///
/// # Errors
/// [`Error::InvalidDataType`] for text that is no struct type, [`Error::Unsupported`] for types this engine lacks.
pub fn schema_from_json(text: &str) -> Result<Schema> {
    let value: Value = serde_json::from_str(text).map_err(|error| invalid(text, &error.to_string()))?;
    match value.get("fields").and_then(Value::as_array) {
        Some(fields) => Ok(Schema::new(struct_fields(fields)?)),
        None => Err(invalid(text, "expected a struct type")),
    }
}

/// Reads a schema that is JSON or DDL; a lone type is one column named `value`.
pub fn schema_from_text(text: &str) -> Result<Schema> {
    let field = match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() || value.is_string() => field_from_json("value", &value, true)?,
        _ => parse_ddl_or_type(text)?.with_name("value"),
    };
    match SparkType::of(&field) {
        SparkType::Struct(fields) => Ok(Schema::new(fields.clone())),
        _ => Ok(Schema::new(vec![field])),
    }
}

/// The field that holds the type a JSON value says.
pub fn field_from_json(name: &str, value: &Value, nullable: bool) -> Result<Field> {
    match value {
        Value::String(atomic) => match atomic_from_name(atomic) {
            Some(spark_type) => Ok(spark_type.field(name, nullable)),
            None if atomic.starts_with("string collate") || atomic == "variant" => {
                Err(Error::Unsupported { feature: format!("type {atomic}") })
            }
            None => Err(invalid(atomic, "no such type")),
        },
        Value::Object(object) => nested_from_json(name, object, nullable),
        other => Err(invalid(&other.to_string(), "expected a type")),
    }
}

fn nested_from_json(name: &str, object: &Map<String, Value>, nullable: bool) -> Result<Field> {
    let get = |key: &str| {
        object.get(key).ok_or_else(|| invalid(&Value::Object(object.clone()).to_string(), &format!("{key} is missing")))
    };
    let is_set = |key: &str| Ok::<_, Error>(get(key)?.as_bool().unwrap_or(true));
    match get("type")?.as_str() {
        Some("array") => {
            let element = Arc::new(field_from_json("element", get("elementType")?, is_set("containsNull")?)?);
            Ok(SparkType::Array(&element).field(name, nullable))
        }
        Some("map") => {
            let key = Arc::new(field_from_json("key", get("keyType")?, false)?);
            let value = Arc::new(field_from_json("value", get("valueType")?, is_set("valueContainsNull")?)?);
            Ok(SparkType::Map { key: &key, value: &value }.field(name, nullable))
        }
        Some("struct") => match get("fields")?.as_array() {
            Some(fields) => Ok(SparkType::Struct(&struct_fields(fields)?).field(name, nullable)),
            None => Err(invalid(&get("fields")?.to_string(), "expected a list of fields")),
        },
        Some("udt") => {
            let class = |key: &str| object.get(key).and_then(Value::as_str);
            let storage = match (object.get("sqlType"), class("class").and_then(known_storage)) {
                (_, Some(storage)) => storage,
                (Some(sql_type), None) => field_from_json("sql", sql_type, true)?.data_type().clone(),
                (None, None) => return Err(invalid(&format!("{:?}", class("class")), "sqlType is missing")),
            };
            let udt = Udt {
                jvm_class: class("class"),
                python_class: class("pyClass"),
                serialized_python_class: class("serializedClass"),
                storage: &storage,
            };
            if udt.jvm_class.is_none() && udt.python_class.is_none() {
                return Err(invalid("udt", "class is missing"));
            }
            Ok(SparkType::Udt(udt).field(name, nullable))
        }
        other => Err(invalid(other.unwrap_or_default(), "no such type")),
    }
}

fn struct_fields(fields: &[Value]) -> Result<Fields> {
    let fields = fields.iter().map(|field| {
        let missing = |key: &str| invalid(&field.to_string(), &format!("{key} is missing"));
        let name = field.get("name").and_then(Value::as_str).ok_or_else(|| missing("name"))?;
        let nullable = field.get("nullable").and_then(Value::as_bool).unwrap_or(true);
        let plain = field_from_json(name, field.get("type").ok_or_else(|| missing("type"))?, nullable)?;
        Ok(match field.get("metadata").and_then(Value::as_object) {
            Some(metadata) if !metadata.is_empty() => {
                with_column_metadata(plain, &Value::Object(metadata.clone()).to_string())
            }
            _ => plain,
        })
    });
    fields.collect()
}

/// A schema as the JSON of Spark's struct type.
pub fn schema_to_json(schema: &Schema) -> String {
    struct_to_json(schema.fields()).to_string()
}

/// A field's type as JSON.
pub fn field_to_json(field: &Field) -> Value {
    match SparkType::of(field) {
        SparkType::Array(element) => json!({
            "type": "array",
            "elementType": field_to_json(element),
            "containsNull": element.is_nullable(),
        }),
        SparkType::Map { key, value } => json!({
            "type": "map",
            "keyType": field_to_json(key),
            "valueType": field_to_json(value),
            "valueContainsNull": value.is_nullable(),
        }),
        SparkType::Struct(fields) => struct_to_json(fields),
        SparkType::Udt(udt) => {
            let mut object = Map::new();
            object.insert("type".into(), "udt".into());
            for (key, class) in [
                ("class", udt.jvm_class),
                ("pyClass", udt.python_class),
                ("serializedClass", udt.serialized_python_class),
            ] {
                if let Some(class) = class {
                    object.insert(key.into(), class.into());
                }
            }
            let storage = Field::new("sql", udt.storage.clone(), true);
            object.insert("sqlType".into(), field_to_json(&storage));
            Value::Object(object)
        }
        atomic => Value::String(type_name(&atomic)),
    }
}

fn struct_to_json(fields: &Fields) -> Value {
    let fields: Vec<Value> = fields
        .iter()
        .map(|field| {
            let metadata = column_metadata(field).and_then(|json| serde_json::from_str::<Value>(json).ok());
            json!({
                "name": field.name(),
                "type": field_to_json(field),
                "nullable": field.is_nullable(),
                "metadata": metadata.filter(Value::is_object).unwrap_or_else(|| json!({})),
            })
        })
        .collect();
    json!({ "type": "struct", "fields": fields })
}

fn invalid(text: &str, message: &str) -> Error {
    Error::InvalidDataType { text: text.into(), message: message.into() }
}
