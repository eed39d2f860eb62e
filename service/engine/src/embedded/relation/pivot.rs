//! Pivots: an aggregate for each value of a column.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, Operator, binary_expr, lit, when};
use spark_connect_proto as proto;
use spark_connect_proto::expression::ExprType;

use super::aggregate::{Key, Sets};
use super::columns::{null_of, passed_on};
use super::{Outer, Resolution, missing};
use crate::embedded::Frame;
use crate::embedded::expression::cast::{self, Mode};
use crate::embedded::expression::{Resolved, Typed};
use crate::{Error, Result, show};

impl Resolution<'_> {
    pub(super) async fn pivot(
        &self,
        message: &proto::aggregate::Pivot,
        aggregates: &[proto::Expression],
        input: Frame,
        keys: Vec<Key>,
        outer: &Outer,
    ) -> Result<Frame> {
        let column = message.col.as_ref().ok_or_else(|| missing("pivot column"))?;
        let column = self.expression(column, &input, outer).await?;
        let mut values: Vec<(ScalarValue, Field)> = Vec::new();
        for literal in &message.values {
            values.push(crate::literal::scalar_from_literal(literal)?);
        }
        if values.is_empty() {
            values = self.pivot_values(&column, &input).await?;
        }
        let resolved = self.projection(aggregates, &input, outer).await?;
        let mut outputs: Vec<Resolved> = keys.iter().map(|key| passed_on(0, &key.column)).collect();
        for output in &mut outputs {
            output.column = input.columns.iter().position(|column| column.expr() == output.expr);
        }
        let num_keys = outputs.len();
        for (value, field) in values {
            let text = show::string_column(&value.to_array()?, &field, &self.context.conf)?;
            let text = if value.is_null() { "null" } else { text.value(0) }.to_owned();
            let typed = Typed { expr: Expr::Literal(value, None), field: Arc::new(field) };
            let value = cast::cast_to(typed, column.field.data_type(), Mode::Ansi, &self.context.conf)?;
            let is_value = binary_expr(column.expr.clone(), Operator::IsNotDistinctFrom, value.expr);
            let num_rows = filtered(count(lit(1_i64)), &is_value)?;
            for (resolved, message) in resolved.iter().zip(aggregates) {
                let is_aliased = matches!(message.expr_type, Some(ExprType::Alias(_)));
                let name = match aggregates.len() {
                    1 => text.clone(),
                    _ if is_aliased => format!("{text}_{}", resolved.name),
                    _ => format!("{text}_{}", sql::automatic_name(message)),
                };
                // Where a group has no row of the value, even a count is null.
                let null = null_of(&resolved.field)?;
                let expr = when(num_rows.clone().gt(lit(0_i64)), filtered(resolved.expr.clone(), &is_value)?)
                    .otherwise(null)?;
                let field = resolved.field.as_ref().clone().with_name(&name).with_nullable(true);
                outputs.push(Resolved { name, expr, field: Arc::new(field), column: None, generator: None });
            }
        }
        self.aggregated(input, &keys, &Sets::One, outputs, num_keys)
    }

    /// The values that the column has, in order.
    async fn pivot_values(&self, column: &Resolved, input: &Frame) -> Result<Vec<(ScalarValue, Field)>> {
        let values_max = self.context.conf.get("spark.sql.pivotMaxValues");
        let values_max: usize = values_max.and_then(|value| value.parse().ok()).unwrap_or(10_000);
        let value = self.column(&column.name, Arc::clone(&column.field));
        let plan = LogicalPlanBuilder::from(input.plan.clone())
            .project([column.expr.clone().alias(&value.internal)])?
            .distinct()?
            .sort([value.expr().sort(true, true)])?
            .limit(0, Some(values_max + 1))?
            .build()?;
        let field = value.field.as_ref().clone();
        let batches = self.session.collect(&Frame { plan, columns: vec![value] }).await?;
        let mut values = Vec::new();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                values.push((ScalarValue::try_from_array(batch.column(0), row)?, field.clone()));
            }
        }
        if values.len() > values_max {
            return Err(Error::InvalidPlan {
                detail: format!("The pivot column {} has more than {values_max} distinct values", column.name),
            });
        }
        Ok(values)
    }
}

/// The expression with each aggregate function in it over the rows for which `condition` holds.
fn filtered(expr: Expr, condition: &Expr) -> Result<Expr> {
    let rewritten = expr.transform_down(|part| match part {
        Expr::AggregateFunction(mut function) => {
            let filter = match function.params.filter.take() {
                Some(filter) => filter.and(condition.clone()),
                None => condition.clone(),
            };
            function.params.filter = Some(Box::new(filter));
            Ok(Transformed::new(Expr::AggregateFunction(function), true, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(rewritten.data()?)
}
