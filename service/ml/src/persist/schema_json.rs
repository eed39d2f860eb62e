//! The JSON that Spark keeps of a table's schema, for the types that saved operators have.

use arrow::datatypes::{DataType, Field, Schema};
use serde_json::{Value as Json, json};
use udt::field::{UDT_JVM_CLASS, UDT_PYTHON_CLASS};

use crate::{Error, Result};

/// # Errors
/// [`Error::Unsupported`] for a type that no saved operator has.
pub fn schema_json(schema: &Schema) -> Result<Json> {
    structure(schema.fields().iter().map(AsRef::as_ref))
}

fn structure<'a>(fields: impl Iterator<Item = &'a Field>) -> Result<Json> {
    let field = |field: &Field| {
        let (name, nullable) = (field.name(), field.is_nullable());
        Ok(json!({"name": name, "type": field_type(field)?, "nullable": nullable, "metadata": {}}))
    };
    Ok(json!({"type": "struct", "fields": fields.map(field).collect::<Result<Vec<Json>>>()?}))
}

fn field_type(field: &Field) -> Result<Json> {
    let Some(class) = field.metadata().get(UDT_JVM_CLASS) else { return data_type(field.data_type()) };
    let python_class = field.metadata().get(UDT_PYTHON_CLASS);
    Ok(json!({"type": "udt", "class": class, "pyClass": python_class, "sqlType": data_type(field.data_type())?}))
}

fn data_type(data_type: &DataType) -> Result<Json> {
    Ok(match data_type {
        DataType::Boolean => json!("boolean"),
        DataType::Int8 => json!("byte"),
        DataType::Int32 => json!("integer"),
        DataType::Int64 => json!("long"),
        DataType::Float32 => json!("float"),
        DataType::Float64 => json!("double"),
        DataType::Utf8 => json!("string"),
        DataType::Binary => json!("binary"),
        DataType::List(element) => json!({
            "type": "array", "elementType": field_type(element)?, "containsNull": element.is_nullable(),
        }),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => json!({
                "type": "map", "keyType": field_type(&fields[0])?, "valueType": field_type(&fields[1])?,
                "valueContainsNull": fields[1].is_nullable(),
            }),
            other => return Err(Error::Unsupported { feature: format!("saving a map of {other}") }),
        },
        DataType::Struct(fields) => structure(fields.iter().map(AsRef::as_ref))?,
        other => return Err(Error::Unsupported { feature: format!("saving a column of type {other}") }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_a_user_defined_type_over_its_struct() {
        let json = schema_json(&Schema::new(vec![udt::field::vector_field("v")])).unwrap();
        let field = &json["fields"][0]["type"];
        assert_eq!(field["class"], "org.apache.spark.ml.linalg.VectorUDT");
        assert_eq!(field["sqlType"]["fields"][2]["type"]["elementType"], "integer");
        assert_eq!(field["sqlType"]["fields"][0]["nullable"], false);
    }
}
