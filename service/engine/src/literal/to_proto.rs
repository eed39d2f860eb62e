//! A value as a literal of a message.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Decimal128Type, DecimalType, Field, Float64Type, Int32Type};
use datafusion::common::ScalarValue;
use spark_connect_proto as proto;
use spark_connect_proto::expression::Literal;
use spark_connect_proto::expression::literal::{self, LiteralType, specialized_array};
use udt::field::{MATRIX_JVM_CLASS, VECTOR_JVM_CLASS};

use crate::data_type::{SparkType, field_to_proto};
use crate::{Error, Result};

/// The literal that says a value of a field's type. Arrays carry their element type inside, which clients of all
/// versions read.
///
/// # Errors
/// [`Error::Unsupported`] for a value that is not of the field's Spark type or of none.
pub fn literal_from_scalar(scalar: &ScalarValue, field: &Field) -> Result<Literal> {
    let literal_type = if scalar.is_null() { LiteralType::Null(field_to_proto(field)) } else { value(scalar, field)? };
    Ok(Literal { data_type: None, literal_type: Some(literal_type) })
}

fn value(scalar: &ScalarValue, field: &Field) -> Result<LiteralType> {
    Ok(match scalar {
        ScalarValue::Boolean(Some(value)) => LiteralType::Boolean(*value),
        ScalarValue::Int8(Some(value)) => LiteralType::Byte((*value).into()),
        ScalarValue::Int16(Some(value)) => LiteralType::Short((*value).into()),
        ScalarValue::Int32(Some(value)) => LiteralType::Integer(*value),
        ScalarValue::Int64(Some(value)) => LiteralType::Long(*value),
        ScalarValue::Float32(Some(value)) => LiteralType::Float(*value),
        ScalarValue::Float64(Some(value)) => LiteralType::Double(*value),
        ScalarValue::Decimal128(Some(value), precision, scale) => LiteralType::Decimal(literal::Decimal {
            value: Decimal128Type::format_decimal(*value, *precision, *scale),
            precision: Some((*precision).into()),
            scale: Some((*scale).into()),
        }),
        ScalarValue::Utf8(Some(value)) | ScalarValue::LargeUtf8(Some(value)) | ScalarValue::Utf8View(Some(value)) => {
            LiteralType::String(value.clone())
        }
        ScalarValue::Binary(Some(value))
        | ScalarValue::LargeBinary(Some(value))
        | ScalarValue::BinaryView(Some(value))
        | ScalarValue::FixedSizeBinary(_, Some(value)) => LiteralType::Binary(value.clone().into()),
        ScalarValue::Date32(Some(value)) => LiteralType::Date(*value),
        ScalarValue::TimestampMicrosecond(Some(value), Some(_)) => LiteralType::Timestamp(*value),
        ScalarValue::TimestampMicrosecond(Some(value), None) => LiteralType::TimestampNtz(*value),
        ScalarValue::Time64Nanosecond(Some(nano)) => {
            let precision = match SparkType::of(field) {
                SparkType::Time { precision } => Some(precision.into()),
                _ => None,
            };
            LiteralType::Time(literal::Time { nano: *nano, precision })
        }
        ScalarValue::DurationMicrosecond(Some(value)) => LiteralType::DayTimeInterval(*value),
        ScalarValue::IntervalYearMonth(Some(value)) => LiteralType::YearMonthInterval(*value),
        ScalarValue::IntervalMonthDayNano(Some(value)) => {
            LiteralType::CalendarInterval(literal::CalendarInterval {
                months: value.months,
                days: value.days,
                microseconds: value.nanoseconds / 1000,
            })
        }
        ScalarValue::List(list) => array(&list.value(0), field)?,
        ScalarValue::LargeList(list) => array(&list.value(0), field)?,
        ScalarValue::FixedSizeList(list) => array(&list.value(0), field)?,
        ScalarValue::Map(map) => map_literal(&map.value(0), field)?,
        ScalarValue::Struct(structure) => struct_literal(structure.as_ref(), field)?,
        ScalarValue::Dictionary(_, value_scalar) => value(value_scalar, field)?,
        other => return Err(Error::Unsupported { feature: format!("a literal of type {}", other.data_type()) }),
    })
}

fn literals(array: &dyn Array, field: &Field) -> Result<Vec<Literal>> {
    (0..array.len()).map(|row| literal_from_scalar(&ScalarValue::try_from_array(array, row)?, field)).collect()
}

#[expect(deprecated, reason = "the only place where pyspark reads the element type")]
fn array(values: &dyn Array, field: &Field) -> Result<LiteralType> {
    let SparkType::Array(element) = SparkType::of(field) else {
        return Err(mismatch("an array", field));
    };
    Ok(LiteralType::Array(literal::Array {
        element_type: Some(field_to_proto(element)),
        elements: literals(values, element)?,
    }))
}

#[expect(deprecated, reason = "the only place where pyspark reads the types")]
fn map_literal(entries: &arrow::array::StructArray, field: &Field) -> Result<LiteralType> {
    let SparkType::Map { key, value } = SparkType::of(field) else {
        return Err(mismatch("a map", field));
    };
    Ok(LiteralType::Map(literal::Map {
        key_type: Some(field_to_proto(key)),
        value_type: Some(field_to_proto(value)),
        keys: literals(entries.column(0), key)?,
        values: literals(entries.column(1), value)?,
    }))
}

#[expect(deprecated, reason = "the only place where pyspark reads the type")]
fn struct_literal(structure: &arrow::array::StructArray, field: &Field) -> Result<LiteralType> {
    let is_linalg = match SparkType::of(field) {
        SparkType::Udt(udt) => matches!(udt.jvm_class, Some(VECTOR_JVM_CLASS | MATRIX_JVM_CLASS)),
        SparkType::Struct(_) => false,
        _ => return Err(mismatch("a struct", field)),
    };
    let parts = structure.fields().iter().zip(structure.columns());
    let elements = parts.map(|(part, column)| match column.as_list_opt::<i32>() {
        // Clients read the arrays of vectors and matrices in their compact form only.
        Some(list) if is_linalg && list.is_valid(0) => compact_array(list.value(0).as_ref()),
        _ if is_linalg && column.is_null(0) => Ok(Literal {
            data_type: None,
            literal_type: Some(LiteralType::Null(proto::DataType {
                kind: Some(proto::data_type::Kind::Null(Default::default())),
            })),
        }),
        _ => literal_from_scalar(&ScalarValue::try_from_array(column, 0)?, part),
    });
    Ok(LiteralType::Struct(literal::Struct {
        struct_type: Some(field_to_proto(field)),
        elements: elements.collect::<Result<_>>()?,
    }))
}

fn compact_array(values: &dyn Array) -> Result<Literal> {
    let value_type = if let Some(ints) = values.as_primitive_opt::<Int32Type>() {
        specialized_array::ValueType::Ints(proto::Ints { values: ints.values().to_vec() })
    } else if let Some(doubles) = values.as_primitive_opt::<Float64Type>() {
        specialized_array::ValueType::Doubles(proto::Doubles { values: doubles.values().to_vec() })
    } else {
        return Err(Error::Bug { invariant: "vectors and matrices hold ints and doubles".into() });
    };
    let array = literal::SpecializedArray { value_type: Some(value_type) };
    Ok(Literal { data_type: None, literal_type: Some(LiteralType::SpecializedArray(array)) })
}

fn mismatch(what: &str, field: &Field) -> Error {
    Error::Bug { invariant: format!("the value of column {} is {what}, its type {}", field.name(), field.data_type()) }
}
