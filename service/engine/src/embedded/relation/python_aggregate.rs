//! Aggregations by Python functions.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::Resolution;
use super::aggregate::Key;
use super::build::project;
use crate::embedded::python::{AggregateCall, GroupAggregate, PythonCall, PythonNode, PythonOperation};
use crate::{Error, Result};

impl Resolution<'_> {
    /// The plan of the keys and the aggregates, or nothing where none of these is a Python function.
    ///
    /// # Errors
    /// [`Error::AggregatePlacement`] where only some of them are, [`Error::Unsupported`] for functions of several kinds.
    pub(super) fn python_aggregate(
        &self,
        input: &LogicalPlan,
        keys: &[Key],
        aggregates: &[(Expr, String)],
    ) -> Result<Option<LogicalPlan>> {
        let calls: Vec<(&PythonCall, &[Expr])> =
            aggregates.iter().filter_map(|(expr, _)| PythonCall::of(expr)).collect();
        let Some((first, _)) = calls.first() else { return Ok(None) };
        if calls.len() < aggregates.len() {
            let functions = calls.iter().map(|(call, _)| call.function.name.clone()).collect();
            return Err(Error::AggregatePlacement { functions });
        }
        let eval_type = first.function.eval_type;
        let is_alike = |call: &PythonCall| call.function.eval_type == eval_type;
        if !calls.iter().all(|(call, _)| is_alike(call)) || (calls.len() > 1 && eval_type.is_iterator()) {
            return Err(Error::Unsupported { feature: "aggregate Python functions of several kinds together".into() });
        }
        let mut exprs: Vec<Expr> = keys.iter().map(|key| key.column.expr()).collect();
        let mut arguments: Vec<(&Expr, FieldRef)> = Vec::new();
        let mut described = Vec::with_capacity(calls.len());
        let mut output: Vec<FieldRef> = keys
            .iter()
            .map(|key| Arc::new(key.column.field.as_ref().clone().with_name(&key.column.internal)))
            .collect();
        for ((call, call_arguments), (_, column)) in calls.iter().zip(aggregates) {
            let mut positions = Vec::with_capacity(call_arguments.len());
            for ((expr, name), field) in call_arguments.iter().zip(&call.argument_names).zip(&call.argument_fields) {
                let known = arguments.iter().position(|(known, _)| *known == expr);
                let position = known.unwrap_or_else(|| {
                    exprs.push(expr.clone().alias(self.context.fresh_name()));
                    arguments.push((expr, Arc::clone(field)));
                    arguments.len() - 1
                });
                positions.push((position, name.clone()));
            }
            described.push(AggregateCall { function: Arc::clone(&call.function), arguments: positions });
            output.push(Arc::new(call.function.output.as_ref().clone().with_name(column)));
        }
        let plan = project(input.clone(), exprs)?;
        let plan = self.by_group(keys.iter().map(|key| key.column.expr()).collect(), plan)?;
        let aggregate = GroupAggregate {
            num_keys: keys.len(),
            calls: described,
            arguments: arguments.into_iter().map(|(_, field)| field).collect(),
            output,
        };
        let operation = PythonOperation::Aggregate(aggregate);
        Ok(Some(PythonNode::plan(operation, Arc::clone(&first.host), vec![plan])?))
    }
}
