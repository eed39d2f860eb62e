//! Relations resolved and run, from hand-built messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use arrow::ipc::writer::StreamWriter;
use arrow::util::display::array_value_to_string;
use async_trait::async_trait;
use futures::TryStreamExt;
use spark_connect_proto as proto;
use spark_connect_proto::expression::{ExprType, SortOrder, UnresolvedAttribute, UnresolvedStar};
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Relation, RelationCommon};

use super::message::{aliased, attribute, call, double, integer, string};
use crate::embedded::extension::{Extended, TransformInput};
use crate::embedded::{Engine, Extensions, Options, Session, SqlOutcome, TransformStep};
use crate::{Error, Result};

struct NoExtensions;

#[async_trait]
impl Extensions for NoExtensions {
    async fn resolve_ml(&self, _: &Session, _: &proto::MlRelation) -> Result<Extended> {
        Err(Error::Unsupported { feature: "ML".into() })
    }
}

fn session() -> Arc<Session> {
    let options = Options { target_partitions: 2, ..Options::default() };
    Session::new(&Engine::new(options).unwrap(), "tester")
}

fn relation(rel_type: RelType) -> Relation {
    Relation { common: None, rel_type: Some(rel_type) }
}

fn with_id(mut relation: Relation, plan_id: i64) -> Relation {
    relation.common = Some(RelationCommon { plan_id: Some(plan_id), ..RelationCommon::default() });
    relation
}

fn boxed(relation: Relation) -> Option<Box<Relation>> {
    Some(Box::new(relation))
}

fn local(columns: Vec<(&str, ArrayRef)>) -> Relation {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut data = Vec::new();
    let mut writer = StreamWriter::try_new(&mut data, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    relation(RelType::LocalRelation(proto::LocalRelation { data: Some(data.into()), schema: None }))
}

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn range(end: i64) -> Relation {
    relation(RelType::Range(proto::Range { start: Some(0), end, step: 1, num_partitions: None }))
}

fn project(input: Relation, expressions: Vec<Expression>) -> Relation {
    relation(RelType::Project(Box::new(proto::Project { input: boxed(input), expressions })))
}

fn filter(input: Relation, condition: Expression) -> Relation {
    relation(RelType::Filter(Box::new(proto::Filter { input: boxed(input), condition: Some(condition) })))
}

fn with_column(input: Relation, name: &str, value: Expression) -> Relation {
    let alias = proto::expression::Alias { expr: Some(Box::new(value)), name: vec![name.into()], metadata: None };
    relation(RelType::WithColumns(Box::new(proto::WithColumns { input: boxed(input), aliases: vec![alias] })))
}

fn of(plan_id: i64, name: &str) -> Expression {
    let attribute =
        UnresolvedAttribute { unparsed_identifier: name.into(), plan_id: Some(plan_id), ..Default::default() };
    Expression { common: None, expr_type: Some(ExprType::UnresolvedAttribute(attribute)) }
}

fn star() -> Expression {
    Expression { common: None, expr_type: Some(ExprType::UnresolvedStar(UnresolvedStar::default())) }
}

fn sort(input: Relation, by: Expression) -> Relation {
    let order = SortOrder { child: Some(Box::new(by)), direction: 1, null_ordering: 0 };
    relation(RelType::Sort(Box::new(proto::Sort { input: boxed(input), order: vec![order], is_global: Some(true) })))
}

fn join(left: Relation, right: Relation, condition: Option<Expression>, join_type: i32, using: &[&str]) -> Relation {
    relation(RelType::Join(Box::new(proto::Join {
        left: boxed(left),
        right: boxed(right),
        join_condition: condition,
        join_type,
        using_columns: using.iter().map(|name| (*name).to_owned()).collect(),
        join_data_type: None,
    })))
}

fn aggregate(input: Relation, group_type: i32, groups: Vec<Expression>, aggregates: Vec<Expression>) -> Relation {
    relation(RelType::Aggregate(Box::new(proto::Aggregate {
        input: boxed(input),
        group_type,
        grouping_expressions: groups,
        aggregate_expressions: aggregates,
        ..Default::default()
    })))
}

/// Names in the first line, then a line a row.
async fn lines(session: &Session, relation: &Relation) -> Vec<String> {
    let frame = session.resolve(relation, &NoExtensions).await.unwrap();
    let names: Vec<String> = frame.visible().map(|column| column.name.clone()).collect();
    let mut lines = vec![names.join(",")];
    for batch in session.collect(&frame).await.unwrap() {
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = batch
                .columns()
                .iter()
                .map(|column| {
                    if column.is_null(row) { "null".into() } else { array_value_to_string(column, row).unwrap() }
                })
                .collect();
            lines.push(cells.join(","));
        }
    }
    lines
}

