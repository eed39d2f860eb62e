//! What is written, and read back.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Field};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::LogicalPlanBuilder;
use udt::field::{vector_field, with_column_metadata};
use udt::{Vector, VectorBuilder};

use super::*;
use crate::data_type::parse_ddl;

async fn write_batches(batches: Vec<Vec<RecordBatch>>, schema: &Schema, sink: &WriteSink) -> Result<()> {
    let table = MemTable::try_new(Arc::new(schema.clone()), batches).unwrap();
    let plan = LogicalPlanBuilder::scan("t", provider_as_source(Arc::new(table)), None).unwrap().build().unwrap();
    write(&state(), &Conf::new(), plan, schema, sink).await
}

fn sink(path: &std::path::Path, format: &str, pairs: &[(&str, &str)]) -> WriteSink {
    WriteSink { format: format.into(), path: path.to_string_lossy().into(), options: options(pairs), ..Default::default() }
}

/// All files below a folder, the job's id cut out of their names.
fn files(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            let start = name.find("part-").map(|at| at + "part-00000-".len());
            found.push(match start {
                Some(start) => format!("{}ID{}", &name[..start], &name[start + 36..]),
                None => name,
            });
        }
    }
    found.sort();
    found
}

fn text_of_parts(folder: &std::path::Path) -> String {
    let mut parts: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    parts.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with("part-"));
    parts.sort();
    parts.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Rows with texts that need care.
fn table() -> (Schema, RecordBatch) {
    let schema = parse_ddl("i int, s string, d double, da date, ts timestamp, b boolean, de decimal(3,2), n timestamp_ntz");
    let schema = schema.unwrap();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5, 6])),
        Arc::new(StringArray::from(vec![Some("a,b"), Some("q\"uo\nte"), Some(""), None, Some(" sp "), Some("b\\s")])),
        Arc::new(Float64Array::from(vec![Some(2.5), None, Some(1e10), Some(f64::NAN), Some(f64::INFINITY), None])),
        Arc::new(Date32Array::from(vec![Some(18263), None, Some(-683370), None, None, None])),
        Arc::new(
            TimestampMicrosecondArray::from(vec![Some(1_577_934_245_123_000), None, None, None, None, None])
                .with_timezone("UTC"),
        ),
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), None, None, None])),
        Arc::new(
            Decimal128Array::from(vec![Some(110), None, Some(200), None, None, None])
                .with_precision_and_scale(3, 2)
                .unwrap(),
        ),
        Arc::new(TimestampMicrosecondArray::from(vec![Some(1_577_934_245_000_000), None, None, None, None, None])),
    ];
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
    (schema, batch)
}

#[tokio::test]
async fn csv_is_quoted_as_spark_quotes_it() {
    let (schema, batch) = table();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("csv");
    write_batches(vec![vec![batch.clone()]], &schema, &sink(&path, "csv", &[("header", "true")])).await.unwrap();
    assert_eq!(files(&path), ["_SUCCESS", "part-00000-ID-c000.csv"]);
    let first = batch.slice(0, 1);
    assert!(text_of_parts(&path).starts_with(
        "i,s,d,da,ts,b,de,n\n1,\"a,b\",2.5,2020-01-02,2020-01-02T03:04:05.123Z,true,1.10,2020-01-02T03:04:05.000\n\
         2,\"q\\\"uo\nte\",,,,,,\n3,\"\",1.0E10,"
    ));
    assert!(text_of_parts(&path).ends_with(",,false,2.00,\n4,,NaN,,,,,\n5,sp,Infinity,,,,,\n6,b\\s,,,,,,\n"));
    let path = folder.path().join("other");
    let pairs = [("nullValue", "NA"), ("sep", ";"), ("quoteAll", "true")];
    let quoted = RecordBatch::concat_rows(&[batch.slice(5, 1), first]);
    write_batches(vec![vec![quoted]], &schema, &sink(&path, "csv", &pairs)).await.unwrap();
    assert!(text_of_parts(&path).starts_with("\"6\";\"b\\\\s\";\"NA\";\"NA\";"));
}

trait ConcatRows {
    fn concat_rows(batches: &[RecordBatch]) -> RecordBatch;
}

impl ConcatRows for RecordBatch {
    fn concat_rows(batches: &[RecordBatch]) -> RecordBatch {
        arrow::compute::concat_batches(&batches[0].schema(), batches).unwrap()
    }
}

