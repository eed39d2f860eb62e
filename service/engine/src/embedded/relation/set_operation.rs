//! Unions, intersections and differences.

use std::sync::Arc;

use datafusion::common::{Column as PlanColumn, NullEquality, ScalarValue};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Aggregate, Expr, Join, JoinConstraint, JoinType, LogicalPlan, Union, Window, WindowFrame,
    WindowFunctionDefinition,
};
use spark_connect_proto as proto;
use spark_connect_proto::set_operation::SetOpType;

use super::build::{keep, project};
use super::{Outer, Resolution, over};
use crate::data_type::sql_name;
use crate::embedded::expression::cast::{self, Mode};
use crate::embedded::expression::{Typed, canonical_float, coercion, same_type};
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

impl Resolution<'_> {
    pub(super) async fn set_operation(
        &self,
        message: &proto::SetOperation,
        left: Frame,
        outer: &Outer,
    ) -> Result<Frame> {
        let right = self.other(&message.right_input, outer).await?;
        let (left, right) = (shown(left)?, shown(right)?);
        let operator = match message.set_op_type() {
            SetOpType::Union => "UNION",
            SetOpType::Intersect => "INTERSECT",
            SetOpType::Except => "EXCEPT",
            SetOpType::Unspecified => {
                return Err(Error::InvalidPlan { detail: "set operation of no kind".into() });
            }
        };
        let (left, right) = if message.by_name() {
            self.matched_by_name(left, right, message.allow_missing_columns())?
        } else {
            (left, right)
        };
        let (left, right) = self.widened(operator, left, right)?;
        match (message.set_op_type(), message.is_all.unwrap_or(false)) {
            (SetOpType::Union, true) => union(left, right),
            (SetOpType::Union, false) => distinct(union(left, right)?),
            (operation, is_all) => self.existing(left, right, operation == SetOpType::Intersect, is_all),
        }
    }

    /// Brings the right side's columns into the order of the left side's.
    fn matched_by_name(&self, left: Frame, right: Frame, allow_missing: bool) -> Result<(Frame, Frame)> {
        let mut rest: Vec<Option<Column>> = right.columns.iter().cloned().map(Some).collect();
        let mut right_exprs = Vec::new();
        let mut right_columns = Vec::new();
        for column in &left.columns {
            let position = rest.iter().position(|candidate| {
                candidate.as_ref().is_some_and(|candidate| self.context.same_name(&candidate.name, &column.name))
            });
            match position.and_then(|position| rest[position].take()) {
                Some(found) => {
                    right_exprs.push(found.expr());
                    right_columns.push(found);
                }
                None if allow_missing => {
                    let null = self.null_column(column);
                    right_exprs.push(null_literal(column)?.alias(&null.internal));
                    right_columns.push(null);
                }
                None => {
                    return Err(Error::UnresolvedColumn {
                        name: column.name.clone(),
                        suggestions: right.columns.iter().map(|column| column.name.clone()).collect(),
                    });
                }
            }
        }
        let mut left_exprs: Vec<Expr> = left.columns.iter().map(Column::expr).collect();
        let mut left_columns = left.columns;
        for column in rest.into_iter().flatten() {
            if !allow_missing {
                return Err(Error::UnresolvedColumn {
                    name: column.name,
                    suggestions: left_columns.iter().map(|column| column.name.clone()).collect(),
                });
            }
            let null = self.null_column(&column);
            left_exprs.push(null_literal(&column)?.alias(&null.internal));
            left_columns.push(null);
            right_exprs.push(column.expr());
            right_columns.push(column);
        }
        let left = Frame { plan: project(left.plan, left_exprs)?, columns: left_columns };
        let right = Frame { plan: project(right.plan, right_exprs)?, columns: right_columns };
        Ok((left, right))
    }

    fn null_column(&self, like: &Column) -> Column {
        self.column(&like.name, Arc::new(like.field.as_ref().clone().with_nullable(true)))
    }

    /// Gives both sides the same types, and the names and identities of the left.
    fn widened(&self, operator: &str, left: Frame, right: Frame) -> Result<(Frame, Frame)> {
        if left.columns.len() != right.columns.len() {
            return Err(Error::NumColumnsMismatch {
                operator: operator.to_owned(),
                left: left.columns.len(),
                right: right.columns.len(),
            });
        }
        let conf = &self.context.conf;
        let mut columns = Vec::with_capacity(left.columns.len());
        let (mut left_exprs, mut right_exprs) = (Vec::new(), Vec::new());
        for (index, (l, r)) in left.columns.iter().zip(&right.columns).enumerate() {
            let common = coercion::wider(l.data_type(), r.data_type(), conf).ok_or_else(|| {
                Error::IncompatibleColumnType {
                    operator: operator.to_owned(),
                    column: index,
                    left: sql_name(&l.field),
                    right: sql_name(&r.field),
                }
            })?;
            let side = |column: &Column| {
                let typed = Typed { expr: column.expr(), field: Arc::clone(&column.field) };
                if column.data_type() == &common {
                    return Ok(typed);
                }
                if same_type(column.data_type(), &common) {
                    let expr = datafusion::logical_expr::cast(column.expr(), common.clone());
                    let field = column.field.as_ref().clone().with_data_type(common.clone());
                    return Ok(Typed { expr, field: Arc::new(field) });
                }
                cast::cast_to(typed, &common, Mode::of(conf), conf)
            };
            let (left_value, right_value) = (side(l)?, side(r)?);
            let nullable = left_value.nullable() || right_value.nullable();
            let field = l.field.as_ref().clone().with_data_type(common.clone()).with_nullable(nullable);
            let is_same = left_value.expr == l.expr();
            let internal = if is_same { l.internal.clone() } else { self.context.fresh_name() };
            left_exprs.push(if is_same { left_value.expr } else { left_value.expr.alias(&internal) });
            right_exprs.push(right_value.expr.alias(&internal));
            columns.push(Column { internal, field: Arc::new(field), ..l.clone() });
        }
        let left = Frame { plan: project(left.plan, left_exprs)?, columns: columns.clone() };
        let right = Frame { plan: project(right.plan, right_exprs)?, columns };
        Ok((left, right))
    }

    /// The left rows that are, or are not, among the right ones; with `is_all` each right row counts once.
    fn existing(&self, left: Frame, right: Frame, is_intersect: bool, is_all: bool) -> Result<Frame> {
        let columns = left.columns.clone();
        let (left, right) = if is_all {
            (self.numbered(left)?, self.numbered(right)?)
        } else {
            (distinct(left)?, right)
        };
        let right = self.renamed(right)?;
        let on = left
            .columns
            .iter()
            .zip(&right.columns)
            .map(|(l, r)| {
                let side = |column: &Column| {
                    canonical_float(Typed { expr: column.expr(), field: Arc::clone(&column.field) }).expr
                };
                (side(l), side(r))
            })
            .collect();
        let join = Join::try_new(
            Arc::new(left.plan),
            Arc::new(right.plan),
            on,
            None,
            if is_intersect { JoinType::LeftSemi } else { JoinType::LeftAnti },
            JoinConstraint::On,
            NullEquality::NullEqualsNull,
            false,
        )?;
        keep(Frame { plan: LogicalPlan::Join(join), columns: left.columns }, columns)
    }

    /// Appends a column that tells equal rows apart: 1, 2, ...
    fn numbered(&self, frame: Frame) -> Result<Frame> {
        let field = arrow::datatypes::Field::new("", arrow::datatypes::DataType::UInt64, false);
        let number = self.column("", Arc::new(field));
        let partition_by = frame
            .columns
            .iter()
            .map(|column| canonical_float(Typed { expr: column.expr(), field: Arc::clone(&column.field) }).expr)
            .collect();
        let function = WindowFunction {
            fun: WindowFunctionDefinition::WindowUDF(row_number_udwf()),
            params: WindowFunctionParams {
                args: Vec::new(),
                partition_by,
                order_by: Vec::new(),
                window_frame: WindowFrame::new(None),
                filter: None,
                null_treatment: None,
                distinct: false,
            },
        };
        let function = Expr::WindowFunction(Box::new(function)).alias(&number.internal);
        let window = Window::try_new(vec![function], Arc::new(frame.plan))?;
        let mut columns = frame.columns;
        columns.push(number);
        Ok(Frame { plan: LogicalPlan::Window(window), columns })
    }
}

