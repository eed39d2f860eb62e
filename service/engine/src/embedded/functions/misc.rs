//! Structs, errors raised on purpose, and facts about the session.

use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray, new_null_array};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use spark_connect_proto::expression::ExprType;

use super::kernel::Kernel;
use super::{Call, Function, function};
use crate::embedded::expression::Typed;
use crate::embedded::expression::extract::struct_where;
use crate::embedded::expression::parse_name;
use crate::{Error, Result};

pub const FUNCTIONS: &[Function] = &[
    function("struct", 1, usize::MAX, structure),
    function("named_struct", 2, usize::MAX, named_struct),
    function("typeof", 1, 1, type_of),
    function("version", 0, 0, |_| Ok(Typed::literal(VERSION.into()))),
    function("uuid", 0, 0, uuid),
    function("raise_error", 1, 1, raise_error),
    function("assert_true", 1, 2, assert_true),
    function("current_user", 0, 0, |_| Ok(Typed::literal(user().into()))),
    function("user", 0, 0, |_| Ok(Typed::literal(user().into()))),
    function("session_user", 0, 0, |_| Ok(Typed::literal(user().into()))),
    function("current_catalog", 0, 0, |_| Ok(Typed::literal("spark_catalog".into()))),
    function("current_database", 0, 0, |_| Ok(Typed::literal("default".into()))),
    function("current_schema", 0, 0, |_| Ok(Typed::literal("default".into()))),
    function("boolean", 1, 1, |call| to_type(call, DataType::Boolean)),
    function("tinyint", 1, 1, |call| to_type(call, DataType::Int8)),
    function("smallint", 1, 1, |call| to_type(call, DataType::Int16)),
    function("int", 1, 1, |call| to_type(call, DataType::Int32)),
    function("bigint", 1, 1, |call| to_type(call, DataType::Int64)),
    function("float", 1, 1, |call| to_type(call, DataType::Float32)),
    function("double", 1, 1, |call| to_type(call, DataType::Float64)),
    function("string", 1, 1, |call| to_type(call, DataType::Utf8)),
    function("binary", 1, 1, |call| to_type(call, DataType::Binary)),
    function("decimal", 1, 1, |call| to_type(call, DataType::Decimal128(10, 0))),
];

/// The version of Spark whose behaviour this engine has.
const VERSION: &str = "4.1.0";

fn user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "phalanx".into())
}

fn to_type(mut call: Call<'_>, data_type: DataType) -> Result<Typed> {
    let [value] = call.take()?;
    call.cast(value, &data_type)
}

/// `struct(a, b + 1, ...)`: a field has its column's or alias's name, else `col1`, `col2`, ...
fn structure(mut call: Call<'_>) -> Result<Typed> {
    let arguments = std::mem::take(&mut call.arguments);
    let expressions = match &call.expression.expr_type {
        Some(ExprType::UnresolvedFunction(function)) => &function.arguments[..],
        _ => &[],
    };
    let mut members = Vec::with_capacity(arguments.len());
    for (at, argument) in arguments.into_iter().enumerate() {
        let name = match expressions.get(at).and_then(|expression| expression.expr_type.as_ref()) {
            Some(ExprType::UnresolvedAttribute(attribute)) => parse_name(&attribute.unparsed_identifier)?.pop(),
            Some(ExprType::Alias(alias)) => alias.name.first().cloned(),
            Some(ExprType::UnresolvedNamedLambdaVariable(variable)) => variable.name_parts.last().cloned(),
            _ => None,
        };
        members.push((name.unwrap_or_else(|| format!("col{}", at + 1)), argument));
    }
    Ok(struct_where(members, None))
}

fn named_struct(mut call: Call<'_>) -> Result<Typed> {
    let arguments = std::mem::take(&mut call.arguments);
    if arguments.len() % 2 == 1 {
        return Err(Error::WrongNumArgs {
            name: call.name.into(),
            expected: "2n (n > 0)".into(),
            found: arguments.len(),
        });
    }
    let mut members = Vec::with_capacity(arguments.len() / 2);
    for pair in arguments.chunks(2) {
        members.push((call.constant_string(&pair[0])?, pair[1].clone()));
    }
    Ok(struct_where(members, None))
}

fn type_of(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    Ok(Typed::literal(crate::data_type::simple_string(&value.field).into()))
}

fn uuid(_: Call<'_>) -> Result<Typed> {
    let kernel = Kernel { volatile: true, ..Kernel::new("uuid", DataType::Utf8, false) };
    Ok(kernel.call(vec![], |_, num_rows| {
        let uuids = (0..num_rows).map(|_| Some(uuid::Uuid::new_v4().to_string()));
        Ok(Arc::new(uuids.collect::<StringArray>()))
    }))
}

/// Fails with the message, for any row there is.
fn raise_error(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8])?;
    let kernel = Kernel { raises: true, volatile: true, ..Kernel::new("raise_error", DataType::Null, true) };
    Ok(kernel.call(call.arguments, |arguments, num_rows| {
        if num_rows == 0 {
            return Ok(new_null_array(&DataType::Null, 0));
        }
        let messages = arguments[0].as_string::<i32>();
        let message = if messages.is_null(0) { String::new() } else { messages.value(0).to_string() };
        Err(Error::UserRaised { message })
    }))
}

/// Null where the condition holds; fails where it does not.
fn assert_true(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.len() == 1 {
        let text = call.sql();
        let inner = text.strip_prefix("assert_true(").and_then(|text| text.strip_suffix(')')).unwrap_or(&text);
        call.arguments.push(Typed::literal(ScalarValue::from(format!("'{inner}' is not true!"))));
    }
    call.cast_arguments(&[DataType::Boolean, DataType::Utf8])?;
    let kernel = Kernel { raises: true, volatile: true, ..Kernel::new("assert_true", DataType::Null, true) };
    Ok(kernel.call(call.arguments, |arguments, num_rows| {
        let (truths, messages) = (arguments[0].as_boolean(), arguments[1].as_string::<i32>());
        for row in 0..num_rows {
            if truths.is_null(row) || !truths.value(row) {
                let message = if messages.is_null(row) { String::new() } else { messages.value(row).to_string() };
                return Err(Error::UserRaised { message });
            }
        }
        Ok(new_null_array(&DataType::Null, num_rows))
    }))
}
