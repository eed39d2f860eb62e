//! A literal of a message as a value and the field that types it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, MapArray, StructArray, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalMonthDayNano};
use datafusion::common::ScalarValue;
use spark_connect_proto as proto;
use spark_connect_proto::expression::Literal;
use spark_connect_proto::expression::literal::{self, LiteralType, specialized_array};

use crate::data_type::{SparkType, field_from_proto};
use crate::{Error, Result};

/// The value of a literal, and an unnamed field with its type. Only null literals are nullable.
///
/// # Errors
/// [`Error::InvalidPlan`] for literals that contradict their type, [`Error::Unsupported`] for types this engine lacks.
pub fn scalar_from_literal(literal: &Literal) -> Result<(ScalarValue, Field)> {
    let declared = match &literal.data_type {
        Some(data_type) if data_type.kind.is_some() => Some(field_from_proto("", data_type, true)?),
        _ => None,
    };
    let (scalar, field) = value(literal, declared.as_ref(), 0)?;
    let nullable = scalar.is_null();
    Ok((scalar, field.with_nullable(nullable)))
}

/// Deeper literals than any client builds are refused before they exhaust the stack.
const DEPTH_MAX: usize = 100;

/// Reads a literal. Inside a literal of declared type, `expected` is the type of this part.
fn value(literal: &Literal, expected: Option<&Field>, depth: usize) -> Result<(ScalarValue, Field)> {
    if depth > DEPTH_MAX {
        return invalid(format!("a literal nests deeper than {DEPTH_MAX}"));
    }
    let Some(literal_type) = &literal.literal_type else {
        return invalid("a literal without a value");
    };
    let (scalar, field) = match literal_type {
        LiteralType::Null(data_type) => {
            let field = match (expected, &data_type.kind) {
                (Some(expected), _) => expected.clone(),
                (None, Some(_)) => field_from_proto("", data_type, true)?,
                (None, None) => SparkType::Null.field("", true),
            };
            return Ok((ScalarValue::try_from(field.data_type())?, field));
        }
        LiteralType::Array(array) => return array_value(array, expected, depth),
        LiteralType::Map(map) => return map_value(map, expected, depth),
        LiteralType::Struct(structure) => return struct_value(structure, expected, depth),
        LiteralType::SpecializedArray(array) => return specialized_value(array, expected),
        atomic => atomic_value(atomic)?,
    };
    match expected {
        Some(expected) if expected.data_type() != field.data_type() => {
            let cast = scalar.cast_to(expected.data_type()).map_err(|error| Error::InvalidPlan {
                detail: format!("literal {scalar} is no {}: {error}", expected.data_type()),
            })?;
            Ok((cast, expected.clone()))
        }
        Some(expected) => Ok((scalar, expected.clone())),
        None => Ok((scalar, field)),
    }
}

