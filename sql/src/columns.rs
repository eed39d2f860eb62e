//! What can be told about columns without a catalog: the names a relation gives out, and ordinals.

use spark_connect_proto::expression::ExprType;
use spark_connect_proto::expression::literal::LiteralType;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Relation};

use crate::error::Error;
use crate::identifier::split_identifier;

/// The names of a relation's columns, where the messages alone tell them.
pub(crate) fn output_columns(relation: &Relation) -> Option<Vec<String>> {
    match relation.rel_type.as_ref()? {
        RelType::Project(project) => project.expressions.iter().map(column_name).collect(),
        RelType::ToDf(to_df) => Some(to_df.column_names.clone()),
        RelType::SubqueryAlias(inner) => output_columns(inner.input.as_deref()?),
        RelType::Filter(inner) => output_columns(inner.input.as_deref()?),
        RelType::Sort(inner) => output_columns(inner.input.as_deref()?),
        RelType::Limit(inner) => output_columns(inner.input.as_deref()?),
        RelType::Offset(inner) => output_columns(inner.input.as_deref()?),
        RelType::Deduplicate(inner) => output_columns(inner.input.as_deref()?),
        RelType::Sample(inner) => output_columns(inner.input.as_deref()?),
        RelType::Hint(inner) => output_columns(inner.input.as_deref()?),
        RelType::WithRelations(inner) => output_columns(inner.root.as_deref()?),
        RelType::SetOp(inner) => output_columns(inner.left_input.as_deref()?),
        RelType::Range(_) => Some(vec!["id".into()]),
        RelType::Drop(inner) if inner.columns.is_empty() => {
            let mut names = output_columns(inner.input.as_deref()?)?;
            names.retain(|name| !inner.column_names.iter().any(|dropped| dropped.eq_ignore_ascii_case(name)));
            Some(names)
        }
        _ => None,
    }
}

/// The name of a projected column, where it has one and is one.
fn column_name(expr: &Expression) -> Option<String> {
    match expr.expr_type.as_ref()? {
        ExprType::Alias(alias) => match alias.name.as_slice() {
            [name] => Some(name.clone()),
            _ => None,
        },
        ExprType::UnresolvedAttribute(attribute) => split_identifier(&attribute.unparsed_identifier).pop(),
        _ => None,
    }
}

pub(crate) fn integer_literal(expr: &Expression) -> Option<i64> {
    let Some(ExprType::Literal(literal)) = &expr.expr_type else { return None };
    match literal.literal_type.as_ref()? {
        LiteralType::Byte(value) | LiteralType::Short(value) | LiteralType::Integer(value) => Some(i64::from(*value)),
        LiteralType::Long(value) => Some(*value),
        _ => None,
    }
}

/// The element that an ordinal, from 1, names.
pub(crate) fn nth<'a, T>(items: &'a [T], position: i64, clause: &'static str) -> Result<&'a T, Error> {
    let at = usize::try_from(position).ok().and_then(|position| position.checked_sub(1));
    at.and_then(|at| items.get(at)).ok_or(Error::PositionOutOfRange { clause, position, columns: items.len() })
}
