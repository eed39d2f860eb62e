//! SELECT: from the clauses of one query block to the relations that stand for them.

use spark_connect_proto as proto;
use spark_connect_proto::expression::{ExprType, SortOrder};
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Relation};
use sqlparser::ast::{
    Distinct, ExceptSelectItem, Expr, GroupByExpr, LateralView, NamedWindowExpr, OrderBy, OrderByExpr, OrderByKind,
    OrderByOptions, Select, SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};

use crate::DEPTH_MAX;
use crate::aggregate::contains_aggregate;
use crate::columns::{integer_literal, nth};
use crate::error::{Error, unsupported};
use crate::expression::brief;
use crate::function_call::sort_order;
use crate::grouping::{Grouped, attribute_parts, single_part};
use crate::identifier::{ident_values, object_parts, quote_parts};
use crate::message::{alias, column, distinct, drop_columns, expression, filter, project, relation, sort, star};
use crate::translator::{Scope, Translator};
use crate::tree::{map_children, map_window_inputs};

/// One element of the select list.
#[derive(Debug)]
pub(crate) struct Item {
    /// Without its alias.
    pub expr: Expression,
    /// The alias; several for a generator.
    pub names: Vec<String>,
    /// Columns that a `*` leaves out.
    except: Vec<String>,
}

impl Item {
    pub fn is_star(&self) -> bool {
        matches!(self.expr.expr_type, Some(ExprType::UnresolvedStar(_)))
    }

    fn is_full_star(&self) -> bool {
        matches!(&self.expr.expr_type, Some(ExprType::UnresolvedStar(star)) if star.unparsed_target.is_none())
            && self.except.is_empty()
    }
}

/// A select list on its way to a projection.
struct Shape {
    items: Vec<Item>,
    /// The name of each item's column, where it is one.
    outputs: Vec<Option<String>>,
    grouped: Option<Grouped>,
    /// Columns that a later clause needs and the query does not give out.
    hidden: Vec<(Expression, String)>,
    /// After DISTINCT nothing can be added.
    closed: bool,
}

impl Shape {
    /// The name under which an item can be referred to above the projection.
    fn unique_output(&self, at: usize) -> Option<&str> {
        let name = self.outputs.get(at)?.as_deref()?;
        let same = self.outputs.iter().flatten().filter(|other| other.eq_ignore_ascii_case(name)).count();
        // Beside a star, an alias may be the name of one of its columns too, and wins over it in ORDER BY.
        (same == 1).then_some(name)
    }

    fn output_named(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|output| output.as_deref().is_some_and(|output| output.eq_ignore_ascii_case(name)))
    }
}

