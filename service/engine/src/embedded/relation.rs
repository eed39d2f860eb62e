//! Resolves relations: Spark's unresolved plan, message by message, into frames.
//!
//! A plan can be thousands of relations deep, mostly along first inputs, so that spine is walked in a loop; only the other
//! inputs (the right side of a join) recurse, on a stack that grows.

mod aggregate;
mod answer;
mod build;
mod catalog;
mod columns;
mod deduplicate;
mod describe;
mod generate;
mod grow;
mod join;
mod local;
mod message;
mod missing;
mod ml;
mod na;
mod pivot;
mod project;
mod range;
mod read;
mod rows;
mod sample;
mod set_operation;
mod show;
mod sort;
mod stat;
mod subquery;
#[cfg(test)]
mod tests;
mod transpose;
mod unpivot;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;
use spark_connect_proto as proto;
use spark_connect_proto::Relation;
use spark_connect_proto::relation::RelType;

use self::missing::Behind;
use super::expression::{self, Resolved, Scope};
use super::{Extensions, Frame, ResolveContext, Session};
use crate::{Error, Result};

pub(super) use answer::{Cells, texts};
pub(super) use build::select;
pub use catalog::matching;
pub use subquery::children;
pub(super) use catalog::named_table;
pub(super) use grow::Grow;
pub(super) use project::one_row;
pub(super) use rows::rows_frame;
pub(super) use set_operation::shown as visible_only;

/// One resolution of one plan.
pub(super) struct Resolution<'a> {
    pub session: &'a Session,
    pub extensions: &'a dyn Extensions,
    pub context: ResolveContext,
    pub state: SessionState,
    /// `WithRelations.references` by plan id: subqueries, resolved where an expression uses them.
    references: Mutex<HashMap<i64, Relation>>,
    /// Those that are aliased: what SQL text calls by name.
    named: Mutex<Vec<(String, Frame)>>,
}

/// The frames whose columns a subquery may name, outermost first.
pub(super) type Outer = [Arc<Frame>];

