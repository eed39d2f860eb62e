//! Functions that clients pickle, in plans.
//!
//! A call in an expression is a marker that cannot be evaluated ([`PythonCall`]). [`ExtractRule`], which runs
//! before the optimizer, moves every call out into a [`PythonNode`] below, which appends the call's results as a column. What a node
//! does runs in the worker processes of crate `python`, a task for each partition.

mod call;
mod columns;
mod exec;
mod extract;
mod function;
mod group;
mod host;
mod node;
mod plan;
mod stage;
mod zip;

pub use call::PythonCall;
pub use extract::ExtractRule;
pub use function::{EvalType, Functions, PythonFunction};
pub use host::{Host, SessionFiles};
pub use node::{
    AggregateCall, GroupAggregate, GroupFunction, GroupedRelation, MapFunction, PythonNode, PythonOperation,
};
