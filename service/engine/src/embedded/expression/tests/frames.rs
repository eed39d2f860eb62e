//! Names against the columns of a frame, and aggregates and windows over its rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema};
use datafusion::common::Column as PlanColumn;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use spark_connect_proto::Expression;

use super::super::{Resolved, Scope, resolve, resolve_projection};
use crate::embedded::functions::PartitionAware;
use crate::embedded::{Column, Frame, ResolveContext};
use crate::{Conf, Error, show};

fn session() -> SessionContext {
    let state = datafusion::execution::SessionStateBuilder::new()
        .with_default_features()
        .with_config(SessionConfig::new().with_target_partitions(2))
        .with_physical_optimizer_rule(Arc::new(PartitionAware))
        .build();
    SessionContext::new_with_state(state)
}

/// Two tables side by side: `t(k, v, name)` and `u(k)`.
async fn frame(session: &SessionContext) -> Frame {
    let columns: Vec<(&str, &str, ArrayRef)> = vec![
        ("t", "k", Arc::new(Int32Array::from(vec![Some(1), Some(1), Some(2), None]))),
        ("t", "v", Arc::new(Float64Array::from(vec![Some(1.0), Some(3.0), Some(f64::NAN), None]))),
        ("t", "name", Arc::new(StringArray::from(vec![Some("b"), Some("a"), None, Some("c")]))),
        ("u", "k", Arc::new(Int32Array::from(vec![10, 20, 30, 40]))),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(at, (_, _, column))| Field::new(format!("#{at}"), column.data_type().clone(), true))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.iter().map(|(_, _, column)| column.clone()).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let table = MemTable::try_new(schema, vec![vec![batch]]).unwrap();
    let plan = session.read_table(Arc::new(table)).unwrap().into_unoptimized_plan();
    let names: Vec<Expr> = plan
        .schema()
        .columns()
        .into_iter()
        .map(|column| {
            let name = column.name.clone();
            Expr::Column(column).alias(name)
        })
        .collect();
    let plan = LogicalPlanBuilder::from(plan).project(names).unwrap().build().unwrap();
    let columns = columns
        .into_iter()
        .enumerate()
        .map(|(at, (table, name, column))| Column {
            name: name.into(),
            internal: format!("#{at}"),
            field: Arc::new(Field::new(name, column.data_type().clone(), true)),
            plan_ids: vec![if table == "t" { 1 } else { 2 }],
            qualifiers: vec![table.into()],
            is_hidden: false,
        })
        .collect();
    Frame { plan, columns }
}

async fn resolved(text: &str) -> Result<Resolved, Error> {
    let session = session();
    let frame = frame(&session).await;
    let context = ResolveContext::new(Conf::new());
    let expression: Expression = sql::parse_expression(text).unwrap();
    resolve(&context, &session.state(), &expression, &Scope::new(&frame))
}

/// The values of an expression over all rows: as a projection, an aggregate or a window.
async fn values(text: &str) -> Vec<Option<String>> {
    let session = session();
    let frame = frame(&session).await;
    let context = ResolveContext::new(Conf::new());
    let expression = sql::parse_expression(text).unwrap();
    let resolved = resolve(&context, &session.state(), &expression, &Scope::new(&frame)).unwrap();
    let plan = LogicalPlanBuilder::from(frame.plan.clone());
    let aggregates = datafusion::logical_expr::utils::find_aggregate_exprs([&resolved.expr]);
    let windows = datafusion::logical_expr::utils::find_window_exprs([&resolved.expr]);
    let (plan, parts) = if windows.is_empty() && !aggregates.is_empty() {
        let none: Vec<Expr> = vec![];
        (plan.aggregate(none, aggregates.clone()).unwrap().build().unwrap(), aggregates)
    } else if !windows.is_empty() {
        (LogicalPlanBuilder::window_plan(frame.plan.clone(), windows.clone()).unwrap(), windows)
    } else {
        (plan.build().unwrap(), vec![])
    };
    let expr = resolved
        .expr
        .clone()
        .transform_down(|node| {
            if !parts.contains(&node) {
                return Ok(Transformed::no(node));
            }
            let column = PlanColumn::new_unqualified(node.schema_name().to_string());
            Ok(Transformed::new(Expr::Column(column), true, TreeNodeRecursion::Jump))
        })
        .unwrap()
        .data;
    let plan = LogicalPlanBuilder::from(plan).project(vec![expr.alias("x")]).unwrap().build().unwrap();
    let batches = session.execute_logical_plan(plan).await.unwrap().collect().await.unwrap();
    let mut texts = Vec::new();
    for batch in batches {
        assert_eq!(batch.column(0).data_type(), resolved.field.data_type(), "{text}");
        let column: ArrayRef = Arc::new(show::string_column(batch.column(0), &resolved.field, &context.conf).unwrap());
        texts.extend(column.as_string::<i32>().iter().map(|text| text.map(str::to_string)));
    }
    texts
}

