//! FROM: tables, derived tables, table functions, joins, samples, PIVOT and UNPIVOT.

use spark_connect_proto as proto;
use spark_connect_proto::aggregate::GroupType;
use spark_connect_proto::expression::ExprType;
use spark_connect_proto::join::JoinType;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Relation};
use sqlparser::ast::{
    Expr, ExprWithAlias, FunctionArg, FunctionArgExpr, Join, JoinConstraint, JoinOperator, NullInclusion,
    PivotValueSource, TableAlias, TableFactor, TableSample, TableSampleKind, TableSampleUnit, TableWithJoins, Value,
};

use crate::columns::{integer_literal, output_columns};
use crate::error::{Error, unsupported};
use crate::expression::brief;
use crate::identifier::{constant_text, object_parts, split_identifier};
use crate::message::{column, filter, function, limit, project, relation, subquery_alias, to_df};
use crate::query::rename;
use crate::translator::Translator;

/// The one entry of a join's `using_columns` that stands for all the columns both sides have: NATURAL JOIN.
pub const NATURAL_JOIN: &str = "__phalanx_natural_join";

impl Translator<'_> {
    /// The product of the list after FROM; a SELECT without one reads a single row without columns.
    pub fn table_list(&mut self, tables: &[TableWithJoins]) -> Result<Relation, Error> {
        if tables.len() > crate::DEPTH_MAX {
            return Err(Error::TooDeep { limit: crate::DEPTH_MAX });
        }
        let mut product: Option<Relation> = None;
        for table in tables {
            product = Some(match product {
                None => self.table_with_joins(table)?,
                Some(left) => {
                    let lateral = is_lateral(&table.relation);
                    let right = self.table_factor(&table.relation)?;
                    let joined = join(left, right, JoinType::Cross, lateral, None, Vec::new());
                    let joined = self.with_references(joined);
                    self.joins(joined, &table.joins)?
                }
            });
        }
        Ok(product.unwrap_or_else(|| project(None, Vec::new())))
    }

    fn table_with_joins(&mut self, table: &TableWithJoins) -> Result<Relation, Error> {
        let first = self.table_factor(&table.relation)?;
        self.joins(first, &table.joins)
    }

    fn joins(&mut self, first: Relation, joins: &[Join]) -> Result<Relation, Error> {
        if joins.len() > crate::DEPTH_MAX {
            return Err(Error::TooDeep { limit: crate::DEPTH_MAX });
        }
        let mut left = first;
        for one in joins {
            self.count_relations(1)?;
            let right = self.table_factor(&one.relation)?;
            left = self.join(left, right, one)?;
        }
        Ok(left)
    }

    fn join(&mut self, left: Relation, right: Relation, one: &Join) -> Result<Relation, Error> {
        let (kind, constraint) = match &one.join_operator {
            JoinOperator::Join(c) | JoinOperator::Inner(c) => (JoinType::Inner, c),
            JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => (JoinType::LeftOuter, c),
            JoinOperator::Right(c) | JoinOperator::RightOuter(c) => (JoinType::RightOuter, c),
            JoinOperator::FullOuter(c) => (JoinType::FullOuter, c),
            JoinOperator::CrossJoin(c) => (JoinType::Cross, c),
            JoinOperator::Semi(c) | JoinOperator::LeftSemi(c) => (JoinType::LeftSemi, c),
            JoinOperator::Anti(c) | JoinOperator::LeftAnti(c) => (JoinType::LeftAnti, c),
            other => return unsupported(format!("the join {}", brief(&format!("{other:?}")))),
        };
        let mut using = Vec::new();
        let mut condition = None;
        match constraint {
            JoinConstraint::On(on) => condition = Some(self.expression(on)?),
            JoinConstraint::Using(names) => {
                for name in names {
                    using.extend(object_parts(name)?.pop());
                }
            }
            JoinConstraint::Natural => match (output_columns(&left), output_columns(&right)) {
                (Some(left), Some(right)) => {
                    using = left.into_iter().filter(|l| right.iter().any(|r| r.eq_ignore_ascii_case(l))).collect();
                }
                _ => using = vec![NATURAL_JOIN.to_string()],
            },
            JoinConstraint::None => {}
        }
        if is_lateral(&one.relation) && !using.is_empty() {
            return unsupported("a lateral join with USING or NATURAL");
        }
        let bare = condition.is_none() && using.is_empty();
        let kind = if bare && kind == JoinType::Inner { JoinType::Cross } else { kind };
        let joined = join(left, right, kind, is_lateral(&one.relation), condition, using);
        Ok(self.with_references(joined))
    }

    pub fn table_factor(&mut self, factor: &TableFactor) -> Result<Relation, Error> {
        self.nested(|t| t.table_factor_inner(factor))
    }

    fn table_factor_inner(&mut self, factor: &TableFactor) -> Result<Relation, Error> {
        match factor {
            TableFactor::Table { name, alias, args: Some(args), .. } => {
                self.table_function(&object_parts(name)?, &args.args, alias.as_ref())
            }
            TableFactor::Table { name, alias, sample, version, with_hints, partitions, json_path, .. } => {
                if version.is_some() {
                    return unsupported("time travel");
                }
                if !with_hints.is_empty() || !partitions.is_empty() || json_path.is_some() {
                    return unsupported(format!("the table reference {}", brief(&factor.to_string())));
                }
                let parts = object_parts(name)?;
                let table = self.table(&parts)?;
                let sampled = self.sample(table, sample.as_ref())?;
                if alias.is_none() {
                    self.scope().qualifiers.extend(parts);
                }
                self.aliased(sampled, alias.as_ref())
            }
            TableFactor::Derived { subquery, alias, sample, .. } => {
                let outer = std::mem::take(&mut self.references);
                let plan = self.query(subquery);
                self.references = outer;
                let sampled = self.sample(plan?, sample.as_ref())?;
                self.aliased(sampled, alias.as_ref())
            }
            TableFactor::Function { name, args, alias, with_ordinality: false, .. } => {
                self.table_function(&object_parts(name)?, args, alias.as_ref())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let inner = self.table_with_joins(table_with_joins)?;
                self.aliased(inner, alias.as_ref())
            }
            TableFactor::Pivot { table, aggregate_functions, value_column, value_source, alias, .. } => {
                let input = self.table_factor(table)?;
                let pivoted = self.pivot(input, aggregate_functions, value_column, value_source)?;
                self.aliased(pivoted, alias.as_ref())
            }
            TableFactor::Unpivot { table, value, name, columns, null_inclusion, alias } => {
                let input = self.table_factor(table)?;
                let includes_nulls = *null_inclusion == Some(NullInclusion::IncludeNulls);
                let unpivoted = self.unpivot(input, value, &name.value, columns, includes_nulls)?;
                self.aliased(unpivoted, alias.as_ref())
            }
            other => unsupported(format!("the table reference {}", brief(&other.to_string()))),
        }
    }

    fn aliased(&mut self, input: Relation, alias: Option<&TableAlias>) -> Result<Relation, Error> {
        let Some(alias) = alias else { return Ok(input) };
        let names: Vec<String> = alias.columns.iter().map(|column| column.name.value.clone()).collect();
        if let (false, Some(columns)) = (names.is_empty(), output_columns(&input))
            && names.len() != columns.len()
        {
            let what = format!("the alias list of {}", alias.name.value);
            return Err(Error::ColumnCount { what, found: names.len(), expected: columns.len() });
        }
        self.scope().qualifiers.push(alias.name.value.clone());
        Ok(subquery_alias(rename(input, names), &alias.name.value))
    }

    fn table_function(
        &mut self,
        parts: &[String],
        args: &[FunctionArg],
        alias: Option<&TableAlias>,
    ) -> Result<Relation, Error> {
        self.count_relations(1)?;
        let name = parts.join(".");
        if crate::model::is_model_function(&name) {
            let rows = self.model_function(&name, args)?;
            if alias.is_none() {
                self.scope().qualifiers.push(name);
            }
            return self.aliased(rows, alias);
        }
        if name.eq_ignore_ascii_case("identifier") {
            let parts = self.identifier_argument(args)?;
            let table = self.table(&parts)?;
            if alias.is_none() {
                self.scope().qualifiers.extend(parts);
            }
            return self.aliased(table, alias);
        }
        let mut arguments = Vec::new();
        for argument in args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => arguments.push(self.expression(expr)?),
                other => {
                    return unsupported(format!(
                        "the argument {} of the table function {name}",
                        brief(&other.to_string())
                    ));
                }
            }
        }
        let rows = if name.eq_ignore_ascii_case("range") {
            range(&arguments)?
        } else {
            relation(RelType::UnresolvedTableValuedFunction(proto::UnresolvedTableValuedFunction {
                function_name: name.clone(),
                arguments,
            }))
        };
        let rows = self.with_references(rows);
        if alias.is_none() {
            self.scope().qualifiers.push(name);
        }
        self.aliased(rows, alias)
    }

    /// The parts of the name that `IDENTIFIER(text)` is.
    fn identifier_argument(&mut self, args: &[FunctionArg]) -> Result<Vec<String>, Error> {
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] = args else {
            return unsupported("IDENTIFIER(..) of other than one text");
        };
        let expression = self.expression(expr)?;
        let text = constant_text(&expression)
            .ok_or_else(|| Error::NotAConstantString { expression: brief(&expr.to_string()), clause: "IDENTIFIER" })?;
        Ok(split_identifier(&text))
    }

    fn sample(&mut self, input: Relation, sample: Option<&TableSampleKind>) -> Result<Relation, Error> {
        let sample: &TableSample = match sample {
            None => return Ok(input),
            Some(TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) => sample,
        };
        if sample.name.is_some() || sample.offset.is_some() {
            return unsupported("a method in TABLESAMPLE");
        }
        let number = |value: &Value| match value {
            Value::Number(text, _) => text.parse::<f64>().ok(),
            _ => None,
        };
        let fraction = match (&sample.quantity, &sample.bucket) {
            (Some(quantity), _) if quantity.unit == Some(TableSampleUnit::Rows) => {
                return Ok(limit(input, self.row_count(&quantity.value, "TABLESAMPLE")?));
            }
            (Some(quantity), _) if quantity.unit == Some(TableSampleUnit::Percent) => match &quantity.value {
                Expr::Value(value) => number(&value.value).map(|percent| percent / 100.0),
                _ => None,
            },
            (None, Some(bucket)) if bucket.on.is_none() => {
                number(&bucket.bucket.value).zip(number(&bucket.total.value)).map(|(x, y)| x / y)
            }
            _ => return unsupported("this form of TABLESAMPLE"),
        };
        let Some(upper_bound) = fraction.filter(|fraction| (0.0..=1.0).contains(fraction)) else {
            return Err(Error::InvalidLimit { clause: "TABLESAMPLE", max: 100, found: brief(&sample.to_string()) });
        };
        let seed = sample.seed.as_ref().and_then(|seed| number(&seed.value.value)).map(|seed| seed as i64);
        Ok(relation(RelType::Sample(Box::new(proto::Sample {
            input: Some(Box::new(input)),
            lower_bound: 0.0,
            upper_bound,
            with_replacement: Some(false),
            seed,
            deterministic_order: false,
        }))))
    }

    /// PIVOT groups by every column it does not name, so the input's columns must be known.
    fn pivot(
        &mut self,
        input: Relation,
        functions: &[ExprWithAlias],
        value_column: &[Expr],
        values: &PivotValueSource,
    ) -> Result<Relation, Error> {
        let Some(columns) = output_columns(&input) else {
            return unsupported("PIVOT over an input that does not list its columns by name");
        };
        let ([pivot_column], PivotValueSource::List(values)) = (value_column, values) else {
            return unsupported("PIVOT over several columns or without a list of values");
        };
        let pivot_column = self.expression(pivot_column)?;
        let mut aggregates = Vec::new();
        let mut aggregate_names = Vec::new();
        for ExprWithAlias { expr, alias } in functions {
            let aggregate = self.expression(expr)?;
            aggregate_names.push(alias.as_ref().map_or_else(|| self.name_of(&aggregate), |alias| alias.value.clone()));
            aggregates.push(aggregate);
        }
        let mut literals = Vec::new();
        let mut value_names = Vec::new();
        for ExprWithAlias { expr, alias } in values {
            let value = self.expression(expr)?;
            value_names.push(alias.as_ref().map_or_else(|| self.name_of(&value), |alias| alias.value.clone()));
            match value.expr_type {
                Some(ExprType::Literal(literal)) => literals.push(literal),
                _ => return unsupported("PIVOT with values that are no literals"),
            }
        }
        let mut used = Vec::new();
        for expr in aggregates.iter().chain([&pivot_column]) {
            crate::tree::any(expr, &mut |expr| {
                if let Some(ExprType::UnresolvedAttribute(attribute)) = &expr.expr_type {
                    used.extend(crate::identifier::split_identifier(&attribute.unparsed_identifier).pop());
                }
                false
            });
        }
        let grouping: Vec<String> =
            columns.into_iter().filter(|name| !used.iter().any(|used| used.eq_ignore_ascii_case(name))).collect();
        let mut names = grouping.clone();
        for value in &value_names {
            for aggregate in &aggregate_names {
                names.push(if aggregate_names.len() == 1 { value.clone() } else { format!("{value}_{aggregate}") });
            }
        }
        let pivoted = relation(RelType::Aggregate(Box::new(proto::Aggregate {
            input: Some(Box::new(input)),
            group_type: GroupType::Pivot as i32,
            grouping_expressions: grouping.iter().map(|name| column(&[name])).collect(),
            aggregate_expressions: aggregates,
            pivot: Some(proto::aggregate::Pivot { col: Some(pivot_column), values: literals }),
            grouping_sets: Vec::new(),
        })));
        let pivoted = self.with_references(pivoted);
        Ok(to_df(pivoted, names))
    }

    /// UNPIVOT keeps every column it does not name, so the input's columns must be known.
    fn unpivot(
        &mut self,
        input: Relation,
        value: &Expr,
        name: &str,
        columns: &[ExprWithAlias],
        includes_nulls: bool,
    ) -> Result<Relation, Error> {
        let Some(all) = output_columns(&input) else {
            return unsupported("UNPIVOT over an input that does not list its columns by name");
        };
        let Expr::Identifier(value) = value else { return unsupported("UNPIVOT into several value columns") };
        let mut values = Vec::new();
        let mut used = Vec::new();
        for ExprWithAlias { expr, alias } in columns {
            let (Expr::Identifier(column_name), None) = (expr, alias) else {
                return unsupported("UNPIVOT with aliases or sets of columns");
            };
            used.push(column_name.value.clone());
            values.push(column(&[&column_name.value]));
        }
        let ids = all.iter().filter(|name| !used.iter().any(|used| used.eq_ignore_ascii_case(name)));
        let unpivoted = relation(RelType::Unpivot(Box::new(proto::Unpivot {
            input: Some(Box::new(input)),
            ids: ids.map(|name| column(&[name])).collect(),
            values: Some(proto::unpivot::Values { values }),
            variable_column_name: name.to_string(),
            value_column_name: value.value.clone(),
        })));
        if includes_nulls {
            return Ok(unpivoted);
        }
        Ok(filter(unpivoted, function("isNotNull", vec![column(&[&value.value])])))
    }
}

