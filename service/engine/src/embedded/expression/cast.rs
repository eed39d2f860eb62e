//! `CAST` with Spark's rules: which types convert, how each value does, and what a value that cannot does.

pub mod number;
pub mod text;
pub mod time;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StructArray, new_null_array};
use arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Cast, Expr};

use super::Typed;
use super::coercion::{is_float, is_integral, is_numeric};
use super::typed::same_type;
use super::zone::Zone;
use crate::data_type::{simple_string, sql_name};
use crate::embedded::functions::kernel::Kernel;
use crate::{Conf, Error, Result, show};

/// What a value that cannot be converted does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is an error.
    Ansi,
    /// It becomes null.
    Try,
    /// It becomes null, or wraps around, as before Spark 4.
    Legacy,
}

impl Mode {
    pub fn of(conf: &Conf) -> Mode {
        if conf.ansi() { Mode::Ansi } else { Mode::Legacy }
    }
}

/// Casts to a plain type.
pub fn cast_to(value: Typed, target: &DataType, mode: Mode, conf: &Conf) -> Result<Typed> {
    let field = Field::new("", target.clone(), true);
    cast(value, &field, mode, conf)
}

/// Casts to a field's type; the result has the field's user-defined type.
pub fn cast(value: Typed, target: &Field, mode: Mode, conf: &Conf) -> Result<Typed> {
    let source = value.field.clone();
    if !can_cast(source.data_type(), target.data_type(), mode) {
        return Err(Error::DatatypeMismatch {
            kind: "CAST_WITHOUT_SUGGESTION",
            expression: format!("CAST({} AS {})", value.expr, sql_name(target)),
            detail: format!("cannot cast {} to {}", sql_name(&source), sql_name(target)),
        });
    }
    if source.data_type() == target.data_type() {
        let field = target.clone().with_nullable(source.is_nullable());
        let field = if field.metadata().is_empty() { field.with_metadata(source.metadata().clone()) } else { field };
        return Ok(Typed { expr: value.expr, field: Arc::new(field) });
    }
    let output = Arc::new(target.clone().with_nullable(source.is_nullable() || gives_null(&source, target, mode)));
    if widens(source.data_type(), target.data_type()) && value.value().is_none() {
        let cast = Cast::new(Box::new(value.expr), target.data_type().clone());
        return Ok(Typed { expr: Expr::Cast(cast), field: output });
    }
    if let Some(literal) = value.value() {
        // A literal is cast now, so that plans see it (pushed-down filters); one that cannot be is left to the rows.
        let array = literal.to_array()?;
        if let Ok(cast) = cast_array(&array, &source, target, mode, conf) {
            let value = ScalarValue::try_from_array(&cast, 0)?;
            let nullable = value.is_null();
            let field = Arc::new(output.as_ref().clone().with_nullable(nullable));
            return Ok(Typed { expr: Expr::Literal(value, None), field });
        }
    }
    let name = format!(
        "cast({} as {}, {mode:?}, {})",
        simple_string(&source),
        simple_string(target),
        conf.session_time_zone().name()
    );
    let kernel = Kernel { output, raises: mode == Mode::Ansi, ..Kernel::new(name, target.data_type().clone(), true) };
    let (target, conf) = (target.clone(), conf.clone());
    Ok(kernel.call(vec![value], move |arguments, _| cast_array(&arguments[0], &source, &target, mode, &conf)))
}

/// Conversions that lose nothing and that DataFusion does as Spark: it can push filters through these.
fn widens(source: &DataType, target: &DataType) -> bool {
    let wider_integer =
        is_integral(source) && is_integral(target) && source.primitive_width() <= target.primitive_width();
    wider_integer
        || (is_integral(source) && is_float(target))
        || (source == &DataType::Float32 && target == &DataType::Float64)
}

/// Whether a value that is not null can become null.
fn gives_null(source: &Field, target: &Field, mode: Mode) -> bool {
    let (source, target) = (source.data_type(), target.data_type());
    if mode == Mode::Ansi || target == &DataType::Utf8 || widens(source, target) {
        return source == &DataType::Null;
    }
    !matches!((source, target), (DataType::Boolean, _) | (DataType::Date32, DataType::Timestamp(_, _)))
}

/// Whether Spark lets the types be cast at all.
fn can_cast(source: &DataType, target: &DataType, mode: Mode) -> bool {
    use DataType::{Binary, Boolean, Date32, Duration, Interval, List, Map, Null, Struct, Timestamp, Utf8};
    let strict = mode != Mode::Legacy;
    match (source, target) {
        (Null, _) => true,
        (_, Utf8) => true,
        _ if same_type(source, target) => true,
        (Utf8, Binary | Boolean | Date32 | Timestamp(_, _) | Interval(_) | Duration(_)) => true,
        (Utf8, target) => is_numeric(target),
        (Binary, target) => !strict && is_integral(target),
        (Boolean, Timestamp(_, Some(_))) => !strict,
        (Boolean, target) => is_numeric(target),
        (Date32, Timestamp(_, _)) => true,
        (Date32, target) => !strict && (is_numeric(target) || target == &Boolean),
        (Timestamp(_, _), Date32 | Timestamp(_, _)) => true,
        (Timestamp(_, Some(_)), target) => is_numeric(target) || (!strict && target == &Boolean),
        (source, Timestamp(_, Some(_))) if is_numeric(source) => true,
        (source, Boolean) if is_numeric(source) => true,
        (source, Binary) if is_integral(source) => !strict,
        (source, target) if is_numeric(source) => is_numeric(target),
        (List(source), List(target)) => can_cast(source.data_type(), target.data_type(), mode),
        (Map(source, _), Map(target, _)) => can_cast(source.data_type(), target.data_type(), mode),
        (Struct(source), Struct(target)) => {
            source.len() == target.len()
                && source.iter().zip(target).all(|(s, t)| can_cast(s.data_type(), t.data_type(), mode))
        }
        _ => false,
    }
}