fn atomic_value(literal_type: &LiteralType) -> Result<(ScalarValue, Field)> {
    let small = |number: i32| Error::InvalidPlan { detail: format!("literal {number} does not fit its type") };
    let (scalar, spark_type) = match literal_type {
        LiteralType::Binary(bytes) => (ScalarValue::Binary(Some(bytes.to_vec())), SparkType::Binary),
        LiteralType::Boolean(boolean) => (ScalarValue::Boolean(Some(*boolean)), SparkType::Boolean),
        LiteralType::Byte(byte) => {
            (ScalarValue::Int8(Some(i8::try_from(*byte).map_err(|_| small(*byte))?)), SparkType::Byte)
        }
        LiteralType::Short(short) => {
            (ScalarValue::Int16(Some(i16::try_from(*short).map_err(|_| small(*short))?)), SparkType::Short)
        }
        LiteralType::Integer(integer) => (ScalarValue::Int32(Some(*integer)), SparkType::Integer),
        LiteralType::Long(long) => (ScalarValue::Int64(Some(*long)), SparkType::Long),
        LiteralType::Float(float) => (ScalarValue::Float32(Some(*float)), SparkType::Float),
        LiteralType::Double(double) => (ScalarValue::Float64(Some(*double)), SparkType::Double),
        LiteralType::Decimal(decimal) => decimal_value(decimal)?,
        LiteralType::String(string) => (ScalarValue::Utf8(Some(string.clone())), SparkType::String),
        LiteralType::Date(days) => (ScalarValue::Date32(Some(*days)), SparkType::Date),
        LiteralType::Timestamp(micros) => {
            (ScalarValue::TimestampMicrosecond(Some(*micros), Some("UTC".into())), SparkType::Timestamp)
        }
        LiteralType::TimestampNtz(micros) => {
            (ScalarValue::TimestampMicrosecond(Some(*micros), None), SparkType::TimestampNtz)
        }
        LiteralType::CalendarInterval(interval) => {
            let Some(nanoseconds) = interval.microseconds.checked_mul(1000) else {
                return unsupported(format!("an interval of {} microseconds", interval.microseconds));
            };
            let interval = IntervalMonthDayNano { months: interval.months, days: interval.days, nanoseconds };
            (ScalarValue::IntervalMonthDayNano(Some(interval)), SparkType::CalendarInterval)
        }
        LiteralType::YearMonthInterval(months) => {
            let scalar = ScalarValue::IntervalYearMonth(Some(*months));
            return Ok((scalar.clone(), Field::new("", scalar.data_type(), true)));
        }
        LiteralType::DayTimeInterval(micros) => {
            let scalar = ScalarValue::DurationMicrosecond(Some(*micros));
            return Ok((scalar.clone(), Field::new("", scalar.data_type(), true)));
        }
        LiteralType::Time(time) => {
            let precision = match time.precision.unwrap_or(6) {
                precision @ 0..=6 => precision as u8,
                precision => return unsupported(format!("type time({precision})")),
            };
            (ScalarValue::Time64Nanosecond(Some(time.nano)), SparkType::Time { precision })
        }
        LiteralType::TimestampNtzNanos(_) | LiteralType::TimestampLtzNanos(_) => {
            return unsupported("a timestamp with nanoseconds");
        }
        LiteralType::Null(_)
        | LiteralType::Array(_)
        | LiteralType::Map(_)
        | LiteralType::Struct(_)
        | LiteralType::SpecializedArray(_) => {
            return Err(Error::Bug { invariant: "nested literals are read before atomic ones".into() });
        }
    };
    Ok((scalar, spark_type.field("", true)))
}

/// The type is as wide as the value needs, and at least as wide as declared: pyspark declares `decimal(10,0)` for all.
fn decimal_value(decimal: &literal::Decimal) -> Result<(ScalarValue, SparkType<'static>)> {
    let Some((unscaled, digits, scale)) = parse_decimal(&decimal.value) else {
        return invalid(format!("{} is no decimal of at most 38 digits", decimal.value));
    };
    let wanted_scale = scale.max(decimal.scale.unwrap_or(0).into());
    let precision = digits.max(decimal.precision.unwrap_or(0).into()).max(wanted_scale);
    let widened = 10i128.checked_pow((wanted_scale - scale) as u32).and_then(|factor| unscaled.checked_mul(factor));
    match widened {
        Some(unscaled) if precision <= 38 && wanted_scale <= 38 => {
            let (precision, scale) = (precision as u8, wanted_scale as i8);
            let scalar = ScalarValue::Decimal128(Some(unscaled), precision, scale);
            Ok((scalar, SparkType::Decimal { precision, scale }))
        }
        _ => invalid(format!("{} does not fit decimal({precision},{wanted_scale})", decimal.value)),
    }
}

/// Unscaled value, number of digits and scale of a number such as `-12.50` or `1E+3`. The scale is never negative.
fn parse_decimal(text: &str) -> Option<(i128, i64, i64)> {
    let (mantissa, exponent) = match text.trim().split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text.trim(), 0),
    };
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let significant = all.trim_start_matches('0');
    let mut unscaled = if significant.is_empty() { 0 } else { significant.parse::<i128>().ok()? };
    let mut num_digits = significant.len().max(1) as i64;
    let mut scale = (fraction.len() as i64).checked_sub(exponent)?;
    if scale < 0 {
        unscaled = unscaled.checked_mul(10i128.checked_pow(u32::try_from(-scale).ok()?)?)?;
        num_digits = if unscaled == 0 { 1 } else { num_digits - scale };
        scale = 0;
    }
    (num_digits <= 38 && scale <= 38).then_some((sign * unscaled, num_digits.max(scale), scale))
}

