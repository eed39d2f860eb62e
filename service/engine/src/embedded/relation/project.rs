//! Projections and filters, and the window functions in them.

use std::collections::HashSet;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{EmptyRelation, Expr, Filter, LogicalPlan, Window, lit};
use spark_connect_proto as proto;
use std::sync::Arc;

use super::build::project;
use super::missing::{Behind, is_unresolved, without_dropped};
use super::{Outer, Resolution, missing, over};
use crate::embedded::expression::Resolved;
use crate::embedded::python::PythonCall;
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

impl Resolution<'_> {
    pub(super) async fn project(
        &self,
        message: &proto::Project,
        input: Option<Frame>,
        behind: &mut Option<Behind>,
        outer: &Outer,
    ) -> Result<Frame> {
        let input = input.unwrap_or_else(one_row);
        let resolved = self.projection(&message.expressions, &input, outer).await?;
        if resolved.iter().any(|resolved| has_aggregate(&resolved.expr)) {
            return self.global_aggregate(input, resolved);
        }
        let (input, resolved) = self.generated(input, resolved)?;
        let is_plain = resolved.iter().all(|resolved| !has_window(&resolved.expr));
        let (frame, exprs) = self.projected(input.clone(), &resolved)?;
        if is_plain {
            *behind = Some(Behind { input, exprs });
        }
        Ok(frame)
    }

    /// The frame of a projection to resolved expressions without aggregates and generators, and the expressions.
    pub(super) fn projected(&self, input: Frame, resolved: &[Resolved]) -> Result<(Frame, Vec<Expr>)> {
        let mut taken = HashSet::new();
        let (mut exprs, mut columns): (Vec<Expr>, Vec<Column>) =
            resolved.iter().map(|resolved| self.output(resolved, &input, &mut taken)).unzip();
        if columns.is_empty() {
            let field = Arc::new(arrow::datatypes::Field::new("", DataType::Boolean, false));
            let column = Column { is_hidden: true, ..self.column("", field) };
            exprs.push(lit(true).alias(&column.internal));
            columns.push(column);
        }
        let (plan, exprs) = self.windowed(input.plan, exprs)?;
        Ok((Frame { plan: project(plan, exprs.clone())?, columns }, exprs))
    }

    /// Computes the window functions of expressions below them; the expressions then read their columns.
    pub(super) fn windowed(&self, plan: LogicalPlan, exprs: Vec<Expr>) -> Result<(LogicalPlan, Vec<Expr>)> {
        let mut found: Vec<(WindowFunction, String)> = Vec::new();
        let exprs = exprs
            .into_iter()
            .map(|expr| {
                expr.transform_down(|part| match part {
                    Expr::WindowFunction(function) => {
                        let known = found.iter().find(|(known, _)| known == function.as_ref());
                        let name = match known {
                            Some((_, name)) => name.clone(),
                            None => {
                                let name = self.context.fresh_name();
                                found.push((*function, name.clone()));
                                name
                            }
                        };
                        let column = Expr::Column(datafusion::common::Column::new_unqualified(name));
                        Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
                    }
                    other => Ok(Transformed::no(other)),
                })
                .data()
            })
            .collect::<datafusion::error::Result<Vec<_>>>()?;
        // One node for each way to partition and order.
        let mut plan = plan;
        while let Some((first, _)) = found.first().cloned() {
            let is_alike = |function: &WindowFunction| {
                function.params.partition_by == first.params.partition_by
                    && function.params.order_by == first.params.order_by
            };
            let (alike, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(|(function, _)| is_alike(function));
            let functions = alike
                .into_iter()
                .map(|(function, name)| Expr::WindowFunction(Box::new(function)).alias(name))
                .collect();
            plan = LogicalPlan::Window(Window::try_new(functions, Arc::new(plan))?);
            found = rest;
        }
        Ok((plan, exprs))
    }

    pub(super) async fn filter(
        &self,
        message: &proto::Filter,
        input: Frame,
        behind: Option<&Behind>,
        outer: &Outer,
    ) -> Result<Frame> {
        let condition = message.condition.as_ref().ok_or_else(|| missing("condition"))?;
        match (self.expression(condition, &input, outer).await, behind) {
            (Ok(resolved), _) => filtered(input, resolved),
            (Err(error), Some(behind)) if is_unresolved(&error) => {
                let widened = behind.widened(&input);
                let Ok(resolved) = self.expression(condition, &widened, outer).await else { return Err(error) };
                let with_dropped = behind.with_dropped(&input, std::iter::once(&resolved.expr))?;
                without_dropped(filtered(with_dropped, resolved)?, input.columns)
            }
            (Err(error), _) => Err(error),
        }
    }
}

fn filtered(input: Frame, condition: Resolved) -> Result<Frame> {
    if !matches!(condition.field.data_type(), DataType::Boolean | DataType::Null) {
        return Err(Error::DatatypeMismatch {
            kind: "FILTER_NOT_BOOLEAN",
            expression: condition.name,
            detail: format!("the filter has type {}", crate::data_type::sql_name(&condition.field)),
        });
    }
    if has_aggregate(&condition.expr) {
        return Err(Error::InvalidPlan { detail: format!("aggregate function in WHERE: {}", condition.name) });
    }
    let filter = Filter::try_new(condition.expr, Arc::new(input.plan.clone()))?;
    Ok(over(input, LogicalPlan::Filter(filter)))
}

/// The frame of one row without columns.
pub fn one_row() -> Frame {
    let schema = Arc::new(DFSchema::empty());
    let plan = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema });
    Frame { plan, columns: Vec::new() }
}

/// Whether the expression is a call of an aggregate function.
pub fn is_aggregate(expr: &Expr) -> bool {
    matches!(expr, Expr::AggregateFunction(_))
        || PythonCall::of(expr).is_some_and(|(call, _)| call.function.eval_type.is_aggregate())
}

/// Whether an aggregate function stands in the expression outside of a window function.
pub fn has_aggregate(expr: &Expr) -> bool {
    match expr {
        expr if is_aggregate(expr) => true,
        Expr::WindowFunction(function) => {
            let params = &function.params;
            let orders = params.order_by.iter().map(|order| &order.expr);
            params.args.iter().chain(&params.partition_by).chain(orders).any(has_aggregate)
        }
        other => {
            let mut found = false;
            // The closure never fails.
            let _ = other.apply_children(|child| {
                found |= has_aggregate(child);
                Ok(TreeNodeRecursion::Continue)
            });
            found
        }
    }
}

fn has_window(expr: &Expr) -> bool {
    expr.exists(|part| Ok(matches!(part, Expr::WindowFunction(_)))).unwrap_or(false)
}
