//! Aggregate functions.

mod best;
mod gather;
mod moments;
mod sum;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate as df;
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment, Sort};
use datafusion::logical_expr::{AggregateUDF, Case, Cast, Expr, Operator, binary_expr};

use super::{Call, Function, function};
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::{is_integral, is_numeric};
use crate::embedded::expression::extract::struct_where;
use crate::embedded::expression::order::canonical_float;
use crate::{Error, Result};

pub const FUNCTIONS: &[Function] = &[
    function("count", 1, usize::MAX, count),
    function("count_if", 1, 1, count_if),
    function("approx_count_distinct", 1, 2, approx_count_distinct),
    function("sum", 1, 1, sum::sum),
    function("try_sum", 1, 1, sum::try_sum),
    function("avg", 1, 1, avg),
    function("mean", 1, 1, avg),
    function("try_avg", 1, 1, avg),
    function("min", 1, 1, |call| extreme(call, df::min_max::min_udaf())),
    function("max", 1, 1, |call| extreme(call, df::min_max::max_udaf())),
    function("first", 1, 2, |call| edge(call, true)),
    function("first_value", 1, 2, |call| edge(call, true)),
    function("any_value", 1, 2, |call| edge(call, true)),
    function("last", 1, 2, |call| edge(call, false)),
    function("last_value", 1, 2, |call| edge(call, false)),
    function("stddev", 1, 1, |call| doubles(call, df::stddev::stddev_udaf())),
    function("std", 1, 1, |call| doubles(call, df::stddev::stddev_udaf())),
    function("stddev_samp", 1, 1, |call| doubles(call, df::stddev::stddev_udaf())),
    function("stddev_pop", 1, 1, |call| doubles(call, df::stddev::stddev_pop_udaf())),
    function("variance", 1, 1, |call| doubles(call, df::variance::var_samp_udaf())),
    function("var_samp", 1, 1, |call| doubles(call, df::variance::var_samp_udaf())),
    function("var_pop", 1, 1, |call| doubles(call, df::variance::var_pop_udaf())),
    function("corr", 2, 2, |call| doubles(call, df::correlation::corr_udaf())),
    function("covar_samp", 2, 2, |call| doubles(call, df::covariance::covar_samp_udaf())),
    function("covar_pop", 2, 2, |call| doubles(call, df::covariance::covar_pop_udaf())),
    function("regr_slope", 2, 2, |call| doubles(call, df::regr::regr_slope_udaf())),
    function("regr_intercept", 2, 2, |call| doubles(call, df::regr::regr_intercept_udaf())),
    function("regr_r2", 2, 2, |call| doubles(call, df::regr::regr_r2_udaf())),
    function("regr_avgx", 2, 2, |call| doubles(call, df::regr::regr_avgx_udaf())),
    function("regr_avgy", 2, 2, |call| doubles(call, df::regr::regr_avgy_udaf())),
    function("regr_sxx", 2, 2, |call| doubles(call, df::regr::regr_sxx_udaf())),
    function("regr_syy", 2, 2, |call| doubles(call, df::regr::regr_syy_udaf())),
    function("regr_sxy", 2, 2, |call| doubles(call, df::regr::regr_sxy_udaf())),
    function("skewness", 1, 1, moments::skewness),
    function("kurtosis", 1, 1, moments::kurtosis),
    function("bool_and", 1, 1, |call| booleans(call, df::bool_and_or::bool_and_udaf())),
    function("every", 1, 1, |call| booleans(call, df::bool_and_or::bool_and_udaf())),
    function("bool_or", 1, 1, |call| booleans(call, df::bool_and_or::bool_or_udaf())),
    function("some", 1, 1, |call| booleans(call, df::bool_and_or::bool_or_udaf())),
    function("any", 1, 1, |call| booleans(call, df::bool_and_or::bool_or_udaf())),
    function("bit_and", 1, 1, |call| bits(call, df::bit_and_or_xor::bit_and_udaf())),
    function("bit_or", 1, 1, |call| bits(call, df::bit_and_or_xor::bit_or_udaf())),
    function("bit_xor", 1, 1, |call| bits(call, df::bit_and_or_xor::bit_xor_udaf())),
    function("max_by", 2, 2, |call| best::by(call, true)),
    function("min_by", 2, 2, |call| best::by(call, false)),
    function("collect_list", 1, 1, |call| gather::list(call, false)),
    function("array_agg", 1, 1, |call| gather::list(call, false)),
    function("collect_set", 1, 1, |call| gather::list(call, true)),
    function("mode", 1, 2, gather::mode),
    function("percentile", 2, 3, gather::percentile),
    function("median", 1, 1, gather::median),
    function("percentile_approx", 2, 3, gather::approximate_percentile),
    function("approx_percentile", 2, 3, gather::approximate_percentile),
    function("product", 1, 1, gather::product),
    function("listagg", 1, 2, gather::concatenation),
    function("string_agg", 1, 2, gather::concatenation),
    function("grouping", 1, 1, |call| grouping(call, DataType::Int8)),
    function("grouping_id", 1, usize::MAX, |call| grouping(call, DataType::Int64)),
];

