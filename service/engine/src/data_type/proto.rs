//! Types as Spark Connect's messages carry them.

use std::sync::Arc;

use arrow::datatypes::{Field, Fields, Schema};
use spark_connect_proto as proto;
use spark_connect_proto::data_type::{self, Kind};
use udt::field::{column_metadata, with_column_metadata};

use super::ddl::parse_type;
use super::name;
use super::spark_type::{DayTimeUnit, SparkType, Udt, YearMonthUnit, known_storage};
use crate::{Error, Result};

/// The field that holds a message's type.
///
/// # Errors
/// [`Error::Unsupported`] for types this engine lacks, [`Error::InvalidDataType`] for messages that are no type.
pub fn field_from_proto(name: &str, message: &proto::DataType, nullable: bool) -> Result<Field> {
    let Some(kind) = &message.kind else {
        return Err(invalid("a data type without a kind"));
    };
    let atomic = match kind {
        Kind::Null(_) => SparkType::Null,
        Kind::Binary(_) => SparkType::Binary,
        Kind::Boolean(_) => SparkType::Boolean,
        Kind::Byte(_) => SparkType::Byte,
        Kind::Short(_) => SparkType::Short,
        Kind::Integer(_) => SparkType::Integer,
        Kind::Long(_) => SparkType::Long,
        Kind::Float(_) => SparkType::Float,
        Kind::Double(_) => SparkType::Double,
        Kind::Decimal(decimal) => {
            let (precision, scale) = (decimal.precision.unwrap_or(10), decimal.scale.unwrap_or(0));
            name::decimal(precision.into(), scale.into())
                .ok_or_else(|| invalid(&format!("decimal({precision},{scale})")))?
        }
        Kind::String(string) if string.collation.is_empty() || string.collation == "UTF8_BINARY" => SparkType::String,
        Kind::String(string) => return Err(unsupported(format!("collation {}", string.collation))),
        Kind::Char(char) => SparkType::Char(length(char.length, "char")?),
        Kind::VarChar(varchar) => SparkType::Varchar(length(varchar.length, "varchar")?),
        Kind::Date(_) => SparkType::Date,
        Kind::Timestamp(_) => SparkType::Timestamp,
        Kind::TimestampNtz(_) => SparkType::TimestampNtz,
        Kind::Time(time) => match time.precision.unwrap_or(6) {
            precision @ 0..=6 => SparkType::Time { precision: precision as u8 },
            precision => return Err(unsupported(format!("type time({precision})"))),
        },
        Kind::CalendarInterval(_) => SparkType::CalendarInterval,
        Kind::YearMonthInterval(interval) => year_month(interval.start_field, interval.end_field)?,
        Kind::DayTimeInterval(interval) => day_time(interval.start_field, interval.end_field)?,
        Kind::Array(array) => {
            let element = part("element", array.element_type.as_deref(), array.contains_null)?;
            return Ok(SparkType::Array(&Arc::new(element)).field(name, nullable));
        }
        Kind::Map(map) => {
            let key = Arc::new(part("key", map.key_type.as_deref(), false)?);
            let value = Arc::new(part("value", map.value_type.as_deref(), map.value_contains_null)?);
            return Ok(SparkType::Map { key: &key, value: &value }.field(name, nullable));
        }
        Kind::Struct(message) => {
            return Ok(SparkType::Struct(&struct_from_proto(message)?).field(name, nullable));
        }
        Kind::Udt(udt) => return udt_from_proto(name, udt, nullable),
        Kind::Unparsed(unparsed) => {
            return Ok(parse_type(&unparsed.data_type_string)?.with_name(name).with_nullable(nullable));
        }
        Kind::Variant(_) => return Err(unsupported("type variant".into())),
        Kind::Geometry(_) => return Err(unsupported("type geometry".into())),
        Kind::Geography(_) => return Err(unsupported("type geography".into())),
        Kind::TimestampNtzNanos(_) => return Err(unsupported("type timestamp_ntz with nanoseconds".into())),
        Kind::TimestampLtzNanos(_) => return Err(unsupported("type timestamp_ltz with nanoseconds".into())),
    };
    Ok(atomic.field(name, nullable))
}