async fn sorted_lines(session: &Session, relation: &Relation) -> Vec<String> {
    let mut lines = lines(session, relation).await;
    lines[1..].sort();
    lines
}

async fn failure(session: &Session, relation: &Relation) -> Error {
    session.resolve(relation, &NoExtensions).await.unwrap_err()
}

fn people() -> Relation {
    local(vec![("id", ints(&[1, 2, 3])), ("name", texts(&["a", "b", "c"]))])
}

fn orders() -> Relation {
    local(vec![("id", ints(&[2, 3, 3, 4])), ("price", ints(&[20, 30, 31, 40]))])
}

#[tokio::test]
async fn a_range_is_counted_in_order_over_its_partitions() {
    let session = session();
    assert_eq!(lines(&session, &range(4)).await, ["id", "0", "1", "2", "3"]);
    let long = lines(&session, &range(50_000)).await;
    assert_eq!(long.len(), 50_001);
    assert_eq!(long[50_000], "49999");
}

#[tokio::test]
async fn rows_of_a_client_are_renamed_and_cast_by_their_schema() {
    let session = session();
    let mut message = local(vec![("x", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef), ("y", texts(&["u", "v"]))]);
    if let Some(RelType::LocalRelation(local)) = &mut message.rel_type {
        local.schema = Some("a bigint, b string".into());
    }
    assert_eq!(lines(&session, &message).await, ["a,b", "1,u", "2,v"]);
    let empty = relation(RelType::LocalRelation(proto::LocalRelation { data: None, schema: Some("a int".into()) }));
    assert_eq!(lines(&session, &empty).await, ["a"]);
}

#[tokio::test]
async fn filters_and_sorts_see_columns_that_the_projection_dropped() {
    let session = session();
    let dropped = filter(project(people(), vec![attribute("name")]), call(">", vec![attribute("id"), integer(1)]));
    assert_eq!(lines(&session, &dropped).await, ["name", "b", "c"]);
    let unknown = filter(project(people(), vec![attribute("name")]), call(">", vec![attribute("zz"), integer(1)]));
    assert!(matches!(failure(&session, &unknown).await, Error::UnresolvedColumn { .. }));
}

#[tokio::test]
async fn a_using_join_puts_the_keys_first_and_hides_the_other_sides() {
    let session = session();
    let inner = join(people(), orders(), None, 1, &["id"]);
    assert_eq!(sorted_lines(&session, &inner).await, ["id,name,price", "2,b,20", "3,c,30", "3,c,31"]);
    let full = join(people(), orders(), None, 2, &["id"]);
    let expected = ["id,name,price", "1,a,null", "2,b,20", "3,c,30", "3,c,31", "4,null,40"];
    assert_eq!(sorted_lines(&session, &full).await, expected);
    let anti = join(people(), orders(), None, 5, &["id"]);
    assert_eq!(sorted_lines(&session, &anti).await, ["id,name", "1,a"]);
    let hidden = project(join(people(), with_id(orders(), 7), None, 3, &["id"]), vec![star(), of(7, "id")]);
    assert_eq!(sorted_lines(&session, &hidden).await[1], "1,a,null,null");
}

#[tokio::test]
async fn a_self_join_tells_its_sides_apart_by_plan_ids() {
    let session = session();
    let one = with_id(people(), 1);
    let two = with_id(filter(with_id(people(), 1), call(">", vec![attribute("id"), integer(1)])), 2);
    let condition = call("==", vec![of(1, "id"), of(2, "id")]);
    let joined = join(one, two, Some(condition), 1, &[]);
    assert_eq!(sorted_lines(&session, &joined).await, ["id,name,id,name", "2,b,2,b", "3,c,3,c"]);
    let ambiguous = project(joined, vec![attribute("id")]);
    assert!(matches!(failure(&session, &ambiguous).await, Error::AmbiguousReference { .. }));
}