/// An aggregate call of DataFusion's.
pub fn aggregate(
    function: Arc<AggregateUDF>,
    arguments: Vec<Typed>,
    is_distinct: bool,
    order_by: Vec<Sort>,
    null_treatment: Option<NullTreatment>,
) -> Expr {
    let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
    Expr::AggregateFunction(AggregateFunction::new_udf(
        function,
        arguments,
        is_distinct,
        None,
        order_by,
        null_treatment,
    ))
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), data_type))
}

fn count(mut call: Call<'_>) -> Result<Typed> {
    let arguments: Vec<Typed> = std::mem::take(&mut call.arguments).into_iter().collect();
    let function = df::count::count_udaf();
    let counted = match <[Typed; 1]>::try_from(arguments) {
        Ok([argument]) if call.is_distinct => canonical_float(argument),
        Ok([argument]) if argument.value().is_some_and(|value| !value.is_null()) => {
            Typed::literal(ScalarValue::Int64(Some(1)))
        }
        Ok([argument]) => argument,
        Err(arguments) => all_present(arguments, call.is_distinct)?,
    };
    let expr = aggregate(function, vec![counted], call.is_distinct, vec![], None);
    Ok(Typed::new(expr, DataType::Int64, false))
}

/// A value that is null unless all are present; the values themselves when they are to be told apart.
fn all_present(arguments: Vec<Typed>, keep_values: bool) -> Result<Typed> {
    let tests = arguments.iter().map(|argument| Expr::IsNotNull(Box::new(argument.expr.clone())));
    let Some(test) = tests.reduce(|all, test| binary_expr(all, Operator::And, test)) else {
        return Err(Error::Bug { invariant: "count has arguments".into() });
    };
    let value = if keep_values {
        let members = arguments.into_iter().enumerate().map(|(at, value)| (format!("{at}"), canonical_float(value)));
        struct_where(members.collect(), None)
    } else {
        Typed::literal(ScalarValue::Int64(Some(1)))
    };
    let data_type = value.data_type().clone();
    let case = Case::new(None, vec![(Box::new(test), Box::new(value.expr))], None);
    Ok(Typed::new(Expr::Case(case), data_type, true))
}

fn count_if(mut call: Call<'_>) -> Result<Typed> {
    let [condition] = call.take()?;
    if !matches!(condition.data_type(), DataType::Boolean | DataType::Null) {
        return Err(call.unexpected(&condition, "BOOLEAN"));
    }
    let condition = call.cast(condition, &DataType::Boolean)?;
    let one = Box::new(Expr::Literal(ScalarValue::Int64(Some(1)), None));
    let case = Expr::Case(Case::new(None, vec![(Box::new(condition.expr), one)], None));
    let counted = Typed::new(case, DataType::Int64, true);
    Ok(Typed::new(aggregate(df::count::count_udaf(), vec![counted], false, vec![], None), DataType::Int64, false))
}

/// DataFusion's sketch has a relative error of 0.8%; whoever asks for less gets an exact count.
fn approx_count_distinct(mut call: Call<'_>) -> Result<Typed> {
    const SKETCH_ERROR: f64 = 0.0081;
    let mut arguments = std::mem::take(&mut call.arguments);
    let wants = match arguments.get(1) {
        Some(deviation) => {
            let deviation = call.cast(deviation.clone(), &DataType::Float64)?;
            match deviation.value() {
                Some(ScalarValue::Float64(Some(deviation))) => *deviation,
                _ => return Err(call.mismatch("NON_FOLDABLE_INPUT", "the deviation must be a constant".into())),
            }
        }
        None => 0.05,
    };
    let value = canonical_float(arguments.swap_remove(0));
    let is_sketchable = is_integral(value.data_type())
        || matches!(
            value.data_type(),
            DataType::Utf8 | DataType::Binary | DataType::Date32 | DataType::Timestamp(_, _)
        );
    if wants < SKETCH_ERROR || !is_sketchable {
        let expr = aggregate(df::count::count_udaf(), vec![value], true, vec![], None);
        return Ok(Typed::new(expr, DataType::Int64, false));
    }
    let expr = aggregate(df::approx_distinct::approx_distinct_udaf(), vec![value], false, vec![], None);
    Ok(Typed::new(cast(expr, DataType::Int64), DataType::Int64, false))
}