#[expect(deprecated, reason = "clients before 4.1, and pyspark still, say the element type there")]
fn array_value(array: &literal::Array, expected: Option<&Field>, depth: usize) -> Result<(ScalarValue, Field)> {
    let declared = match (expected.map(|field| (SparkType::of(field), field)), &array.element_type) {
        (Some((SparkType::Array(element), _)), _) => Some(element.clone()),
        (Some((_, field)), _) => return invalid(format!("an array where {} is expected", field.data_type())),
        (None, Some(element)) if element.kind.is_some() => Some(Arc::new(field_from_proto("element", element, true)?)),
        (None, _) => None,
    };
    let (values, element) = elements(&array.elements, declared, "element", depth)?;
    let element = Arc::new(element.with_nullable(true));
    let field = match expected {
        Some(expected) => expected.clone(),
        None => SparkType::Array(&element).field("", true),
    };
    Ok((list_of(&field, values)?, field))
}

/// Elements of one type: the declared one, or that of the first element.
fn elements(
    literals: &[Literal],
    declared: Option<FieldRef>,
    name: &str,
    depth: usize,
) -> Result<(ArrayRef, Field)> {
    let mut element = declared.map(|field| field.as_ref().clone());
    let mut scalars = Vec::with_capacity(literals.len());
    for literal in literals {
        let (scalar, field) = value(literal, element.as_ref(), depth + 1)?;
        element.get_or_insert(field);
        scalars.push(scalar);
    }
    let element = element.unwrap_or_else(|| SparkType::Null.field(name, true)).with_name(name);
    let values = match scalars.is_empty() {
        true => new_empty_array(element.data_type()),
        false => ScalarValue::iter_to_array(scalars)?,
    };
    Ok((values, element))
}

fn list_of(field: &Field, values: ArrayRef) -> Result<ScalarValue> {
    let DataType::List(element) = field.data_type() else {
        return invalid(format!("an array where {} is expected", field.data_type()));
    };
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    let list = ListArray::try_new(element.clone(), offsets, values, None)?;
    Ok(ScalarValue::List(Arc::new(list)))
}

#[expect(deprecated, reason = "clients before 4.1, and pyspark still, say the types there")]
fn map_value(map: &literal::Map, expected: Option<&Field>, depth: usize) -> Result<(ScalarValue, Field)> {
    if map.keys.len() != map.values.len() {
        return invalid(format!("a map of {} keys and {} values", map.keys.len(), map.values.len()));
    }
    let declared = |name: &str, data_type: &Option<proto::DataType>| -> Result<Option<FieldRef>> {
        match data_type {
            Some(data_type) if data_type.kind.is_some() => {
                Ok(Some(Arc::new(field_from_proto(name, data_type, true)?)))
            }
            _ => Ok(None),
        }
    };
    let (key, value) = match expected.map(|field| (SparkType::of(field), field)) {
        Some((SparkType::Map { key, value }, _)) => (Some(key.clone()), Some(value.clone())),
        Some((_, field)) => return invalid(format!("a map where {} is expected", field.data_type())),
        None => (declared("key", &map.key_type)?, declared("value", &map.value_type)?),
    };
    let (keys, key) = elements(&map.keys, key, "key", depth)?;
    let (values, value) = elements(&map.values, value, "value", depth)?;
    let field = match expected {
        Some(expected) => expected.clone(),
        None => SparkType::Map { key: &Arc::new(key), value: &Arc::new(value.with_nullable(true)) }.field("", true),
    };
    let DataType::Map(entries_field, is_sorted) = field.data_type() else {
        return invalid("a map literal without a map type");
    };
    let DataType::Struct(entry_fields) = entries_field.data_type() else {
        return Err(Error::Bug { invariant: "a map's entries are structs".into() });
    };
    let offsets = OffsetBuffer::from_lengths([keys.len()]);
    let entries = StructArray::try_new(entry_fields.clone(), vec![keys, values], None)?;
    let array = MapArray::try_new(entries_field.clone(), offsets, entries, None, *is_sorted)?;
    Ok((ScalarValue::Map(Arc::new(array)), field))
}

