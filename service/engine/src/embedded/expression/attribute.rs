//! Column names: how they are written, which column they mean, and what to suggest when they mean none.

use datafusion::common::Column as PlanColumn;
use datafusion::logical_expr::Expr;
use spark_connect_proto::expression::UnresolvedAttribute;
use std::sync::Arc;

use super::{Resolved, Resolver, Scope, Typed};
use crate::embedded::Column;
use crate::{Error, Result};

const MAX_SUGGESTIONS: usize = 5;

/// The parts of a name such as `` a.`b.c`.d ``.
///
/// # Errors
/// A syntax error for backticks that do not match or parts that are empty.
pub fn parse_name(name: &str) -> Result<Vec<String>> {
    let invalid = || Error::Syntax {
        near: name.into(),
        line: 1,
        position: 1,
        message: "attribute name with unmatched backticks or an empty part".into(),
    };
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut characters = name.chars().peekable();
    let mut was_quoted = false;
    while let Some(character) = characters.next() {
        match character {
            '`' if part.is_empty() && !was_quoted => {
                loop {
                    match characters.next() {
                        Some('`') if characters.peek() == Some(&'`') => {
                            characters.next();
                            part.push('`');
                        }
                        Some('`') => break,
                        Some(character) => part.push(character),
                        None => return Err(invalid()),
                    }
                }
                was_quoted = true;
                if !matches!(characters.peek(), None | Some('.')) {
                    return Err(invalid());
                }
            }
            '`' => return Err(invalid()),
            '.' => {
                if part.is_empty() && !was_quoted || characters.peek().is_none() {
                    return Err(invalid());
                }
                parts.push(std::mem::take(&mut part));
                was_quoted = false;
            }
            character => part.push(character),
        }
    }
    parts.push(part);
    Ok(parts)
}

impl Resolver<'_> {
    /// A column reference, which knows where the column is.
    pub(super) fn attribute_column(&self, attribute: &UnresolvedAttribute) -> Result<Resolved> {
        let parts = parse_name(&attribute.unparsed_identifier)?;
        let name = parts.last().cloned().unwrap_or_default();
        let resolved = |typed: Typed, column| {
            let field = Arc::new(typed.field.as_ref().clone().with_name(&name));
            Resolved { name: name.clone(), expr: typed.expr, field, column, generator: None }
        };
        if attribute.plan_id.is_none()
            && let Some(variable) = self.nested(&parts)?
        {
            return Ok(resolved(variable, None));
        }
        let found = self.find(&parts, attribute.plan_id)?;
        Ok(resolved(found.value, found.column))
    }

    pub(super) fn attribute(&self, attribute: &UnresolvedAttribute) -> Result<Typed> {
        let resolved = self.attribute_column(attribute)?;
        Ok(Typed { expr: resolved.expr, field: resolved.field })
    }

    /// The column, or the field of a column, that a name means in this scope or one around it.
    fn find(&self, parts: &[String], plan_id: Option<i64>) -> Result<Found> {
        if let Some((index, num_used)) = self.lookup(self.scope, parts, plan_id)? {
            let column = &self.scope.frame.columns[index];
            let mut value = Typed { expr: column.expr(), field: column.field.clone() };
            for field in &parts[num_used..] {
                value = self.field_of(value, field)?;
            }
            let column = (num_used == parts.len()).then_some(index);
            return Ok(Found { value, column });
        }
        let mut scope = self.scope.outer;
        while let Some(outer) = scope {
            if let Some((index, num_used)) = self.lookup(outer, parts, plan_id)? {
                let column = &outer.frame.columns[index];
                let reference = PlanColumn::new_unqualified(column.internal.clone());
                let field = Arc::new(column.field.as_ref().clone().with_name(&column.internal));
                let mut value =
                    Typed { expr: Expr::OuterReferenceColumn(field, reference), field: column.field.clone() };
                for field in &parts[num_used..] {
                    value = self.field_of(value, field)?;
                }
                return Ok(Found { value, column: None });
            }
            scope = outer.outer;
        }
        if plan_id.is_some_and(|id| !self.scope.frame.columns.iter().any(|column| column.plan_ids.contains(&id))) {
            return Err(Error::ForeignColumn { name: parts.join(".") });
        }
        Err(Error::UnresolvedColumn { name: parts.join("."), suggestions: suggest(parts, self.scope) })
    }

    /// The column's index and how many parts of the name it takes, the longest qualifier first.
    fn lookup(&self, scope: &Scope<'_>, parts: &[String], plan_id: Option<i64>) -> Result<Option<(usize, usize)>> {
        for num_qualifiers in (0..parts.len()).rev() {
            let (qualifiers, name) = (&parts[..num_qualifiers], &parts[num_qualifiers]);
            let matches = |column: &Column| {
                self.context.same_name(&column.name, name)
                    && plan_id.is_none_or(|id| column.plan_ids.contains(&id))
                    && self.answers_to(column, qualifiers)
            };
            let columns = scope.frame.columns.iter().enumerate();
            let found: Vec<(usize, &Column)> = columns.filter(|(_, column)| matches(column)).collect();
            let visible: Vec<_> = found.iter().filter(|(_, column)| !column.is_hidden).collect();
            match (visible.as_slice(), found.as_slice()) {
                ([], []) => {}
                ([(index, _)], _) => return Ok(Some((*index, num_qualifiers + 1))),
                ([], [(index, _), ..]) if plan_id.is_some() || num_qualifiers > 0 => {
                    return Ok(Some((*index, num_qualifiers + 1)));
                }
                ([], [(index, _)]) => return Ok(Some((*index, num_qualifiers + 1))),
                (several, all) => {
                    let mut candidates: Vec<String> = if several.is_empty() {
                        all.iter().map(|(_, column)| full_name(column)).collect()
                    } else {
                        several.iter().map(|(_, column)| full_name(column)).collect()
                    };
                    candidates.sort();
                    return Err(Error::AmbiguousReference { name: parts.join("."), candidates });
                }
            }
        }
        Ok(None)
    }

    pub(super) fn answers_to(&self, column: &Column, qualifiers: &[String]) -> bool {
        if qualifiers.len() > column.qualifiers.len() {
            return false;
        }
        let innermost = &column.qualifiers[column.qualifiers.len() - qualifiers.len()..];
        innermost.iter().zip(qualifiers).all(|(own, asked)| self.context.same_name(own, asked))
    }
}

struct Found {
    value: Typed,
    column: Option<usize>,
}

fn full_name(column: &Column) -> String {
    let mut parts = column.qualifiers.clone();
    parts.push(column.name.clone());
    parts.join(".")
}

/// The visible columns most like a name; without qualifiers when all have the same.
fn suggest(parts: &[String], scope: &Scope<'_>) -> Vec<String> {
    let columns: Vec<&Column> = scope.frame.visible().collect();
    let is_uniform = columns.windows(2).all(|pair| pair[0].qualifiers == pair[1].qualifiers);
    let names = columns.iter().map(|column| if is_uniform { column.name.clone() } else { full_name(column) });
    order_by_similarity(&parts.join("."), names.collect())
}

/// The five candidates with the smallest edit distance, nearest first.
pub fn order_by_similarity(name: &str, mut candidates: Vec<String>) -> Vec<String> {
    candidates.sort_by_cached_key(|candidate| edit_distance(candidate, name));
    candidates.truncate(MAX_SUGGESTIONS);
    candidates
}

/// The number of characters to insert, delete or replace (Levenshtein).
pub fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, from) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in right.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(from != *to)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[right.len()]
}