#[tokio::test]
async fn aggregates_stand_in_expressions_beside_their_keys() {
    let session = session();
    let value = call("+", vec![call("sum", vec![attribute("price")]), call("count", vec![integer(1)])]);
    let grouped = aggregate(orders(), 1, vec![attribute("id")], vec![aliased(value, "x")]);
    assert_eq!(sorted_lines(&session, &grouped).await, ["id,x", "2,21", "3,63", "4,41"]);
    let stray = aggregate(orders(), 1, vec![attribute("id")], vec![attribute("price")]);
    assert!(matches!(failure(&session, &stray).await, Error::MissingAggregation { expression } if expression == "price"));
}

#[tokio::test]
async fn rollups_number_their_grouping_sets() {
    let session = session();
    let id = aliased(call("grouping_id", vec![]), "g");
    let rolled = aggregate(orders(), 2, vec![attribute("id")], vec![call("count", vec![integer(1)]), id]);
    assert_eq!(sorted_lines(&session, &rolled).await, ["id,count(1),g", "2,1,0", "3,2,0", "4,1,0", "null,4,1"]);
}

#[tokio::test]
async fn a_pivot_without_values_takes_those_of_the_rows() {
    let session = session();
    let rows = local(vec![
        ("k", texts(&["a", "a", "b"])),
        ("p", texts(&["x", "y", "x"])),
        ("v", ints(&[1, 2, 3])),
    ]);
    let mut pivoted = aggregate(rows, 4, vec![attribute("k")], vec![call("sum", vec![attribute("v")])]);
    if let Some(RelType::Aggregate(message)) = &mut pivoted.rel_type {
        message.pivot = Some(proto::aggregate::Pivot { col: Some(attribute("p")), values: vec![] });
    }
    assert_eq!(sorted_lines(&session, &pivoted).await, ["k,x,y", "a,1,2", "b,3,null"]);
}

#[tokio::test]
async fn generators_repeat_the_other_columns() {
    let session = session();
    let array = call("array", vec![attribute("id"), integer(9)]);
    let exploded = project(people(), vec![attribute("name"), call("explode", vec![array])]);
    assert_eq!(lines(&session, &exploded).await, ["name,col", "a,1", "a,9", "b,2", "b,9", "c,3", "c,9"]);
}

#[tokio::test]
async fn set_operations_count_rows() {
    let session = session();
    let set = |kind: i32, is_all: bool| {
        relation(RelType::SetOp(Box::new(proto::SetOperation {
            left_input: boxed(local(vec![("a", ints(&[1, 1, 2, 3]))])),
            right_input: boxed(local(vec![("b", ints(&[1, 3, 3]))])),
            set_op_type: kind,
            is_all: Some(is_all),
            by_name: Some(false),
            allow_missing_columns: Some(false),
        })))
    };
    assert_eq!(sorted_lines(&session, &set(2, true)).await, ["a", "1", "1", "1", "2", "3", "3", "3"]);
    assert_eq!(sorted_lines(&session, &set(2, false)).await, ["a", "1", "2", "3"]);
    assert_eq!(sorted_lines(&session, &set(1, true)).await, ["a", "1", "3"]);
    assert_eq!(sorted_lines(&session, &set(3, true)).await, ["a", "1", "2"]);
    assert_eq!(sorted_lines(&session, &set(3, false)).await, ["a", "2"]);
}

#[tokio::test]
async fn the_splits_of_a_relation_are_disjoint_and_complete() {
    let session = session();
    let split = |lower: f64, upper: f64| {
        relation(RelType::Sample(Box::new(proto::Sample {
            input: boxed(range(10_000)),
            lower_bound: lower,
            upper_bound: upper,
            with_replacement: Some(false),
            seed: Some(42),
            deterministic_order: true,
        })))
    };
    // A filter above must not change which rows are drawn.
    let small = |relation: Relation| filter(relation, call(">", vec![attribute("id"), integer(5000)]));
    let (train, test) = (lines(&session, &split(0.0, 0.8)).await, lines(&session, &split(0.8, 1.0)).await);
    assert_eq!(train.len() + test.len(), 10_002);
    assert!(train.len() > 7_700 && train.len() < 8_300, "{}", train.len());
    let train_small = lines(&session, &small(split(0.0, 0.8))).await;
    let expected = train[1..].iter().filter(|id| id.parse::<i64>().unwrap() > 5000).count();
    assert_eq!(train_small.len() - 1, expected);
}

