//! Order, position and partitioning of rows.

use std::sync::Arc;

use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, Sort};
use spark_connect_proto as proto;
use spark_connect_proto::expression::ExprType;

use super::missing::{Behind, is_unresolved, without_dropped};
use super::{Outer, Resolution, over};
use crate::embedded::Frame;
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
        match (self.orders(&message.order, &input, outer).await, behind) {
            (Ok(orders), _) => sorted(input, orders, is_global),
            (Err(error), Some(behind)) if is_unresolved(&error) => {
                let widened = behind.widened(&input);
                let Ok(orders) = self.orders(&message.order, &widened, outer).await else { return Err(error) };
                let with_dropped = behind.with_dropped(&input, orders.iter().map(|order| &order.expr))?;
                without_dropped(sorted(with_dropped, orders, is_global)?, input.columns)
            }
            (Err(error), _) => Err(error),
        }
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

fn sorted(input: Frame, orders: Vec<datafusion::logical_expr::SortExpr>, is_global: bool) -> Result<Frame> {
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
