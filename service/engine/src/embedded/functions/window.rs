//! Functions that need `OVER`.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions_window as df;
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction};
use datafusion::logical_expr::{Cast, Expr, WindowFunctionDefinition, WindowUDF};

use super::{Call, Function, function};
use crate::embedded::expression::Typed;
use crate::{Error, Result};

pub const FUNCTIONS: &[Function] = &[
    function("row_number", 0, 0, |call| ranking(call, df::row_number::row_number_udwf(), DataType::Int32)),
    function("rank", 0, 0, |call| ranking(call, df::rank::rank_udwf(), DataType::Int32)),
    function("dense_rank", 0, 0, |call| ranking(call, df::rank::dense_rank_udwf(), DataType::Int32)),
    function("percent_rank", 0, 0, |call| ranking(call, df::rank::percent_rank_udwf(), DataType::Float64)),
    function("cume_dist", 0, 0, |call| ranking(call, df::cume_dist::cume_dist_udwf(), DataType::Float64)),
    function("ntile", 0, 1, ntile),
    function("lag", 1, 4, |call| neighbour(call, true)),
    function("lead", 1, 4, |call| neighbour(call, false)),
    function("nth_value", 2, 3, nth_value),
];

/// A window call still without its window.
pub fn windowed(function: Arc<WindowUDF>, arguments: Vec<Typed>, null_treatment: Option<NullTreatment>) -> Expr {
    let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
    let mut window = WindowFunction::new(WindowFunctionDefinition::WindowUDF(function), arguments);
    window.params.null_treatment = null_treatment;
    Expr::WindowFunction(Box::new(window))
}

fn required(call: &Call<'_>) -> Result<()> {
    if call.resolver.is_windowed {
        return Ok(());
    }
    Err(Error::InvalidPlan { detail: format!("window function {}() needs an OVER clause", call.name) })
}

fn ranking(call: Call<'_>, function: Arc<WindowUDF>, data_type: DataType) -> Result<Typed> {
    required(&call)?;
    let expr = windowed(function, vec![], None);
    let expr = match data_type {
        DataType::Int32 => Expr::Cast(Cast::new(Box::new(expr), DataType::Int32)),
        _ => expr,
    };
    Ok(Typed::new(expr, data_type, false))
}

fn ntile(mut call: Call<'_>) -> Result<Typed> {
    required(&call)?;
    let num_buckets = match std::mem::take(&mut call.arguments).pop() {
        Some(argument) => call.constant_integer(&argument)?,
        None => 1,
    };
    if num_buckets <= 0 {
        return Err(
            call.mismatch("VALUE_OUT_OF_RANGE", format!("the number of buckets must be positive, is {num_buckets}"))
        );
    }
    let buckets = Typed::literal(ScalarValue::Int64(Some(num_buckets)));
    let expr = windowed(df::ntile::ntile_udwf(), vec![buckets], None);
    Ok(Typed::new(Expr::Cast(Cast::new(Box::new(expr), DataType::Int32)), DataType::Int32, false))
}

fn treatment(call: &Call<'_>, flag: Option<&Typed>) -> Result<Option<NullTreatment>> {
    Ok(match flag {
        Some(flag) if call.constant_boolean(flag)? => Some(NullTreatment::IgnoreNulls),
        _ => None,
    })
}

/// `lag` and `lead`: (value, offset, default, ignore nulls).
fn neighbour(mut call: Call<'_>, is_lag: bool) -> Result<Typed> {
    required(&call)?;
    let arguments = std::mem::take(&mut call.arguments);
    let offset = match arguments.get(1) {
        Some(offset) => call.constant_integer(offset)?,
        None => 1,
    };
    let treatment = treatment(&call, arguments.get(3))?;
    let value = arguments[0].clone();
    let field = Arc::new(value.field.as_ref().clone().with_nullable(true));
    let mut inputs = vec![value, Typed::literal(ScalarValue::Int64(Some(offset)))];
    if let Some(default) = arguments.get(2)
        && default.data_type() != &DataType::Null
    {
        let default = call.cast(default.clone(), field.data_type())?;
        if default.value().is_none() {
            return Err(Error::Unsupported { feature: format!("{} with a default that is no constant", call.name) });
        }
        inputs.push(default);
    }
    let function = if is_lag { df::lead_lag::lag_udwf() } else { df::lead_lag::lead_udwf() };
    Ok(Typed { expr: windowed(function, inputs, treatment), field })
}

fn nth_value(mut call: Call<'_>) -> Result<Typed> {
    required(&call)?;
    let arguments = std::mem::take(&mut call.arguments);
    let position = call.constant_integer(&arguments[1])?;
    if position <= 0 {
        return Err(call.mismatch("VALUE_OUT_OF_RANGE", format!("the offset must be positive, is {position}")));
    }
    let treatment = treatment(&call, arguments.get(2))?;
    let field = Arc::new(arguments[0].field.as_ref().clone().with_nullable(true));
    let inputs = vec![arguments[0].clone(), Typed::literal(ScalarValue::Int64(Some(position)))];
    Ok(Typed { expr: windowed(df::nth_value::nth_value_udwf(), inputs, treatment), field })
}