fn is_lateral(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Derived { lateral: true, .. } | TableFactor::Function { lateral: true, .. })
}

fn join(
    left: Relation,
    right: Relation,
    kind: JoinType,
    lateral: bool,
    join_condition: Option<Expression>,
    using_columns: Vec<String>,
) -> Relation {
    let (left, right) = (Some(Box::new(left)), Some(Box::new(right)));
    if lateral {
        // `df.lateralJoin` without a condition sends an inner join.
        let kind = if kind == JoinType::Cross { JoinType::Inner } else { kind };
        let lateral = proto::LateralJoin { left, right, join_condition, join_type: kind as i32 };
        return relation(RelType::LateralJoin(Box::new(lateral)));
    }
    relation(RelType::Join(Box::new(proto::Join {
        left,
        right,
        join_condition,
        join_type: kind as i32,
        using_columns,
        join_data_type: None,
    })))
}

/// `range(end)`, `range(start, end)`, `range(start, end, step)` and the number of partitions as a fourth.
fn range(arguments: &[Expression]) -> Result<Relation, Error> {
    let numbers: Option<Vec<i64>> = arguments.iter().map(integer_literal).collect();
    let (start, end, step, num_partitions) = match numbers.as_deref() {
        Some([end]) => (0, *end, 1, None),
        Some([start, end]) => (*start, *end, 1, None),
        Some([start, end, step]) => (*start, *end, *step, None),
        Some([start, end, step, partitions]) => (*start, *end, *step, i32::try_from(*partitions).ok()),
        _ => return unsupported("range with other than 1 to 4 integers"),
    };
    Ok(relation(RelType::Range(proto::Range { start: Some(start), end, step, num_partitions })))
}
