//! Expression messages, for relations that Spark defines by other expressions.

use spark_connect_proto as proto;
use spark_connect_proto::expression::cast::{CastToType, EvalMode};
use spark_connect_proto::expression::literal::LiteralType;
use spark_connect_proto::expression::{self as kind, ExprType};

use crate::embedded::{Column, Frame};

fn expression(expr_type: ExprType) -> proto::Expression {
    proto::Expression { common: None, expr_type: Some(expr_type) }
}

/// A reference to a column that is named by an identifier without quotes.
pub fn attribute(name: &str) -> proto::Expression {
    let quoted = format!("`{}`", name.replace('`', "``"));
    let attribute = kind::UnresolvedAttribute { unparsed_identifier: quoted, ..Default::default() };
    expression(ExprType::UnresolvedAttribute(attribute))
}

pub fn call(name: &str, arguments: Vec<proto::Expression>) -> proto::Expression {
    let function = kind::UnresolvedFunction { function_name: name.to_owned(), arguments, ..Default::default() };
    expression(ExprType::UnresolvedFunction(function))
}

pub fn literal(literal_type: LiteralType) -> proto::Expression {
    expression(ExprType::Literal(kind::Literal { literal_type: Some(literal_type), ..Default::default() }))
}

pub fn integer(value: i32) -> proto::Expression {
    literal(LiteralType::Integer(value))
}

pub fn string(value: &str) -> proto::Expression {
    literal(LiteralType::String(value.to_owned()))
}

pub fn double(value: f64) -> proto::Expression {
    literal(LiteralType::Double(value))
}

fn cast_with(child: proto::Expression, type_name: &str, mode: EvalMode) -> proto::Expression {
    expression(ExprType::Cast(Box::new(kind::Cast {
        expr: Some(Box::new(child)),
        eval_mode: mode.into(),
        cast_to_type: Some(CastToType::TypeStr(type_name.to_owned())),
    })))
}

pub fn cast(child: proto::Expression, type_name: &str) -> proto::Expression {
    cast_with(child, type_name, EvalMode::Unspecified)
}

pub fn try_cast(child: proto::Expression, type_name: &str) -> proto::Expression {
    cast_with(child, type_name, EvalMode::Try)
}

pub fn aliased(child: proto::Expression, name: &str) -> proto::Expression {
    let alias = kind::Alias { expr: Some(Box::new(child)), name: vec![name.to_owned()], metadata: None };
    expression(ExprType::Alias(Box::new(alias)))
}

/// The frame with its columns named as they are in the plan, so that messages can name each one without doubt.
pub fn by_internal_name(frame: &Frame) -> Frame {
    let columns = frame.columns.iter().map(|column| Column {
        name: column.internal.clone(),
        plan_ids: Vec::new(),
        qualifiers: Vec::new(),
        ..column.clone()
    });
    Frame { plan: frame.plan.clone(), columns: columns.collect() }
}

/// Applies a change to every part of an expression, children first.
pub fn rewrite(expression: &mut proto::Expression, change: &mut dyn FnMut(&mut proto::Expression)) {
    let mut children: Vec<&mut proto::Expression> = Vec::new();
    match &mut expression.expr_type {
        Some(ExprType::UnresolvedFunction(call)) => children.extend(&mut call.arguments),
        Some(ExprType::CallFunction(call)) => children.extend(&mut call.arguments),
        Some(ExprType::Alias(alias)) => children.extend(alias.expr.as_deref_mut()),
        Some(ExprType::Cast(cast)) => children.extend(cast.expr.as_deref_mut()),
        Some(ExprType::SortOrder(order)) => children.extend(order.child.as_deref_mut()),
        Some(ExprType::UnresolvedExtractValue(extract)) => {
            children.extend(extract.child.as_deref_mut());
            children.extend(extract.extraction.as_deref_mut());
        }
        Some(ExprType::Window(window)) => {
            children.extend(window.window_function.as_deref_mut());
            children.extend(&mut window.partition_spec);
            children.extend(window.order_spec.iter_mut().filter_map(|order| order.child.as_deref_mut()));
        }
        _ => {}
    }
    for child in children {
        rewrite(child, change);
    }
    change(expression);
}