#[tokio::test]
async fn missing_values_are_filled_and_dropped() {
    let session = session();
    let rows = || {
        local(vec![
            ("x", Arc::new(Float64Array::from(vec![Some(1.0), None, Some(f64::NAN)])) as ArrayRef),
            ("s", Arc::new(StringArray::from(vec![Some("u"), Some("v"), None])) as ArrayRef),
        ])
    };
    let fill = relation(RelType::FillNa(Box::new(proto::NaFill {
        input: boxed(rows()),
        cols: vec![],
        values: vec![proto::expression::Literal {
            literal_type: Some(proto::expression::literal::LiteralType::Double(7.0)),
            ..Default::default()
        }],
    })));
    assert_eq!(lines(&session, &fill).await, ["x,s", "1.0,u", "7.0,v", "7.0,null"]);
    let drop = relation(RelType::DropNa(Box::new(proto::NaDrop {
        input: boxed(rows()),
        cols: vec![],
        min_non_nulls: None,
    })));
    assert_eq!(lines(&session, &drop).await, ["x,s", "1.0,u"]);
}

#[tokio::test]
async fn describe_gives_a_row_a_statistic() {
    let session = session();
    let described = relation(RelType::Describe(Box::new(proto::StatDescribe {
        input: boxed(local(vec![("v", ints(&[1, 2, 3])), ("s", texts(&["a", "b", "c"]))])),
        cols: vec![],
    })));
    let expected = ["summary,v,s", "count,3,3", "mean,2.0,null", "stddev,1.0,null", "min,1,a", "max,3,c"];
    assert_eq!(lines(&session, &described).await, expected);
}

#[tokio::test]
async fn unpivot_makes_a_row_of_each_cell() {
    let session = session();
    let unpivoted = relation(RelType::Unpivot(Box::new(proto::Unpivot {
        input: boxed(local(vec![("k", texts(&["a"])), ("x", ints(&[1])), ("y", ints(&[2]))])),
        ids: vec![attribute("k")],
        values: None,
        variable_column_name: "var".into(),
        value_column_name: "val".into(),
    })));
    assert_eq!(lines(&session, &unpivoted).await, ["k,var,val", "a,x,1", "a,y,2"]);
}

#[tokio::test]
async fn duplicates_are_dropped_by_name() {
    let session = session();
    let deduplicated = relation(RelType::Deduplicate(Box::new(proto::Deduplicate {
        input: boxed(orders()),
        column_names: vec!["ID".into()],
        all_columns_as_keys: Some(false),
        within_watermark: Some(false),
    })));
    assert_eq!(sorted_lines(&session, &deduplicated).await, ["id,price", "2,20", "3,30", "4,40"]);
}

#[tokio::test]
async fn windows_are_computed_below_the_projection() {
    let session = session();
    let window = proto::expression::Window {
        window_function: Some(Box::new(call("row_number", vec![]))),
        partition_spec: vec![attribute("id")],
        order_spec: vec![SortOrder { child: Some(Box::new(attribute("price"))), direction: 2, null_ordering: 0 }],
        frame_spec: None,
    };
    let window = Expression { common: None, expr_type: Some(ExprType::Window(Box::new(window))) };
    let numbered = project(orders(), vec![attribute("price"), aliased(window, "n")]);
    assert_eq!(sorted_lines(&session, &numbered).await, ["price,n", "20,1", "30,2", "31,1", "40,1"]);
}

#[tokio::test]
async fn two_hundred_columns_on_top_of_each_other_resolve_and_run() {
    let session = session();
    let mut deep = range(10);
    for step in 0..200 {
        deep = with_column(deep, &format!("c{step}"), call("+", vec![attribute("id"), integer(step)]));
    }
    let start = std::time::Instant::now();
    let frame = session.resolve(&deep, &NoExtensions).await.unwrap();
    let resolved = start.elapsed();
    assert_eq!(frame.visible().count(), 201);
    let batches = session.collect(&frame).await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 10);
    eprintln!("resolved in {resolved:?}, all in {:?}", start.elapsed());
}

#[tokio::test]
async fn each_of_two_hundred_columns_may_use_the_one_before() {
    let session = session();
    let mut deep = range(10);
    for step in 0..200 {
        deep = with_column(deep, "id", call("+", vec![attribute("id"), integer(step % 3)]));
    }
    let start = std::time::Instant::now();
    let frame = session.resolve(&deep, &NoExtensions).await.unwrap();
    eprintln!("resolved in {:?}", start.elapsed());
    session.state().optimize(&frame.plan).unwrap();
    eprintln!("optimized in {:?}", start.elapsed());
    assert_eq!(lines(&session, &deep).await.len(), 11);
    eprintln!("all in {:?}", start.elapsed());
}