#[tokio::test]
async fn json_leaves_nulls_out() {
    let (schema, batch) = table();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("json");
    write_batches(vec![vec![batch]], &schema, &sink(&path, "json", &[])).await.unwrap();
    let text = text_of_parts(&path);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        r#"{"i":1,"s":"a,b","d":2.5,"da":"2020-01-02","ts":"2020-01-02T03:04:05.123Z","b":true,"de":1.10,"n":"2020-01-02T03:04:05.000"}"#
    );
    assert_eq!(lines[1], r#"{"i":2,"s":"q\"uo\nte"}"#);
    assert_eq!(lines[3..5], [r#"{"i":4,"d":"NaN"}"#, r#"{"i":5,"s":" sp ","d":"Infinity"}"#]);
}

#[tokio::test]
async fn vectors_and_their_metadata_go_through_parquet() {
    let mut vectors = VectorBuilder::default();
    vectors.append_vector(&Vector::Dense(vec![1.0, 2.0]));
    vectors.append_null();
    vectors.append_sparse(3, &[1], &[2.0]);
    let nested = Field::new("l", DataType::List(Arc::new(vector_field("element"))), true);
    let mut inner = VectorBuilder::default();
    inner.append_dense(&[5.0]);
    let offsets = arrow::buffer::OffsetBuffer::from_lengths([1, 0, 0]);
    let lists = ListArray::new(Arc::new(vector_field("element")), offsets, inner.finish(), None);
    let schema = Schema::new(vec![
        Field::new("label", DataType::Float64, false),
        with_column_metadata(vector_field("features"), r#"{"ml_attr":{"num_attrs":3}}"#),
        nested,
        Field::new("y", DataType::Interval(arrow::datatypes::IntervalUnit::YearMonth), true),
        Field::new("t", DataType::Time64(arrow::datatypes::TimeUnit::Nanosecond), true),
        Field::new("i", DataType::Duration(arrow::datatypes::TimeUnit::Microsecond), true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Float64Array::from(vec![1.0, 0.0, 1.0])),
        vectors.finish(),
        Arc::new(lists),
        Arc::new(IntervalYearMonthArray::from(vec![Some(14), None, None])),
        Arc::new(Time64NanosecondArray::from(vec![Some(1_000_000_000), None, None])),
        Arc::new(DurationMicrosecondArray::from(vec![Some(1_000_000), None, None])),
    ];
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for codec in ["snappy", "zstd", "gzip", "none"] {
        let path = folder.path().join(codec);
        write_batches(vec![vec![batch.clone()]], &schema, &sink(&path, "parquet", &[("compression", codec)]))
            .await
            .unwrap();
        let found = try_read(&path, "parquet", None, &[]).await.unwrap();
        let expected: Vec<Field> =
            schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        assert_eq!(found.schema.as_ref(), &Schema::new(expected));
        assert_eq!(
            found.rows[0],
            [
                "1.0",
                "[1.0,2.0]",
                "[[5.0]]",
                "INTERVAL '1-2' YEAR TO MONTH",
                "00:00:01",
                "INTERVAL '0 00:00:01' DAY TO SECOND"
            ]
        );
        assert_eq!(found.rows[1][..3], ["0.0", "NULL", "[]"]);
        assert_eq!(found.rows[2][1], "(3,[1],[2.0])");
    }
    assert_eq!(files(&folder.path().join("snappy")), ["_SUCCESS", "part-00000-ID-c000.snappy.parquet"]);
}

#[tokio::test]
async fn a_wanted_schema_picks_columns_by_name() {
    let schema = parse_ddl("Id bigint, s string").unwrap();
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(vec![1, 2])), Arc::new(StringArray::from(vec!["x", "y"]))];
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p");
    write_batches(vec![vec![batch]], &schema, &sink(&path, "", &[])).await.unwrap();
    let found = try_read(&path, "parquet", Some("s string, id bigint, other int"), &[]).await.unwrap();
    assert_eq!(found.schema_text(), "struct<s:string,id:bigint,other:int>");
    assert_eq!(found.rows, [["x", "1", "NULL"], ["y", "2", "NULL"]]);
}

#[tokio::test]
async fn partition_columns_become_directories_and_columns_again() {
    let schema = parse_ddl("id bigint, p int, q string, d date").unwrap();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![0, 1, 2])),
        Arc::new(Int32Array::from(vec![0, 1, 0])),
        Arc::new(StringArray::from(vec![Some("x 0/="), None, Some("x 0/=")])),
        Arc::new(Date32Array::from(vec![18263, 18263, 18263])),
    ];
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for format in ["parquet", "csv", "json"] {
        let path = folder.path().join(format);
        let partition_by = vec!["p".to_string(), "Q".to_string(), "d".to_string()];
        let to = WriteSink { partition_by, ..sink(&path, format, &[("header", "true")]) };
        write_batches(vec![vec![batch.clone()]], &schema, &to).await.unwrap();
        let directories: Vec<String> = files(&path)
            .into_iter()
            .filter_map(|name| name.split_once("/part-").map(|(directory, _)| directory.to_string()))
            .collect();
        assert_eq!(
            directories,
            ["p=0/q=x 0%2F%3D/d=2020-01-02", "p=1/q=__HIVE_DEFAULT_PARTITION__/d=2020-01-02"]
        );
        let mut found = try_read(&path, format, None, &[("header", "true"), ("inferSchema", "true")]).await.unwrap();
        found.rows.sort();
        let id = if format == "csv" { "int" } else { "bigint" };
        assert_eq!(found.schema_text(), format!("struct<id:{id},p:int,q:string,d:date>"));
        assert_eq!(
            found.rows,
            [
                ["0", "0", "x 0/=", "2020-01-02"],
                ["1", "1", "NULL", "2020-01-02"],
                ["2", "0", "x 0/=", "2020-01-02"]
            ]
        );
    }
}

