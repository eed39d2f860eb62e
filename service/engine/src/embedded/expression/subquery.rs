//! Subqueries inside expressions; their plans were resolved before, as references.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Spans;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use spark_connect_proto::SubqueryExpression;
use spark_connect_proto::subquery_expression::SubqueryType;

use super::coercion::{compared, implicit};
use super::resolver::unsupported;
use super::{Resolver, Typed};
use crate::embedded::Frame;
use crate::{Error, Result};

impl Resolver<'_> {
    pub(super) fn subquery(&self, message: &SubqueryExpression) -> Result<Typed> {
        let found = self.context.references.lock().get(&message.plan_id).cloned();
        let Some(frame) = found else {
            return Err(Error::InvalidPlan {
                detail: format!("subquery refers to plan {}, which is not given", message.plan_id),
            });
        };
        match message.subquery_type() {
            SubqueryType::Scalar => {
                let column = single_column(&frame)?;
                let field = Arc::new(frame.columns[column].field.as_ref().clone().with_nullable(true));
                Ok(Typed { expr: Expr::ScalarSubquery(subquery(&visible_only(&frame)?)?), field })
            }
            SubqueryType::Exists => {
                let exists = Exists { subquery: subquery(&frame.plan)?, negated: false };
                Ok(Typed::new(Expr::Exists(exists), DataType::Boolean, false))
            }
            SubqueryType::In => {
                let [value] = message.in_subquery_values.as_slice() else {
                    return Err(unsupported("IN subquery over several columns"));
                };
                let value = self.typed(value)?;
                let column = single_column(&frame)?;
                let field = &frame.columns[column].field;
                let Some(common) = compared(value.data_type(), field.data_type(), self.conf()) else {
                    return Err(Error::DatatypeMismatch {
                        kind: "IN_SUBQUERY_DATA_TYPE_MISMATCH",
                        expression: value.expr.to_string(),
                        detail: format!("cannot compare {} with {}", value.data_type(), field.data_type()),
                    });
                };
                if &common != field.data_type() {
                    return Err(unsupported("IN subquery whose column needs an implicit cast"));
                }
                let nullable = value.nullable() || field.is_nullable();
                let value = implicit(value, &common, self.conf())?;
                let expr = InSubquery::new(Box::new(value.expr), subquery(&visible_only(&frame)?)?, false);
                Ok(Typed::new(Expr::InSubquery(expr), DataType::Boolean, nullable))
            }
            SubqueryType::TableArg => Err(unsupported("table argument")),
            SubqueryType::Unknown => Err(Error::InvalidPlan { detail: "subquery of no kind".into() }),
        }
    }
}

fn single_column(frame: &Frame) -> Result<usize> {
    let visible: Vec<usize> =
        frame.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden).map(|(index, _)| index).collect();
    match visible.as_slice() {
        [column] => Ok(*column),
        columns => Err(Error::InvalidPlan {
            detail: format!("subquery must return one column, but returns {}", columns.len()),
        }),
    }
}

fn visible_only(frame: &Frame) -> Result<LogicalPlan> {
    if frame.columns.iter().all(|column| !column.is_hidden) {
        return Ok(frame.plan.clone());
    }
    let columns: Vec<Expr> = frame.visible().map(|column| column.expr()).collect();
    Ok(datafusion::logical_expr::LogicalPlanBuilder::from(frame.plan.clone()).project(columns)?.build()?)
}

fn subquery(plan: &LogicalPlan) -> Result<Subquery> {
    Ok(Subquery { subquery: Arc::new(plan.clone()), outer_ref_columns: outer_references(plan)?, spans: Spans::new() })
}

/// The columns of queries around it that a plan reads.
fn outer_references(plan: &LogicalPlan) -> Result<Vec<Expr>> {
    let mut seen = HashSet::new();
    let mut references = Vec::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if matches!(part, Expr::OuterReferenceColumn(_, _)) && seen.insert(part.clone()) {
                    references.push(part.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(references)
}