#[tokio::test]
async fn views_and_sql_go_through_the_same_resolver() {
    let session = session();
    let frame = session.resolve(&people(), &NoExtensions).await.unwrap();
    session.create_view("people", frame.clone(), false, false).unwrap();
    assert!(matches!(
        session.create_view("PEOPLE", frame, false, false),
        Err(Error::TempViewAlreadyExists { .. })
    ));
    let text = "SELECT p.name, count(*) AS n FROM people p JOIN people q ON p.id <= q.id GROUP BY p.name ORDER BY n";
    let SqlOutcome::Query(query) = session.sql(text, Default::default(), &NoExtensions).await.unwrap() else {
        panic!("a query is no command");
    };
    assert_eq!(lines(&session, &query).await, ["name,n", "c,1", "b,2", "a,3"]);
    let outcome = session.sql("SHOW TABLES", Default::default(), &NoExtensions).await.unwrap();
    let SqlOutcome::Command(tables) = outcome else { panic!("a command is no query") };
    assert_eq!(session.collect(&tables).await.unwrap()[0].num_rows(), 1);
}

#[tokio::test]
async fn correlated_subqueries_name_columns_around_them() {
    let session = session();
    for (name, relation) in [("people", people()), ("orders", orders())] {
        let frame = session.resolve(&relation, &NoExtensions).await.unwrap();
        session.create_view(name, frame, true, false).unwrap();
    }
    let text = "SELECT name FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.id = p.id AND price > 25)";
    let SqlOutcome::Query(query) = session.sql(text, Default::default(), &NoExtensions).await.unwrap() else {
        panic!("a query is no command");
    };
    assert_eq!(lines(&session, &query).await, ["name", "c"]);
}

#[tokio::test]
async fn a_persisted_relation_is_computed_once() {
    let session = session();
    let seeded = project(range(100), vec![aliased(call("rand", vec![]), "r")]);
    session.persist(&seeded, proto::StorageLevel { use_memory: true, replication: 1, ..Default::default() });
    let first = lines(&session, &seeded).await;
    assert_eq!(first, lines(&session, &seeded).await);
    session.unpersist(&seeded);
    assert_ne!(first, lines(&session, &seeded).await);
}

#[tokio::test]
async fn a_tail_is_the_end_of_the_rows() {
    let session = session();
    let tail = relation(RelType::Tail(Box::new(proto::Tail { input: boxed(range(100)), limit: 2 })));
    assert_eq!(lines(&session, &tail).await, ["id", "98", "99"]);
    let limit = relation(RelType::Limit(Box::new(proto::Limit { input: boxed(range(100_000)), limit: 2 })));
    assert_eq!(lines(&session, &limit).await, ["id", "0", "1"]);
}

async fn gang(session: &Session, relation: &Relation, num_ranks: usize) -> Vec<Vec<i64>> {
    let frame = session.resolve(relation, &NoExtensions).await.unwrap();
    let streams = session.partitions(&frame, &["id".into()], num_ranks).await.unwrap();
    assert_eq!(streams.len(), num_ranks);
    let reads = streams.into_iter().map(|stream| async move {
        let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
        batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
    });
    futures::future::join_all(reads).await
}

#[tokio::test]
async fn a_gang_gets_all_rows_once_and_the_same_ones_again() {
    let session = session();
    let grouped = sort(range(1), attribute("id"));
    assert_eq!(gang(&session, &grouped, 3).await.concat(), [0]);
    let by_rest = aggregate(
        project(range(20_000), vec![aliased(call("%", vec![attribute("id"), integer(5_000)]), "id")]),
        1,
        vec![attribute("id")],
        vec![],
    );
    for relation in [range(100_000), by_rest] {
        for num_ranks in [1, 2, 3, 5] {
            let once = gang(&session, &relation, num_ranks).await;
            assert_eq!(once, gang(&session, &relation, num_ranks).await);
            let mut all = once.concat();
            all.sort_unstable();
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(all.len() == 100_000 || all.len() == 5_000);
        }
    }
}

