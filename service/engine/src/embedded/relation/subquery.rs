//! Relations that expressions and SQL text refer to: `WithRelations`, and subqueries.

use std::sync::Arc;

use spark_connect_proto as proto;
use spark_connect_proto::expression::ExprType;
use spark_connect_proto::relation::RelType;

use super::grow::Grow;
use super::{Outer, Resolution, missing};
use crate::Result;
use crate::embedded::Frame;

impl Resolution<'_> {
    pub(super) async fn with_relations(&self, with: &proto::WithRelations, outer: &Outer) -> Result<Frame> {
        for reference in &with.references {
            if let Some(RelType::SubqueryAlias(alias)) = &reference.rel_type {
                let frame = Grow(Box::pin(self.relation(reference, outer))).await?;
                self.named.lock().push((alias.alias.clone(), frame));
            }
            if let Some(plan_id) = reference.common.as_ref().and_then(|common| common.plan_id) {
                self.references.lock().insert(plan_id, reference.clone());
            }
        }
        let root = with.root.as_deref().ok_or_else(|| missing("root"))?;
        Grow(Box::pin(self.relation(root, outer))).await
    }

    /// The relation that SQL text was given under a name.
    pub(super) fn named_reference(&self, name: &str) -> Option<Result<Frame>> {
        let named = self.named.lock();
        let found = named.iter().rev().find(|(own, _)| self.context.same_name(own, name));
        found.map(|(_, frame)| self.renamed(frame.clone()))
    }

    /// Resolves the subqueries of expressions over `frame`, which may name the frame's columns.
    pub(super) async fn resolve_subqueries(
        &self,
        expressions: impl IntoIterator<Item = &proto::Expression>,
        frame: &Frame,
        outer: &Outer,
    ) -> Result<()> {
        if self.references.lock().is_empty() {
            return Ok(());
        }
        let mut plan_ids = Vec::new();
        for expression in expressions {
            collect(expression, &mut plan_ids);
        }
        if plan_ids.is_empty() {
            return Ok(());
        }
        let mut around = outer.to_vec();
        around.push(Arc::new(frame.clone()));
        for plan_id in plan_ids {
            let reference = self.references.lock().get(&plan_id).cloned();
            if let Some(reference) = reference {
                let resolved = Grow(Box::pin(self.relation(&reference, &around))).await?;
                self.context.references.lock().insert(plan_id, resolved);
            }
        }
        Ok(())
    }
}

/// The plan ids of the subqueries in an expression.
fn collect(expression: &proto::Expression, plan_ids: &mut Vec<i64>) {
    if let Some(ExprType::SubqueryExpression(subquery)) = &expression.expr_type {
        plan_ids.push(subquery.plan_id);
    }
    for child in children(expression) {
        collect(child, plan_ids);
    }
}

/// The direct children of an expression.
pub fn children(expression: &proto::Expression) -> Vec<&proto::Expression> {
    let Some(expr_type) = &expression.expr_type else { return Vec::new() };
    match expr_type {
        ExprType::UnresolvedFunction(call) => call.arguments.iter().collect(),
        ExprType::CallFunction(call) => call.arguments.iter().collect(),
        ExprType::CommonInlineUserDefinedFunction(call) => call.arguments.iter().collect(),
        ExprType::Alias(alias) => alias.expr.as_deref().into_iter().collect(),
        ExprType::Cast(cast) => cast.expr.as_deref().into_iter().collect(),
        ExprType::SortOrder(order) => order.child.as_deref().into_iter().collect(),
        ExprType::LambdaFunction(lambda) => lambda.function.as_deref().into_iter().collect(),
        ExprType::NamedArgumentExpression(named) => named.value.as_deref().into_iter().collect(),
        ExprType::SubqueryExpression(subquery) => subquery.in_subquery_values.iter().collect(),
        ExprType::UnresolvedExtractValue(extract) => {
            extract.child.as_deref().into_iter().chain(extract.extraction.as_deref()).collect()
        }
        ExprType::UpdateFields(update) => {
            update.struct_expression.as_deref().into_iter().chain(update.value_expression.as_deref()).collect()
        }
        ExprType::Window(window) => {
            let orders = window.order_spec.iter().filter_map(|order| order.child.as_deref());
            window.window_function.as_deref().into_iter().chain(&window.partition_spec).chain(orders).collect()
        }
        _ => Vec::new(),
    }
}
