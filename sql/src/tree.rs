//! Walking expression messages: their children in order, and the same expression over other children.

use spark_connect_proto::expression::ExprType;
use spark_connect_proto::expression::SortOrder;
use spark_connect_proto::{Expression, expression};

use crate::error::Error;

/// The direct children of an expression; a lambda's body counts, a subquery's plan does not.
pub(crate) fn children(expr: &Expression) -> Vec<&Expression> {
    let Some(kind) = &expr.expr_type else { return Vec::new() };
    match kind {
        ExprType::Alias(alias) => alias.expr.as_deref().into_iter().collect(),
        ExprType::Cast(cast) => cast.expr.as_deref().into_iter().collect(),
        ExprType::SortOrder(order) => order.child.as_deref().into_iter().collect(),
        ExprType::UnresolvedFunction(call) => call.arguments.iter().collect(),
        ExprType::CallFunction(call) => call.arguments.iter().collect(),
        ExprType::CommonInlineUserDefinedFunction(call) => call.arguments.iter().collect(),
        ExprType::NamedArgumentExpression(named) => named.value.as_deref().into_iter().collect(),
        ExprType::LambdaFunction(lambda) => lambda.function.as_deref().into_iter().collect(),
        ExprType::UnresolvedExtractValue(extract) => {
            extract.child.as_deref().into_iter().chain(extract.extraction.as_deref()).collect()
        }
        ExprType::UpdateFields(update) => {
            update.struct_expression.as_deref().into_iter().chain(update.value_expression.as_deref()).collect()
        }
        ExprType::SubqueryExpression(subquery) => subquery.in_subquery_values.iter().collect(),
        ExprType::Window(window) => window
            .window_function
            .as_deref()
            .into_iter()
            .chain(&window.partition_spec)
            .chain(window.order_spec.iter().filter_map(|order| order.child.as_deref()))
            .collect(),
        _ => Vec::new(),
    }
}

type Rewrite<'a> = &'a mut dyn FnMut(Expression) -> Result<Expression, Error>;

fn boxed(child: &mut Option<Box<Expression>>, f: Rewrite<'_>) -> Result<(), Error> {
    if let Some(old) = child.take() {
        *child = Some(Box::new(f(*old)?));
    }
    Ok(())
}

fn each(children: &mut [Expression], f: Rewrite<'_>) -> Result<(), Error> {
    for child in children {
        *child = f(std::mem::take(child))?;
    }
    Ok(())
}

pub(crate) fn map_sort_order(order: &mut SortOrder, f: Rewrite<'_>) -> Result<(), Error> {
    boxed(&mut order.child, f)
}

/// The same expression with each direct child rewritten.
pub(crate) fn map_children(mut expr: Expression, f: Rewrite<'_>) -> Result<Expression, Error> {
    let Some(kind) = &mut expr.expr_type else { return Ok(expr) };
    match kind {
        ExprType::Alias(alias) => boxed(&mut alias.expr, f)?,
        ExprType::Cast(cast) => boxed(&mut cast.expr, f)?,
        ExprType::SortOrder(order) => boxed(&mut order.child, f)?,
        ExprType::UnresolvedFunction(call) => each(&mut call.arguments, f)?,
        ExprType::CallFunction(call) => each(&mut call.arguments, f)?,
        ExprType::CommonInlineUserDefinedFunction(call) => each(&mut call.arguments, f)?,
        ExprType::NamedArgumentExpression(named) => boxed(&mut named.value, f)?,
        ExprType::LambdaFunction(lambda) => boxed(&mut lambda.function, f)?,
        ExprType::UnresolvedExtractValue(extract) => {
            boxed(&mut extract.child, f)?;
            boxed(&mut extract.extraction, f)?;
        }
        ExprType::UpdateFields(update) => {
            boxed(&mut update.struct_expression, f)?;
            boxed(&mut update.value_expression, f)?;
        }
        ExprType::SubqueryExpression(subquery) => each(&mut subquery.in_subquery_values, f)?,
        ExprType::Window(window) => {
            boxed(&mut window.window_function, f)?;
            each(&mut window.partition_spec, f)?;
            for order in &mut window.order_spec {
                boxed(&mut order.child, f)?;
            }
        }
        _ => {}
    }
    Ok(expr)
}

/// Rewrites the arguments of a window's function and its specification, but not the function itself.
pub(crate) fn map_window_inputs(mut window: expression::Window, f: Rewrite<'_>) -> Result<expression::Window, Error> {
    if let Some(function) = window.window_function.take() {
        window.window_function = Some(Box::new(map_children(*function, f)?));
    }
    each(&mut window.partition_spec, f)?;
    for order in &mut window.order_spec {
        boxed(&mut order.child, f)?;
    }
    Ok(window)
}

/// Whether the test holds for the expression or one below it.
pub(crate) fn any(expr: &Expression, test: &mut dyn FnMut(&Expression) -> bool) -> bool {
    test(expr) || children(expr).into_iter().any(|child| any(child, test))
}
