//! Queries: WITH, set operations, VALUES, TABLE, and ORDER BY, LIMIT and OFFSET around them.

use spark_connect_proto as proto;
use spark_connect_proto::Relation;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::set_operation::SetOpType;
use sqlparser::ast::{
    Expr, LimitClause, OrderBy, OrderByKind, Query, SetExpr, SetOperator, SetQuantifier, Values, With,
};

use crate::error::{Error, unsupported};
use crate::expression::brief;
use crate::function_call::sort_order;
use crate::identifier::quote_parts;
use crate::message::{alias, balanced, distinct, limit, project, relation, set_operation, sort, to_df};
use crate::translator::{Cte, Translator};

impl Translator<'_> {
    pub fn query(&mut self, query: &Query) -> Result<Relation, Error> {
        self.nested(|t| t.query_inner(query))
    }

    fn query_inner(&mut self, query: &Query) -> Result<Relation, Error> {
        refuse_foreign_clauses(query)?;
        let outer_ctes = self.ctes.len();
        if let Some(with) = &query.with {
            self.with_clause(with)?;
        }
        let body = match query.body.as_ref() {
            SetExpr::Select(select) => self.select(select, query.order_by.as_ref()),
            body => self.set_expression(body).and_then(|body| self.order_output(body, query.order_by.as_ref())),
        };
        let limited = body.and_then(|body| self.limit(body, query.limit_clause.as_ref()));
        self.ctes.truncate(outer_ctes);
        limited
    }

    fn with_clause(&mut self, with: &With) -> Result<(), Error> {
        if with.recursive {
            return unsupported("WITH RECURSIVE");
        }
        // Each may stand on the one before it.
        if with.cte_tables.len() > crate::DEPTH_MAX {
            return Err(Error::TooDeep { limit: crate::DEPTH_MAX });
        }
        for cte in &with.cte_tables {
            let before = self.relations();
            let outer = std::mem::take(&mut self.references);
            let plan = self.query(&cte.query);
            self.references = outer;
            let columns = cte.alias.columns.iter().map(|column| column.name.value.clone()).collect();
            let plan = rename(plan?, columns);
            let name = cte.alias.name.value.clone();
            let relation = crate::message::subquery_alias(plan, &name);
            let size = self.relations() - before + 1;
            self.ctes.push(Cte { name, relation, size });
        }
        Ok(())
    }

    pub fn set_expression(&mut self, body: &SetExpr) -> Result<Relation, Error> {
        self.count_relations(1)?;
        match body {
            SetExpr::Select(select) => self.select(select, None),
            SetExpr::Query(query) => self.query(query),
            SetExpr::Values(values) => self.values(values),
            SetExpr::Table(table) => {
                let parts: Vec<&str> = table.schema_name.iter().chain(&table.table_name).map(String::as_str).collect();
                self.table(&parts.iter().map(ToString::to_string).collect::<Vec<_>>())
            }
            SetExpr::SetOperation { .. } => self.set_operation(body),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                unsupported("a statement that writes inside a query")
            }
        }
    }

    /// A left-deep chain of one and the same set operation, which may be long, is taken in one go.
    fn set_operation(&mut self, body: &SetExpr) -> Result<Relation, Error> {
        let SetExpr::SetOperation { op, set_quantifier, .. } = body else { return self.set_expression(body) };
        let mut inputs = Vec::new();
        let mut rest = body;
        let by_name =
            matches!(set_quantifier, SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName);
        let is_union = *op == SetOperator::Union;
        while let SetExpr::SetOperation { op: this, set_quantifier: quantifier, left, right } = rest {
            // Only UNION may be regrouped; any other operation ends the chain.
            if this != op || quantifier != set_quantifier || (!inputs.is_empty() && (!is_union || by_name)) {
                break;
            }
            inputs.push(right.as_ref());
            rest = left;
        }
        inputs.push(rest);
        inputs.reverse();
        let mut relations = Vec::new();
        for input in inputs {
            relations.push(self.nested(|t| t.set_expression(input))?);
        }
        let is_all = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
        let kind = match op {
            SetOperator::Union => SetOpType::Union,
            SetOperator::Intersect => SetOpType::Intersect,
            SetOperator::Except | SetOperator::Minus => SetOpType::Except,
        };
        let folded =
            balanced(relations, &mut |left, right| set_operation(left, right, kind, is_union || is_all, by_name));
        match folded {
            // `df.union` keeps duplicates; a distinct one is what pyspark sends for `union().distinct()`.
            Some(union) if is_union && !is_all => Ok(distinct(union)),
            Some(folded) => Ok(folded),
            None => unsupported("a set operation without inputs"),
        }
    }

    /// Rows of literals: one-row projections under a balanced tree of unions.
    fn values(&mut self, values: &Values) -> Result<Relation, Error> {
        let width = values.rows.first().map_or(0, |row| row.content.len());
        let mut rows = Vec::new();
        for row in &values.rows {
            // `VALUES ((1, 2))` holds, as `VALUES (1, 2)` does, a row of two columns only with the inner brackets gone.
            if row.content.len() != width {
                return Err(Error::ColumnCount {
                    what: "a row of VALUES".into(),
                    found: row.content.len(),
                    expected: width,
                });
            }
            let columns = self.expressions(&row.content)?;
            let named = columns.into_iter().enumerate().map(|(at, value)| alias(value, vec![format!("col{}", at + 1)]));
            rows.push(project(None, named.collect()));
        }
        self.count_relations(rows.len())?;
        let union = balanced(rows, &mut |left, right| set_operation(left, right, SetOpType::Union, true, false));
        let union = union.map_or_else(|| unsupported("VALUES without rows"), Ok)?;
        Ok(self.with_references(union))
    }

    /// ORDER BY over something whose columns are all there are.
    fn order_output(&mut self, input: Relation, order_by: Option<&OrderBy>) -> Result<Relation, Error> {
        let Some(order_by) = order_by else { return Ok(input) };
        let keys = match &order_by.kind {
            OrderByKind::All(_) => return unsupported("ORDER BY ALL over a set operation"),
            OrderByKind::Expressions(keys) => keys,
        };
        let names = crate::columns::output_columns(&input);
        let mut order = Vec::new();
        for key in keys {
            let mut child = self.expression(&key.expr)?;
            if let (Some(position), Some(names)) = (crate::columns::integer_literal(&child), &names) {
                let name = crate::columns::nth(names, position, "ORDER BY")?;
                if names.iter().filter(|other| other.eq_ignore_ascii_case(name)).count() == 1 {
                    child = crate::message::column(&[name]);
                }
            }
            order.push(sort_order(child, key.options.asc, key.options.nulls_first));
        }
        let sorted = sort(input, order, true);
        Ok(self.with_references(sorted))
    }

    fn limit(&mut self, input: Relation, clause: Option<&LimitClause>) -> Result<Relation, Error> {
        let (limit_expr, offset_expr) = match clause {
            None => return Ok(input),
            Some(LimitClause::OffsetCommaLimit { .. }) => return unsupported("LIMIT with a comma"),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                if !limit_by.is_empty() {
                    return unsupported("LIMIT BY");
                }
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
        };
        let mut result = input;
        if let Some(offset) = offset_expr {
            let offset = self.row_count(offset, "OFFSET")?;
            result = relation(RelType::Offset(Box::new(proto::Offset { input: Some(Box::new(result)), offset })));
        }
        if let Some(count) = limit_expr {
            result = limit(result, self.row_count(count, "LIMIT")?);
        }
        Ok(result)
    }

    pub fn row_count(&mut self, expr: &Expr, clause: &'static str) -> Result<i32, Error> {
        let invalid = || Error::InvalidLimit { clause, max: i32::MAX.into(), found: brief(&expr.to_string()) };
        let value = crate::columns::integer_literal(&self.expression(expr)?).ok_or_else(invalid)?;
        i32::try_from(value).ok().filter(|value| *value >= 0).ok_or_else(invalid)
    }

    /// A table, view or common table expression by its name.
    pub fn table(&mut self, parts: &[String]) -> Result<Relation, Error> {
        if let [name] = parts
            && let Some(cte) = self.ctes.iter().rev().find(|cte| cte.name.eq_ignore_ascii_case(name))
        {
            let (relation, size) = (cte.relation.clone(), cte.size);
            self.count_relations(size)?;
            return Ok(relation);
        }
        self.count_relations(1)?;
        if let [format, path] = parts
            && is_file_format(format)
            && path.contains(['/', ':', '.'])
        {
            return Ok(relation(RelType::Read(proto::Read {
                is_streaming: false,
                read_type: Some(proto::read::ReadType::DataSource(proto::read::DataSource {
                    format: Some(format.to_ascii_lowercase()),
                    paths: vec![path.clone()],
                    ..Default::default()
                })),
            })));
        }
        Ok(relation(RelType::Read(proto::Read {
            is_streaming: false,
            read_type: Some(proto::read::ReadType::NamedTable(proto::read::NamedTable {
                unparsed_identifier: quote_parts(parts),
                ..Default::default()
            })),
        })))
    }
}

fn is_file_format(name: &str) -> bool {
    ["parquet", "csv", "json", "orc", "text", "avro", "delta", "binaryfile", "libsvm"]
        .iter()
        .any(|format| name.eq_ignore_ascii_case(format))
}

/// Columns named anew, where a list of names was given.
pub(crate) fn rename(input: Relation, names: Vec<String>) -> Relation {
    if names.is_empty() { input } else { to_df(input, names) }
}

fn refuse_foreign_clauses(query: &Query) -> Result<(), Error> {
    if query.fetch.is_some() {
        return unsupported("FETCH");
    }
    if !query.locks.is_empty() || query.for_clause.is_some() {
        return unsupported("FOR after a query");
    }
    if query.settings.is_some() || query.format_clause.is_some() {
        return unsupported("SETTINGS or FORMAT after a query");
    }
    if !query.pipe_operators.is_empty() {
        return unsupported("the pipe operator");
    }
    Ok(())
}
