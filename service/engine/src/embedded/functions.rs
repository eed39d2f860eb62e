//! Spark's functions by name: one line each in a table by theme, and a builder where DataFusion has no equal.

pub mod kernel;

mod aggregate;
mod arithmetic;
mod array;
mod call;
mod conditional;
mod date;
mod hash;
mod higher_order;
mod json;
mod map;
mod math;
mod misc;
mod partition;
mod predicate;
mod random;
mod string;
mod unsupported;
mod vector;
mod window;

use std::collections::HashMap;
use std::sync::LazyLock;

use spark_connect_proto::Expression;
use spark_connect_proto::expression::{ExprType, UnresolvedFunction};

pub use call::{Build, Call, Function, function, lambda};
pub use partition::PartitionAware;

use super::expression::{Resolver, Typed};
use crate::{Error, Result};

static FUNCTIONS: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    let themes = [
        aggregate::FUNCTIONS,
        arithmetic::FUNCTIONS,
        array::FUNCTIONS,
        conditional::FUNCTIONS,
        date::FUNCTIONS,
        hash::FUNCTIONS,
        higher_order::FUNCTIONS,
        json::FUNCTIONS,
        map::FUNCTIONS,
        math::FUNCTIONS,
        misc::FUNCTIONS,
        predicate::FUNCTIONS,
        random::FUNCTIONS,
        string::FUNCTIONS,
        vector::FUNCTIONS,
        window::FUNCTIONS,
    ];
    themes.into_iter().flatten().map(|function| (function.name, function)).collect()
});

/// The names of all functions this engine has, generators aside.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.keys().copied()
}

/// Resolves a call.
///
/// # Errors
/// [`Error::UnresolvedRoutine`] for a name Spark does not know either, [`Error::Unsupported`] for one that it does,
/// [`Error::WrongNumArgs`] and [`Error::DatatypeMismatch`] for wrong arguments.
pub fn resolve(resolver: &Resolver<'_>, call: &UnresolvedFunction, expression: &Expression) -> Result<Typed> {
    if let Some(function) = resolver.context.function(&call.function_name) {
        return resolver.call_of_python(function.clone(), &call.arguments, call.is_distinct);
    }
    let lower = call.function_name.to_lowercase();
    let name = ["spark_catalog.builtin.", "system.builtin.", "builtin."]
        .iter()
        .find_map(|prefix| lower.strip_prefix(prefix))
        .unwrap_or(&lower);
    let Some(function) = FUNCTIONS.get(name) else {
        if unsupported::is_spark_function(name) {
            return Err(Error::Unsupported { feature: format!("function {name}") });
        }
        return Err(Error::UnresolvedRoutine { name: call.function_name.clone() });
    };
    if call.is_user_defined_function {
        return Err(Error::UnresolvedRoutine { name: call.function_name.clone() });
    }
    let found = call.arguments.len();
    if found < function.min || found > function.max {
        return Err(Error::WrongNumArgs { name: name.into(), expected: function.arity(), found });
    }
    match function.build {
        Build::Values(build) => {
            let inner = Resolver { is_windowed: false, ..resolver.clone() };
            let mut arguments = Vec::with_capacity(found);
            for argument in &call.arguments {
                // count(*) counts rows.
                if matches!(argument.expr_type, Some(ExprType::UnresolvedStar(_)))
                    && name == "count"
                    && !call.is_distinct
                {
                    arguments.push(Typed::literal(datafusion::common::ScalarValue::Int64(Some(1))));
                    continue;
                }
                arguments.push(inner.typed(argument)?);
            }
            build(Call { name, arguments, is_distinct: call.is_distinct, resolver, expression })
        }
        Build::Lambda(build) => build(resolver, name, &call.arguments),
    }
}
