//! Messages as one line of text, for tables of cases.

use spark_connect_proto::expression::window::window_frame::{FrameBoundary, frame_boundary::Boundary};
use spark_connect_proto::expression::{ExprType, SortOrder, literal::LiteralType};
use spark_connect_proto::read::ReadType;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Relation};

fn join<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn input(input: &Option<Box<Relation>>) -> String {
    input.as_deref().map_or_else(|| "()".into(), relation)
}

pub fn relation(plan: &Relation) -> String {
    let Some(kind) = &plan.rel_type else { return "nothing".into() };
    match kind {
        RelType::Read(read) => match &read.read_type {
            Some(ReadType::NamedTable(table)) => table.unparsed_identifier.clone(),
            Some(ReadType::DataSource(source)) => format!("{}:{:?}", source.format(), source.paths),
            None => "read".into(),
        },
        RelType::Project(p) => format!("Project[{}]({})", join(&p.expressions, expression), input(&p.input)),
        RelType::Filter(f) => {
            format!("Filter[{}]({})", f.condition.as_ref().map(expression).unwrap_or_default(), input(&f.input))
        }
        RelType::Join(j) => {
            let on = j.join_condition.as_ref().map(|c| format!(" on {}", expression(c))).unwrap_or_default();
            let using = if j.using_columns.is_empty() {
                String::new()
            } else {
                format!(" using {}", j.using_columns.join(","))
            };
            format!("{:?}{on}{using}({}, {})", j.join_type(), input(&j.left), input(&j.right))
        }
        RelType::LateralJoin(j) => {
            let on = j.join_condition.as_ref().map(|c| format!(" on {}", expression(c))).unwrap_or_default();
            format!("Lateral {:?}{on}({}, {})", j.join_type(), input(&j.left), input(&j.right))
        }
        RelType::SetOp(s) => {
            let all = if s.is_all() { " all" } else { "" };
            let by_name = if s.by_name() { " by name" } else { "" };
            format!("{:?}{all}{by_name}({}, {})", s.set_op_type(), input(&s.left_input), input(&s.right_input))
        }
        RelType::Sort(s) => {
            let name = if s.is_global() { "Sort" } else { "SortWithin" };
            format!("{name}[{}]({})", join(&s.order, sort_order), input(&s.input))
        }
        RelType::Limit(l) => format!("Limit {}({})", l.limit, input(&l.input)),
        RelType::Offset(o) => format!("Offset {}({})", o.offset, input(&o.input)),
        RelType::Aggregate(a) => {
            let sets = join(&a.grouping_sets, |set| format!("[{}]", join(&set.grouping_set, expression)));
            let sets = if sets.is_empty() { sets } else { format!(" sets {sets}") };
            let pivot = a.pivot.as_ref().map(|p| {
                format!(" pivot {} in {}", p.col.as_ref().map(expression).unwrap_or_default(), p.values.len())
            });
            format!(
                "{:?}[{}; {}]{sets}{}({})",
                a.group_type(),
                join(&a.grouping_expressions, expression),
                join(&a.aggregate_expressions, expression),
                pivot.unwrap_or_default(),
                input(&a.input)
            )
        }
        RelType::SubqueryAlias(s) => format!("{} := {}", s.alias, input(&s.input)),
        RelType::ToDf(t) => format!("ToDF[{}]({})", t.column_names.join(", "), input(&t.input)),
        RelType::Drop(d) => format!("Drop[{}]({})", d.column_names.join(", "), input(&d.input)),
        RelType::Deduplicate(d) => format!("Distinct({})", input(&d.input)),
        RelType::Sample(s) => {
            let seed = s.seed.map(|seed| format!(" seed {seed}")).unwrap_or_default();
            format!("Sample {}{seed}({})", s.upper_bound, input(&s.input))
        }
        RelType::Range(r) => format!("Range {}..{} by {}", r.start(), r.end, r.step),
        RelType::Hint(h) => format!("Hint {}[{}]({})", h.name, join(&h.parameters, expression), input(&h.input)),
        RelType::Unpivot(u) => format!(
            "Unpivot[{}; {}] {} {}({})",
            join(&u.ids, expression),
            u.values.as_ref().map(|v| join(&v.values, expression)).unwrap_or_default(),
            u.variable_column_name,
            u.value_column_name,
            input(&u.input)
        ),
        RelType::WithColumnsRenamed(w) => {
            format!(
                "Rename[{}]({})",
                join(&w.renames, |r| format!("{} to {}", r.col_name, r.new_col_name)),
                input(&w.input)
            )
        }
        RelType::RepartitionByExpression(r) => {
            format!("Repartition[{}]({})", join(&r.partition_exprs, expression), input(&r.input))
        }
        RelType::UnresolvedTableValuedFunction(f) => format!("{}({})", f.function_name, join(&f.arguments, expression)),
        RelType::WithRelations(w) => {
            let references = join(&w.references, |reference| {
                let id = reference.common.as_ref().and_then(|common| common.plan_id).unwrap_or(-1);
                format!("#{} = {}", id - sql::FIRST_PLAN_ID, relation(reference))
            });
            format!("With[{references}]({})", input(&w.root))
        }
        other => format!("{other:?}"),
    }
}