async fn check(table: &[(&str, &[Option<&str>])]) {
    for (text, expected) in table {
        let found = values(text).await;
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        assert_eq!(&found, expected, "{text}");
    }
}

#[tokio::test]
async fn a_name_means_the_column_its_qualifier_says() {
    assert_eq!(resolved("t.K").await.unwrap().column, Some(0));
    assert_eq!(resolved("u.k").await.unwrap().column, Some(3));
    assert!(
        matches!(resolved("k").await, Err(Error::AmbiguousReference { candidates, .. }) if candidates == ["t.k", "u.k"])
    );
    assert!(
        matches!(resolved("names").await, Err(Error::UnresolvedColumn { suggestions, .. }) if suggestions[0] == "t.name")
    );
}

#[tokio::test]
async fn a_star_stands_for_the_columns_of_its_table() {
    let session = session();
    let frame = frame(&session).await;
    let context = ResolveContext::new(Conf::new());
    let star = |target: Option<&str>| Expression {
        common: None,
        expr_type: Some(spark_connect_proto::expression::ExprType::UnresolvedStar(
            spark_connect_proto::expression::UnresolvedStar { unparsed_target: target.map(Into::into), plan_id: None },
        )),
    };
    for (target, count) in [(None, 4), (Some("t.*"), 3), (Some("u.*"), 1)] {
        let found = resolve_projection(&context, &session.state(), &[star(target)], &Scope::new(&frame)).unwrap();
        assert_eq!(found.len(), count, "{target:?}");
    }
}

#[tokio::test]
async fn rows_are_computed_as_spark_does() {
    check(&[
        ("t.k + 1", &[Some("2"), Some("2"), Some("3"), None]),
        ("v > 2", &[Some("false"), Some("true"), Some("true"), None]),
        ("v = v", &[Some("true"), Some("true"), Some("true"), None]),
        (
            "transform(array(1, 2), x -> x * t.k)",
            &[Some("[1, 2]"), Some("[1, 2]"), Some("[2, 4]"), Some("[null, null]")],
        ),
        ("u.k != 10 and 1 / (u.k - 10) > 0", &[Some("false"), Some("true"), Some("true"), Some("true")]),
        (
            "monotonically_increasing_id() - monotonically_increasing_id()",
            &[Some("0"), Some("0"), Some("0"), Some("0")],
        ),
    ])
    .await;
}

#[tokio::test]
async fn aggregates_are_those_of_spark() {
    check(&[
        ("count(*)", &[Some("4")]),
        ("count(t.k)", &[Some("3")]),
        ("count(distinct t.k)", &[Some("2")]),
        ("sum(t.k) / count(v) + 1", &[Some("2.333333333333333")]),
        ("max(v)", &[Some("NaN")]),
        ("min(v)", &[Some("1.0")]),
        ("avg(u.k)", &[Some("25.0")]),
        ("collect_list(name)", &[Some("[b, a, c]")]),
        ("collect_set(t.k)", &[Some("[1, 2]")]),
        ("max_by(name, u.k)", &[Some("c")]),
        ("min_by(name, u.k)", &[Some("b")]),
        ("median(u.k)", &[Some("25.0")]),
        ("percentile(u.k, array(0.0, 0.5))", &[Some("[10.0, 25.0]")]),
        ("percentile_approx(u.k, 0.5)", &[Some("20")]),
        ("skewness(u.k)", &[Some("0.0")]),
        ("kurtosis(u.k)", &[Some("-1.36")]),
        ("mode(t.k)", &[Some("1")]),
        ("stddev_pop(u.k)", &[Some("11.180339887498949")]),
    ])
    .await;
}

#[tokio::test]
async fn windows_are_those_of_spark() {
    check(&[
        ("row_number() over (order by u.k)", &[Some("1"), Some("2"), Some("3"), Some("4")]),
        ("sum(u.k) over (order by u.k)", &[Some("10"), Some("30"), Some("60"), Some("100")]),
        ("lag(u.k, 1, 0) over (order by u.k)", &[Some("0"), Some("10"), Some("20"), Some("30")]),
        ("ntile(2) over (order by u.k)", &[Some("1"), Some("1"), Some("2"), Some("2")]),
        (
            "sum(u.k) over (order by u.k rows between 1 preceding and current row)",
            &[Some("10"), Some("30"), Some("50"), Some("70")],
        ),
        (
            "collect_list(u.k) over (order by u.k rows between 1 preceding and current row)",
            &[Some("[10]"), Some("[10, 20]"), Some("[20, 30]"), Some("[30, 40]")],
        ),
    ])
    .await;
}