impl<'a> Resolution<'a> {
    pub fn new(session: &'a Session, extensions: &'a dyn Extensions) -> Resolution<'a> {
        Resolution {
            session,
            extensions,
            context: ResolveContext::new(session.conf()),
            state: session.state(),
            references: Mutex::default(),
            named: Mutex::default(),
        }
    }

    /// Resolves a relation.
    pub async fn relation(&self, relation: &Relation, outer: &Outer) -> Result<Frame> {
        // From the relation down to the leaf of its spine.
        let mut spine = vec![relation];
        while let Some(input) = first_input(spine.last().copied().unwrap_or(relation))? {
            if self.cached(spine.last().copied().unwrap_or(relation)).is_some() {
                break;
            }
            spine.push(input);
        }
        let mut frame: Option<Frame> = None;
        let mut behind: Option<Behind> = None;
        while let Some(relation) = spine.pop() {
            let mut next = match self.cached(relation) {
                Some(cached) => {
                    behind = None;
                    cached
                }
                None => {
                    let resolved = Box::pin(self.apply(relation, frame.take(), &mut behind, outer)).await?;
                    self.session.keep(relation, resolved)
                }
            };
            if let Some(plan_id) = relation.common.as_ref().and_then(|common| common.plan_id) {
                for column in &mut next.columns {
                    column.plan_ids.push(plan_id);
                }
            }
            frame = Some(next);
        }
        frame.ok_or(Error::Bug { invariant: "a spine has a leaf".into() })
    }

    /// Resolves an input that is not the first one.
    pub async fn other(&self, relation: &Option<Box<Relation>>, outer: &Outer) -> Result<Frame> {
        let relation = relation.as_deref().ok_or_else(|| missing("input"))?;
        Grow(Box::pin(self.relation(relation, outer))).await
    }

    fn cached(&self, relation: &Relation) -> Option<Frame> {
        self.session.cached(relation).map(|frame| self.renamed(frame)).and_then(Result::ok)
    }

    /// Resolves one relation whose first input is resolved.
    async fn apply(
        &self,
        relation: &Relation,
        input: Option<Frame>,
        behind: &mut Option<Behind>,
        outer: &Outer,
    ) -> Result<Frame> {
        let rel_type = relation.rel_type.as_ref().ok_or_else(|| missing("relation kind"))?;
        let seen_through = behind.take();
        match (rel_type, input) {
            (RelType::LocalRelation(local), _) => self.local(local),
            (RelType::CachedLocalRelation(local), _) => self.cached_local(local),
            (RelType::ChunkedCachedLocalRelation(local), _) => self.chunked_local(local),
            (RelType::CachedRemoteRelation(remote), _) => self.session.remote(&remote.relation_id),
            (RelType::Range(range), _) => self.range(range),
            (RelType::Read(read), _) => self.read(read).await,
            (RelType::Sql(sql), _) => self.sql(sql, outer).await,
            (RelType::Catalog(catalog), _) => self.catalog(catalog).await,
            (RelType::UnresolvedTableValuedFunction(function), _) => self.table_function(function, outer).await,
            (RelType::MlRelation(ml), _) => self.ml(ml, outer).await,
            (RelType::Extension(extension), _) => self.extension(extension, outer).await,
            (RelType::WithRelations(with), _) => self.with_relations(with, outer).await,
            (RelType::Project(project), input) => self.project(project, input, behind, outer).await,
            (RelType::Filter(filter), Some(input)) => {
                let frame = self.filter(filter, input, seen_through.as_ref(), outer).await?;
                *behind = None;
                Ok(frame)
            }
            (RelType::Sort(sort), Some(input)) => self.sort(sort, input, seen_through.as_ref(), outer).await,
            (RelType::Limit(limit), Some(input)) => sort::limit(input, 0, Some(limit.limit)),
            (RelType::Offset(offset), Some(input)) => sort::limit(input, offset.offset, None),
            (RelType::Tail(tail), Some(input)) => sort::tail(input, tail.limit),
            (RelType::Join(join), Some(left)) => self.join(join, left, outer).await,
            (RelType::LateralJoin(join), Some(left)) => self.lateral_join(join, left, outer).await,
            (RelType::SetOp(operation), Some(left)) => self.set_operation(operation, left, outer).await,
            (RelType::Aggregate(aggregate), Some(input)) => self.aggregate(aggregate, input, outer).await,
            (RelType::Deduplicate(deduplicate), Some(input)) => self.deduplicate(deduplicate, input),
            (RelType::Sample(sample), Some(input)) => sample::sample(sample, input),
            (RelType::SampleBy(sample), Some(input)) => self.sample_by(sample, input, outer).await,
            (RelType::SubqueryAlias(alias), Some(input)) => columns::subquery_alias(alias, input),
            (RelType::Repartition(repartition), Some(input)) => sort::repartition(repartition, input),
            (RelType::RepartitionByExpression(repartition), Some(input)) => {
                self.repartition_by_expression(repartition, input, outer).await
            }
            (RelType::ToDf(to_df), Some(input)) => columns::to_df(to_df, input),
            (RelType::WithColumns(with), Some(input)) => self.with_columns(with, input, outer).await,
            (RelType::WithColumnsRenamed(renamed), Some(input)) => self.with_columns_renamed(renamed, input),
            (RelType::Drop(drop), Some(input)) => self.drop_columns(drop, input, outer).await,
            (RelType::ToSchema(to_schema), Some(input)) => self.to_schema(to_schema, input),
            (RelType::ShowString(show), Some(input)) => self.show_string(show, input).await,
            (RelType::HtmlString(show), Some(input)) => self.html_string(show, input).await,
            // Spark ignores hints that it does not know or cannot follow, with a warning in its log.
            (RelType::Hint(_), Some(input)) => Ok(input),
            (RelType::Describe(describe), Some(input)) => self.describe(describe, input).await,
            (RelType::Summary(summary), Some(input)) => self.summary(summary, input).await,
            (RelType::FillNa(fill), Some(input)) => self.na_fill(fill, input),
            (RelType::DropNa(drop), Some(input)) => self.na_drop(drop, input),
            (RelType::Replace(replace), Some(input)) => self.na_replace(replace, input),
            (RelType::Crosstab(crosstab), Some(input)) => self.crosstab(crosstab, input).await,
            (RelType::Cov(cov), Some(input)) => self.cov(cov, input).await,
            (RelType::Corr(corr), Some(input)) => self.corr(corr, input).await,
            (RelType::ApproxQuantile(quantile), Some(input)) => self.approx_quantile(quantile, input).await,
            (RelType::FreqItems(items), Some(input)) => self.freq_items(items, input).await,
            (RelType::Unpivot(unpivot), Some(input)) => self.unpivot(unpivot, input, outer).await,
            (RelType::Transpose(transpose), Some(input)) => self.transpose(transpose, input, outer).await,
            (other, _) => Err(Error::Unsupported { feature: format!("relation {}", kind(other)) }),
        }
    }

    /// Resolves an expression over a frame, with the subqueries in it.
    pub async fn expression(
        &self,
        expression: &proto::Expression,
        frame: &Frame,
        outer: &Outer,
    ) -> Result<Resolved> {
        self.resolve_subqueries([expression], frame, outer).await?;
        self.plain_expression(expression, frame, outer)
    }

    /// Resolves an expression whose subqueries are resolved, or that has none.
    pub fn plain_expression(
        &self,
        expression: &proto::Expression,
        frame: &Frame,
        outer: &Outer,
    ) -> Result<Resolved> {
        in_scope(outer, None, frame, &mut |scope| {
            expression::resolve(&self.context, &self.state, expression, scope)
        })
    }

    /// Resolves the expressions of a projection, stars spread out.
    pub async fn projection(
        &self,
        expressions: &[proto::Expression],
        frame: &Frame,
        outer: &Outer,
    ) -> Result<Vec<Resolved>> {
        self.resolve_subqueries(expressions, frame, outer).await?;
        in_scope(outer, None, frame, &mut |scope| {
            expression::resolve_projection(&self.context, &self.state, expressions, scope)
        })
    }

    /// Resolves sort orders.
    pub async fn orders(
        &self,
        orders: &[proto::expression::SortOrder],
        frame: &Frame,
        outer: &Outer,
    ) -> Result<Vec<datafusion::logical_expr::SortExpr>> {
        let children = orders.iter().filter_map(|order| order.child.as_deref());
        self.resolve_subqueries(children, frame, outer).await?;
        in_scope(outer, None, frame, &mut |scope| {
            orders.iter().map(|order| expression::sort(&self.context, &self.state, order, scope)).collect()
        })
    }
}