fn sort_order(order: &SortOrder) -> String {
    let direction = if order.direction == 2 { " desc" } else { "" };
    let nulls = if (order.direction == 2) == (order.null_ordering == 1) { " nulls other" } else { "" };
    format!("{}{direction}{nulls}", child(&order.child))
}

fn child(expr: &Option<Box<Expression>>) -> String {
    expr.as_deref().map(expression).unwrap_or_default()
}

fn literal(value: &LiteralType) -> String {
    match value {
        LiteralType::Null(_) => "null".into(),
        LiteralType::Integer(v) => v.to_string(),
        LiteralType::Long(v) => format!("{v}L"),
        LiteralType::Short(v) => format!("{v}S"),
        LiteralType::Byte(v) => format!("{v}Y"),
        LiteralType::Double(v) => format!("{v:?}D"),
        LiteralType::Float(v) => format!("{v:?}F"),
        LiteralType::String(v) => format!("{v:?}"),
        LiteralType::Boolean(v) => v.to_string(),
        LiteralType::Decimal(d) => format!("{}({},{})", d.value, d.precision(), d.scale()),
        other => format!("{other:?}"),
    }
}

fn bound(bound: Option<&FrameBoundary>) -> String {
    match bound.and_then(|bound| bound.boundary.as_ref()) {
        Some(Boundary::CurrentRow(_)) => "current".into(),
        Some(Boundary::Unbounded(_)) => "unbounded".into(),
        Some(Boundary::Value(value)) => expression(value),
        None => "none".into(),
    }
}

pub fn expression(expr: &Expression) -> String {
    let Some(kind) = &expr.expr_type else { return "nothing".into() };
    match kind {
        ExprType::Literal(value) => value.literal_type.as_ref().map(literal).unwrap_or_default(),
        ExprType::UnresolvedAttribute(a) => a.unparsed_identifier.clone(),
        ExprType::UnresolvedStar(s) => s.unparsed_target.clone().unwrap_or_else(|| "*".into()),
        ExprType::UnresolvedFunction(f) => {
            let distinct = if f.is_distinct { "distinct " } else { "" };
            format!("{}({distinct}{})", f.function_name, join(&f.arguments, expression))
        }
        ExprType::Alias(a) => format!("{} as {}", child(&a.expr), a.name.join(",")),
        ExprType::Cast(c) => {
            let mode = match c.eval_mode {
                3 => "try_cast",
                2 => "ansi_cast",
                _ => "cast",
            };
            let target = match &c.cast_to_type {
                Some(spark_connect_proto::expression::cast::CastToType::TypeStr(text)) => text.clone(),
                other => format!("{other:?}"),
            };
            format!("{mode}({} as {target})", child(&c.expr))
        }
        ExprType::LambdaFunction(l) => {
            format!("({} -> {})", join(&l.arguments, |a| a.name_parts.join(".")), child(&l.function))
        }
        ExprType::UnresolvedNamedLambdaVariable(v) => format!("${}", v.name_parts.join(".")),
        ExprType::UnresolvedExtractValue(e) => format!("{}[{}]", child(&e.child), child(&e.extraction)),
        ExprType::NamedArgumentExpression(n) => format!("{} => {}", n.key, child(&n.value)),
        ExprType::Window(w) => {
            let frame = w.frame_spec.as_ref().map(|frame| {
                let (lower, upper) = (bound(frame.lower.as_deref()), bound(frame.upper.as_deref()));
                format!(" {:?} {lower} to {upper}", frame.frame_type())
            });
            format!(
                "{} over (by {}; order {}{})",
                child(&w.window_function),
                join(&w.partition_spec, expression),
                join(&w.order_spec, sort_order),
                frame.unwrap_or_default()
            )
        }
        ExprType::SubqueryExpression(s) => {
            let values = join(&s.in_subquery_values, expression);
            format!("{:?} #{}({values})", s.subquery_type(), s.plan_id - sql::FIRST_PLAN_ID)
        }
        other => format!("{other:?}"),
    }
}
