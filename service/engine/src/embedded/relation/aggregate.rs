//! Aggregations: grouping expressions, then expressions over aggregate functions and grouping expressions.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::Column as PlanColumn;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, lit};
use spark_connect_proto as proto;
use spark_connect_proto::aggregate::GroupType;
use spark_connect_proto::expression::ExprType;
use spark_connect_proto::expression::literal::LiteralType;

use super::build::project;
use super::columns::passed_on;
use super::message::{aliased, attribute, call, cast, integer, rewrite};
use super::project::{has_aggregate, is_aggregate};
use super::{Outer, Resolution};
use crate::embedded::expression::{Resolved, Typed, canonical_float};
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

/// A grouping expression: as the user wrote it, and the column of the aggregation's input that holds it.
#[derive(Debug, Clone)]
pub struct Key {
    pub expr: Expr,
    pub column: Column,
}

/// Which groupings an aggregation makes, as positions of keys.
#[derive(Debug)]
pub enum Sets {
    /// By all keys.
    One,
    /// `id` is the column that numbers the sets, a bit for each key that a set leaves out.
    Many { sets: Vec<Vec<usize>>, id: String },
}

impl Resolution<'_> {
    pub(super) async fn aggregate(
        &self,
        message: &proto::Aggregate,
        input: Frame,
        outer: &Outer,
    ) -> Result<Frame> {
        let mut groups = Vec::new();
        for expression in &message.grouping_expressions {
            let expression = self.grouping(expression, &message.aggregate_expressions, &input);
            groups.extend(self.projection(std::slice::from_ref(&expression), &input, outer).await?);
        }
        let mut sets = Vec::new();
        for set in &message.grouping_sets {
            sets.push(self.projection(&set.grouping_set, &input, outer).await?);
        }
        if message.group_type() == GroupType::GroupingSets && groups.is_empty() {
            for resolved in sets.iter().flatten() {
                if !groups.iter().any(|known: &Resolved| known.expr == resolved.expr) {
                    groups.push(resolved.clone());
                }
            }
        }
        if let Some(group) = groups.iter().find(|group| has_aggregate(&group.expr)) {
            return Err(Error::InvalidPlan { detail: format!("aggregate function in GROUP BY: {}", group.name) });
        }
        let (input, keys) = self.keyed(input, &groups)?;
        let many = |sets| Sets::Many { sets, id: self.context.fresh_name() };
        let sets = match message.group_type() {
            GroupType::Groupby | GroupType::Pivot | GroupType::Unspecified => Sets::One,
            GroupType::Rollup => many((0..=keys.len()).rev().map(|length| (0..length).collect()).collect()),
            GroupType::Cube => {
                if keys.len() > 16 {
                    return Err(Error::Unsupported { feature: format!("cube of {} columns", keys.len()) });
                }
                let num_keys = keys.len();
                let subset = |bits: usize| (0..num_keys).filter(move |key| bits & (1 << (num_keys - 1 - key)) != 0);
                many((0..1_usize << keys.len()).rev().map(|bits| subset(bits).collect()).collect())
            }
            GroupType::GroupingSets => {
                let position = |resolved: &Resolved| {
                    keys.iter().position(|key| key.expr == resolved.expr).ok_or_else(|| Error::InvalidPlan {
                        detail: format!("grouping set has {}, which is not grouped by", resolved.name),
                    })
                };
                let positions = sets.iter().map(|set| set.iter().map(position).collect()).collect::<Result<_>>()?;
                many(positions)
            }
        };
        if let Some(pivot) = &message.pivot {
            return self.pivot(pivot, &message.aggregate_expressions, input, keys, outer).await;
        }
        let mut scope = input.clone();
        let expressions = match &sets {
            Sets::One => message.aggregate_expressions.clone(),
            Sets::Many { sets, id } => {
                scope.columns.push(grouping_id_column(id));
                let order = order_of(sets);
                let rewrite = |expression: &proto::Expression| {
                    self.with_grouping_functions(expression, &keys, &order, &input, outer)
                };
                message.aggregate_expressions.iter().map(rewrite).collect::<Result<_>>()?
            }
        };
        let mut resolved: Vec<Resolved> = Vec::new();
        for key in &keys_in_order(&groups, &keys) {
            resolved.push(Resolved { expr: key.column.expr(), ..passed_on(0, &key.column) });
        }
        let num_keys = resolved.len();
        for (resolved, group) in resolved.iter_mut().zip(&groups) {
            resolved.name.clone_from(&group.name);
            resolved.column = input.columns.iter().position(|column| column.expr() == resolved.expr);
        }
        resolved.extend(self.projection(&expressions, &scope, outer).await?);
        self.aggregated(input, &keys, &sets, resolved, num_keys)
    }

    /// An aggregation without grouping.
    pub(super) fn global_aggregate(&self, input: Frame, resolved: Vec<Resolved>) -> Result<Frame> {
        self.aggregated(input, &[], &Sets::One, resolved, 0)
    }

    /// `GROUP BY 1` and `GROUP BY alias` mean an expression of the output.
    fn grouping(
        &self,
        expression: &proto::Expression,
        outputs: &[proto::Expression],
        input: &Frame,
    ) -> proto::Expression {
        let unaliased = |output: &proto::Expression| match &output.expr_type {
            Some(ExprType::Alias(alias)) => alias.expr.as_deref().cloned().unwrap_or_default(),
            _ => output.clone(),
        };
        match &expression.expr_type {
            Some(ExprType::Literal(proto::expression::Literal {
                literal_type: Some(LiteralType::Integer(ordinal)),
                ..
            })) => {
                let output = usize::try_from(*ordinal).ok().and_then(|ordinal| outputs.get(ordinal.checked_sub(1)?));
                output.map_or_else(|| expression.clone(), unaliased)
            }
            Some(ExprType::UnresolvedAttribute(attribute)) if attribute.plan_id.is_none() => {
                let name = &attribute.unparsed_identifier;
                if input.columns.iter().any(|column| self.context.same_name(&column.name, name)) {
                    return expression.clone();
                }
                let alias = outputs.iter().find(|output| {
                    matches!(&output.expr_type, Some(ExprType::Alias(alias))
                        if alias.name.len() == 1 && self.context.same_name(&alias.name[0], name))
                });
                alias.map_or_else(|| expression.clone(), unaliased)
            }
            _ => expression.clone(),
        }
    }

    /// Puts each distinct grouping expression into a column of the input, floats in the form in which they are grouped.
    pub(super) fn keyed(&self, input: Frame, groups: &[Resolved]) -> Result<(Frame, Vec<Key>)> {
        let mut keys: Vec<Key> = Vec::new();
        let mut columns = input.columns.clone();
        let mut exprs: Vec<Expr> = columns.iter().map(Column::expr).collect();
        for group in groups {
            if keys.iter().any(|key| key.expr == group.expr) {
                continue;
            }
            let passed_on = group.column.and_then(|index| input.columns.get(index));
            let typed = Typed { expr: group.expr.clone(), field: Arc::clone(&group.field) };
            let is_float = matches!(typed.data_type(), DataType::Float32 | DataType::Float64);
            let column = match passed_on {
                Some(column) if !is_float => column.clone(),
                _ => {
                    let base = match passed_on {
                        Some(column) => Column { internal: self.context.fresh_name(), ..column.clone() },
                        None => self.column(&group.name, Arc::clone(&group.field)),
                    };
                    exprs.push(canonical_float(typed).expr.alias(&base.internal));
                    columns.push(base.clone());
                    base
                }
            };
            keys.push(Key { expr: group.expr.clone(), column: Column { is_hidden: false, ..column } });
        }
        if columns.len() == input.columns.len() {
            return Ok((input, keys));
        }
        Ok((Frame { plan: project(input.plan, exprs)?, columns }, keys))
    }

    /// The aggregation that the resolved expressions are over; its first `num_keys` are keys as they are.
    pub(super) fn aggregated(
        &self,
        input: Frame,
        keys: &[Key],
        sets: &Sets,
        resolved: Vec<Resolved>,
        num_keys: usize,
    ) -> Result<Frame> {
        if resolved.iter().any(|resolved| resolved.generator.is_some()) {
            return Err(Error::Unsupported { feature: "generator over aggregate functions".into() });
        }
        let mut aggregates: Vec<(Expr, String)> = Vec::new();
        let mut known: HashSet<String> = keys.iter().map(|key| key.column.internal.clone()).collect();
        if let Sets::Many { id, .. } = sets {
            known.insert(id.clone());
        }
        let mut outputs = Vec::with_capacity(resolved.len());
        for mut resolved in resolved {
            let rewritten = self.over_aggregates(resolved.expr, keys, &mut aggregates)?;
            known.extend(aggregates.iter().map(|(_, name)| name.clone()));
            if let Some(stray) = rewritten.column_refs().into_iter().find(|column| !known.contains(&column.name)) {
                let name = input.columns.iter().find(|column| column.internal == stray.name);
                let expression = name.map_or_else(|| resolved.name.clone(), |column| column.name.clone());
                return Err(Error::MissingAggregation { expression });
            }
            resolved.expr = rewritten;
            outputs.push(resolved);
        }
        if keys.is_empty() && aggregates.is_empty() {
            aggregates.push((count(lit(1_i64)), self.context.fresh_name()));
        }
        let key_exprs: Vec<Expr> = keys.iter().map(|key| key.column.expr()).collect();
        let group_exprs = match sets {
            Sets::One => key_exprs,
            Sets::Many { sets, .. } => {
                let sets = sets.iter().map(|set| set.iter().map(|key| key_exprs[*key].clone()).collect()).collect();
                vec![Expr::GroupingSet(GroupingSet::GroupingSets(sets))]
            }
        };
        let mut plan = match (self.python_aggregate(&input.plan, keys, &aggregates)?, sets) {
            (Some(plan), Sets::One) => plan,
            (Some(_), Sets::Many { .. }) => {
                return Err(Error::Unsupported { feature: "aggregate Python functions over grouping sets".into() });
            }
            (None, _) => {
                let aggregate_exprs = aggregates.iter().map(|(expr, name)| expr.clone().alias(name)).collect();
                LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input.plan), group_exprs, aggregate_exprs)?)
            }
        };
        // A key that a grouping set leaves out is null.
        let is_nullable = matches!(sets, Sets::Many { .. });
        let columns: Vec<Column> = keys
            .iter()
            .map(|key| {
                let nullable = is_nullable || key.column.field.is_nullable();
                let field = Arc::new(key.column.field.as_ref().clone().with_nullable(nullable));
                Column { field, ..key.column.clone() }
            })
            .collect();
        for (index, output) in outputs.iter_mut().enumerate() {
            let key = columns.iter().position(|column| column.expr() == output.expr);
            let is_renamed = key.is_some_and(|key| columns[key].name != output.name);
            output.column = if index < num_keys || output.column.is_some() { key.filter(|_| !is_renamed) } else { None };
            if is_nullable && let Some(key) = key {
                let field = output.field.as_ref().clone().with_nullable(columns[key].field.is_nullable());
                output.field = Arc::new(field);
            }
        }
        if let Sets::Many { id, .. } = sets {
            let mut exprs: Vec<Expr> = columns.iter().map(Column::expr).collect();
            exprs.extend(aggregates.iter().map(|(_, name)| Expr::Column(PlanColumn::new_unqualified(name))));
            let number = Expr::Column(PlanColumn::new_unqualified(Aggregate::INTERNAL_GROUPING_ID));
            exprs.push(datafusion::logical_expr::cast(number, DataType::Int64).alias(id));
            plan = project(plan, exprs)?;
        }
        let frame = Frame { plan, columns };
        Ok(self.projected(frame, &outputs)?.0)
    }

    /// The expression over the aggregation's output; the aggregate functions in it are collected.
    pub(super) fn over_aggregates(
        &self,
        expr: Expr,
        keys: &[Key],
        aggregates: &mut Vec<(Expr, String)>,
    ) -> Result<Expr> {
        let column = |name: &str| Expr::Column(PlanColumn::new_unqualified(name));
        let rewritten = expr.transform_down(|part| {
            if let Some(key) = keys.iter().find(|key| key.expr == part) {
                return Ok(Transformed::new(key.column.expr(), true, TreeNodeRecursion::Jump));
            }
            if !is_aggregate(&part) {
                return Ok(Transformed::no(part));
            }
            let name = match aggregates.iter().find(|(known, _)| *known == part) {
                Some((_, name)) => name.clone(),
                None => {
                    let name = self.context.fresh_name();
                    aggregates.push((part, name.clone()));
                    name
                }
            };
            Ok(Transformed::new(column(&name), true, TreeNodeRecursion::Jump))
        });
        Ok(rewritten.data()?)
    }

    /// Replaces `grouping(key)` and `grouping_id()`, which read the bits of the grouping set that a row belongs to.
    fn with_grouping_functions(
        &self,
        expression: &proto::Expression,
        keys: &[Key],
        order: &[usize],
        input: &Frame,
        outer: &Outer,
    ) -> Result<proto::Expression> {
        if !calls_grouping(expression) {
            return Ok(expression.clone());
        }
        let mut rewritten = expression.clone();
        let mut failure = None;
        rewrite(&mut rewritten, &mut |part| {
            let Some(ExprType::UnresolvedFunction(call)) = &part.expr_type else { return };
            let bit = |position: usize| {
                let from_left = order.iter().position(|key| *key == position).unwrap_or_default();
                order.len() - 1 - from_left
            };
            let key_of = |argument: &proto::Expression| -> Result<usize> {
                let resolved = self.plain_expression(argument, input, outer)?;
                keys.iter().position(|key| key.expr == resolved.expr).ok_or_else(|| Error::InvalidPlan {
                    detail: format!("column of grouping ({}) is not grouped by", resolved.name),
                })
            };
            let replaced = match call.function_name.to_lowercase().as_str() {
                "grouping" if call.arguments.len() == 1 => key_of(&call.arguments[0]).map(|key| {
                    bits_of(&[bit(key)], "tinyint")
                }),
                "grouping_id" => {
                    let chosen = if call.arguments.is_empty() {
                        Ok((0..keys.len()).collect())
                    } else {
                        call.arguments.iter().map(key_of).collect::<Result<Vec<_>>>()
                    };
                    chosen.map(|chosen| {
                        let bits: Vec<usize> = chosen.into_iter().map(bit).collect();
                        bits_of(&bits, "bigint")
                    })
                }
                _ => return,
            };
            match replaced {
                Ok(replaced) => *part = replaced,
                Err(error) => failure = Some(error),
            }
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        if matches!(expression.expr_type, Some(ExprType::Alias(_))) {
            return Ok(rewritten);
        }
        Ok(aliased(rewritten, &sql::automatic_name(expression)))
    }
}

/// Bits of the grouping id, gathered with shifts and additions.
fn bits_of(bits: &[usize], type_name: &str) -> proto::Expression {
    let mut sum = integer(0);
    for (position, bit) in bits.iter().rev().enumerate() {
        let shifted = call("shiftright", vec![attribute(GROUPING_ID), integer(*bit as i32)]);
        let one = call("&", vec![shifted, cast(integer(1), "bigint")]);
        sum = call("+", vec![sum, call("shiftleft", vec![one, integer(position as i32)])]);
    }
    cast(sum, type_name)
}

const GROUPING_ID: &str = "spark_grouping_id";

/// The number of a row's grouping set, as a column that expressions can name.
fn grouping_id_column(id: &str) -> Column {
    Column {
        name: GROUPING_ID.into(),
        internal: id.to_owned(),
        field: Arc::new(Field::new(GROUPING_ID, DataType::Int64, false)),
        plan_ids: Vec::new(),
        qualifiers: Vec::new(),
        is_hidden: true,
    }
}

/// The keys in the order in which DataFusion numbers them, the most significant bit first.
fn order_of(sets: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::new();
    for key in sets.iter().flatten() {
        if !order.contains(key) {
            order.push(*key);
        }
    }
    order
}

fn keys_in_order<'k>(groups: &[Resolved], keys: &'k [Key]) -> Vec<&'k Key> {
    groups.iter().filter_map(|group| keys.iter().find(|key| key.expr == group.expr)).collect()
}

fn calls_grouping(expression: &proto::Expression) -> bool {
    let is_call = matches!(&expression.expr_type, Some(ExprType::UnresolvedFunction(call))
        if matches!(call.function_name.to_lowercase().as_str(), "grouping" | "grouping_id"));
    is_call || super::subquery::children(expression).into_iter().any(calls_grouping)
}
