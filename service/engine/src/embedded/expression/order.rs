//! Sort orders, and floats as Spark compares them.

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Sort;
use spark_connect_proto::expression::SortOrder;
use spark_connect_proto::expression::sort_order::{NullOrdering, SortDirection};
use std::sync::Arc;

use super::resolver::child;
use super::{Resolver, Scope, Typed};
use crate::Result;
use crate::embedded::ResolveContext;
use crate::embedded::functions::kernel;

/// Resolves a sort order: nulls come first ascending and last descending, unless it says otherwise.
///
/// # Errors
/// Those of [`super::resolve`].
pub fn sort(
    context: &ResolveContext,
    state: &datafusion::execution::SessionState,
    order: &SortOrder,
    scope: &Scope<'_>,
) -> Result<Sort> {
    Resolver::new(context, state, scope).sort(order)
}

impl Resolver<'_> {
    pub fn sort(&self, order: &SortOrder) -> Result<Sort> {
        let value = self.typed(child(&order.child)?)?;
        let ascending = order.direction() != SortDirection::Descending;
        let nulls_first = match order.null_ordering() {
            NullOrdering::SortNullsFirst => true,
            NullOrdering::SortNullsLast => false,
            NullOrdering::SortNullsUnspecified => ascending,
        };
        let value = canonical_float(value);
        Ok(Sort { expr: value.expr, asc: ascending, nulls_first })
    }
}

/// A float with one NaN and one zero, so that Arrow's total order groups, joins and sorts it as Spark does: all NaN are
/// equal and greater than any number, and -0.0 equals 0.0. Other types come back as they are.
pub fn canonical_float(value: Typed) -> Typed {
    let is_settled = value.value().is_some();
    match value.data_type().clone() {
        DataType::Float64 if !is_settled => {
            kernel::strict("canonical", vec![value], DataType::Float64, |arguments, _| {
                Ok(canonical_doubles(&arguments[0]))
            })
        }
        DataType::Float32 if !is_settled => {
            kernel::strict("canonical", vec![value], DataType::Float32, |arguments, _| {
                let floats: PrimitiveArray<Float32Type> = arguments[0]
                    .as_primitive::<Float32Type>()
                    .unary(|float| if float.is_nan() { f32::NAN } else { float + 0.0 });
                Ok(Arc::new(floats))
            })
        }
        _ => value,
    }
}

fn canonical_doubles(array: &ArrayRef) -> ArrayRef {
    let doubles: PrimitiveArray<Float64Type> =
        array.as_primitive::<Float64Type>().unary(|double| if double.is_nan() { f64::NAN } else { double + 0.0 });
    Arc::new(doubles)
}

/// The two sides of a comparison, made canonical where their floats may not be: a column compared with a number that is
/// neither zero nor NaN stays as it is, for filters to be pushed into files.
pub fn comparable(left: Typed, right: Typed) -> (Typed, Typed) {
    let is_plain = |value: &Typed| {
        matches!(value.value(), Some(value) if match value {
            datafusion::common::ScalarValue::Float64(Some(double)) => *double != 0.0 && !double.is_nan(),
            datafusion::common::ScalarValue::Float32(Some(float)) => *float != 0.0 && !float.is_nan(),
            _ => false,
        })
    };
    let is_column = |value: &Typed| matches!(value.expr, Expr::Column(_));
    if (is_plain(&left) && is_column(&right)) || (is_plain(&right) && is_column(&left)) {
        return (left, right);
    }
    (canonical_float(left), canonical_float(right))
}