/// Builds the chain of scopes from the outermost frame inwards.
fn in_scope<R>(outer: &Outer, parent: Option<&Scope<'_>>, frame: &Frame, body: &mut dyn FnMut(&Scope<'_>) -> R) -> R {
    match outer.split_first() {
        None => body(&Scope { frame, outer: parent }),
        Some((first, rest)) => in_scope(rest, Some(&Scope { frame: first, outer: parent }), frame, body),
    }
}

/// The input along which plans grow deep, of relations that have one.
fn first_input(relation: &Relation) -> Result<Option<&Relation>> {
    let Some(rel_type) = &relation.rel_type else { return Err(missing("relation kind")) };
    let input = match rel_type {
        RelType::Project(project) => return Ok(project.input.as_deref()),
        RelType::Filter(message) => &message.input,
        RelType::Sort(message) => &message.input,
        RelType::Limit(message) => &message.input,
        RelType::Offset(message) => &message.input,
        RelType::Tail(message) => &message.input,
        RelType::Join(message) => &message.left,
        RelType::LateralJoin(message) => &message.left,
        RelType::SetOp(message) => &message.left_input,
        RelType::Aggregate(message) => &message.input,
        RelType::Deduplicate(message) => &message.input,
        RelType::Sample(message) => &message.input,
        RelType::SampleBy(message) => &message.input,
        RelType::SubqueryAlias(message) => &message.input,
        RelType::Repartition(message) => &message.input,
        RelType::RepartitionByExpression(message) => &message.input,
        RelType::ToDf(message) => &message.input,
        RelType::WithColumns(message) => &message.input,
        RelType::WithColumnsRenamed(message) => &message.input,
        RelType::Drop(message) => &message.input,
        RelType::ToSchema(message) => &message.input,
        RelType::ShowString(message) => &message.input,
        RelType::HtmlString(message) => &message.input,
        RelType::Hint(message) => &message.input,
        RelType::Describe(message) => &message.input,
        RelType::Summary(message) => &message.input,
        RelType::FillNa(message) => &message.input,
        RelType::DropNa(message) => &message.input,
        RelType::Replace(message) => &message.input,
        RelType::Crosstab(message) => &message.input,
        RelType::Cov(message) => &message.input,
        RelType::Corr(message) => &message.input,
        RelType::ApproxQuantile(message) => &message.input,
        RelType::FreqItems(message) => &message.input,
        RelType::Unpivot(message) => &message.input,
        RelType::Transpose(message) => &message.input,
        _ => return Ok(None),
    };
    input.as_deref().map(Some).ok_or_else(|| missing("input"))
}

fn kind(rel_type: &RelType) -> String {
    let text = format!("{rel_type:?}");
    text.split(['(', ' ']).next().unwrap_or_default().to_owned()
}

pub(super) fn missing(part: &str) -> Error {
    Error::InvalidPlan { detail: format!("relation without {part}") }
}

/// A frame of the same columns over another plan.
fn over(frame: Frame, plan: LogicalPlan) -> Frame {
    Frame { plan, columns: frame.columns }
}