#[tokio::test]
async fn a_rank_that_is_gone_does_not_hold_up_the_others() {
    let session = session();
    let coalesced = relation(RelType::Repartition(Box::new(proto::Repartition {
        input: boxed(range(3_000_000)),
        num_partitions: 1,
        shuffle: Some(false),
    })));
    let frame = session.resolve(&coalesced, &NoExtensions).await.unwrap();
    let mut streams = session.partitions(&frame, &["id".into()], 3).await.unwrap();
    drop(streams.remove(1));
    let reads = streams.into_iter().map(|stream| stream.try_fold(0, |sum, batch| async move { Ok(sum + batch.num_rows()) }));
    let counts = futures::future::try_join_all(reads).await.unwrap();
    assert!(counts.iter().sum::<usize>() > 1_900_000);
}

/// Counts how often the raw prediction is computed.
struct Model(Arc<AtomicUsize>);

#[async_trait]
impl Extensions for Model {
    async fn resolve_ml(&self, _: &Session, message: &proto::MlRelation) -> Result<Extended> {
        let Some(proto::ml_relation::MlType::Transform(transform)) = &message.ml_type else {
            return Err(Error::Unsupported { feature: "fetch".into() });
        };
        let input = transform.input.clone().ok_or(Error::Bug { invariant: "input".into() })?;
        let counter = Arc::clone(&self.0);
        Ok(Extended::Transform {
            input: TransformInput::Relation(input),
            plan_transform: Box::new(move |_: &Schema| {
                let step = |name: &str, input: &str, counter: Option<Arc<AtomicUsize>>| TransformStep::Append {
                    output: Arc::new(Field::new(name, DataType::Float64, true)),
                    inputs: vec![input.to_owned()],
                    name: format!("model {name}"),
                    function: Arc::new(move |arrays, num_rows| {
                        if let Some(counter) = &counter {
                            counter.fetch_add(num_rows, Ordering::Relaxed);
                        }
                        let values = arrow::compute::cast(&arrays[0], &DataType::Float64)?;
                        Ok(Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(|x| x + 1.0)))
                    }),
                };
                Ok(vec![
                    step("raw", "id", Some(counter)),
                    step("probability", "raw", None),
                    step("prediction", "probability", None),
                ])
            }),
        })
    }
}

#[tokio::test]
async fn a_model_is_evaluated_once_a_row_and_only_if_it_is_read() {
    let session = session();
    let counter = Arc::new(AtomicUsize::new(0));
    let model = Model(Arc::clone(&counter));
    let transformed = relation(RelType::MlRelation(Box::new(proto::MlRelation {
        model_summary_dataset: None,
        ml_type: Some(proto::ml_relation::MlType::Transform(Box::new(proto::ml_relation::Transform {
            input: boxed(range(1000)),
            params: None,
            operator: None,
        }))),
    })));
    let count = async |relation: &Relation| {
        counter.store(0, Ordering::Relaxed);
        let frame = session.resolve(relation, &model).await.unwrap();
        let batches = session.collect(&frame).await.unwrap();
        (batches.iter().map(RecordBatch::num_rows).sum::<usize>(), counter.load(Ordering::Relaxed))
    };
    assert_eq!(count(&transformed).await, (1000, 1000));
    let likely = filter(transformed.clone(), call(">", vec![attribute("prediction"), double(502.0)]));
    assert_eq!(count(&likely).await, (500, 1000));
    let only = project(likely, vec![attribute("prediction"), attribute("raw"), attribute("probability")]);
    assert_eq!(count(&only).await, (500, 1000));
    let pruned = project(transformed.clone(), vec![attribute("id")]);
    assert_eq!(count(&pruned).await, (1000, 0));
    let limited = filter(transformed, call("<", vec![attribute("id"), integer(10)]));
    assert_eq!(count(&limited).await, (10, 10));
}

#[tokio::test]
async fn partitions_travel_once_over_flight() {
    use crate::flight::{PartitionServer, fetch};
    let session = session();
    let frame = session.resolve(&range(100_000), &NoExtensions).await.unwrap();
    let server = PartitionServer::default();
    let stream = session.run(&frame).await.unwrap();
    let ticket = server.register(stream);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let service = server.service();
    let serving = tokio::spawn(async move {
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming).await
    });
    let batches: Vec<RecordBatch> = fetch(&uri, &ticket).await.unwrap().try_collect().await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 100_000);
    assert!(fetch(&uri, &ticket).await.is_err());
    serving.abort();
}

