//! Relations that add, rename, drop or convert columns.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use spark_connect_proto as proto;
use spark_connect_proto::expression::ExprType;

use super::build::{keep, project};
use super::missing::is_unresolved;
use super::{Outer, Resolution, missing};
use crate::embedded::expression::cast::{self, Mode};
use crate::embedded::expression::{Resolved, Typed};
use crate::embedded::{Column, Frame};
use crate::{Error, Result, data_type};

impl Resolution<'_> {
    pub(super) async fn with_columns(
        &self,
        message: &proto::WithColumns,
        input: Frame,
        outer: &Outer,
    ) -> Result<Frame> {
        let expressions: Vec<proto::Expression> = message
            .aliases
            .iter()
            .map(|alias| proto::Expression {
                common: None,
                expr_type: Some(ExprType::Alias(Box::new(alias.clone()))),
            })
            .collect();
        let mut added = self.projection(&expressions, &input, outer).await?;
        for (index, resolved) in added.iter().enumerate() {
            if added[..index].iter().any(|earlier| self.context.same_name(&earlier.name, &resolved.name)) {
                return Err(Error::ColumnAlreadyExists { name: resolved.name.clone() });
            }
        }
        let mut all: Vec<Resolved> = Vec::with_capacity(input.columns.len() + added.len());
        let mut is_placed = vec![false; added.len()];
        for (index, column) in input.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden) {
            let replacement = added.iter().position(|resolved| self.context.same_name(&resolved.name, &column.name));
            match replacement {
                Some(position) => {
                    is_placed[position] = true;
                    all.push(added[position].clone());
                }
                None => all.push(passed_on(index, column)),
            }
        }
        let mut is_placed = is_placed.into_iter();
        added.retain(|_| !is_placed.next().unwrap_or(false));
        all.extend(added);
        if all.iter().any(|resolved| super::project::has_aggregate(&resolved.expr)) {
            return self.global_aggregate(input, all);
        }
        let (input, all) = self.generated(input, all)?;
        Ok(self.projected(input, &all)?.0)
    }

    pub(super) fn with_columns_renamed(
        &self,
        message: &proto::WithColumnsRenamed,
        mut input: Frame,
    ) -> Result<Frame> {
        let listed = message.renames.iter().map(|rename| (rename.col_name.as_str(), rename.new_col_name.as_str()));
        let mapped = message.rename_columns_map.iter().map(|(old, new)| (old.as_str(), new.as_str()));
        for (old, new) in listed.chain(mapped) {
            for column in input.columns.iter_mut().filter(|column| !column.is_hidden) {
                if self.context.same_name(&column.name, old) {
                    rename(column, new);
                }
            }
        }
        Ok(input)
    }

    pub(super) async fn drop_columns(&self, message: &proto::Drop, input: Frame, outer: &Outer) -> Result<Frame> {
        let mut is_dropped: Vec<bool> = input
            .columns
            .iter()
            .map(|column| message.column_names.iter().any(|name| self.context.same_name(name, &column.name)))
            .collect();
        for expression in &message.columns {
            match self.expression(expression, &input, outer).await {
                Ok(Resolved { column: Some(index), .. }) => is_dropped[index] = true,
                // What is not there needs no dropping.
                Ok(_) => {}
                Err(error) if is_unresolved(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let mut is_dropped = is_dropped.into_iter();
        let mut columns = input.columns.clone();
        columns.retain(|column| !is_dropped.next().unwrap_or(false) || column.is_hidden);
        if columns.len() == input.columns.len() {
            return Ok(input);
        }
        if columns.iter().all(|column| column.is_hidden) {
            return Ok(self.projected(input, &[])?.0);
        }
        keep(input, columns)
    }

    pub(in crate::embedded) fn to_schema(&self, message: &proto::ToSchema, input: Frame) -> Result<Frame> {
        let schema = message.schema.as_ref().ok_or_else(|| missing("schema"))?;
        let schema = data_type::schema_from_proto(schema)?;
        let mut exprs = Vec::new();
        let mut columns = Vec::new();
        for target in schema.fields() {
            let mut same = input.visible().filter(|column| self.context.same_name(&column.name, target.name()));
            let value = match (same.next(), same.next()) {
                (Some(column), None) => Typed { expr: column.expr(), field: Arc::clone(&column.field) },
                (Some(_), Some(_)) => {
                    let candidates = vec![target.name().clone(); 2];
                    return Err(Error::AmbiguousReference { name: target.name().clone(), candidates });
                }
                (None, _) if target.is_nullable() => Typed::literal(ScalarValue::Null),
                (None, _) => {
                    let suggestions = input.visible().map(|column| column.name.clone()).collect();
                    return Err(Error::UnresolvedColumn { name: target.name().clone(), suggestions });
                }
            };
            if value.nullable() && !target.is_nullable() {
                return Err(Error::InvalidPlan {
                    detail: format!("column {} is nullable and cannot become not nullable", target.name()),
                });
            }
            let source_metadata = udt::field::column_metadata(&value.field).map(str::to_owned);
            let cast = cast::cast(value, target, Mode::Ansi, &self.context.conf)?;
            let mut field = target.as_ref().clone();
            if let (None, Some(metadata)) = (udt::field::column_metadata(&field), source_metadata) {
                field = udt::field::with_column_metadata(field, &metadata);
            }
            let column = self.column(target.name(), Arc::new(field));
            exprs.push(cast.expr.alias(&column.internal));
            columns.push(column);
        }
        Ok(Frame { plan: project(input.plan, exprs)?, columns })
    }
}

/// A column as a projection passes it on.
pub fn passed_on(index: usize, column: &Column) -> Resolved {
    Resolved {
        name: column.name.clone(),
        expr: column.expr(),
        field: Arc::clone(&column.field),
        column: Some(index),
        generator: None,
    }
}

/// Gives a column another name; it is a new column then, which the names of old do not reach.
pub fn rename(column: &mut Column, name: &str) {
    column.name = name.to_owned();
    column.field = Arc::new(column.field.as_ref().clone().with_name(name));
    column.plan_ids.clear();
    column.qualifiers.clear();
}

pub fn subquery_alias(message: &proto::SubqueryAlias, mut input: Frame) -> Result<Frame> {
    let mut qualifiers = message.qualifier.clone();
    qualifiers.push(message.alias.clone());
    for column in &mut input.columns {
        column.qualifiers.clone_from(&qualifiers);
    }
    Ok(input)
}

pub fn to_df(message: &proto::ToDf, mut input: Frame) -> Result<Frame> {
    let found = input.visible().count();
    if found != message.column_names.len() {
        return Err(Error::InvalidPlan {
            detail: format!(
                "The number of columns doesn't match. Old column names ({found}): {}. New column names ({}): {}",
                input.visible().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", "),
                message.column_names.len(),
                message.column_names.join(", "),
            ),
        });
    }
    let visible = input.columns.iter_mut().filter(|column| !column.is_hidden);
    for (column, name) in visible.zip(&message.column_names) {
        rename(column, name);
    }
    Ok(input)
}

/// A literal null of a column's type.
pub fn null_of(field: &arrow::datatypes::Field) -> Result<Expr> {
    Ok(Expr::Literal(ScalarValue::try_from(field.data_type())?, None))
}