/// Casts a column.
///
/// # Errors
/// [`Error::Row`] for a value that cannot be converted, in ANSI mode.
pub fn cast_array(array: &ArrayRef, source: &Field, target: &Field, mode: Mode, conf: &Conf) -> Result<ArrayRef> {
    let (from, to) = (source.data_type(), target.data_type());
    if from == to {
        return Ok(array.clone());
    }
    match (from, to) {
        (DataType::Null, _) => Ok(new_null_array(to, array.len())),
        (_, DataType::Utf8) if from != &DataType::Binary => Ok(Arc::new(show::string_column(array, source, conf)?)),
        (DataType::Binary, DataType::Utf8) => text::from_binary(array),
        (DataType::Utf8, DataType::Date32 | DataType::Timestamp(_, _)) => time::from_text(array, to, mode, conf),
        (DataType::Utf8, DataType::Binary) => Ok(arrow::compute::cast(array, to)?),
        (DataType::Utf8, DataType::Boolean) => text::to_boolean(array, mode),
        (DataType::Utf8, _) if is_numeric(to) => text::to_number(array, to, mode),
        (DataType::Boolean, _) if is_numeric(to) => {
            let integers = arrow::compute::cast(array, &DataType::Int32)?;
            number::convert(&integers, to, mode)
        }
        (_, DataType::Boolean) if is_numeric(from) => {
            let doubles = number::convert(array, &DataType::Float64, mode)?;
            let truths = doubles.as_primitive::<Float64Type>().iter().map(|value| value.map(|value| value != 0.0));
            Ok(Arc::new(truths.collect::<BooleanArray>()))
        }
        _ if is_numeric(from) && is_numeric(to) => number::convert(array, to, mode),
        (DataType::Date32 | DataType::Timestamp(_, _), _) | (_, DataType::Timestamp(_, _)) => {
            time::convert(array, from, to, mode, &Zone::of(conf))
        }
        (DataType::List(from_element), DataType::List(to_element)) => {
            let list = array.as_list::<i32>();
            let values = cast_array(list.values(), from_element, to_element, mode, conf)?;
            let element = nullable_if(to_element, values.null_count() > 0);
            let cast = ListArray::try_new(element, list.offsets().clone(), values, list.nulls().cloned())?;
            retyped(Arc::new(cast), to)
        }
        (DataType::Struct(from_fields), DataType::Struct(to_fields)) => {
            let rows = array.as_struct();
            let mut columns = Vec::with_capacity(to_fields.len());
            for ((column, from), to) in rows.columns().iter().zip(from_fields).zip(to_fields) {
                columns.push(cast_array(column, from, to, mode, conf)?);
            }
            Ok(Arc::new(StructArray::try_new(to_fields.clone(), columns, rows.nulls().cloned())?))
        }
        (DataType::Map(from_entries, _), DataType::Map(to_entries, sorted)) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let entries = cast_array(&entries, from_entries, to_entries, mode, conf)?;
            let entries = entries.as_struct().clone();
            let nulls = map.nulls().cloned();
            Ok(Arc::new(MapArray::try_new(to_entries.clone(), map.offsets().clone(), entries, nulls, *sorted)?))
        }
        _ => Err(Error::Unsupported { feature: format!("cast of {} to {}", sql_name(source), sql_name(target)) }),
    }
}

fn nullable_if(field: &Arc<Field>, has_nulls: bool) -> Arc<Field> {
    if has_nulls { Arc::new(field.as_ref().clone().with_nullable(true)) } else { field.clone() }
}

/// A list whose element turned nullable (a legacy cast gave nulls) under the type that was promised.
fn retyped(array: ArrayRef, promised: &DataType) -> Result<ArrayRef> {
    if array.data_type() == promised { Ok(array) } else { Ok(arrow::compute::cast(&array, promised)?) }
}

/// CAST_INVALID_INPUT.
pub fn invalid_input(text: &str, source: &str, target: &DataType) -> Error {
    let target = sql_name(&Field::new("", target.clone(), true));
    Error::Row {
        class: "CAST_INVALID_INPUT",
        message: format!(
            "The value '{text}' of the type \"{source}\" cannot be cast to \"{target}\" because it is malformed. \
             Correct the value as per the syntax, or change its target type. Use `try_cast` to tolerate malformed \
             input and return NULL instead."
        ),
        parameters: vec![
            ("expression", format!("'{text}'")),
            ("sourceType", format!("\"{source}\"")),
            ("targetType", format!("\"{target}\"")),
        ],
    }
}