/// Only what a client sees of a frame.
pub fn shown(frame: Frame) -> Result<Frame> {
    if frame.columns.iter().all(|column| !column.is_hidden) {
        return Ok(frame);
    }
    let columns = frame.visible().cloned().collect();
    keep(frame, columns)
}

fn union(left: Frame, right: Frame) -> Result<Frame> {
    let union = Union::try_new_with_loose_types(vec![Arc::new(left.plan), Arc::new(right.plan)])?;
    Ok(Frame { plan: LogicalPlan::Union(union), columns: left.columns })
}

/// The distinct rows.
pub fn distinct(frame: Frame) -> Result<Frame> {
    let keys = frame
        .columns
        .iter()
        .map(|column| {
            let typed = Typed { expr: column.expr(), field: Arc::clone(&column.field) };
            let value = canonical_float(typed).expr;
            if value == column.expr() { value } else { value.alias(&column.internal) }
        })
        .collect();
    let plan = project(frame.plan.clone(), keys)?;
    let keys = frame.columns.iter().map(Column::expr).collect();
    let aggregate = Aggregate::try_new(Arc::new(plan), keys, Vec::new())?;
    Ok(over(frame, LogicalPlan::Aggregate(aggregate)))
}

fn null_literal(column: &Column) -> Result<Expr> {
    Ok(Expr::Literal(ScalarValue::try_from(column.data_type())?, None))
}

/// A reference to a column of a plan.
pub fn plan_column(name: &str) -> Expr {
    Expr::Column(PlanColumn::new_unqualified(name))
}
