//! Plans a Python node physically.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use super::exec::{Evaluate, EvaluateCall, PhysicalOperation, PythonExec};
use super::node::Evaluation;
use super::{EvalType, PythonNode, PythonOperation};

impl PythonNode {
    /// The plan that does the node's work. `physical` plans an expression over the input.
    pub fn physical(
        &self,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
        physical: &dyn Fn(&Expr) -> Result<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let operation = match &self.operation {
            PythonOperation::Map(map) => PhysicalOperation::Map(map.clone()),
            PythonOperation::Evaluate(evaluations) => PhysicalOperation::Evaluate(evaluate(evaluations, physical)?),
            PythonOperation::Group(group) => PhysicalOperation::Group(group.clone()),
            PythonOperation::Aggregate(aggregate) => PhysicalOperation::Aggregate(aggregate.clone()),
        };
        let schema = Arc::new(datafusion::logical_expr::UserDefinedLogicalNodeCore::schema(self).as_arrow().clone());
        Ok(Arc::new(PythonExec::new(operation, Arc::clone(&self.host), inputs, schema)))
    }
}

fn evaluate(evaluations: &[Evaluation], physical: &dyn Fn(&Expr) -> Result<Arc<dyn PhysicalExpr>>) -> Result<Evaluate> {
    let mut distinct: Vec<(&Expr, &FieldRef)> = Vec::new();
    let mut calls = Vec::with_capacity(evaluations.len());
    for evaluation in evaluations {
        let arguments = evaluation.arguments.iter().map(|argument| {
            let known = distinct.iter().position(|(expr, field)| {
                **expr == argument.expr && **field == argument.field && !argument.expr.is_volatile()
            });
            let position = known.unwrap_or_else(|| {
                distinct.push((&argument.expr, &argument.field));
                distinct.len() - 1
            });
            (position, argument.name.clone())
        });
        calls.push(EvaluateCall { arguments: arguments.collect(), functions: evaluation.functions.clone() });
    }
    let first = evaluations.first().and_then(|evaluation| evaluation.functions.first());
    Ok(Evaluate {
        eval_type: first.map_or(EvalType::ArrowBatched, |function| function.eval_type),
        arguments: distinct
            .into_iter()
            .map(|(expr, field)| Ok((physical(expr)?, Arc::clone(field))))
            .collect::<Result<_>>()?,
        calls,
    })
}