fn avg(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    let (value, data_type) = match value.data_type().clone() {
        DataType::Decimal128(precision, scale) => {
            let data_type = DataType::Decimal128((precision + 4).min(38), (scale + 4).min(38));
            (value, data_type)
        }
        data_type if is_numeric(&data_type) || matches!(data_type, DataType::Utf8 | DataType::Null) => {
            (call.cast(value, &DataType::Float64)?, DataType::Float64)
        }
        DataType::Duration(_) => return Err(Error::Unsupported { feature: "average of intervals".into() }),
        _ => return Err(call.unexpected(&value, "NUMERIC")),
    };
    let expr = aggregate(df::average::avg_udaf(), vec![value], call.is_distinct, vec![], None);
    Ok(Typed::new(expr, data_type, true))
}

fn extreme(mut call: Call<'_>, function: Arc<AggregateUDF>) -> Result<Typed> {
    let [value] = call.take()?;
    if matches!(value.data_type(), DataType::Map(_, _)) {
        return Err(call.mismatch("INVALID_ORDERING_TYPE", "maps have no order".into()));
    }
    let value = canonical_float(value);
    let field = Arc::new(value.field.as_ref().clone().with_nullable(true));
    Ok(Typed { expr: aggregate(function, vec![value], false, vec![], None), field })
}

/// The first or last value, of those that are not null if the second argument says so.
fn edge(mut call: Call<'_>, is_first: bool) -> Result<Typed> {
    let mut arguments = std::mem::take(&mut call.arguments);
    let ignores_nulls = match arguments.get(1) {
        Some(flag) => call.constant_boolean(flag)?,
        None => false,
    };
    let value = arguments.swap_remove(0);
    let treatment = if ignores_nulls { NullTreatment::IgnoreNulls } else { NullTreatment::RespectNulls };
    let field = Arc::new(value.field.as_ref().clone().with_nullable(true));
    if call.resolver.is_windowed {
        let function = if is_first {
            datafusion::functions_window::nth_value::first_value_udwf()
        } else {
            datafusion::functions_window::nth_value::last_value_udwf()
        };
        return Ok(Typed { expr: super::window::windowed(function, vec![value], Some(treatment)), field });
    }
    let function = if is_first { df::first_last::first_value_udaf() } else { df::first_last::last_value_udaf() };
    Ok(Typed { expr: aggregate(function, vec![value], false, vec![], Some(treatment)), field })
}

fn doubles(mut call: Call<'_>, function: Arc<AggregateUDF>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Float64, DataType::Float64])?;
    let arguments = std::mem::take(&mut call.arguments);
    let expr = aggregate(function, arguments, call.is_distinct, vec![], None);
    Ok(Typed::new(expr, DataType::Float64, true))
}

fn booleans(mut call: Call<'_>, function: Arc<AggregateUDF>) -> Result<Typed> {
    let [value] = call.take()?;
    if !matches!(value.data_type(), DataType::Boolean | DataType::Null) {
        return Err(call.unexpected(&value, "BOOLEAN"));
    }
    let value = call.cast(value, &DataType::Boolean)?;
    Ok(Typed::new(aggregate(function, vec![value], false, vec![], None), DataType::Boolean, true))
}

fn bits(mut call: Call<'_>, function: Arc<AggregateUDF>) -> Result<Typed> {
    let [value] = call.take()?;
    if !is_integral(value.data_type()) {
        return Err(call.unexpected(&value, "INTEGRAL"));
    }
    let data_type = value.data_type().clone();
    Ok(Typed::new(aggregate(function, vec![value], call.is_distinct, vec![], None), data_type, true))
}

fn grouping(mut call: Call<'_>, data_type: DataType) -> Result<Typed> {
    let arguments = std::mem::take(&mut call.arguments);
    let expr = aggregate(df::grouping::grouping_udaf(), arguments, false, vec![], None);
    Ok(Typed::new(cast(expr, data_type.clone()), data_type, false))
}