fn numbers(range: std::ops::Range<i64>) -> (Schema, RecordBatch) {
    let schema = parse_ddl("id bigint").unwrap();
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(range));
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![column]).unwrap();
    (schema, batch)
}

#[tokio::test]
async fn the_save_mode_decides_what_happens_to_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p");
    let (schema, batch) = numbers(0..2);
    let save = |mode: SaveMode| {
        let (schema, batch, sink) = (schema.clone(), batch.clone(), WriteSink { mode, ..sink(&path, "parquet", &[]) });
        async move { write_batches(vec![vec![batch]], &schema, &sink).await }
    };
    let count = || async { try_read(&path, "parquet", None, &[]).await.unwrap().rows.len() };
    save(SaveMode::ErrorIfExists).await.unwrap();
    match save(SaveMode::ErrorIfExists).await {
        Err(Error::PathAlreadyExists { path: found }) => assert_eq!(found, format!("file:{}", path.display())),
        other => panic!("{other:?}"),
    }
    save(SaveMode::Ignore).await.unwrap();
    assert_eq!(count().await, 2);
    save(SaveMode::Append).await.unwrap();
    assert_eq!(count().await, 4);
    save(SaveMode::Overwrite).await.unwrap();
    assert_eq!(count().await, 2);
    assert_eq!(files(&path), ["_SUCCESS", "part-00000-ID-c000.snappy.parquet"]);
}

#[tokio::test]
async fn a_write_that_fails_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p");
    let (schema, batch) = numbers(0..2);
    write_batches(vec![vec![batch.clone()]], &schema, &sink(&path, "csv", &[])).await.unwrap();
    let vectors = Schema::new(vec![Field::new("label", DataType::Float64, true), vector_field("v")]);
    let mut builder = VectorBuilder::default();
    builder.append_null();
    let columns: Vec<ArrayRef> = vec![Arc::new(Float64Array::from(vec![1.0])), builder.finish()];
    let bad = RecordBatch::try_new(Arc::new(vectors.clone()), columns).unwrap();
    let over = WriteSink { mode: SaveMode::Overwrite, ..sink(&path, "libsvm", &[]) };
    assert!(write_batches(vec![vec![bad.clone()]], &vectors, &over).await.is_err());
    assert_eq!(files(&path), ["_SUCCESS", "part-00000-ID-c000.csv"]);
    assert_eq!(text_of_parts(&path), "0\n1\n");
    let fresh = folder.path().join("fresh");
    assert!(write_batches(vec![vec![bad]], &vectors, &sink(&fresh, "libsvm", &[])).await.is_err());
    assert!(!fresh.exists());
}

#[tokio::test]
async fn a_relation_without_rows_leaves_a_file_with_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p");
    let (schema, batch) = numbers(0..0);
    write_batches(vec![vec![batch.clone()], vec![batch]], &schema, &sink(&path, "parquet", &[])).await.unwrap();
    let found = try_read(&path, "parquet", None, &[]).await.unwrap();
    assert_eq!((found.schema_text().as_str(), found.rows.len()), ("struct<id:bigint>", 0));
}

#[tokio::test]
async fn files_can_be_limited_and_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p");
    let (schema, batch) = numbers(0..5);
    let pairs = [("maxRecordsPerFile", "2"), ("compression", "gzip")];
    write_batches(vec![vec![batch]], &schema, &sink(&path, "csv", &pairs)).await.unwrap();
    let names = ["_SUCCESS", "part-00000-ID-c000.csv.gz", "part-00000-ID-c001.csv.gz", "part-00000-ID-c002.csv.gz"];
    assert_eq!(files(&path), names);
    let found = try_read(&path, "csv", None, &[]).await.unwrap();
    assert_eq!(found.rows.concat(), ["0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn what_cannot_be_written_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p");
    let lists = parse_ddl("a array<int>").unwrap();
    let error = |schema: Schema, format: &'static str, pairs: &'static [(&str, &str)], partition_by: Vec<String>| {
        let sink = WriteSink { partition_by, ..sink(&path, format, pairs) };
        async move { write_batches(vec![vec![]], &schema, &sink).await.err().unwrap() }
    };
    assert!(matches!(error(lists.clone(), "csv", &[], vec![]).await, Error::Unsupported { .. }));
    assert!(matches!(error(lists.clone(), "text", &[], vec![]).await, Error::Unsupported { .. }));
    assert!(matches!(error(lists.clone(), "orc", &[], vec![]).await, Error::Unsupported { .. }));
    assert!(matches!(error(lists.clone(), "parquet", &[("compression", "zzz")], vec![]).await, Error::InvalidOption { .. }));
    assert!(matches!(error(lists.clone(), "parquet", &[], vec!["x".into()]).await, Error::UnresolvedColumn { .. }));
    assert!(matches!(error(lists, "parquet", &[], vec!["a".into()]).await, Error::InvalidPlan { .. }));
    let twice = parse_ddl("a int, A int").unwrap();
    assert!(matches!(error(twice, "parquet", &[], vec![]).await, Error::ColumnAlreadyExists { .. }));
    assert!(!path.exists());
}