#[expect(deprecated, reason = "pyspark's ML params say the type there")]
fn struct_value(structure: &literal::Struct, expected: Option<&Field>, depth: usize) -> Result<(ScalarValue, Field)> {
    let declared = match (expected, &structure.struct_type) {
        (Some(expected), _) => Some(expected.clone()),
        (None, Some(data_type)) if data_type.kind.is_some() => Some(field_from_proto("", data_type, true)?),
        (None, _) => None,
    };
    // A user-defined type is a struct under its mark.
    let expected_fields = match declared.as_ref().map(|field| field.data_type()) {
        Some(DataType::Struct(fields)) => Some(fields.clone()),
        Some(other) => return invalid(format!("a struct where {other} is expected")),
        None => None,
    };
    if let Some(fields) = &expected_fields
        && fields.len() != structure.elements.len()
    {
        return invalid(format!("a struct of {} elements, its type has {}", structure.elements.len(), fields.len()));
    }
    let mut fields = Vec::with_capacity(structure.elements.len());
    let mut columns = Vec::with_capacity(structure.elements.len());
    for (position, literal) in structure.elements.iter().enumerate() {
        let expected = expected_fields.as_ref().map(|fields| fields[position].as_ref());
        let (scalar, field) = value(literal, expected, depth + 1)?;
        fields.push(if expected.is_some() { field } else { field.with_name(format!("col{}", position + 1)) });
        columns.push(scalar.to_array()?);
    }
    let fields = expected_fields.unwrap_or_else(|| Fields::from(fields));
    let array = if fields.is_empty() {
        StructArray::new_empty_fields(1, None)
    } else {
        StructArray::try_new(fields.clone(), columns, None)?
    };
    let field = declared.unwrap_or_else(|| SparkType::Struct(&fields).field("", true));
    Ok((ScalarValue::Struct(Arc::new(array)), field))
}

fn specialized_value(array: &literal::SpecializedArray, expected: Option<&Field>) -> Result<(ScalarValue, Field)> {
    use arrow::array::{BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, StringArray};
    use specialized_array::ValueType;
    let (values, element): (ArrayRef, SparkType<'_>) = match &array.value_type {
        Some(ValueType::Bools(bools)) => {
            (Arc::new(BooleanArray::from(bools.values.clone())), SparkType::Boolean)
        }
        Some(ValueType::Ints(ints)) => (Arc::new(Int32Array::from(ints.values.clone())), SparkType::Integer),
        Some(ValueType::Longs(longs)) => (Arc::new(Int64Array::from(longs.values.clone())), SparkType::Long),
        Some(ValueType::Floats(floats)) => (Arc::new(Float32Array::from(floats.values.clone())), SparkType::Float),
        Some(ValueType::Doubles(doubles)) => (Arc::new(Float64Array::from(doubles.values.clone())), SparkType::Double),
        Some(ValueType::Strings(strings)) => (Arc::new(StringArray::from(strings.values.clone())), SparkType::String),
        None => return invalid("a specialized array without values"),
    };
    match expected {
        Some(expected) => {
            let DataType::List(wanted) = expected.data_type() else {
                return invalid(format!("an array where {} is expected", expected.data_type()));
            };
            let values = arrow::compute::cast(&values, wanted.data_type())?;
            Ok((list_of(expected, values)?, expected.clone()))
        }
        None => {
            let element = Arc::new(element.field("element", false));
            let field = SparkType::Array(&element).field("", true);
            Ok((list_of(&field, values)?, field))
        }
    }
}

fn invalid<T>(detail: impl Into<String>) -> Result<T> {
    Err(Error::InvalidPlan { detail: detail.into() })
}

fn unsupported<T>(feature: impl Into<String>) -> Result<T> {
    Err(Error::Unsupported { feature: feature.into() })
}
