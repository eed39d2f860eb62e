//! Order, position and partitioning of rows.

use std::sync::Arc;

use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, Sort, SortExpr};
use spark_connect_proto as proto;
use spark_connect_proto::expression::ExprType;
use spark_connect_proto::expression::literal::LiteralType;

use super::build::{keep, project};
use super::message::{attribute, by_internal_name};
use super::missing::{Behind, is_unresolved, without_dropped};
use super::{Outer, Resolution, over};
use crate::embedded::{Column, Frame};
use crate::embedded::operator::{PartitionNode, PartitionOperation};
use crate::{Error, Result};

impl Resolution<'_> {
    pub(super) async fn sort(
        &self,
        message: &proto::Sort,
        input: Frame,
        behind: Option<&Behind>,
        outer: &Outer,
    ) -> Result<Frame> {
        let is_global = message.is_global.unwrap_or(true);
        if message.order.iter().any(|order| ordinal(order).is_some()) {
            return self.sort_by_ordinals(message, input, outer).await;
        }
        match (self.orders(&message.order, &input, outer).await, behind) {
            (Ok(orders), _) => self.sorted_by_columns(input, orders, is_global),
            (Err(error), Some(behind)) if is_unresolved(&error) => {
                let widened = behind.widened(&input);
                let Ok(orders) = self.orders(&message.order, &widened, outer).await else { return Err(error) };
                let with_dropped = behind.with_dropped(&input, orders.iter().map(|order| &order.expr))?;
                without_dropped(sorted(with_dropped, orders, is_global)?, input.columns)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// `ORDER BY 1`: the position of an output column.
    async fn sort_by_ordinals(&self, message: &proto::Sort, input: Frame, outer: &Outer) -> Result<Frame> {
        let visible: Vec<_> = input.visible().cloned().collect();
        let scope = by_internal_name(&input);
        let mut orders = Vec::with_capacity(message.order.len());
        for order in &message.order {
            let Some(position) = ordinal(order) else {
                orders.extend(self.orders(std::slice::from_ref(order), &input, outer).await?);
                continue;
            };
            let column = usize::try_from(position).ok().and_then(|position| visible.get(position.checked_sub(1)?));
            let column = column.ok_or_else(|| Error::InvalidPlan {
                detail: format!("ORDER BY position {position} is not in select list (valid range is [1, {}])", visible.len()),
            })?;
            let order = proto::expression::SortOrder {
                child: Some(Box::new(attribute(&column.internal))),
                ..order.clone()
            };
            orders.extend(self.orders(&[order], &scope, outer).await?);
        }
        sorted(input, orders, message.is_global.unwrap_or(true))
    }

    /// Sorts; what differs from one evaluation to the next is put into a column first.
    fn sorted_by_columns(&self, input: Frame, mut orders: Vec<SortExpr>, is_global: bool) -> Result<Frame> {
        if !orders.iter().any(|order| order.expr.is_volatile()) {
            return sorted(input, orders, is_global);
        }
        let columns = input.columns.clone();
        let mut exprs: Vec<_> = columns.iter().map(Column::expr).collect();
        let mut all = columns.clone();
        for order in &mut orders {
            let field = Arc::new(arrow::datatypes::Field::new("", arrow::datatypes::DataType::Null, true));
            let column = Column { is_hidden: true, ..self.column("", field) };
            exprs.push(order.expr.clone().alias(&column.internal));
            order.expr = column.expr();
            all.push(column);
        }
        let frame = Frame { plan: project(input.plan, exprs)?, columns: all };
        keep(sorted(frame, orders, is_global)?, columns)
    }

    pub(super) async fn repartition_by_expression(
        &self,
        message: &proto::RepartitionByExpression,
        input: Frame,
        outer: &Outer,
    ) -> Result<Frame> {
        let num_partitions = match message.num_partitions {
            Some(number) => positive("number of partitions", number)?,
            None => self.session.engine().options().target_partitions,
        };
        let mut keys = Vec::with_capacity(message.partition_exprs.len());
        for expression in &message.partition_exprs {
            if matches!(expression.expr_type, Some(ExprType::SortOrder(_))) {
                return Err(Error::Unsupported { feature: "repartition by range".into() });
            }
            keys.push(self.expression(expression, &input, outer).await?.expr);
        }
        let operation = if keys.is_empty() {
            PartitionOperation::Deal(num_partitions)
        } else {
            PartitionOperation::Hash(keys, num_partitions)
        };
        partitioned(input, operation)
    }
}

/// The position that a sort order of a literal integer means.
fn ordinal(order: &proto::expression::SortOrder) -> Option<i32> {
    match order.child.as_deref()?.expr_type.as_ref()? {
        ExprType::Literal(literal) => match literal.literal_type {
            Some(LiteralType::Integer(position)) => Some(position),
            _ => None,
        },
        _ => None,
    }
}

fn sorted(input: Frame, orders: Vec<SortExpr>, is_global: bool) -> Result<Frame> {
    if orders.is_empty() {
        return Ok(input);
    }
    if !is_global {
        return partitioned(input, PartitionOperation::Sort(orders));
    }
    let sort = Sort { expr: orders, input: Arc::new(input.plan.clone()), fetch: None };
    Ok(over(input, LogicalPlan::Sort(sort)))
}

fn partitioned(input: Frame, operation: PartitionOperation) -> Result<Frame> {
    let plan = PartitionNode::plan(operation, input.plan.clone())?;
    Ok(over(input, plan))
}

/// Skips rows, then keeps as many.
pub fn limit(input: Frame, skip: i32, fetch: Option<i32>) -> Result<Frame> {
    let count = |name: &str, number: i32| {
        usize::try_from(number).map_err(|_| Error::InvalidPlan { detail: format!("{name} is negative: {number}") })
    };
    let skip = count("offset", skip)?;
    let fetch = fetch.map(|fetch| count("limit", fetch)).transpose()?;
    let plan = LogicalPlanBuilder::from(input.plan.clone()).limit(skip, fetch)?.build()?;
    Ok(over(input, plan))
}

pub fn tail(input: Frame, num_rows: i32) -> Result<Frame> {
    let num_rows = usize::try_from(num_rows)
        .map_err(|_| Error::InvalidPlan { detail: format!("tail is negative: {num_rows}") })?;
    if num_rows == 0 {
        return limit(input, 0, Some(0));
    }
    partitioned(input, PartitionOperation::Tail(num_rows))
}

pub fn repartition(message: &proto::Repartition, input: Frame) -> Result<Frame> {
    let num_partitions = positive("number of partitions", message.num_partitions)?;
    let operation = if message.shuffle.unwrap_or(false) {
        PartitionOperation::Deal(num_partitions)
    } else {
        PartitionOperation::Coalesce(num_partitions)
    };
    partitioned(input, operation)
}

fn positive(name: &str, number: i32) -> Result<usize> {
    match usize::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Error::InvalidPlan { detail: format!("{name} must be positive, is {number}") }),
    }
}