#[tokio::test]
async fn show_is_a_text() {
    let session = session();
    let shown = relation(RelType::ShowString(Box::new(proto::ShowString {
        input: boxed(project(people(), vec![attribute("id"), string("x")])),
        num_rows: 2,
        truncate: 20,
        vertical: false,
    })));
    let frame = session.resolve(&shown, &NoExtensions).await.unwrap();
    let batches = session.collect(&frame).await.unwrap();
    let text = batches[0].column(0).as_string::<i32>().value(0).to_owned();
    assert_eq!(text, "+---+---+\n| id|  x|\n+---+---+\n|  1|  x|\n|  2|  x|\n+---+---+\nonly showing top 2 rows");
}

#[tokio::test]
async fn sql_covers_ordinals_natural_joins_and_random_orders() {
    let session = session();
    for (name, relation) in [("people", people()), ("orders", orders())] {
        let frame = session.resolve(&relation, &NoExtensions).await.unwrap();
        session.create_view(name, frame, true, false).unwrap();
    }
    let cases = [
        ("SELECT * FROM people ORDER BY 1 DESC LIMIT 1", vec!["id,name", "3,c"]),
        ("SELECT * FROM people NATURAL JOIN orders WHERE price = 20", vec!["id,name,price", "2,b,20"]),
        ("SELECT count(*) FROM (SELECT * FROM people ORDER BY rand(3))", vec!["count(1)", "3"]),
        ("SELECT sum(price) s FROM orders GROUP BY id HAVING count(*) > 1", vec!["s", "61"]),
        ("SELECT DISTINCT id FROM orders WHERE id IN (SELECT id FROM people) ORDER BY id", vec!["id", "2", "3"]),
        ("SELECT name, (SELECT max(price) FROM orders o WHERE o.id = p.id) m FROM people p ORDER BY name",
            vec!["name,m", "a,null", "b,20", "c,31"]),
        ("WITH t AS (SELECT id FROM people) SELECT a.id FROM t a JOIN t b ON a.id = b.id ORDER BY a.id",
            vec!["id", "1", "2", "3"]),
        ("SELECT id, col FROM people LATERAL VIEW explode(array(7, 8)) t AS col WHERE id = 1", vec!["id,col", "1,7", "1,8"]),
    ];
    for (text, expected) in cases {
        let outcome = session.sql(text, Default::default(), &NoExtensions).await;
        match outcome {
            Ok(SqlOutcome::Query(query)) => assert_eq!(lines(&session, &query).await, expected, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn tables_of_the_warehouse_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { target_partitions: 2, warehouse_dir: folder.path().to_owned(), ..Options::default() };
    let session = Session::new(&Engine::new(options).unwrap(), "tester");
    let run = async |text: &str| session.sql(text, Default::default(), &NoExtensions).await;
    run("CREATE TABLE t USING parquet AS SELECT 1 AS a, 'x' AS b").await.unwrap();
    run("INSERT INTO t VALUES (2, 'y')").await.unwrap();
    let Ok(SqlOutcome::Query(query)) = run("SELECT * FROM t ORDER BY a").await else { panic!("a query") };
    assert_eq!(lines(&session, &query).await, ["a,b", "1,x", "2,y"]);
    assert!(matches!(
        run("CREATE TABLE t USING parquet AS SELECT 1 AS a").await,
        Err(Error::TableOrViewAlreadyExists { .. })
    ));
    run("DROP TABLE t").await.unwrap();
    assert!(matches!(failure(&session, &query).await, Error::TableOrViewNotFound { .. }));
}

#[tokio::test]
async fn a_sum_of_longs_that_does_not_fit_fails_or_is_null() {
    let session = session();
    let frame = session.resolve(&local(vec![("a", ints(&[i64::MAX, 1]))]), &NoExtensions).await.unwrap();
    session.create_view("t", frame, true, false).unwrap();
    let query = async |text: &str| match session.sql(text, Default::default(), &NoExtensions).await {
        Ok(SqlOutcome::Query(query)) => *query,
        other => panic!("{text}: {other:?}"),
    };
    let sum = query("SELECT sum(a) s FROM t").await;
    let frame = session.resolve(&sum, &NoExtensions).await.unwrap();
    assert!(session.collect(&frame).await.unwrap_err().to_string().contains("long overflow"));
    assert_eq!(lines(&session, &query("SELECT try_sum(a) s FROM t").await).await, ["s", "null"]);
    session.set_conf("spark.sql.ansi.enabled", "false").unwrap();
    assert_eq!(lines(&session, &query("SELECT sum(a) s FROM t").await).await, ["s", &i64::MIN.to_string()]);
}

#[tokio::test]
async fn a_long_chain_of_columns_that_build_on_each_other_stays_quick_and_right() {
    let session = session();
    let mut chain = range(10);
    for step in 0..200 {
        let expr = call("+", vec![attribute("id"), integer(step)]);
        let alias =
            proto::expression::Alias { expr: Some(Box::new(expr)), name: vec!["id".into()], metadata: None };
        chain = relation(RelType::WithColumns(Box::new(proto::WithColumns {
            input: boxed(chain),
            aliases: vec![alias],
        })));
    }
    let started = std::time::Instant::now();
    let found = sorted_lines(&session, &filter(chain, call("==", vec![attribute("id"), integer(19_901)]))).await;
    assert_eq!(found, ["id", "19901"]);
    // It takes 0.1 s; without fences it takes seconds.
    assert!(started.elapsed().as_secs() < 2, "{:?}", started.elapsed());
}

#[tokio::test]
async fn databases_are_made_listed_and_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { target_partitions: 2, warehouse_dir: folder.path().to_owned(), ..Options::default() };
    let session = Session::new(&Engine::new(options).unwrap(), "tester");
    let run = async |text: &str| session.sql(text, Default::default(), &NoExtensions).await;
    run("CREATE DATABASE one").await.unwrap();
    run("CREATE SCHEMA IF NOT EXISTS One COMMENT 'again'").await.unwrap();
    assert!(matches!(run("CREATE DATABASE one").await, Err(Error::SchemaAlreadyExists { .. })));
    assert_eq!(session.databases().unwrap(), ["default", "one"]);
    run("CREATE TABLE one.t USING parquet AS SELECT 1 AS a").await.unwrap();
    assert!(matches!(run("DROP DATABASE one").await, Err(Error::SchemaNotEmpty { .. })));
    run("DROP DATABASE one CASCADE").await.unwrap();
    run("DROP DATABASE IF EXISTS one").await.unwrap();
    assert!(matches!(run("DROP DATABASE one").await, Err(Error::SchemaNotFound { .. })));
    assert!(run("CREATE DATABASE `../one`").await.is_err());
    assert!(run("DROP DATABASE `../one` CASCADE").await.is_err());
}

#[tokio::test]
async fn write_to_makes_replaces_and_appends_by_name() {
    use proto::write_operation_v2::Mode;
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { target_partitions: 2, warehouse_dir: folder.path().to_owned(), ..Options::default() };
    let session = Session::new(&Engine::new(options).unwrap(), "tester");
    let write = async |input: Relation, mode: Mode| {
        let operation = proto::WriteOperationV2 {
            input: Some(input),
            table_name: "t".into(),
            mode: mode.into(),
            ..proto::WriteOperationV2::default()
        };
        session.write_v2(&operation, &NoExtensions).await
    };
    assert!(matches!(write(people(), Mode::Append).await, Err(Error::TableOrViewNotFound { .. })));
    write(people(), Mode::Create).await.unwrap();
    assert!(matches!(write(people(), Mode::Create).await, Err(Error::TableOrViewAlreadyExists { .. })));
    write(local(vec![("name", texts(&["z"])), ("id", ints(&[9]))]), Mode::Append).await.unwrap();
    let SqlOutcome::Query(all) =
        session.sql("SELECT * FROM t", Default::default(), &NoExtensions).await.unwrap()
    else {
        panic!("a query");
    };
    assert_eq!(sorted_lines(&session, &all).await, ["id,name", "1,a", "2,b", "3,c", "9,z"]);
    write(orders(), Mode::CreateOrReplace).await.unwrap();
    assert_eq!(lines(&session, &all).await.len(), 5);
    assert!(lines(&session, &all).await[0] == "id,price");
}

#[tokio::test]
async fn functions_without_arguments_are_calls_too() {
    let session = session();
    let outcome = session.sql("SELECT length(uuid()) n", Default::default(), &NoExtensions).await.unwrap();
    let SqlOutcome::Query(query) = outcome else { panic!("a query") };
    assert_eq!(lines(&session, &query).await, ["n", "36"]);
}
