//! Joins: by condition, by column names, lateral.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{NullEquality, Spans};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, Join, JoinConstraint, JoinType, LogicalPlan, Subquery, lit};
use spark_connect_proto as proto;
use spark_connect_proto::join::JoinType as SparkJoinType;
use spark_connect_proto::relation::RelType;

use super::build::project;
use super::grow::Grow;
use super::message::{attribute, by_internal_name, call};
use super::{Outer, Resolution, missing};
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

impl Resolution<'_> {
    pub(super) async fn join(&self, message: &proto::Join, left: Frame, outer: &Outer) -> Result<Frame> {
        if message.join_data_type.is_some_and(|types| types.is_left_struct || types.is_right_struct) {
            return Err(Error::Unsupported { feature: "joinWith".into() });
        }
        let right = self.other(&message.right, outer).await?;
        let (left, right) = self.apart(left, right)?;
        let join_type = join_type(message.join_type())?;
        if !message.using_columns.is_empty() {
            if message.using_columns == [sql::NATURAL_JOIN] {
                let common = self.common_names(&left, &right);
                if !common.is_empty() {
                    return self.join_using(left, right, join_type, &common);
                }
                return joined(left, right, join_type, None);
            }
            return self.join_using(left, right, join_type, &message.using_columns);
        }
        let condition = match &message.join_condition {
            None => {
                let is_cross = message.join_type() == SparkJoinType::Cross;
                if !is_cross && self.context.conf.get("spark.sql.crossJoin.enabled").as_deref() == Some("false") {
                    return Err(Error::Unsupported { feature: "a join without a condition while spark.sql.crossJoin.enabled is false".into() });
                }
                None
            }
            Some(condition) => {
                let both = both(&left, &right);
                let resolved = self.expression(condition, &both, outer).await?;
                if !matches!(resolved.field.data_type(), DataType::Boolean | DataType::Null) {
                    return Err(Error::DatatypeMismatch {
                        kind: "JOIN_CONDITION_NOT_BOOLEAN",
                        expression: resolved.name,
                        detail: format!("the condition has type {}", crate::data_type::sql_name(&resolved.field)),
                    });
                }
                Some(resolved.expr)
            }
        };
        joined(left, right, join_type, condition)
    }

    /// The two sides of a join: no internal name on both, and `df["a"]` means the side that is nearer to `df`.
    pub(super) fn apart(&self, mut left: Frame, mut right: Frame) -> Result<(Frame, Frame)> {
        let names: HashSet<&str> = left.columns.iter().map(|column| column.internal.as_str()).collect();
        if right.columns.iter().any(|column| names.contains(column.internal.as_str())) {
            right = self.renamed(right)?;
        }
        // The last plan id of a column is that of the relation right below.
        let distance = |frame: &Frame, id: i64| {
            let steps = |column: &Column| column.plan_ids.iter().rev().position(|own| *own == id);
            frame.columns.iter().filter_map(steps).min()
        };
        let ids: HashSet<i64> = left.columns.iter().flat_map(|column| column.plan_ids.iter().copied()).collect();
        for id in ids {
            let farther = match (distance(&left, id), distance(&right, id)) {
                (Some(to_left), Some(to_right)) if to_left < to_right => &mut right,
                (Some(to_left), Some(to_right)) if to_left > to_right => &mut left,
                _ => continue,
            };
            for column in &mut farther.columns {
                column.plan_ids.retain(|own| *own != id);
            }
        }
        Ok((left, right))
    }

    fn join_using(&self, left: Frame, right: Frame, join_type: JoinType, names: &[String]) -> Result<Frame> {
        let mut pairs = Vec::with_capacity(names.len());
        for name in names {
            pairs.push((self.using_column(&left, name)?, self.using_column(&right, name)?));
        }
        let scope = by_internal_name(&both(&left, &right));
        let mut condition: Option<Expr> = None;
        for (left_key, right_key) in &pairs {
            let sides = vec![attribute(&left_key.internal), attribute(&right_key.internal)];
            let equal = self.plain_expression(&call("==", sides), &scope, &[])?.expr;
            condition = Some(match condition {
                Some(others) => others.and(equal),
                None => equal,
            });
        }
        let is_key = |column: &Column, side: fn(&(Column, Column)) -> &Column| {
            pairs.iter().any(|pair| side(pair).internal == column.internal)
        };
        let frame = joined(left, right, join_type, condition)?;
        let hidden = |column: &Column| Column { is_hidden: true, ..column.clone() };
        let found = |key: &Column| frame.columns.iter().find(|column| column.internal == key.internal).cloned();
        let mut exprs: Vec<Expr> = Vec::new();
        let mut columns: Vec<Column> = Vec::new();
        let push = |column: Column, expr: Expr, exprs: &mut Vec<Expr>, columns: &mut Vec<Column>| {
            exprs.push(expr);
            columns.push(column);
        };
        for (left_key, right_key) in &pairs {
            let (left_key, right_key) = (found(left_key), found(right_key));
            match (join_type, left_key, right_key) {
                (JoinType::Full, Some(left_key), Some(right_key)) => {
                    let sides = vec![attribute(&left_key.internal), attribute(&right_key.internal)];
                    let scope = by_internal_name(&frame);
                    let either = self.plain_expression(&call("coalesce", sides), &scope, &[]);
                    let (expr, field) = match either {
                        Ok(resolved) => (resolved.expr, resolved.field),
                        Err(_) => (coalesce(vec![left_key.expr(), right_key.expr()]), Arc::clone(&left_key.field)),
                    };
                    let column = self.column(&left_key.name, field);
                    push(column.clone(), expr.alias(&column.internal), &mut exprs, &mut columns);
                }
                (JoinType::Right, _, Some(key)) | (_, Some(key), _) => {
                    push(key.clone(), key.expr(), &mut exprs, &mut columns);
                }
                _ => return Err(Error::Bug { invariant: "a USING join has its keys".into() }),
            }
        }
        let is_any_key =
            |column: &Column| is_key(column, |pair| &pair.0) || is_key(column, |pair| &pair.1);
        for column in frame.columns.iter().filter(|column| !is_any_key(column)) {
            push(column.clone(), column.expr(), &mut exprs, &mut columns);
        }
        let shown: HashSet<String> = columns.iter().map(|column| column.internal.clone()).collect();
        for column in frame.columns.iter().filter(|column| is_any_key(column) && !shown.contains(&column.internal)) {
            push(hidden(column), column.expr(), &mut exprs, &mut columns);
        }
        Ok(Frame { plan: project(frame.plan, exprs)?, columns })
    }

    /// The names that a natural join joins by.
    fn common_names(&self, left: &Frame, right: &Frame) -> Vec<String> {
        let is_on_right =
            |name: &str| right.visible().any(|column| self.context.same_name(&column.name, name));
        left.visible().map(|column| column.name.clone()).filter(|name| is_on_right(name)).collect()
    }

    fn using_column(&self, side: &Frame, name: &str) -> Result<Column> {
        let mut found = side.visible().filter(|column| self.context.same_name(&column.name, name));
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column.clone()),
            (Some(_), Some(_)) => {
                Err(Error::AmbiguousReference { name: name.to_owned(), candidates: vec![name.to_owned(); 2] })
            }
            (None, _) => Err(Error::UnresolvedColumn {
                name: name.to_owned(),
                suggestions: side.visible().map(|column| column.name.clone()).collect(),
            }),
        }
    }

    pub(super) async fn lateral_join(
        &self,
        message: &proto::LateralJoin,
        left: Frame,
        outer: &Outer,
    ) -> Result<Frame> {
        let relation = message.right.as_deref().ok_or_else(|| missing("right side"))?;
        let join_type = join_type(message.join_type())?;
        if let Some(frame) = self.lateral_generator(relation, &left, join_type, outer).await? {
            return match &message.join_condition {
                None => Ok(frame),
                Some(_) => Err(Error::Unsupported { feature: "lateral join of a generator with a condition".into() }),
            };
        }
        let mut around = outer.to_vec();
        around.push(Arc::new(left.clone()));
        let right = Grow(Box::pin(self.relation(relation, &around))).await?;
        let (left, mut right) = self.apart(left, right)?;
        let condition = match &message.join_condition {
            Some(condition) => Some(self.expression(condition, &both(&left, &right), outer).await?.expr),
            None => None,
        };
        let outer_ref_columns = right.plan.all_out_ref_exprs();
        if !outer_ref_columns.is_empty() {
            let subquery = Arc::new(right.plan);
            right.plan = LogicalPlan::Subquery(Subquery { subquery, outer_ref_columns, spans: Spans::new() });
        }
        joined(left, right, join_type, condition)
    }

    /// `LATERAL explode(...)`, whose rows are unnested right from the left side's.
    async fn lateral_generator(
        &self,
        relation: &proto::Relation,
        left: &Frame,
        join_type: JoinType,
        outer: &Outer,
    ) -> Result<Option<Frame>> {
        let (function, alias) = match &relation.rel_type {
            Some(RelType::UnresolvedTableValuedFunction(function)) => (function, None),
            Some(RelType::SubqueryAlias(alias)) => match alias.input.as_deref().and_then(|input| input.rel_type.as_ref()) {
                Some(RelType::UnresolvedTableValuedFunction(function)) => (function, Some(alias.alias.clone())),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let name = match join_type {
            JoinType::Left if !function.function_name.ends_with("_outer") => format!("{}_outer", function.function_name),
            _ => function.function_name.clone(),
        };
        let resolved = self.expression(&call(&name, function.arguments.clone()), left, outer).await?;
        let Some(generator) = &resolved.generator else { return Ok(None) };
        let mut frame = self.unnested(left.clone(), &resolved, generator)?;
        let plan_id = relation.common.as_ref().and_then(|common| common.plan_id);
        for column in frame.columns.iter_mut().skip(left.columns.len()) {
            column.plan_ids.extend(plan_id);
            column.qualifiers.extend(alias.clone());
        }
        Ok(Some(frame))
    }
}

fn both(left: &Frame, right: &Frame) -> Frame {
    let columns = left.columns.iter().chain(&right.columns).cloned().collect();
    Frame { plan: left.plan.clone(), columns }
}

/// The join of two frames without an internal name in common.
pub fn joined(left: Frame, right: Frame, join_type: JoinType, condition: Option<Expr>) -> Result<Frame> {
    let is_existence = matches!(join_type, JoinType::LeftSemi | JoinType::LeftAnti);
    let nullable = |columns: Vec<Column>, becomes_nullable: bool| {
        columns.into_iter().map(move |column| {
            if !becomes_nullable || column.field.is_nullable() {
                return column;
            }
            let field = Arc::new(column.field.as_ref().clone().with_nullable(true));
            Column { field, ..column }
        })
    };
    let left_nullable = matches!(join_type, JoinType::Right | JoinType::Full);
    let right_nullable = matches!(join_type, JoinType::Left | JoinType::Full);
    let mut columns: Vec<Column> = nullable(left.columns, left_nullable).collect();
    if !is_existence {
        columns.extend(nullable(right.columns, right_nullable));
    }
    let condition = match condition {
        None if join_type != JoinType::Inner => Some(lit(true)),
        other => other,
    };
    let join = Join::try_new(
        Arc::new(left.plan),
        Arc::new(right.plan),
        Vec::new(),
        condition,
        join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNothing,
        false,
    )?;
    Ok(Frame { plan: LogicalPlan::Join(join), columns })
}

fn join_type(join_type: SparkJoinType) -> Result<JoinType> {
    Ok(match join_type {
        SparkJoinType::Inner | SparkJoinType::Cross | SparkJoinType::Unspecified => JoinType::Inner,
        SparkJoinType::FullOuter => JoinType::Full,
        SparkJoinType::LeftOuter => JoinType::Left,
        SparkJoinType::RightOuter => JoinType::Right,
        SparkJoinType::LeftAnti => JoinType::LeftAnti,
        SparkJoinType::LeftSemi => JoinType::LeftSemi,
    })
}
