//! `ml_attr`, Spark ML's column metadata: class counts, level names, feature names.
//!
//! A scalar column has one attribute (numeric, nominal or binary), a vector column a group of them. Trees, encoders and
//! assemblers read them, so they pass from operator to operator with the column.

use arrow::datatypes::Field;
use serde_json::{Map, Value as Json, json};
use udt::field::{column_metadata, with_column_metadata};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeKind {
    Numeric,
    Nominal,
    Binary,
}

impl AttributeKind {
    const ALL: [AttributeKind; 3] = [AttributeKind::Numeric, AttributeKind::Nominal, AttributeKind::Binary];

    fn name(self) -> &'static str {
        match self {
            AttributeKind::Numeric => "numeric",
            AttributeKind::Nominal => "nominal",
            AttributeKind::Binary => "binary",
        }
    }
}

/// What is known of one feature or column.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    pub kind: AttributeKind,
    /// Spark's keys but for `type` and `idx`: `name`, `vals`, `num_vals`, `ord`, `min`, `max`, `std`, `sparsity`.
    properties: Map<String, Json>,
}

impl Attribute {
    pub fn numeric() -> Attribute {
        Attribute { kind: AttributeKind::Numeric, properties: Map::new() }
    }

    pub fn binary() -> Attribute {
        Attribute { kind: AttributeKind::Binary, properties: Map::new() }
    }

    /// A categorical attribute whose levels have names.
    pub fn nominal_with_values(values: &[String]) -> Attribute {
        let mut properties = Map::new();
        properties.insert("vals".into(), json!(values));
        Attribute { kind: AttributeKind::Nominal, properties }
    }

    /// A categorical attribute of so many levels.
    pub fn nominal_with_num_values(num_values: usize) -> Attribute {
        let mut properties = Map::new();
        properties.insert("num_vals".into(), json!(num_values));
        Attribute { kind: AttributeKind::Nominal, properties }
    }

    pub fn with_name(mut self, name: &str) -> Attribute {
        self.properties.insert("name".into(), json!(name));
        self
    }

    /// Whether the levels have an order.
    pub fn with_ordinal(mut self, is_ordinal: bool) -> Attribute {
        self.properties.insert("ord".into(), json!(is_ordinal));
        self
    }

    pub fn name(&self) -> Option<&str> {
        self.properties.get("name")?.as_str()
    }

    /// The levels' names.
    pub fn values(&self) -> Option<Vec<String>> {
        let values = self.properties.get("vals")?.as_array()?;
        values.iter().map(|v| v.as_str().map(String::from)).collect()
    }

    /// How many levels there are; `None` for numbers.
    pub fn num_values(&self) -> Option<usize> {
        match self.kind {
            AttributeKind::Numeric => None,
            AttributeKind::Binary => Some(2),
            AttributeKind::Nominal => match self.values() {
                Some(values) => Some(values.len()),
                None => self.properties.get("num_vals")?.as_u64().map(|v| v as usize),
            },
        }
    }

    fn from_object(kind: AttributeKind, object: &Map<String, Json>) -> Attribute {
        let mut properties = object.clone();
        properties.remove("type");
        properties.remove("idx");
        Attribute { kind, properties }
    }

    /// The attribute a scalar column carries, if it carries one.
    pub fn of_column(field: &Field) -> Option<Attribute> {
        let object = ml_attr(field)?;
        let kind = match object.get("type").and_then(Json::as_str) {
            None => AttributeKind::Numeric,
            Some(name) => AttributeKind::ALL.into_iter().find(|kind| kind.name() == name)?,
        };
        Some(Attribute::from_object(kind, &object))
    }

    /// Marks a scalar column.
    pub fn mark(&self, field: Field) -> Field {
        let mut object = self.properties.clone();
        if self.kind != AttributeKind::Numeric {
            object.insert("type".into(), json!(self.kind.name()));
        }
        mark(field, object)
    }
}

/// What is known of the elements of a vector column.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeGroup {
    Unknown,
    Size(usize),
    Attributes(Vec<Attribute>),
}

