//! GROUP BY: what a query groups by, and its expressions rewritten over the grouped columns.
//!
//! An Aggregate message gives out its groups and its aggregate calls under hidden names; whatever else a query makes of
//! them stands in a projection above it, so that a resolver never has to take an expression apart.

use spark_connect_proto as proto;
use spark_connect_proto::aggregate::{GroupType, GroupingSets};
use spark_connect_proto::expression::ExprType;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Relation};
use sqlparser::ast::{Expr, GroupByExpr, GroupByWithModifier};

use crate::aggregate::{contains_aggregate, is_aggregate_call};
use crate::columns::{integer_literal, nth};
use crate::error::{Error, unsupported};
use crate::expression::brief;
use crate::identifier::split_identifier;
use crate::message::{alias, column, expression, extract, relation, string};
use crate::select::Item;
use crate::translator::Translator;
use crate::tree::{children, map_children, map_window_inputs};

const GROUPING_SETS_MAX: usize = 4096;
/// Items that build on earlier items twice double at each step.
const EXPANSIONS_MAX: usize = 10_000;

/// The groups and the aggregate calls of one query, each with the hidden name it is given out under.
#[derive(Debug, Default)]
pub(crate) struct Grouped {
    groups: Vec<(Expression, String)>,
    calls: Vec<(Expression, String)>,
    kind: Kind,
    /// How many times an item stood in for its alias.
    expansions: usize,
}

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Plain,
    Rollup,
    Cube,
    Sets(Vec<Vec<Expression>>),
}

impl Grouped {
    pub fn new(t: &mut Translator<'_>, clause: &GroupByExpr, items: &[Item]) -> Result<Self, Error> {
        let mut grouped = Grouped::default();
        match clause {
            GroupByExpr::All(modifiers) => {
                if !modifiers.is_empty() {
                    return unsupported("GROUP BY ALL with a modifier");
                }
                for item in items {
                    grouped.add_free_parts(t, &item.expr)?;
                }
            }
            GroupByExpr::Expressions(exprs, modifiers) => grouped.add_elements(t, exprs, modifiers, items)?,
        }
        Ok(grouped)
    }

    /// GROUP BY ALL: an item without aggregates is a group; of one with them, the columns outside their calls are.
    fn add_free_parts(&mut self, t: &mut Translator<'_>, expr: &Expression) -> Result<(), Error> {
        if is_aggregate_call(expr) || matches!(expr.expr_type, Some(ExprType::Literal(_))) {
            return Ok(());
        }
        if matches!(expr.expr_type, Some(ExprType::UnresolvedStar(_))) {
            return unsupported("GROUP BY ALL with * in the select list");
        }
        if !contains_aggregate(expr) {
            self.add_group(t, expr.clone());
            return Ok(());
        }
        children(expr).into_iter().try_for_each(|child| self.add_free_parts(t, child))
    }

    fn add_elements(
        &mut self,
        t: &mut Translator<'_>,
        exprs: &[Expr],
        modifiers: &[GroupByWithModifier],
        items: &[Item],
    ) -> Result<(), Error> {
        match (exprs, modifiers) {
            ([Expr::Rollup(tuples)], []) if tuples.iter().all(|tuple| tuple.len() == 1) => {
                self.kind = Kind::Rollup;
                return tuples.iter().flatten().try_for_each(|expr| self.add_element(t, expr, items).map(drop));
            }
            ([Expr::Cube(tuples)], []) if tuples.iter().all(|tuple| tuple.len() == 1) => {
                self.kind = Kind::Cube;
                return tuples.iter().flatten().try_for_each(|expr| self.add_element(t, expr, items).map(drop));
            }
            (_, []) => {}
            (exprs, [modifier]) if !exprs.iter().any(is_grouping_element) => {
                for expr in exprs {
                    self.add_element(t, expr, items)?;
                }
                self.kind = match modifier {
                    GroupByWithModifier::Rollup => Kind::Rollup,
                    GroupByWithModifier::Cube => Kind::Cube,
                    GroupByWithModifier::GroupingSets(Expr::GroupingSets(sets)) => {
                        Kind::Sets(self.sets(t, sets, items)?)
                    }
                    other => return unsupported(format!("GROUP BY {other}")),
                };
                return Ok(());
            }
            _ => return unsupported("GROUP BY with several modifiers"),
        }
        if !exprs.iter().any(is_grouping_element) {
            return exprs.iter().try_for_each(|expr| self.add_element(t, expr, items).map(drop));
        }
        // Several elements multiply: each set of one with each set of the next.
        let mut product: Vec<Vec<Expression>> = vec![Vec::new()];
        for expr in exprs {
            let sets = match expr {
                Expr::GroupingSets(sets) => self.sets(t, sets, items)?,
                Expr::Rollup(tuples) => {
                    let tuples = self.sets(t, tuples, items)?;
                    (0..=tuples.len()).rev().map(|end| tuples[..end].concat()).collect()
                }
                Expr::Cube(tuples) => {
                    let tuples = self.sets(t, tuples, items)?;
                    if tuples.len() > GROUPING_SETS_MAX.ilog2() as usize {
                        return Err(Error::TooLarge { limit: GROUPING_SETS_MAX });
                    }
                    let chosen = |mask: usize| {
                        let kept = tuples.iter().enumerate().filter(|(at, _)| mask & (1 << at) != 0);
                        kept.flat_map(|(_, tuple)| tuple.clone()).collect()
                    };
                    (0..1usize << tuples.len()).rev().map(chosen).collect()
                }
                Expr::Tuple(exprs) if exprs.is_empty() => vec![Vec::new()],
                expr => vec![vec![self.add_element(t, expr, items)?]],
            };
            if product.len() * sets.len() > GROUPING_SETS_MAX {
                return Err(Error::TooLarge { limit: GROUPING_SETS_MAX });
            }
            product = product.iter().flat_map(|left| sets.iter().map(|right| [&left[..], right].concat())).collect();
        }
        self.kind = Kind::Sets(product);
        Ok(())
    }