impl Translator<'_> {
    pub fn select(&mut self, select: &Select, order_by: Option<&OrderBy>) -> Result<Relation, Error> {
        refuse_foreign_clauses(select)?;
        let outer = std::mem::take(&mut self.references);
        self.scopes.push(Scope::default());
        let result = self.select_in_scope(select, order_by);
        self.scopes.pop();
        self.references = outer;
        result
    }

    fn select_in_scope(&mut self, select: &Select, order_by: Option<&OrderBy>) -> Result<Relation, Error> {
        self.count_relations(1)?;
        for window in &select.named_window {
            let spec = match &window.1 {
                NamedWindowExpr::WindowSpec(spec) => spec.clone(),
                NamedWindowExpr::NamedWindow(other) => {
                    let found = self.scope().windows.get(&other.value.to_ascii_lowercase()).cloned();
                    found.ok_or_else(|| Error::UnknownWindow { name: other.value.clone() })?
                }
            };
            self.scope().windows.insert(window.0.value.to_ascii_lowercase(), spec);
        }
        if select.lateral_views.len() + select.optimizer_hints.len() > DEPTH_MAX {
            return Err(Error::TooDeep { limit: DEPTH_MAX });
        }
        let mut input = self.table_list(&select.from)?;
        for view in &select.lateral_views {
            input = self.lateral_view(input, view)?;
        }
        if let Some(condition) = &select.selection {
            let condition = self.expression(condition)?;
            input = filter(input, condition);
            input = self.with_references(input);
        }
        let items = match select.flavor {
            SelectFlavor::FromFirstNoSelect => vec![Item { expr: star(None), names: Vec::new(), except: Vec::new() }],
            _ => self.items(&select.projection)?,
        };
        let groups_nothing = matches!(&select.group_by, GroupByExpr::Expressions(exprs, modifiers)
            if exprs.is_empty() && modifiers.is_empty());
        let aggregates =
            !groups_nothing || select.having.is_some() || items.iter().any(|item| contains_aggregate(&item.expr));
        let grouped = if aggregates {
            if items.iter().any(Item::is_star) {
                return unsupported("* in the select list of a query that aggregates");
            }
            Some(Grouped::new(self, &select.group_by, &items)?)
        } else {
            None
        };
        let outputs = items.iter().map(|item| self.output_name(item)).collect();
        let is_distinct = matches!(select.distinct, Some(Distinct::Distinct));
        let shape = Shape { items, outputs, grouped, hidden: Vec::new(), closed: false };
        self.finish(select, order_by, input, shape, is_distinct)
    }

    /// Everything after the groups are known: HAVING, the projection, QUALIFY, DISTINCT, hints and the orders.
    fn finish(
        &mut self,
        select: &Select,
        order_by: Option<&OrderBy>,
        mut input: Relation,
        mut shape: Shape,
        is_distinct: bool,
    ) -> Result<Relation, Error> {
        let having = select.having.as_ref().map(|having| self.having(having, &mut shape)).transpose()?;
        let qualify = match &select.qualify {
            Some(condition) => {
                let condition = self.expression(condition)?;
                Some(self.lift(condition, &mut shape)?)
            }
            None => None,
        };
        let for_qualify = shape.hidden.len();
        shape.closed = is_distinct;
        let keys = self.sort_keys(order_by, &shape)?;
        // Over a bare `*` every column that a key can name is still there below the projection, qualifiers included.
        let is_identity = matches!(shape.items.as_slice(), [item] if item.is_full_star())
            && shape.grouped.is_none()
            && !is_distinct
            && qualify.is_none();
        let sorts_below = is_identity && select.sort_by.is_empty() && partition_keys(select).is_empty();
        let lifted = if sorts_below { keys } else { self.lift_keys(keys, &mut shape)? };
        let sort_by = self.lift_written(&select.sort_by, &mut shape)?;
        let mut partitions = Vec::new();
        for key in partition_keys(select) {
            let key = self.expression(key)?;
            partitions.push(self.lift(key, &mut shape)?);
        }
        if sorts_below && !lifted.is_empty() {
            input = sort(input, lifted.clone(), true);
        }
        let mut result = self.projection(input, &mut shape, having)?;
        if let Some(condition) = qualify {
            result = filter(result, condition);
        }
        let mut hidden: Vec<String> = shape.hidden.into_iter().map(|(_, name)| name).collect();
        if is_distinct {
            let drained: Vec<String> = hidden.drain(..for_qualify.min(hidden.len())).collect();
            if !drained.is_empty() {
                result = drop_columns(result, drained);
            }
            result = distinct(result);
        }
        for hint in select.optimizer_hints.iter().rev() {
            result = self.hints(result, &hint.text)?;
        }
        if !partitions.is_empty() {
            let local = if select.cluster_by.is_empty() { None } else { Some(partitions.clone()) };
            result = relation(RelType::RepartitionByExpression(Box::new(proto::RepartitionByExpression {
                input: Some(Box::new(result)),
                partition_exprs: partitions,
                num_partitions: None,
            })));
            if let Some(keys) = local {
                result = sort(result, keys.into_iter().map(|key| sort_order(key, None, None)).collect(), false);
            }
        }
        if !sort_by.is_empty() {
            result = sort(result, sort_by, false);
        }
        if !sorts_below && !lifted.is_empty() {
            result = sort(result, lifted, true);
        }
        if !hidden.is_empty() {
            result = drop_columns(result, hidden);
        }
        Ok(self.with_references(result))
    }

    fn items(&mut self, projection: &[SelectItem]) -> Result<Vec<Item>, Error> {
        projection
            .iter()
            .map(|item| match item {
                SelectItem::UnnamedExpr(expr) => {
                    Ok(Item { expr: self.expression(expr)?, names: Vec::new(), except: Vec::new() })
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    Ok(Item { expr: self.expression(expr)?, names: vec![alias.value.clone()], except: Vec::new() })
                }
                SelectItem::ExprWithAliases { expr, aliases } => {
                    Ok(Item { expr: self.expression(expr)?, names: ident_values(aliases), except: Vec::new() })
                }
                SelectItem::Wildcard(options) => {
                    Ok(Item { expr: star(None), names: Vec::new(), except: excepted(options)? })
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    let mut parts = object_parts(name)?;
                    if let [view] = parts.as_slice()
                        && self.scope().views.iter().any(|known| known.eq_ignore_ascii_case(view))
                    {
                        return unsupported(format!("{view}.* of a lateral view"));
                    }
                    let target = format!("{}.*", quote_parts(&std::mem::take(&mut parts)));
                    Ok(Item { expr: star(Some(target)), names: Vec::new(), except: excepted(options)? })
                }
                SelectItem::QualifiedWildcard(other, _) => {
                    unsupported(format!("the select item {}", brief(&other.to_string())))
                }
            })
            .collect()
    }

    /// An item outside a SELECT.
    pub fn lone_item(&mut self, item: &SelectItem) -> Result<Expression, Error> {
        let mut items = self.items(std::slice::from_ref(item))?;
        match items.pop() {
            Some(Item { expr, names, except }) if except.is_empty() => {
                let written = if names.is_empty() { self.written_name(&expr) } else { None };
                let names = written.map_or(names, |name| vec![name]);
                Ok(if names.is_empty() { expr } else { alias(expr, names) })
            }
            _ => unsupported("* EXCEPT outside a SELECT"),
        }
    }

    fn output_name(&self, item: &Item) -> Option<String> {
        match item.names.as_slice() {
            [name] => Some(name.clone()),
            [] if !item.is_star() => Some(self.name_of(&item.expr)),
            _ => None,
        }
    }

    /// HAVING sees the aliases of the select list before the columns of the input.
    fn having(&mut self, having: &Expr, shape: &mut Shape) -> Result<Expression, Error> {
        let condition = self.expression(having)?;
        let condition = with_aliases(condition, &shape.items, false)?;
        match shape.grouped.as_mut() {
            Some(grouped) => grouped.rewrite(self, condition, &[]),
            None => Ok(condition),
        }
    }

    /// The select list over the input, with what later clauses need under hidden names.
    fn projection(
        &mut self,
        input: Relation,
        shape: &mut Shape,
        having: Option<Expression>,
    ) -> Result<Relation, Error> {
        let mut columns = Vec::new();
        let mut renames = Vec::new();
        let mut dropped = Vec::new();
        for at in 0..shape.items.len() {
            let item = &shape.items[at];
            let expr = item.expr.clone();
            let mut names = item.names.clone();
            let expr = match shape.grouped.as_mut() {
                Some(grouped) => {
                    if names.is_empty() {
                        names.extend(shape.outputs[at].clone());
                    }
                    grouped.rewrite(self, expr, &shape.items[..at])?
                }
                None => expr,
            };
            if names.is_empty() && !item.is_star() {
                names.extend(self.written_name(&expr));
            }
            if !item.except.is_empty() {
                if at != 0 || !dropped.is_empty() {
                    return unsupported("* EXCEPT after other select items");
                }
                dropped.clone_from(&item.except);
            } else if !dropped.is_empty()
                && let Some(output) = shape.outputs[at].clone()
            {
                // Under its own name this column could be one of those that EXCEPT leaves out.
                let hidden = self.hidden_name();
                renames.push(proto::with_columns_renamed::Rename { col_name: hidden.clone(), new_col_name: output });
                names = vec![hidden];
            } else if !dropped.is_empty() {
                return unsupported("a second * or a generator after * EXCEPT");
            }
            columns.push(if names.is_empty() { expr } else { alias(expr, names) });
        }
        for (expr, name) in &shape.hidden {
            let is_named = single_part(expr).is_some_and(|part| part == *name);
            columns.push(if is_named { expr.clone() } else { alias(expr.clone(), vec![name.clone()]) });
        }
        let mut below = match shape.grouped.take() {
            Some(grouped) => grouped.relation(input),
            None => input,
        };
        if let Some(condition) = having {
            below = filter(below, condition);
        }
        // A query without FROM reads the one row of a projection without an input.
        let is_one_row =
            matches!(&below.rel_type, Some(RelType::Project(p)) if p.input.is_none() && p.expressions.is_empty());
        let mut result = project(if is_one_row { None } else { Some(below) }, columns);
        if !dropped.is_empty() {
            result = drop_columns(result, dropped);
        }
        if !renames.is_empty() {
            result = relation(RelType::WithColumnsRenamed(Box::new(proto::WithColumnsRenamed {
                input: Some(Box::new(result)),
                renames,
                ..Default::default()
            })));
        }
        // The keys above may hold subqueries as well: the plans of all go around the whole.
        Ok(result)
    }

    fn sort_keys(&mut self, order_by: Option<&OrderBy>, shape: &Shape) -> Result<Vec<SortOrder>, Error> {
        let Some(order_by) = order_by else { return Ok(Vec::new()) };
        if order_by.interpolate.is_some() {
            return unsupported("INTERPOLATE");
        }
        match &order_by.kind {
            OrderByKind::Expressions(keys) => keys.iter().map(|key| self.sort_order(key)).collect(),
            OrderByKind::All(OrderByOptions { asc, nulls_first }) => shape
                .items
                .iter()
                .map(|item| match item.is_star() {
                    true => unsupported("ORDER BY ALL over *"),
                    false => Ok(sort_order(item.expr.clone(), *asc, *nulls_first)),
                })
                .collect(),
        }
    }

    fn lift_written(&mut self, keys: &[OrderByExpr], shape: &mut Shape) -> Result<Vec<SortOrder>, Error> {
        let keys = keys.iter().map(|key| self.sort_order(key)).collect::<Result<_, _>>()?;
        self.lift_keys(keys, shape)
    }

    fn lift_keys(&mut self, mut keys: Vec<SortOrder>, shape: &mut Shape) -> Result<Vec<SortOrder>, Error> {
        for key in &mut keys {
            crate::tree::map_sort_order(key, &mut |child| self.lift_key(child, shape))?;
        }
        Ok(keys)
    }

    fn lift_key(&mut self, key: Expression, shape: &mut Shape) -> Result<Expression, Error> {
        let Some(position) = integer_literal(&key) else { return self.lift(key, shape) };
        // Behind a star the ordinal is left to whoever knows how many columns the star has.
        let reach = usize::try_from(position).unwrap_or(0).min(shape.items.len());
        if shape.items[..reach].iter().any(Item::is_star) {
            return Ok(key);
        }
        nth(&shape.items, position, "ORDER BY")?;
        let at = reach.saturating_sub(1);
        match shape.unique_output(at) {
            Some(name) => Ok(column(&[name])),
            None => self.lift(shape.items[at].expr.clone(), shape),
        }
    }

    /// The expression over the columns of the projection, which gets a hidden one for whatever it lacks.
    fn lift(&mut self, expr: Expression, shape: &mut Shape) -> Result<Expression, Error> {
        if let Some(name) = single_part(&expr)
            && let Some(at) = shape.output_named(&name)
            && let Some(output) = shape.unique_output(at)
        {
            return Ok(column(&[output]));
        }
        let same_item = shape.items.iter().position(|item| !item.is_star() && self.same(&item.expr, &expr));
        if let Some(name) = same_item.and_then(|at| shape.unique_output(at)) {
            return Ok(column(&[name]));
        }
        if let Some(grouped) = &mut shape.grouped {
            if grouped.is_column(self, &expr) && !shape.closed {
                let hidden = grouped.rewrite(self, expr, &[])?;
                return Ok(keep(hidden, shape));
            }
        } else if let (Some(parts), false) = (attribute_parts(&expr), shape.closed) {
            let from_star = parts.len() == 1 && shape.items.iter().any(Item::is_full_star);
            let field_of_output = parts.len() > 1
                && self.qualifier_parts(&parts) == 0
                && parts.first().is_some_and(|first| shape.output_named(first).is_some());
            return if from_star || field_of_output { Ok(expr) } else { Ok(self.hide(expr, shape)) };
        }
        match expr.expr_type {
            Some(ExprType::Window(window)) if !shape.closed => {
                let window = match shape.grouped.as_mut() {
                    Some(grouped) => map_window_inputs(*window, &mut |child| grouped.rewrite(self, child, &[]))?,
                    None => *window,
                };
                let window = with_aliases(expression(ExprType::Window(Box::new(window))), &shape.items, true)?;
                Ok(self.hide(window, shape))
            }
            expr_type => {
                let expr = Expression { common: expr.common, expr_type };
                map_children(expr, &mut |child| self.lift(child, shape))
            }
        }
    }

    fn hide(&mut self, expr: Expression, shape: &mut Shape) -> Expression {
        if let Some((_, name)) = shape.hidden.iter().find(|(known, _)| self.same(known, &expr)) {
            return column(&[name]);
        }
        let name = self.hidden_name();
        shape.hidden.push((expr, name.clone()));
        column(&[&name])
    }

    /// `LATERAL VIEW explode(..) t AS a, b` adds the generator's columns to those of the input.
    fn lateral_view(&mut self, input: Relation, view: &LateralView) -> Result<Relation, Error> {
        let generator = self.expression(&view.lateral_view)?;
        let Some(ExprType::UnresolvedFunction(mut call)) = generator.expr_type else {
            return unsupported("LATERAL VIEW over other than a function");
        };
        if view.outer {
            let lower = call.function_name.to_ascii_lowercase();
            match lower.as_str() {
                "explode" | "posexplode" | "inline" => call.function_name.push_str("_outer"),
                "explode_outer" | "posexplode_outer" | "inline_outer" => {}
                other => return unsupported(format!("LATERAL VIEW OUTER {other}")),
            }
        }
        let mut name = object_parts(&view.lateral_view_name)?;
        // Without a name of its own the view reaches here under that of the keyword in its place.
        name.retain(|part| !part.eq_ignore_ascii_case("as"));
        self.scope().views.extend(name.pop());
        let names = ident_values(&view.lateral_col_alias);
        let generated = expression(ExprType::UnresolvedFunction(call));
        let generated = if names.is_empty() { generated } else { alias(generated, names) };
        let extended = project(Some(input), vec![star(None), generated]);
        Ok(self.with_references(extended))
    }

    fn hints(&mut self, input: Relation, text: &str) -> Result<Relation, Error> {
        let mut result = input;
        let hints = crate::parser::parse_hints(text)?;
        if hints.len() > DEPTH_MAX {
            return Err(Error::TooDeep { limit: DEPTH_MAX });
        }
        for hint in hints.iter().rev() {
            let (name, parameters) = match self.expression(hint)?.expr_type {
                Some(ExprType::UnresolvedFunction(call)) => (call.function_name, call.arguments),
                Some(ExprType::UnresolvedAttribute(attribute)) => (attribute.unparsed_identifier, Vec::new()),
                _ => return unsupported(format!("the hint {}", brief(&hint.to_string()))),
            };
            result = relation(RelType::Hint(Box::new(proto::Hint { input: Some(Box::new(result)), name, parameters })));
        }
        Ok(result)
    }
}

