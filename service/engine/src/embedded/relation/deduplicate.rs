//! One row for each combination of values.

use std::sync::Arc;

use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use spark_connect_proto as proto;

use super::Resolution;
use super::build::project;
use super::columns::passed_on;
use super::set_operation::{distinct, shown};
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

impl Resolution<'_> {
    pub(super) fn deduplicate(&self, message: &proto::Deduplicate, input: Frame) -> Result<Frame> {
        if message.within_watermark() {
            return Err(Error::Unsupported { feature: "dropDuplicatesWithinWatermark".into() });
        }
        let input = shown(input)?;
        if message.all_columns_as_keys() || message.column_names.is_empty() {
            return distinct(input);
        }
        let mut groups = Vec::new();
        for name in &message.column_names {
            let same = |column: &&Column| self.context.same_name(&column.name, name);
            if !input.columns.iter().any(|column| same(&column)) {
                let suggestions = input.columns.iter().map(|column| column.name.clone()).collect();
                return Err(Error::UnresolvedColumn { name: name.clone(), suggestions });
            }
            let found = input.columns.iter().enumerate().filter(|(_, column)| same(column));
            groups.extend(found.map(|(index, column)| passed_on(index, column)));
        }
        let columns = input.columns.clone();
        let (input, keys) = self.keyed(input, &groups)?;
        let mut aggregates = Vec::new();
        let mut outputs = Vec::with_capacity(columns.len());
        for column in &columns {
            match keys.iter().find(|key| key.expr == column.expr()) {
                Some(key) => outputs.push(renamed(key.column.expr(), &column.internal)),
                None => {
                    let first = self.context.fresh_name();
                    aggregates.push(first_value(column.expr(), Vec::new()).alias(&first));
                    outputs.push(super::set_operation::plan_column(&first).alias(&column.internal));
                }
            }
        }
        let group_exprs = keys.iter().map(|key| key.column.expr()).collect();
        let aggregate = Aggregate::try_new(Arc::new(input.plan), group_exprs, aggregates)?;
        Ok(Frame { plan: project(LogicalPlan::Aggregate(aggregate), outputs)?, columns })
    }
}

fn renamed(expr: Expr, name: &str) -> Expr {
    match &expr {
        Expr::Column(column) if column.name == name => expr,
        _ => expr.alias(name),
    }
}