fn part(name: &str, message: Option<&proto::DataType>, nullable: bool) -> Result<Field> {
    let message = message.ok_or_else(|| invalid(&format!("a nested type without its {name} type")))?;
    field_from_proto(name, message, nullable)
}

fn length(length: i32, of: &str) -> Result<u32> {
    u32::try_from(length).ok().filter(|length| *length > 0).ok_or_else(|| invalid(&format!("{of}({length})")))
}

fn year_month(start: Option<i32>, end: Option<i32>) -> Result<SparkType<'static>> {
    let unit = |number: i32| match number {
        0 => Ok(YearMonthUnit::Year),
        1 => Ok(YearMonthUnit::Month),
        _ => Err(invalid(&format!("year-month interval with unit {number}"))),
    };
    let start = unit(start.unwrap_or(0))?;
    Ok(SparkType::YearMonthInterval { start, end: unit(end.unwrap_or(1))? })
}

fn day_time(start: Option<i32>, end: Option<i32>) -> Result<SparkType<'static>> {
    let unit = |number: i32| match number {
        0 => Ok(DayTimeUnit::Day),
        1 => Ok(DayTimeUnit::Hour),
        2 => Ok(DayTimeUnit::Minute),
        3 => Ok(DayTimeUnit::Second),
        _ => Err(invalid(&format!("day-time interval with unit {number}"))),
    };
    let start = unit(start.unwrap_or(0))?;
    Ok(SparkType::DayTimeInterval { start, end: unit(end.unwrap_or(3))? })
}

fn struct_from_proto(message: &data_type::Struct) -> Result<Fields> {
    let fields = message.fields.iter().map(|field| {
        let plain = part(&field.name, field.data_type.as_ref(), field.nullable)?;
        Ok(match field.metadata.as_deref() {
            None | Some("" | "{}") => plain,
            Some(json) => with_column_metadata(plain, json),
        })
    });
    fields.collect()
}

fn udt_from_proto(name: &str, message: &data_type::Udt, nullable: bool) -> Result<Field> {
    let storage = match (&message.sql_type, &message.jvm_class) {
        (Some(sql_type), _) => part("sql", Some(sql_type), true)?.data_type().clone(),
        (None, Some(class)) => {
            known_storage(class).ok_or_else(|| unsupported(format!("user-defined type {class} without its sql type")))?
        }
        (None, None) => return Err(invalid("a user-defined type without class and sql type")),
    };
    let udt = Udt {
        jvm_class: message.jvm_class.as_deref().filter(|class| !class.is_empty()),
        python_class: message.python_class.as_deref().filter(|class| !class.is_empty()),
        serialized_python_class: message.serialized_python_class.as_deref().filter(|class| !class.is_empty()),
        storage: &storage,
    };
    Ok(SparkType::Udt(udt).field(name, nullable))
}

/// The columns of a message of struct type.
pub fn schema_from_proto(message: &proto::DataType) -> Result<Schema> {
    match &message.kind {
        Some(Kind::Struct(message)) => Ok(Schema::new(struct_from_proto(message)?)),
        Some(Kind::Unparsed(unparsed)) => super::parse_ddl(&unparsed.data_type_string),
        _ => Err(invalid("a schema that is no struct")),
    }
}

/// A schema as a message of struct type.
pub fn schema_to_proto(schema: &Schema) -> proto::DataType {
    proto::DataType { kind: Some(struct_to_proto(schema.fields())) }
}

