//! Functions that choose between their arguments.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Case, Cast, Expr, Operator, binary_expr};

use super::{Call, Function, function, kernel};
use crate::Result;
use crate::data_type::sql_name;
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::compared;
use crate::embedded::expression::order::{canonical_float, comparable};

pub const FUNCTIONS: &[Function] = &[
    function("when", 2, usize::MAX, when),
    function("if", 3, 3, when),
    function("coalesce", 1, usize::MAX, coalesce),
    function("nvl", 2, 2, coalesce),
    function("ifnull", 2, 2, coalesce),
    function("nvl2", 3, 3, nvl2),
    function("nullif", 2, 2, null_if),
    function("nullifzero", 1, 1, null_if_zero),
    function("zeroifnull", 1, 1, zero_if_null),
    function("nanvl", 2, 2, nan_value),
    function("greatest", 2, usize::MAX, |call| extreme(call, Operator::GtEq)),
    function("least", 2, usize::MAX, |call| extreme(call, Operator::LtEq)),
];

/// A `CASE`. DataFusion turns one of booleans into `AND` and `OR`, which evaluate what its conditions exclude; so where a
/// branch can fail, the booleans are chosen as numbers.
pub fn case(branches: Vec<(Box<Expr>, Box<Expr>)>, otherwise: Option<Box<Expr>>, data_type: &DataType) -> Expr {
    let can_raise = branches.iter().any(|(when, then)| kernel::can_raise(when) || kernel::can_raise(then))
        || otherwise.as_deref().is_some_and(kernel::can_raise);
    if !can_raise || data_type != &DataType::Boolean {
        return Expr::Case(Case::new(None, branches, otherwise));
    }
    let number = |truth: Box<Expr>| Box::new(Expr::Cast(Cast::new(truth, DataType::Int8)));
    let branches = branches.into_iter().map(|(when, then)| (when, number(then))).collect();
    let chosen = Expr::Case(Case::new(None, branches, otherwise.map(number)));
    binary_expr(chosen, Operator::Eq, Expr::Literal(ScalarValue::Int8(Some(1)), None))
}

/// `when(condition, value, condition, value, ..., otherwise?)`.
fn when(mut call: Call<'_>) -> Result<Typed> {
    let arguments = std::mem::take(&mut call.arguments);
    let mut conditions = Vec::new();
    let mut values = Vec::new();
    let has_else = arguments.len() % 2 == 1;
    let num_branches = arguments.len() / 2;
    for (position, argument) in arguments.into_iter().enumerate() {
        if position % 2 == 0 && position < num_branches * 2 {
            let condition = match argument.data_type() {
                DataType::Boolean => argument,
                DataType::Null => call.cast(argument, &DataType::Boolean)?,
                _ => {
                    return Err(call.mismatch(
                        "UNEXPECTED_INPUT_TYPE",
                        format!("a condition requires the \"BOOLEAN\" type, has \"{}\"", sql_name(&argument.field)),
                    ));
                }
            };
            conditions.push(condition);
        } else {
            values.push(argument);
        }
    }
    let metadata_of = values[0].field.metadata().clone();
    let is_uniform = values.iter().all(|value| value.field.metadata() == &metadata_of);
    let (values, data_type) = call.unified(values)?;
    let nullable = !has_else || values.iter().any(Typed::nullable);
    let mut values = values.into_iter();
    let branches: Vec<(Box<Expr>, Box<Expr>)> = conditions
        .into_iter()
        .zip(values.by_ref())
        .map(|(condition, value)| (Box::new(condition.expr), Box::new(value.expr)))
        .collect();
    let otherwise = values.next().map(|value| Box::new(value.expr));
    let mut typed = Typed::new(case(branches, otherwise, &data_type), data_type, nullable);
    if is_uniform && !metadata_of.is_empty() {
        typed.field = std::sync::Arc::new(typed.field.as_ref().clone().with_metadata(metadata_of));
    }
    Ok(typed)
}

/// The first argument that is not null, as a `CASE`: later ones are evaluated only where they are needed.
fn coalesce(mut call: Call<'_>) -> Result<Typed> {
    let arguments = std::mem::take(&mut call.arguments);
    let metadata = arguments[0].field.metadata().clone();
    let is_uniform = arguments.iter().all(|value| value.field.metadata() == &metadata);
    let (mut values, data_type) = call.unified(arguments)?;
    let nullable = values.iter().all(Typed::nullable);
    let Some(last) = values.pop() else {
        return Ok(Typed::literal(ScalarValue::Null));
    };
    let mut typed = if values.is_empty() {
        last
    } else {
        let branches = values
            .into_iter()
            .map(|value| (Box::new(Expr::IsNotNull(Box::new(value.expr.clone()))), Box::new(value.expr)))
            .collect();
        Typed::new(case(branches, Some(Box::new(last.expr)), &data_type), data_type, nullable)
    };
    if is_uniform && !metadata.is_empty() {
        typed.field = std::sync::Arc::new(typed.field.as_ref().clone().with_metadata(metadata));
    }
    Ok(typed)
}

