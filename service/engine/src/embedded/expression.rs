//! Resolves Spark's expressions against a frame: names to columns, functions to DataFusion expressions, types as Spark's.

mod attribute;
pub mod cast;
pub mod coercion;
pub mod extract;
pub mod generator;
pub mod lambda;
mod literal;
pub mod order;
mod python;
pub mod resolver;
mod star;
mod subquery;
#[cfg(test)]
mod tests;
mod typed;
mod window;
pub mod zone;

use arrow::datatypes::FieldRef;
use datafusion::execution::SessionState;
use datafusion::logical_expr::Expr;
use spark_connect_proto as proto;

pub use attribute::{edit_distance, order_by_similarity, parse_name};
pub use generator::Generator;
pub use order::{canonical_float, sort};
pub use resolver::{Resolver, automatic_name};
pub use typed::{Typed, same_type};

use super::{Frame, ResolveContext};
use crate::Result;

/// The columns an expression may name.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    pub frame: &'a Frame,
    /// Around a subquery: the scope of the query it stands in.
    pub outer: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    pub fn new(frame: &'a Frame) -> Scope<'a> {
        Scope { frame, outer: None }
    }
}

/// An expression resolved.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The name Spark gives the column.
    pub name: String,
    /// The expression. An aggregate is an `AggregateFunction` somewhere in it, a window function a `WindowFunction`.
    pub expr: Expr,
    /// Type, nullability and metadata, under the column's name.
    pub field: FieldRef,
    /// Where in the frame's columns it is, when it only passes that column on.
    pub column: Option<usize>,
    /// Set for `explode` and its kin: then `expr` is a list of structs to unnest, one a row to be.
    pub generator: Option<Generator>,
}

/// Resolves one expression.
///
/// # Errors
/// Those of names, types and functions; see [`crate::Error`].
pub fn resolve(
    context: &ResolveContext,
    state: &SessionState,
    expression: &proto::Expression,
    scope: &Scope<'_>,
) -> Result<Resolved> {
    Resolver::new(context, state, scope).named(expression)
}

/// Resolves the expressions of a projection, stars and column patterns spread out.
///
/// # Errors
/// Those of [`resolve`].
pub fn resolve_projection(
    context: &ResolveContext,
    state: &SessionState,
    expressions: &[proto::Expression],
    scope: &Scope<'_>,
) -> Result<Vec<Resolved>> {
    let resolver = Resolver::new(context, state, scope);
    let mut resolved = Vec::with_capacity(expressions.len());
    for expression in expressions {
        resolver.spread(expression, &mut resolved)?;
    }
    Ok(resolved)
}