impl AttributeGroup {
    pub fn size(&self) -> Option<usize> {
        match self {
            AttributeGroup::Unknown => None,
            AttributeGroup::Size(size) => Some(*size),
            AttributeGroup::Attributes(attributes) => Some(attributes.len()),
        }
    }

    /// The group a vector column carries.
    pub fn of_column(field: &Field) -> AttributeGroup {
        let Some(object) = ml_attr(field) else { return AttributeGroup::Unknown };
        let size = object.get("num_attrs").and_then(Json::as_u64).map(|size| size as usize);
        match (object.get("attrs").and_then(Json::as_object), size) {
            (Some(by_kind), Some(size)) => {
                let mut attributes = vec![Attribute::numeric(); size];
                for kind in AttributeKind::ALL {
                    let listed = by_kind.get(kind.name()).and_then(Json::as_array);
                    for object in listed.into_iter().flatten().filter_map(Json::as_object) {
                        let index = object.get("idx").and_then(Json::as_u64).map(|index| index as usize);
                        if let Some(attribute) = index.and_then(|index| attributes.get_mut(index)) {
                            *attribute = Attribute::from_object(kind, object);
                        }
                    }
                }
                AttributeGroup::Attributes(attributes)
            }
            (None, Some(size)) => AttributeGroup::Size(size),
            (_, None) => AttributeGroup::Unknown,
        }
    }

    /// Marks a vector column.
    pub fn mark(&self, field: Field) -> Field {
        let mut object = Map::new();
        if let AttributeGroup::Attributes(attributes) = self {
            let mut by_kind = Map::new();
            for kind in AttributeKind::ALL {
                let of_kind: Vec<Json> = attributes
                    .iter()
                    .enumerate()
                    .filter(|(_, attribute)| attribute.kind == kind && **attribute != Attribute::numeric())
                    .map(|(index, attribute)| {
                        let mut object = attribute.properties.clone();
                        object.insert("idx".into(), json!(index));
                        Json::Object(object)
                    })
                    .collect();
                if !of_kind.is_empty() {
                    by_kind.insert(kind.name().into(), Json::Array(of_kind));
                }
            }
            object.insert("attrs".into(), Json::Object(by_kind));
        }
        if let Some(size) = self.size() {
            object.insert("num_attrs".into(), json!(size));
        }
        if object.is_empty() { field } else { mark(field, object) }
    }
}

fn ml_attr(field: &Field) -> Option<Map<String, Json>> {
    match serde_json::from_str::<Json>(column_metadata(field)?).ok()?.get("ml_attr")? {
        Json::Object(object) => Some(object.clone()),
        _ => None,
    }
}

fn mark(field: Field, object: Map<String, Json>) -> Field {
    with_column_metadata(field, &json!({"ml_attr": object}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::DataType;

    #[test]
    fn a_nominal_column_keeps_its_levels() {
        let attribute = Attribute::nominal_with_values(&["a".into(), "b".into()]).with_name("c");
        let field = attribute.mark(Field::new("c", DataType::Float64, false));
        let expected: Json = serde_json::from_str(r#"{"ml_attr":{"vals":["a","b"],"name":"c","type":"nominal"}}"#).unwrap();
        assert_eq!(serde_json::from_str::<Json>(column_metadata(&field).unwrap()).unwrap(), expected);
        assert_eq!(Attribute::of_column(&field), Some(attribute.clone()));
        assert_eq!(attribute.num_values(), Some(2));
    }

    #[test]
    fn a_group_keeps_the_place_and_kind_of_each_element() {
        let group = AttributeGroup::Attributes(vec![
            Attribute::numeric().with_name("x"),
            Attribute::numeric(),
            Attribute::binary().with_name("c_a"),
        ]);
        let field = group.mark(udt::field::vector_field("features"));
        assert_eq!(AttributeGroup::of_column(&field), group);
        assert!(udt::field::is_vector(&field));
        let sized = AttributeGroup::Size(3).mark(udt::field::vector_field("f"));
        assert_eq!(column_metadata(&sized), Some(r#"{"ml_attr":{"num_attrs":3}}"#));
    }
}