/// Carries a column of the Aggregate through the projection under its own hidden name.
fn keep(hidden: Expression, shape: &mut Shape) -> Expression {
    let mut wanted = Vec::new();
    crate::tree::any(&hidden, &mut |expr| {
        wanted.extend(single_part(expr));
        false
    });
    for name in wanted {
        if !shape.hidden.iter().any(|(_, known)| *known == name) {
            shape.hidden.push((column(&[&name]), name));
        }
    }
    hidden
}

/// The expression with the names of items replaced by what they stand for.
fn with_aliases(expr: Expression, items: &[Item], skips_columns: bool) -> Result<Expression, Error> {
    if let Some(name) = single_part(&expr) {
        let item = items.iter().find(|item| item.names.len() == 1 && item.names[0].eq_ignore_ascii_case(&name));
        return Ok(match item {
            Some(item) if !(skips_columns && attribute_parts(&item.expr).is_some()) => item.expr.clone(),
            _ => expr,
        });
    }
    map_children(expr, &mut |child| with_aliases(child, items, skips_columns))
}

fn partition_keys(select: &Select) -> &[Expr] {
    if select.cluster_by.is_empty() { &select.distribute_by } else { &select.cluster_by }
}

fn excepted(options: &WildcardAdditionalOptions) -> Result<Vec<String>, Error> {
    if options.opt_ilike.is_some()
        || options.opt_exclude.is_some()
        || options.opt_replace.is_some()
        || options.opt_rename.is_some()
        || options.opt_alias.is_some()
    {
        return unsupported("an option of * other than EXCEPT");
    }
    Ok(match &options.opt_except {
        None => Vec::new(),
        Some(ExceptSelectItem { first_element, additional_elements }) => {
            std::iter::once(first_element).chain(additional_elements).map(|ident| ident.value.clone()).collect()
        }
    })
}

fn refuse_foreign_clauses(select: &Select) -> Result<(), Error> {
    if matches!(select.distinct, Some(Distinct::On(_))) {
        return unsupported("DISTINCT ON");
    }
    if select.top.is_some() || select.into.is_some() || select.exclude.is_some() {
        return unsupported("TOP, INTO or EXCLUDE in a SELECT");
    }
    if select.prewhere.is_some() || !select.connect_by.is_empty() {
        return unsupported("PREWHERE or CONNECT BY");
    }
    if select.value_table_mode.is_some() {
        return unsupported("SELECT AS STRUCT or AS VALUE");
    }
    Ok(())
}
