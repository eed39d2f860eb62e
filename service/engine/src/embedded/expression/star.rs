//! `*`, `t.*`, `struct.*` and column patterns: expressions that stand for several columns.

use std::sync::Arc;

use arrow::datatypes::DataType;
use spark_connect_proto::Expression;
use spark_connect_proto::expression::{ExprType, UnresolvedRegex, UnresolvedStar};

use super::attribute::parse_name;
use super::{Resolved, Resolver};
use crate::embedded::Column;
use crate::{Error, Result};

impl Resolver<'_> {
    /// Resolves an expression of a projection into the columns it stands for.
    pub(super) fn spread(&self, expression: &Expression, out: &mut Vec<Resolved>) -> Result<()> {
        match &expression.expr_type {
            Some(ExprType::UnresolvedStar(star)) => self.star(star, out),
            Some(ExprType::UnresolvedRegex(regex)) => self.pattern(regex, out),
            Some(ExprType::ExpressionString(text)) => {
                let parsed = sql::parse_expression(&text.expression)?;
                match &parsed.expr_type {
                    Some(ExprType::ExpressionString(_)) => Err(Error::Bug { invariant: "parsing ends".into() }),
                    _ => self.spread(&parsed, out),
                }
            }
            _ => {
                out.push(self.named(expression)?);
                Ok(())
            }
        }
    }

    fn star(&self, star: &UnresolvedStar, out: &mut Vec<Resolved>) -> Result<()> {
        let columns = || self.scope.frame.columns.iter().enumerate();
        let Some(target) = star.unparsed_target.as_deref().filter(|target| !target.is_empty()) else {
            let belongs = |column: &Column| match star.plan_id {
                Some(id) => column.plan_ids.contains(&id),
                None => !column.is_hidden,
            };
            out.extend(columns().filter(|(_, column)| belongs(column)).map(passed_on));
            return Ok(());
        };
        let parts = parse_name(target.strip_suffix(".*").unwrap_or(target))?;
        let of_table: Vec<Resolved> = columns()
            .filter(|(_, column)| star.plan_id.is_none_or(|id| column.plan_ids.contains(&id)))
            .filter(|(_, column)| self.answers_to(column, &parts))
            .map(passed_on)
            .collect();
        if !of_table.is_empty() {
            out.extend(of_table);
            return Ok(());
        }
        let attribute = spark_connect_proto::expression::UnresolvedAttribute {
            unparsed_identifier: target.strip_suffix(".*").unwrap_or(target).into(),
            plan_id: star.plan_id,
            ..Default::default()
        };
        let value = self.attribute(&attribute)?;
        let DataType::Struct(fields) = value.data_type().clone() else {
            return Err(Error::InvalidPlan { detail: format!("cannot expand {target}: it is no struct") });
        };
        for (index, field) in fields.iter().enumerate() {
            let typed = super::extract::field_at(value.clone(), index)?;
            let own = Arc::new(typed.field.as_ref().clone().with_name(field.name()));
            out.push(Resolved {
                name: field.name().clone(),
                expr: typed.expr,
                field: own,
                column: None,
                generator: None,
            });
        }
        Ok(())
    }

    fn pattern(&self, regex: &UnresolvedRegex, out: &mut Vec<Resolved>) -> Result<()> {
        // `t`.`(a|b)` and `(a|b)` both come with their backticks.
        let (qualifier, pattern) = match regex.col_name.rsplit_once(".`") {
            Some((qualifier, pattern)) => (Some(qualifier), pattern),
            None => (None, regex.col_name.as_str()),
        };
        let pattern = pattern.trim_matches('`');
        let qualifiers = match qualifier {
            Some(qualifier) => parse_name(qualifier)?,
            None => Vec::new(),
        };
        let case = if self.conf().case_sensitive() { "" } else { "(?i)" };
        let matcher = regex::Regex::new(&format!("{case}^(?:{pattern})$"))
            .map_err(|error| Error::InvalidPlan { detail: format!("column pattern {pattern}: {error}") })?;
        let columns = self.scope.frame.columns.iter().enumerate();
        out.extend(
            columns
                .filter(|(_, column)| regex.plan_id.map_or(!column.is_hidden, |id| column.plan_ids.contains(&id)))
                .filter(|(_, column)| self.answers_to(column, &qualifiers) && matcher.is_match(&column.name))
                .map(passed_on),
        );
        Ok(())
    }
}

fn passed_on((index, column): (usize, &Column)) -> Resolved {
    Resolved {
        name: column.name.clone(),
        expr: column.expr(),
        field: column.field.clone(),
        column: Some(index),
        generator: None,
    }
}
