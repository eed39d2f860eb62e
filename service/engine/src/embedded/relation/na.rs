//! `df.na`: fill, drop and replace missing values.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::math::expr_fn::isnan;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, lit, when};
use spark_connect_proto as proto;
use spark_connect_proto::expression::Literal;

use super::build::project;
use super::{Resolution, missing, over};
use crate::embedded::expression::cast::{self, Mode};
use crate::embedded::expression::coercion::{is_float, is_numeric};
use crate::embedded::expression::{Typed, parse_name};
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

impl Resolution<'_> {
    pub(super) fn na_fill(&self, message: &proto::NaFill, input: Frame) -> Result<Frame> {
        let values: Vec<Typed> = message.values.iter().map(typed_literal).collect::<Result<_>>()?;
        let is_per_column = values.len() > 1;
        if values.is_empty() || (is_per_column && values.len() != message.cols.len()) {
            return Err(Error::InvalidPlan {
                detail: format!("{} fill values for {} columns", values.len(), message.cols.len()),
            });
        }
        let chosen = self.chosen(&input, &message.cols)?;
        self.replaced(input, |index, column| {
            let value = match &chosen {
                None => &values[0],
                Some(chosen) => match chosen.iter().position(|chosen| *chosen == index) {
                    Some(position) if is_per_column => &values[position],
                    Some(_) => &values[0],
                    None => return Ok(None),
                },
            };
            let fits = match value.data_type() {
                DataType::Utf8 => column.data_type() == &DataType::Utf8,
                DataType::Boolean => column.data_type() == &DataType::Boolean,
                other => is_numeric(other) && is_numeric(column.data_type()),
            };
            if !fits {
                return Ok(None);
            }
            let value = cast::cast_to(value.clone(), column.data_type(), Mode::Legacy, &self.context.conf)?;
            Ok(Some((when(is_missing(column), value.expr).otherwise(column.expr())?, false)))
        })
    }

    pub(super) fn na_drop(&self, message: &proto::NaDrop, input: Frame) -> Result<Frame> {
        let chosen = self.chosen(&input, &message.cols)?;
        let columns: Vec<&Column> = match &chosen {
            Some(chosen) => chosen.iter().map(|index| &input.columns[*index]).collect(),
            None => input.visible().collect(),
        };
        let condition = match message.min_non_nulls {
            None => columns.iter().map(|column| Expr::Not(Box::new(is_missing(column)))).reduce(Expr::and),
            Some(min) => columns
                .iter()
                .map(|column| when(is_missing(column), lit(0_i32)).otherwise(lit(1_i32)))
                .reduce(|sum, next| Ok(sum? + next?))
                .transpose()?
                .map(|count| count.gt_eq(lit(min))),
        };
        let Some(condition) = condition else { return Ok(input) };
        let filter = Filter::try_new(condition, Arc::new(input.plan.clone()))?;
        Ok(over(input, LogicalPlan::Filter(filter)))
    }

    pub(super) fn na_replace(&self, message: &proto::NaReplace, input: Frame) -> Result<Frame> {
        let mut pairs = Vec::with_capacity(message.replacements.len());
        for replacement in &message.replacements {
            let old = replacement.old_value.as_ref().ok_or_else(|| missing("old value"))?;
            let new = replacement.new_value.as_ref().ok_or_else(|| missing("new value"))?;
            pairs.push((typed_literal(old)?, typed_literal(new)?));
        }
        let chosen = self.chosen(&input, &message.cols)?;
        let conf = &self.context.conf;
        self.replaced(input, |index, column| {
            if chosen.as_ref().is_some_and(|chosen| !chosen.contains(&index)) {
                return Ok(None);
            }
            let mut cases: Option<datafusion::logical_expr::conditional_expressions::CaseBuilder> = None;
            for (old, new) in &pairs {
                let fits = match old.data_type() {
                    DataType::Null => true,
                    DataType::Utf8 => column.data_type() == &DataType::Utf8,
                    DataType::Boolean => column.data_type() == &DataType::Boolean,
                    other => is_numeric(other) && is_numeric(column.data_type()),
                };
                if !fits {
                    continue;
                }
                // Numbers are compared as doubles, so that 1.5 replaces nothing in a column of integers.
                let is_old = match old.value() {
                    Some(value) if value.is_null() => is_missing(column),
                    _ if is_numeric(column.data_type()) => {
                        let double = |typed: Typed| cast::cast_to(typed, &DataType::Float64, Mode::Legacy, conf);
                        let own = Typed { expr: column.expr(), field: Arc::clone(&column.field) };
                        double(own)?.expr.eq(double(old.clone())?.expr)
                    }
                    _ => column.expr().eq(old.expr.clone()),
                };
                let new = cast::cast_to(new.clone(), column.data_type(), Mode::Legacy, conf)?;
                cases = Some(match cases {
                    None => when(is_old, new.expr),
                    Some(mut cases) => cases.when(is_old, new.expr),
                });
            }
            match cases {
                Some(mut cases) => Ok(Some((cases.otherwise(column.expr())?, true))),
                None => Ok(None),
            }
        })
    }

    /// The positions of named columns; none for all.
    fn chosen(&self, input: &Frame, names: &[String]) -> Result<Option<Vec<usize>>> {
        if names.is_empty() {
            return Ok(None);
        }
        let mut chosen = Vec::with_capacity(names.len());
        for name in names {
            let parts = parse_name(name)?;
            let plain = parts.last().filter(|_| parts.len() == 1).unwrap_or(name);
            let mut found = input.columns.iter().enumerate().filter(|(_, column)| {
                !column.is_hidden && self.context.same_name(&column.name, plain)
            });
            match (found.next(), found.next()) {
                (Some((index, _)), None) => chosen.push(index),
                (Some(_), Some(_)) => {
                    return Err(Error::AmbiguousReference { name: name.clone(), candidates: vec![name.clone(); 2] });
                }
                (None, _) => {
                    let suggestions = input.visible().map(|column| column.name.clone()).collect();
                    return Err(Error::UnresolvedColumn { name: name.clone(), suggestions });
                }
            }
        }
        Ok(Some(chosen))
    }

    /// The frame with some columns computed anew; `change` gives the expression and whether it may be null.
    fn replaced(
        &self,
        input: Frame,
        change: impl Fn(usize, &Column) -> Result<Option<(Expr, bool)>>,
    ) -> Result<Frame> {
        let mut exprs = Vec::with_capacity(input.columns.len());
        let mut columns = Vec::with_capacity(input.columns.len());
        for (index, column) in input.columns.iter().enumerate() {
            let changed = if column.is_hidden { None } else { change(index, column)? };
            match changed {
                Some((expr, nullable)) => {
                    let field = column.field.as_ref().clone().with_nullable(nullable || column.field.is_nullable());
                    let new = self.column(&column.name, Arc::new(field));
                    exprs.push(expr.alias(&new.internal));
                    columns.push(new);
                }
                None => {
                    exprs.push(column.expr());
                    columns.push(column.clone());
                }
            }
        }
        Ok(Frame { plan: project(input.plan, exprs)?, columns })
    }
}

fn typed_literal(literal: &Literal) -> Result<Typed> {
    let (value, field) = crate::literal::scalar_from_literal(literal)?;
    Ok(Typed { expr: Expr::Literal(value, None), field: Arc::new(field) })
}

/// Null, or no number.
fn is_missing(column: &Column) -> Expr {
    let is_null = column.expr().is_null();
    if is_float(column.data_type()) {
        let is_nan = isnan(column.expr()).and(column.expr().is_not_null());
        return is_null.or(is_nan);
    }
    if column.data_type() == &DataType::Null {
        return Expr::Literal(ScalarValue::Boolean(Some(true)), None);
    }
    is_null
}