    fn sets(
        &mut self,
        t: &mut Translator<'_>,
        sets: &[Vec<Expr>],
        items: &[Item],
    ) -> Result<Vec<Vec<Expression>>, Error> {
        sets.iter().map(|set| set.iter().map(|expr| self.add_element(t, expr, items)).collect()).collect()
    }

    /// One element of GROUP BY: an ordinal, a select item's alias, or an expression over the input.
    fn add_element(&mut self, t: &mut Translator<'_>, expr: &Expr, items: &[Item]) -> Result<Expression, Error> {
        let mut group = t.expression(expr)?;
        if let Some(position) = integer_literal(&group) {
            let item = nth(items, position, "GROUP BY")?;
            if item.is_star() {
                return unsupported("a GROUP BY position that stands for *");
            }
            group = item.expr.clone();
        } else if let Some(name) = single_part(&group) {
            // The input's own column comes first; an item that reads a column of the alias' name shows there is one.
            let named = items.iter().find(|item| item.names.len() == 1 && item.names[0].eq_ignore_ascii_case(&name));
            let reads_it = |expr: &Expression| {
                crate::tree::any(expr, &mut |expr| {
                    attribute_parts(expr)
                        .and_then(|mut parts| parts.pop())
                        .is_some_and(|part| part.eq_ignore_ascii_case(&name))
                })
            };
            if let Some(item) = named.filter(|item| !contains_aggregate(&item.expr) && !reads_it(&item.expr)) {
                group = item.expr.clone();
            }
        }
        if contains_aggregate(&group) {
            return Err(Error::AggregateInGroupBy { expression: brief(&t.name_of(&group)) });
        }
        self.add_group(t, group.clone());
        Ok(group)
    }

    fn add_group(&mut self, t: &mut Translator<'_>, group: Expression) {
        if !self.groups.iter().any(|(known, _)| t.same(known, &group)) {
            let name = t.hidden_name();
            self.groups.push((group, name));
        }
    }

    /// The hidden column that stands for an expression: one of the groups, or a field of one.
    fn group_column(&self, t: &Translator<'_>, expr: &Expression) -> Option<Expression> {
        if let Some((_, name)) = self.groups.iter().find(|(group, _)| t.same(group, expr)) {
            return Some(column(&[name]));
        }
        let parts = attribute_parts(expr)?;
        (1..parts.len()).rev().find_map(|end| {
            let front = column(&parts[..end]);
            let (_, name) = self.groups.iter().find(|(group, _)| t.same(group, &front))?;
            Some(parts[end..].iter().fold(column(&[name]), |value, field| extract(value, string(field))))
        })
    }

