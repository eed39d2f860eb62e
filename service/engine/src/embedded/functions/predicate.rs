//! Comparisons, boolean logic, null tests and patterns.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Expr, Operator, binary_expr};

use super::kernel::{self, Kernel};
use super::{Call, Function, function};
use crate::data_type::sql_name;
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::{common_type, compared};
use crate::embedded::expression::order::comparable;
use crate::{Error, Result};

pub const FUNCTIONS: &[Function] = &[
    function("==", 2, 2, |call| compare(call, Operator::Eq)),
    function("=", 2, 2, |call| compare(call, Operator::Eq)),
    function("!=", 2, 2, |call| compare(call, Operator::NotEq)),
    function("<>", 2, 2, |call| compare(call, Operator::NotEq)),
    function("<", 2, 2, |call| compare(call, Operator::Lt)),
    function("<=", 2, 2, |call| compare(call, Operator::LtEq)),
    function(">", 2, 2, |call| compare(call, Operator::Gt)),
    function(">=", 2, 2, |call| compare(call, Operator::GtEq)),
    function("<=>", 2, 2, |call| compare(call, Operator::IsNotDistinctFrom)),
    function("equal_null", 2, 2, |call| compare(call, Operator::IsNotDistinctFrom)),
    function("between", 3, 3, between),
    function("and", 2, usize::MAX, |call| junction(call, Operator::And)),
    function("or", 2, usize::MAX, |call| junction(call, Operator::Or)),
    function("not", 1, 1, not),
    function("!", 1, 1, not),
    function("in", 2, usize::MAX, is_in),
    function("isnull", 1, 1, |call| null_test(call, Expr::IsNull)),
    function("isnotnull", 1, 1, |call| null_test(call, Expr::IsNotNull)),
    function("isnan", 1, 1, is_nan),
    function("like", 2, 3, |call| super::string::pattern::like(call, false)),
    function("ilike", 2, 3, |call| super::string::pattern::like(call, true)),
    function("rlike", 2, 2, super::string::pattern::matches),
    function("regexp", 2, 2, super::string::pattern::matches),
    function("regexp_like", 2, 2, super::string::pattern::matches),
];

fn compare(mut call: Call<'_>, operator: Operator) -> Result<Typed> {
    let [left, right] = call.take()?;
    compared_by(&call, left, operator, right)
}

fn compared_by(call: &Call<'_>, left: Typed, operator: Operator, right: Typed) -> Result<Typed> {
    let Some(common) = compared(left.data_type(), right.data_type(), call.conf()) else {
        return Err(call.mismatch(
            "BINARY_OP_DIFF_TYPES",
            format!(
                "the left and right operands of the binary operator have incompatible types (\"{}\" and \"{}\")",
                sql_name(&left.field),
                sql_name(&right.field)
            ),
        ));
    };
    let is_map = matches!(common, DataType::Map(_, _));
    if is_map {
        return Err(call.mismatch("INVALID_ORDERING_TYPE", "maps cannot be compared".into()));
    }
    let nullable = operator != Operator::IsNotDistinctFrom && (left.nullable() || right.nullable());
    let (left, right) = (call.cast(left, &common)?, call.cast(right, &common)?);
    let (left, right) = comparable(left, right);
    Ok(Typed::new(binary_expr(left.expr, operator, right.expr), DataType::Boolean, nullable))
}

fn between(mut call: Call<'_>) -> Result<Typed> {
    let [value, low, high] = call.take()?;
    let above = compared_by(&call, value.clone(), Operator::GtEq, low)?;
    let below = compared_by(&call, value, Operator::LtEq, high)?;
    let nullable = above.nullable() || below.nullable();
    Ok(Typed::new(binary_expr(above.expr, Operator::And, below.expr), DataType::Boolean, nullable))
}

fn boolean(call: &Call<'_>, value: Typed) -> Result<Typed> {
    match value.data_type() {
        DataType::Boolean => Ok(value),
        DataType::Null => call.cast(value, &DataType::Boolean),
        _ => Err(call.mismatch(
            "BINARY_OP_WRONG_TYPE",
            format!("the operator requires the input type \"BOOLEAN\", not \"{}\"", sql_name(&value.field)),
        )),
    }
}

/// `AND` and `OR`. A right side that could fail is looked at only for rows that the left side leaves open.
fn junction(mut call: Call<'_>, operator: Operator) -> Result<Typed> {
    let arguments = std::mem::take(&mut call.arguments);
    let mut sides = Vec::with_capacity(arguments.len());
    for argument in arguments {
        sides.push(boolean(&call, argument)?);
    }
    let nullable = sides.iter().any(Typed::nullable);
    let mut parts = Vec::new();
    sides.into_iter().for_each(|side| flatten(side.expr, operator, &mut parts));
    let mut parts = parts.into_iter().rev();
    let Some(mut expr) = parts.next() else {
        return Err(Error::Bug { invariant: "a junction has sides".into() });
    };
    for left in parts {
        expr = if kernel::can_raise(&expr) { guarded(left, operator, expr) } else { binary_expr(left, operator, expr) };
    }
    Ok(Typed::new(expr, DataType::Boolean, nullable))
}

