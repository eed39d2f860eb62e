//! Random samples.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, SortExpr, lit, when};
use spark_connect_proto as proto;

use super::build::keep;
use super::message::{attribute, by_internal_name, call, literal};
use super::{Outer, Resolution, missing, over};
use crate::embedded::operator::{PartitionNode, PartitionOperation};
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

/// A sample without a seed is another one each time it is asked for.
fn seed_or_random(seed: Option<i64>) -> i64 {
    seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 as i64)
}

pub fn sample(message: &proto::Sample, input: Frame) -> Result<Frame> {
    let seed = seed_or_random(message.seed);
    let (lower, upper) = (message.lower_bound, message.upper_bound);
    if !(lower.is_finite() && upper.is_finite() && lower <= upper) {
        return Err(Error::InvalidPlan { detail: format!("sample bounds {lower} to {upper}") });
    }
    let input = if message.deterministic_order { in_defined_order(input)? } else { input };
    let operation = if message.with_replacement() {
        PartitionOperation::Poisson { mean_bits: (upper - lower).to_bits(), seed }
    } else {
        PartitionOperation::Bernoulli { lower_bits: lower.to_bits(), upper_bits: upper.to_bits(), seed }
    };
    let plan = PartitionNode::plan(operation, input.plan.clone())?;
    Ok(over(input, plan))
}

/// The splits of one relation must draw from the same rows in the same places, also where the relation's rows come in
/// another order each time it is run: then each partition is sorted by all its columns.
fn in_defined_order(input: Frame) -> Result<Frame> {
    let mut varies = false;
    input.plan.apply(|node| {
        varies |= matches!(
            node,
            LogicalPlan::Aggregate(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::Join(_)
                | LogicalPlan::Window(_)
                | LogicalPlan::Subquery(_)
        );
        Ok(if varies { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !varies {
        return Ok(input);
    }
    let orders: Vec<SortExpr> = input
        .columns
        .iter()
        .filter(|column| !matches!(column.data_type(), DataType::Map(..)))
        .map(|column| column.expr().sort(true, true))
        .collect();
    if orders.is_empty() {
        return Ok(input);
    }
    let plan = PartitionNode::plan(PartitionOperation::Sort(orders), input.plan.clone())?;
    Ok(over(input, plan))
}

impl Resolution<'_> {
    pub(super) async fn sample_by(
        &self,
        message: &proto::StatSampleBy,
        input: Frame,
        outer: &Outer,
    ) -> Result<Frame> {
        let column = message.col.as_ref().ok_or_else(|| missing("column"))?;
        let stratum = self.expression(column, &input, outer).await?;
        let deviate = self.column("", Arc::new(Field::new("", DataType::Float64, false)));
        // The stratum as a column of a frame, so that its comparison with a literal follows Spark's rules.
        let stratum_column = Column {
            internal: self.context.fresh_name(),
            name: String::new(),
            field: Arc::clone(&stratum.field),
            plan_ids: Vec::new(),
            qualifiers: Vec::new(),
            is_hidden: true,
        };
        let columns = input.columns.clone();
        let mut exprs: Vec<Expr> = columns.iter().map(Column::expr).collect();
        exprs.push(stratum.expr.alias(&stratum_column.internal));
        let plan = super::build::project(input.plan, exprs)?;
        let mut scope = Frame { plan: plan.clone(), columns: columns.clone() };
        scope.columns.push(stratum_column.clone());
        let scope = by_internal_name(&scope);
        let mut fraction: Option<datafusion::logical_expr::conditional_expressions::CaseBuilder> = None;
        for one in &message.fractions {
            let value = one.stratum.clone().ok_or_else(|| missing("stratum"))?;
            let value = value.literal_type.map(literal).ok_or_else(|| missing("stratum"))?;
            let equal = call("<=>", vec![attribute(&stratum_column.internal), value]);
            let equal = self.plain_expression(&equal, &scope, &[])?.expr;
            fraction = Some(match fraction {
                None => when(equal, lit(one.fraction)),
                Some(mut cases) => cases.when(equal, lit(one.fraction)),
            });
        }
        let fraction = match fraction {
            Some(mut cases) => cases.otherwise(lit(0.0_f64))?,
            None => lit(0.0_f64),
        };
        let operation = PartitionOperation::Uniform {
            column: deviate.internal.clone(),
            seed: seed_or_random(message.seed),
        };
        let plan = PartitionNode::plan(operation, plan)?;
        let filter = Filter::try_new(deviate.expr().lt(fraction), Arc::new(plan))?;
        let mut all = columns.clone();
        all.push(stratum_column);
        all.push(deviate);
        keep(Frame { plan: LogicalPlan::Filter(filter), columns: all }, columns)
    }
}