    /// The expression over the hidden columns; names that are no group may be those of earlier items.
    pub fn rewrite(&mut self, t: &mut Translator<'_>, expr: Expression, earlier: &[Item]) -> Result<Expression, Error> {
        if let Some(group) = self.group_column(t, &expr) {
            return Ok(group);
        }
        if is_aggregate_call(&expr) {
            if let Some((_, name)) = self.calls.iter().find(|(call, _)| t.same(call, &expr)) {
                return Ok(column(&[name]));
            }
            let name = t.hidden_name();
            self.calls.push((expr, name.clone()));
            return Ok(column(&[name]));
        }
        if let Some(name) = single_part(&expr) {
            let named = |item: &Item| item.names.len() == 1 && item.names[0].eq_ignore_ascii_case(&name);
            return match earlier.iter().position(named) {
                Some(_) if self.expansions >= EXPANSIONS_MAX => Err(Error::TooLarge { limit: EXPANSIONS_MAX }),
                Some(at) => {
                    self.expansions += 1;
                    t.nested(|t| self.rewrite(t, earlier[at].expr.clone(), &earlier[..at]))
                }
                None => Ok(expr),
            };
        }
        match expr.expr_type {
            Some(ExprType::Window(window)) => {
                let window = map_window_inputs(*window, &mut |child| self.rewrite(t, child, earlier))?;
                Ok(expression(ExprType::Window(Box::new(window))))
            }
            expr_type => {
                let expr = Expression { common: expr.common, expr_type };
                map_children(expr, &mut |child| self.rewrite(t, child, earlier))
            }
        }
    }

    /// Whether an expression is as a whole one of the hidden columns.
    pub fn is_column(&self, t: &Translator<'_>, expr: &Expression) -> bool {
        is_aggregate_call(expr) || self.group_column(t, expr).is_some()
    }

    /// The Aggregate message, once everything that asks for a call has been rewritten.
    pub fn relation(self, input: Relation) -> Relation {
        let named = |pairs: Vec<(Expression, String)>| {
            pairs.into_iter().map(|(expr, name)| alias(expr, vec![name])).collect::<Vec<_>>()
        };
        let (group_type, sets) = match self.kind {
            Kind::Plain => (GroupType::Groupby, Vec::new()),
            Kind::Rollup => (GroupType::Rollup, Vec::new()),
            Kind::Cube => (GroupType::Cube, Vec::new()),
            Kind::Sets(sets) => (GroupType::GroupingSets, sets),
        };
        relation(RelType::Aggregate(Box::new(proto::Aggregate {
            input: Some(Box::new(input)),
            group_type: group_type as i32,
            grouping_expressions: named(self.groups),
            aggregate_expressions: named(self.calls),
            pivot: None,
            grouping_sets: sets.into_iter().map(|grouping_set| GroupingSets { grouping_set }).collect(),
        })))
    }
}

fn is_grouping_element(expr: &Expr) -> bool {
    match expr {
        Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => true,
        Expr::Tuple(exprs) => exprs.is_empty(),
        _ => false,
    }
}

pub(crate) fn attribute_parts(expr: &Expression) -> Option<Vec<String>> {
    match &expr.expr_type {
        Some(ExprType::UnresolvedAttribute(attribute)) => Some(split_identifier(&attribute.unparsed_identifier)),
        _ => None,
    }
}

/// The name of a column that is written without a qualifier.
pub(crate) fn single_part(expr: &Expression) -> Option<String> {
    match <[String; 1]>::try_from(attribute_parts(expr)?) {
        Ok([name]) => Some(name),
        Err(_) => None,
    }
}

impl Translator<'_> {
    /// Whether two expressions are the same but for case and for a qualifier that only one of them has.
    pub fn same(&self, left: &Expression, right: &Expression) -> bool {
        if left == right {
            return true;
        }
        if let (Some(left), Some(right)) = (attribute_parts(left), attribute_parts(right)) {
            let (long, short) = if left.len() >= right.len() { (left, right) } else { (right, left) };
            let extra = long.len() - short.len();
            return self.qualifier_parts(&long) >= extra
                && long[extra..].iter().zip(&short).all(|(l, s)| l.eq_ignore_ascii_case(s));
        }
        let (below_left, below_right) = (children(left), children(right));
        !below_left.is_empty()
            && below_left.len() == below_right.len()
            && shell(left) == shell(right)
            && below_left.iter().zip(below_right).all(|(l, r)| self.same(l, r))
    }
}

/// The expression without what is below it, function names in lower case.
fn shell(expr: &Expression) -> Option<Expression> {
    let mut shell = map_children(expr.clone(), &mut |_| Ok(Expression::default())).ok()?;
    if let Some(ExprType::UnresolvedFunction(call)) = &mut shell.expr_type {
        call.function_name.make_ascii_lowercase();
    }
    Some(shell)
}