/// A field's type as a message. The field's own name, nullability and column metadata are not part of a type.
pub fn field_to_proto(field: &Field) -> proto::DataType {
    let kind = match SparkType::of(field) {
        SparkType::Null => Kind::Null(Default::default()),
        SparkType::Boolean => Kind::Boolean(Default::default()),
        SparkType::Byte => Kind::Byte(Default::default()),
        SparkType::Short => Kind::Short(Default::default()),
        SparkType::Integer => Kind::Integer(Default::default()),
        SparkType::Long => Kind::Long(Default::default()),
        SparkType::Float => Kind::Float(Default::default()),
        SparkType::Double => Kind::Double(Default::default()),
        SparkType::Decimal { precision, scale } => Kind::Decimal(data_type::Decimal {
            scale: Some(scale.into()),
            precision: Some(precision.into()),
            type_variation_reference: 0,
        }),
        SparkType::String => {
            Kind::String(data_type::String { collation: "UTF8_BINARY".into(), type_variation_reference: 0 })
        }
        SparkType::Char(length) => {
            Kind::Char(data_type::Char { length: length as i32, type_variation_reference: 0 })
        }
        SparkType::Varchar(length) => {
            Kind::VarChar(data_type::VarChar { length: length as i32, type_variation_reference: 0 })
        }
        SparkType::Binary => Kind::Binary(Default::default()),
        SparkType::Date => Kind::Date(Default::default()),
        SparkType::Timestamp => Kind::Timestamp(Default::default()),
        SparkType::TimestampNtz => Kind::TimestampNtz(Default::default()),
        SparkType::Time { precision } => {
            Kind::Time(data_type::Time { precision: Some(precision.into()), type_variation_reference: 0 })
        }
        SparkType::DayTimeInterval { start, end } => Kind::DayTimeInterval(data_type::DayTimeInterval {
            start_field: Some(start as i32),
            end_field: Some(end as i32),
            type_variation_reference: 0,
        }),
        SparkType::YearMonthInterval { start, end } => Kind::YearMonthInterval(data_type::YearMonthInterval {
            start_field: Some(start as i32),
            end_field: Some(end as i32),
            type_variation_reference: 0,
        }),
        SparkType::CalendarInterval => Kind::CalendarInterval(Default::default()),
        SparkType::Array(element) => Kind::Array(Box::new(data_type::Array {
            element_type: Some(Box::new(field_to_proto(element))),
            contains_null: element.is_nullable(),
            type_variation_reference: 0,
        })),
        SparkType::Map { key, value } => Kind::Map(Box::new(data_type::Map {
            key_type: Some(Box::new(field_to_proto(key))),
            value_type: Some(Box::new(field_to_proto(value))),
            value_contains_null: value.is_nullable(),
            type_variation_reference: 0,
        })),
        SparkType::Struct(fields) => struct_to_proto(fields),
        SparkType::Udt(udt) => udt_to_proto(&udt),
        SparkType::Foreign(data_type) => {
            Kind::Unparsed(data_type::Unparsed { data_type_string: data_type.to_string() })
        }
    };
    proto::DataType { kind: Some(kind) }
}

fn struct_to_proto(fields: &Fields) -> Kind {
    let fields = fields.iter().map(|field| data_type::StructField {
        name: field.name().clone(),
        data_type: Some(field_to_proto(field)),
        nullable: field.is_nullable(),
        metadata: column_metadata(field).filter(|json| *json != "{}").map(str::to_string),
    });
    Kind::Struct(data_type::Struct { fields: fields.collect(), type_variation_reference: 0 })
}

/// Types of the JVM go out by class alone, as Spark sends them; types of Python carry their storage.
fn udt_to_proto(udt: &Udt<'_>) -> Kind {
    let sql_type = udt.jvm_class.is_none().then(|| {
        let storage = Field::new("sql", udt.storage.clone(), true);
        Box::new(field_to_proto(&storage))
    });
    Kind::Udt(Box::new(data_type::Udt {
        r#type: "udt".into(),
        jvm_class: udt.jvm_class.map(str::to_string),
        python_class: udt.python_class.map(str::to_string),
        serialized_python_class: udt.serialized_python_class.map(str::to_string),
        sql_type,
    }))
}

fn invalid(what: &str) -> Error {
    Error::InvalidDataType { text: what.into(), message: "not a data type".into() }
}

fn unsupported(feature: String) -> Error {
    Error::Unsupported { feature }
}
