//! Which functions aggregate: what makes a SELECT without GROUP BY one that aggregates.

use spark_connect_proto::Expression;
use spark_connect_proto::expression::ExprType;

use crate::tree::children;

/// Spark's built-in aggregate functions, sorted.
const AGGREGATES: &[&str] = &[
    "any",
    "any_value",
    "approx_count_distinct",
    "approx_percentile",
    "approx_top_k",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bitmap_construct_agg",
    "bitmap_or_agg",
    "bool_and",
    "bool_or",
    "collect_list",
    "collect_set",
    "corr",
    "count",
    "count_if",
    "count_min_sketch",
    "covar_pop",
    "covar_samp",
    "every",
    "first",
    "first_value",
    "grouping",
    "grouping_id",
    "histogram_numeric",
    "hll_sketch_agg",
    "hll_union_agg",
    "kurtosis",
    "last",
    "last_value",
    "listagg",
    "max",
    "max_by",
    "mean",
    "median",
    "min",
    "min_by",
    "mode",
    "percentile",
    "percentile_approx",
    "percentile_cont",
    "percentile_disc",
    "product",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "skewness",
    "some",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "try_avg",
    "try_sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// Those of one argument that pass over nulls, so that FILTER is the same as a null where the condition does not hold.
const NULL_SKIPPING: &[&str] = &[
    "any",
    "approx_count_distinct",
    "approx_percentile",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "collect_list",
    "collect_set",
    "count",
    "count_if",
    "every",
    "kurtosis",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "percentile",
    "percentile_approx",
    "product",
    "skewness",
    "some",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "try_avg",
    "try_sum",
    "var_pop",
    "var_samp",
    "variance",
];

pub(crate) fn is_aggregate_function(name: &str) -> bool {
    AGGREGATES.binary_search(&name.to_ascii_lowercase().as_str()).is_ok()
}

pub(crate) fn skips_nulls(name: &str) -> bool {
    NULL_SKIPPING.binary_search(&name.to_ascii_lowercase().as_str()).is_ok()
}

/// Whether this very expression is a call of an aggregate function.
pub(crate) fn is_aggregate_call(expr: &Expression) -> bool {
    match &expr.expr_type {
        Some(ExprType::UnresolvedFunction(call)) => is_aggregate_function(&call.function_name),
        _ => false,
    }
}

/// Whether an aggregate function is called in the expression; over a window it is none.
pub(crate) fn contains_aggregate(expr: &Expression) -> bool {
    if let Some(ExprType::Window(window)) = &expr.expr_type {
        let function = window.window_function.as_deref();
        let inputs = function.into_iter().flat_map(children);
        let orders = window.order_spec.iter().filter_map(|order| order.child.as_deref());
        return inputs.chain(&window.partition_spec).chain(orders).any(contains_aggregate);
    }
    is_aggregate_call(expr) || children(expr).into_iter().any(contains_aggregate)
}
