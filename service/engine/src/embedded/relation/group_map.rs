//! `applyInPandas` and `applyInArrow`: a Python function of each group, of one relation or of two.

use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use spark_connect_proto as proto;

use super::build::keep;
use super::map_partitions::internal_fields;
use super::{Outer, Resolution, missing};
use crate::embedded::operator::{PartitionNode, PartitionOperation};
use crate::embedded::python::{EvalType, GroupFunction, GroupedRelation, PythonFunction, PythonNode, PythonOperation};
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

impl Resolution<'_> {
    pub(super) async fn group_map(&self, message: &proto::GroupMap, input: Frame, outer: &Outer) -> Result<Frame> {
        if message.initial_input.is_some() || message.transform_with_state_info.is_some() {
            return Err(Error::Unsupported { feature: "functions of groups with state".into() });
        }
        if !message.sorting_expressions.is_empty() {
            return Err(Error::Unsupported { feature: "functions of sorted groups".into() });
        }
        let function = function(&message.func)?;
        let kinds = [
            EvalType::GroupedMapPandas,
            EvalType::GroupedMapPandasIter,
            EvalType::GroupedMapArrow,
            EvalType::GroupedMapArrowIter,
        ];
        if !kinds.contains(&function.eval_type) {
            return Err(Error::InvalidPlan { detail: format!("{} is no function of groups", function.name) });
        }
        let grouped = self.grouped_relation(input, &message.grouping_expressions, outer).await?;
        self.function_of_groups(function, vec![grouped])
    }

    pub(super) async fn cogroup_map(&self, message: &proto::CoGroupMap, left: Frame, outer: &Outer) -> Result<Frame> {
        if !message.input_sorting_expressions.is_empty() || !message.other_sorting_expressions.is_empty() {
            return Err(Error::Unsupported { feature: "functions of sorted groups".into() });
        }
        let function = function(&message.func)?;
        if !matches!(function.eval_type, EvalType::CogroupedMapPandas | EvalType::CogroupedMapArrow) {
            return Err(Error::InvalidPlan { detail: format!("{} is no function of two groups", function.name) });
        }
        if message.input_grouping_expressions.len() != message.other_grouping_expressions.len() {
            return Err(Error::InvalidPlan {
                detail: format!(
                    "Cogroup keys must have same size: {} != {}",
                    message.input_grouping_expressions.len(),
                    message.other_grouping_expressions.len()
                ),
            });
        }
        // The same relation may stand on both sides.
        let right = self.other(&message.other, outer).await?;
        let right = self.renamed(right)?;
        let left = self.grouped_relation(left, &message.input_grouping_expressions, outer).await?;
        let right = self.grouped_relation(right, &message.other_grouping_expressions, outer).await?;
        self.function_of_groups(function, vec![left, right])
    }

    fn function_of_groups(
        &self,
        function: PythonFunction,
        relations: Vec<(GroupedRelation, LogicalPlan)>,
    ) -> Result<Frame> {
        let host = self.context.python()?;
        let columns = self.columns_of(&function)?;
        let (relations, inputs) = relations.into_iter().unzip();
        let group = GroupFunction { function: Arc::new(function), relations, output: internal_fields(&columns) };
        Ok(Frame { plan: PythonNode::plan(PythonOperation::Group(group), host, inputs)?, columns })
    }

    /// The visible columns and the keys, each group's rows in one partition.
    async fn grouped_relation(
        &self,
        input: Frame,
        keys: &[proto::Expression],
        outer: &Outer,
    ) -> Result<(GroupedRelation, LogicalPlan)> {
        let groups = self.projection(keys, &input, outer).await?;
        let mut columns: Vec<Column> = input.visible().cloned().collect();
        let num_values = columns.len();
        let (input, distinct) = self.keyed(input, &groups)?;
        for key in &distinct {
            if !columns.iter().any(|column| column.internal == key.column.internal) {
                columns.push(key.column.clone());
            }
        }
        let position = |internal: &str| columns.iter().position(|column| column.internal == internal);
        let keys = groups.iter().filter_map(|group| {
            let key = distinct.iter().find(|key| key.expr == group.expr)?;
            position(&key.column.internal)
        });
        let relation = GroupedRelation {
            columns: columns
                .iter()
                .map(|column| Arc::new(column.field.as_ref().clone().with_name(&column.name)))
                .collect(),
            keys: keys.collect(),
            values: (0..num_values).collect(),
        };
        let exprs = distinct.iter().map(|key| key.column.expr()).collect();
        let frame = keep(input, columns)?;
        Ok((relation, self.by_group(exprs, frame.plan)?))
    }

    /// The plan with rows of equal keys in one partition.
    pub(super) fn by_group(&self, keys: Vec<datafusion::logical_expr::Expr>, plan: LogicalPlan) -> Result<LogicalPlan> {
        let num_partitions = self.session.engine().options().target_partitions;
        let operation = if keys.is_empty() {
            PartitionOperation::Coalesce(1)
        } else {
            PartitionOperation::Hash(keys, num_partitions)
        };
        Ok(PartitionNode::plan(operation, plan)?)
    }
}

fn function(message: &Option<proto::CommonInlineUserDefinedFunction>) -> Result<PythonFunction> {
    PythonFunction::from_proto(message.as_ref().ok_or_else(|| missing("function"))?)
}
