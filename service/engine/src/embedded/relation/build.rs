//! The pieces that plans of relations are put together from.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::Column as PlanColumn;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, TableScanBuilder};

use super::Resolution;
use crate::embedded::expression::Resolved;
use crate::embedded::operator::FenceNode;
use crate::embedded::{Column, Frame, ResolveContext};
use crate::{Conf, Error, Result};

impl Resolution<'_> {
    /// The column a resolved expression makes, and the expression under the column's internal name. `taken` are the
    /// internal names that the output has already.
    pub fn output(&self, resolved: &Resolved, frame: &Frame, taken: &mut HashSet<String>) -> (Expr, Column) {
        let passed_on = resolved.column.and_then(|index| frame.columns.get(index));
        match passed_on {
            Some(column) if taken.insert(column.internal.clone()) => {
                (column.expr(), Column { is_hidden: false, ..column.clone() })
            }
            Some(column) => {
                let column = Column { internal: self.context.fresh_name(), is_hidden: false, ..column.clone() };
                (resolved.expr.clone().alias(&column.internal), column)
            }
            None => {
                let column = self.column(&resolved.name, Arc::clone(&resolved.field));
                (resolved.expr.clone().alias(&column.internal), column)
            }
        }
    }

    /// A new column.
    pub fn column(&self, name: &str, field: FieldRef) -> Column {
        new_column(&self.context, name, field)
    }

    /// The same frame under internal names of its own, for the second use of a plan in one query.
    pub fn renamed(&self, frame: Frame) -> Result<Frame> {
        let mut columns = frame.columns;
        let mut exprs = Vec::with_capacity(columns.len());
        for column in &mut columns {
            let old = column.expr();
            column.internal = self.context.fresh_name();
            exprs.push(old.alias(&column.internal));
        }
        Ok(Frame { plan: project(frame.plan, exprs)?, columns })
    }
}

pub fn new_column(context: &ResolveContext, name: &str, field: FieldRef) -> Column {
    let field = if field.name() == name { field } else { Arc::new(field.as_ref().clone().with_name(name)) };
    Column {
        name: name.to_owned(),
        internal: context.fresh_name(),
        field,
        plan_ids: Vec::new(),
        qualifiers: Vec::new(),
        is_hidden: false,
    }
}

/// A frame over rows or files whose plan has the columns of `schema`, under those names.
pub fn source_frame(context: &ResolveContext, plan: LogicalPlan, schema: &SchemaRef) -> Result<Frame> {
    let mut columns = Vec::with_capacity(schema.fields().len());
    let mut exprs = Vec::with_capacity(schema.fields().len());
    for (field, (qualifier, plan_field)) in schema.fields().iter().zip(plan.schema().iter()) {
        let column = new_column(context, field.name(), Arc::clone(field));
        let source = Expr::Column(PlanColumn::new(qualifier.cloned(), plan_field.name()));
        exprs.push(source.alias(&column.internal));
        columns.push(column);
    }
    let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(plan))?);
    Ok(Frame { plan, columns })
}

/// A scan of a table provider, its columns under the provider's names.
pub fn table_scan(provider: Arc<dyn TableProvider>) -> Result<LogicalPlan> {
    let scan = TableScanBuilder::new("source", provider_as_source(provider)).build()?;
    Ok(LogicalPlan::TableScan(scan))
}

/// Projects a plan; into a projection below it where no expression has to be computed twice for that.
pub fn project(input: LogicalPlan, exprs: Vec<Expr>) -> Result<LogicalPlan> {
    if let LogicalPlan::Projection(below) = &input
        && let Some(merged) = merge(&exprs, below)?
    {
        let projection = Projection::try_new(merged, Arc::clone(&below.input))?;
        return Ok(LogicalPlan::Projection(projection));
    }
    let input = FenceNode::after_chain(input);
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?))
}

/// The expressions over the input of the projection below, or nothing where an expression of that one is used more than
/// once, or inside another: a chain of columns that build on each other must not grow with every step.
fn merge(exprs: &[Expr], below: &Projection) -> Result<Option<Vec<Expr>>> {
    let mut sources: HashMap<&str, (&Expr, bool)> = HashMap::with_capacity(below.expr.len());
    for (expr, field) in below.expr.iter().zip(below.schema.fields()) {
        let source = match expr {
            Expr::Alias(alias) => alias.expr.as_ref(),
            other => other,
        };
        let is_cheap = matches!(source, Expr::Column(_) | Expr::Literal(..));
        sources.insert(field.name(), (source, is_cheap));
    }
    let mut used_once: HashSet<&str> = HashSet::new();
    for expr in exprs {
        let bare = match expr {
            Expr::Alias(alias) => alias.expr.as_ref(),
            other => other,
        };
        let mut is_mergeable = true;
        bare.apply(|part| {
            is_mergeable &= match part {
                Expr::Column(column) => match sources.get_key_value(column.name.as_str()) {
                    Some((_, (_, true))) => true,
                    Some((name, (_, false))) => std::ptr::eq(part, bare) && used_once.insert(name),
                    None => false,
                },
                // Columns inside a subquery are not seen from here.
                Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) => false,
                _ => true,
            };
            Ok(if is_mergeable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })?;
        if !is_mergeable {
            return Ok(None);
        }
    }
    let merged = exprs
        .iter()
        .map(|expr| {
            let name = expr.schema_name().to_string();
            let replaced = expr
                .clone()
                .transform_down(|part| match &part {
                    Expr::Column(column) => match sources.get(column.name.as_str()) {
                        Some((source, _)) => Ok(Transformed::new((*source).clone(), true, TreeNodeRecursion::Jump)),
                        None => Ok(Transformed::no(part)),
                    },
                    _ => Ok(Transformed::no(part)),
                })
                .data()?;
            Ok(match replaced {
                Expr::Alias(alias) if alias.name == name => Expr::Alias(alias),
                Expr::Column(column) if column.relation.is_none() && column.name == name => Expr::Column(column),
                other => other.alias(name),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Some(merged))
}

/// Keeps exactly these columns of a frame.
pub fn keep(frame: Frame, columns: Vec<Column>) -> Result<Frame> {
    let exprs = columns.iter().map(Column::expr).collect();
    Ok(Frame { plan: project(frame.plan, exprs)?, columns })
}

/// The visible columns of these names.
pub fn select(conf: &Conf, frame: &Frame, names: &[String]) -> Result<Frame> {
    let same = |left: &str, right: &str| {
        if conf.case_sensitive() { left == right } else { left.to_lowercase() == right.to_lowercase() }
    };
    let mut columns: Vec<Column> = Vec::with_capacity(names.len());
    for name in names {
        let mut found = frame.visible().filter(|column| same(&column.name, name));
        match (found.next(), found.next()) {
            (Some(column), None) => columns.push(column.clone()),
            (Some(_), Some(_)) => {
                return Err(Error::AmbiguousReference { name: name.clone(), candidates: vec![name.clone(); 2] });
            }
            (None, _) => {
                let suggestions = frame.visible().map(|column| column.name.clone()).collect();
                return Err(Error::UnresolvedColumn { name: name.clone(), suggestions });
            }
        }
    }
    let mut seen = HashSet::new();
    if let Some(repeated) = columns.iter().find(|column| !seen.insert(column.internal.as_str())) {
        return Err(Error::InvalidPlan { detail: format!("column {} is asked for twice", repeated.name) });
    }
    keep(frame.clone(), columns)
}