fn flatten(expr: Expr, operator: Operator, parts: &mut Vec<Expr>) {
    if let Some((left, rest)) = unguarded(&expr, operator) {
        flatten(left, operator, parts);
        return flatten(rest, operator, parts);
    }
    match expr {
        Expr::BinaryExpr(binary) if binary.op == operator => {
            flatten(*binary.left, operator, parts);
            flatten(*binary.right, operator, parts);
        }
        expr => parts.push(expr),
    }
}

/// The form [`guarded`] gives, taken apart again: then a chain stays as long as it is, rather than doubling.
fn unguarded(expr: &Expr, operator: Operator) -> Option<(Expr, Expr)> {
    let Expr::BinaryExpr(chosen) = expr else { return None };
    let (Operator::Eq, Expr::Case(case)) = (chosen.op, chosen.left.as_ref()) else { return None };
    let [(when, _)] = case.when_then_expr.as_slice() else { return None };
    let is_guard = match operator {
        Operator::And => matches!(when.as_ref(), Expr::IsFalse(_)),
        _ => matches!(when.as_ref(), Expr::IsTrue(_)),
    };
    let Some(Expr::Cast(cast)) = case.else_expr.as_deref() else { return None };
    match cast.expr.as_ref() {
        Expr::BinaryExpr(binary) if is_guard && binary.op == operator => {
            Some((binary.left.as_ref().clone(), binary.right.as_ref().clone()))
        }
        _ => None,
    }
}

fn guarded(left: Expr, operator: Operator, right: Expr) -> Expr {
    let decides = operator == Operator::Or;
    let test = if decides { Expr::IsTrue(Box::new(left.clone())) } else { Expr::IsFalse(Box::new(left.clone())) };
    let decided = Expr::Literal(ScalarValue::Boolean(Some(decides)), None);
    let both = binary_expr(left, operator, right);
    super::conditional::case(vec![(Box::new(test), Box::new(decided))], Some(Box::new(both)), &DataType::Boolean)
}

fn not(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    let value = boolean(&call, value)?;
    let nullable = value.nullable();
    Ok(Typed::new(Expr::Not(Box::new(value.expr)), DataType::Boolean, nullable))
}

fn is_in(mut call: Call<'_>) -> Result<Typed> {
    let mut arguments = std::mem::take(&mut call.arguments);
    let first = arguments[0].clone();
    let common = if arguments.len() == 2 {
        compared(first.data_type(), arguments[1].data_type(), call.conf())
    } else {
        common_type(&arguments, call.conf())
    };
    let Some(common) = common else {
        let types: Vec<String> = arguments.iter().map(|value| format!("\"{}\"", sql_name(&value.field))).collect();
        return Err(call.mismatch(
            "DATA_DIFF_TYPES",
            format!("input to `in` should all be the same type, but it's [{}]", types.join(", ")),
        ));
    };
    let nullable = arguments.iter().any(Typed::nullable);
    for argument in &mut arguments {
        *argument = call.cast(argument.clone(), &common)?;
    }
    let mut arguments = arguments.into_iter();
    let Some(value) = arguments.next() else {
        return Err(Error::Bug { invariant: "IN has a left side".into() });
    };
    let list: Vec<Typed> = arguments.collect();
    let (value, _) = comparable(value, list[0].clone());
    let list = list.into_iter().map(|item| comparable(item, value.clone()).0.expr).collect();
    Ok(Typed::new(Expr::InList(InList::new(Box::new(value.expr), list, false)), DataType::Boolean, nullable))
}

fn null_test(mut call: Call<'_>, test: fn(Box<Expr>) -> Expr) -> Result<Typed> {
    let [value] = call.take()?;
    Ok(Typed::new(test(Box::new(value.expr)), DataType::Boolean, false))
}

fn is_nan(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    let value = if value.data_type() == &DataType::Float32 { value } else { call.cast(value, &DataType::Float64)? };
    Ok(Kernel::new("isnan", DataType::Boolean, false).call(vec![value], |arguments, num_rows| {
        let array = &arguments[0];
        let truths: BooleanArray = match array.as_primitive_opt::<Float32Type>() {
            Some(floats) => (0..num_rows).map(|row| Some(array.is_valid(row) && floats.value(row).is_nan())).collect(),
            None => {
                let doubles = array.as_primitive::<Float64Type>();
                (0..num_rows).map(|row| Some(array.is_valid(row) && doubles.value(row).is_nan())).collect()
            }
        };
        Ok(Arc::new(truths))
    }))
}