fn nvl2(mut call: Call<'_>) -> Result<Typed> {
    let [value, present, absent] = call.take()?;
    let (mut branches, data_type) = call.unified(vec![present, absent])?;
    let nullable = branches.iter().any(Typed::nullable);
    let absent = branches.pop().map(|branch| Box::new(branch.expr));
    let present = branches.pop().map(|branch| branch.expr).unwrap_or_else(|| Expr::Literal(ScalarValue::Null, None));
    let test = Expr::IsNotNull(Box::new(value.expr));
    Ok(Typed::new(Expr::Case(Case::new(None, vec![(Box::new(test), Box::new(present))], absent)), data_type, nullable))
}

fn null_if(mut call: Call<'_>) -> Result<Typed> {
    let [value, other] = call.take()?;
    let Some(common) = compared(value.data_type(), other.data_type(), call.conf()) else {
        return Err(call.mismatch(
            "BINARY_OP_DIFF_TYPES",
            format!("incompatible types (\"{}\" and \"{}\")", sql_name(&value.field), sql_name(&other.field)),
        ));
    };
    let (left, right) = comparable(call.cast(value.clone(), &common)?, call.cast(other, &common)?);
    let test = binary_expr(left.expr, Operator::Eq, right.expr);
    let data_type = value.data_type().clone();
    let null = Expr::Literal(ScalarValue::try_from(&data_type)?, None);
    let case = Case::new(None, vec![(Box::new(test), Box::new(null))], Some(Box::new(value.expr)));
    Ok(Typed::new(Expr::Case(case), data_type, true))
}

fn null_if_zero(mut call: Call<'_>) -> Result<Typed> {
    call.arguments.push(Typed::literal(ScalarValue::Int32(Some(0))));
    null_if(call)
}

fn zero_if_null(mut call: Call<'_>) -> Result<Typed> {
    call.arguments.push(Typed::literal(ScalarValue::Int32(Some(0))));
    coalesce(call)
}

fn nan_value(mut call: Call<'_>) -> Result<Typed> {
    let is_single = call.arguments.iter().all(|argument| argument.data_type() == &DataType::Float32);
    let data_type = if is_single { DataType::Float32 } else { DataType::Float64 };
    call.cast_arguments(&[data_type.clone(), data_type.clone()])?;
    let [value, other] = call.take()?;
    let nan = if is_single { ScalarValue::Float32(Some(f32::NAN)) } else { ScalarValue::Float64(Some(f64::NAN)) };
    let nullable = value.nullable() || other.nullable();
    let canonical = canonical_float(value.clone());
    let test = binary_expr(canonical.expr, Operator::Eq, Expr::Literal(nan, None));
    let case = Case::new(None, vec![(Box::new(test), Box::new(other.expr))], Some(Box::new(value.expr)));
    Ok(Typed::new(Expr::Case(case), data_type, nullable))
}

/// The greatest or least of the arguments that are not null; NaN is greatest.
fn extreme(mut call: Call<'_>, operator: Operator) -> Result<Typed> {
    let data_type = call.unify()?;
    let arguments = std::mem::take(&mut call.arguments);
    let nullable = arguments.iter().all(Typed::nullable);
    let is_greatest = operator == Operator::GtEq;
    let name = if is_greatest { "greatest" } else { "least" };
    Ok(super::kernel::Kernel::new(name, data_type, nullable).call(arguments, move |arguments, num_rows| {
        let columns = arguments.iter().map(super::array::comparable_column).collect::<Result<Vec<_>>>()?;
        let converter =
            arrow::row::RowConverter::new(vec![arrow::row::SortField::new(columns[0].data_type().clone())])?;
        let rows = columns
            .iter()
            .map(|column| Ok(converter.convert_columns(std::slice::from_ref(column))?))
            .collect::<Result<Vec<_>>>()?;
        let chosen: Vec<(usize, usize)> = (0..num_rows)
            .map(|row| {
                let present = (0..arguments.len()).filter(|column| arguments[*column].is_valid(row));
                let best = if is_greatest {
                    present.reduce(|a, b| if rows[b].row(row) > rows[a].row(row) { b } else { a })
                } else {
                    present.reduce(|a, b| if rows[b].row(row) < rows[a].row(row) { b } else { a })
                };
                (best.unwrap_or(0), row)
            })
            .collect();
        let sources: Vec<&dyn arrow::array::Array> = arguments.iter().map(AsRef::as_ref).collect();
        Ok(arrow::compute::interleave(&sources, &chosen)?)
    }))
}
