//! What files give.

use std::fs;

use udt::field::{column_metadata, is_vector};

use super::*;

/// Reads text as a file of a format, and compares schema and rows.
async fn check(format: &str, text: &str, schema: Option<&str>, pairs: &[(&str, &str)], types: &str, rows: &[&[&str]]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    fs::write(&path, text).unwrap();
    let found = try_read(&path, format, schema, pairs).await.unwrap();
    assert_eq!(found.schema_text(), types, "{text}");
    assert_eq!(found.rows, rows, "{text}");
}

async fn csv(text: &str, pairs: &[(&str, &str)], types: &str, rows: &[&[&str]]) {
    check("csv", text, None, pairs, types, rows).await;
}

const HEADER: (&str, &str) = ("header", "true");
const INFER: (&str, &str) = ("inferSchema", "true");

#[tokio::test]
async fn csv_without_inference_is_strings() {
    csv("a,b\n1,2\n", &[HEADER], "struct<a:string,b:string>", &[&["1", "2"]]).await;
    csv("1,2\n3,4\n", &[], "struct<_c0:string,_c1:string>", &[&["1", "2"], &["3", "4"]]).await;
    csv(
        "a,b\n1,2\n3\n4,5,6\n",
        &[HEADER],
        "struct<a:string,b:string>",
        &[&["1", "2"], &["3", "NULL"], &["4", "5"]],
    )
    .await;
    csv(
        "a,b\n\"x,1\",\"y \"\"q\"\" z\"\n",
        &[HEADER],
        "struct<a:string,b:string>",
        &[&["x,1", "\"y \"\"q\"\" z\""]],
    )
    .await;
    csv("a,b\n\"x\n1\",2\n", &[HEADER], "struct<a:string,b:string>", &[&["x", "NULL"], &["1\"", "2"]]).await;
    csv("a,b\n\"x\n1\",2\n", &[HEADER, ("multiLine", "true")], "struct<a:string,b:string>", &[&["x\n1", "2"]]).await;
    csv("a,a,,b\n1,2,3,4\n", &[HEADER], "struct<a0:string,a1:string,_c2:string,b:string>", &[&["1", "2", "3", "4"]])
        .await;
    csv("a;b\n", &[HEADER, ("sep", ";")], "struct<a:string,b:string>", &[]).await;
    csv("# c\n1\n", &[("comment", "#")], "struct<_c0:string>", &[&["1"]]).await;
    csv("NA,1\n", &[("nullValue", "NA")], "struct<_c0:string,_c1:string>", &[&["NULL", "1"]]).await;
    csv("a,b\r\nc,d\r\n", &[], "struct<_c0:string,_c1:string>", &[&["a", "b"], &["c", "d"]]).await;
    csv("\n\na\n\n", &[], "struct<_c0:string>", &[&["a"]]).await;
    csv("", &[], "struct<>", &[]).await;
}

#[tokio::test]
async fn csv_types_are_inferred_as_spark_infers_them() {
    for (value, expected, shown) in [
        ("1", "int", "1"),
        ("3000000000", "bigint", "3000000000"),
        ("99999999999999999999", "decimal(20,0)", "99999999999999999999"),
        ("1.5", "double", "1.5"),
        ("1e3", "double", "1000.0"),
        ("NaN", "double", "NaN"),
        ("Infinity", "double", "Infinity"),
        ("-inf", "string", "-inf"),
        ("TRUE", "boolean", "true"),
        ("t", "string", "t"),
        ("2020-01-02", "date", "2020-01-02"),
        ("2020-1-2", "timestamp", "2020-01-02 00:00:00"),
        ("2020-01-02 03:04:05", "timestamp", "2020-01-02 03:04:05"),
        ("2020-01-02T03:04:05.123+01:00", "timestamp", "2020-01-02 02:04:05.123"),
        ("2020-01", "timestamp", "2020-01-01 00:00:00"),
        (" 1", "double", "1.0"),
        ("0x10", "string", "0x10"),
        ("1_000", "string", "1_000"),
        ("1f", "double", "1.0"),
        ("\"\"", "string", "NULL"),
        ("+1", "int", "1"),
        (".5", "double", "0.5"),
        ("-", "string", "-"),
        ("1L", "string", "1L"),
        ("2020-13-45", "string", "2020-13-45"),
    ] {
        csv(&format!("h\n{value}\n"), &[HEADER, INFER], &format!("struct<h:{expected}>"), &[&[shown]]).await;
    }
    for (values, expected) in [
        (["1", "2.5"], "double"),
        (["1", "true"], "string"),
        (["2020-01-02", "2020-01-02 00:00:00"], "timestamp"),
        (["2020-01-02", "1"], "string"),
        (["2147483647", "2147483648"], "bigint"),
        (["99999999999999999999", "1.5"], "double"),
        (["99999999999999999999", "1"], "decimal(20,0)"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        fs::write(&path, format!("h\n{}\n{}\n", values[0], values[1])).unwrap();
        let found = try_read(&path, "csv", None, &[HEADER, INFER]).await.unwrap();
        assert_eq!(found.schema_text(), format!("struct<h:{expected}>"), "{values:?}");
    }
    csv("1,2\n3\n4,5,6\n", &[INFER], "struct<_c0:int,_c1:int>", &[&["1", "2"], &["3", "NULL"], &["4", "5"]]).await;
}

#[tokio::test]
async fn csv_records_that_do_not_fit_go_by_the_mode() {
    let types = "struct<a:int,b:int>";
    check("csv", "x,1\n", Some("a int, b int"), &[], types, &[&["NULL", "1"]]).await;
    let drop = [("mode", "DROPMALFORMED")];
    check("csv", "x,1\n2,3\n", Some("a int, b int"), &drop, types, &[&["2", "3"]]).await;
    let with_corrupt = Some("a int, b int, _corrupt_record string");
    check(
        "csv",
        "x,1\n2,3\n",
        with_corrupt,
        &[],
        "struct<a:int,b:int,_corrupt_record:string>",
        &[&["NULL", "1", "x,1"], &["2", "3", "NULL"]],
    )
    .await;
    check(
        "csv",
        "300,2020/01/02\n",
        Some("a tinyint,b date"),
        &[("dateFormat", "yyyy/MM/dd")],
        "struct<a:tinyint,b:date>",
        &[&["NULL", "2020-01-02"]],
    )
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    fs::write(&path, "x,1\n").unwrap();
    let failed = try_read(&path, "csv", Some("a int, b int"), &[("mode", "FAILFAST")]).await;
    assert!(matches!(failed, Err(Error::Row { .. })), "{:?}", failed.err());
}

async fn json(text: &str, schema: Option<&str>, pairs: &[(&str, &str)], types: &str, rows: &[&[&str]]) {
    check("json", text, schema, pairs, types, rows).await;
}

#[tokio::test]
async fn json_types_are_inferred_as_spark_infers_them() {
    json(
        "{\"a\":1,\"b\":\"x\"}\n{\"a\":2.5,\"c\":true}\n",
        None,
        &[],
        "struct<a:double,b:string,c:boolean>",
        &[&["1.0", "x", "NULL"], &["2.5", "NULL", "true"]],
    )
    .await;
    json(
        "{\"b\":{\"z\":1,\"y\":[1,2.5]},\"a\":null}\n",
        None,
        &[],
        "struct<a:string,b:struct<y:array<double>,z:bigint>>",
        &[&["NULL", "{[1.0, 2.5], 1}"]],
    )
    .await;
    json(
        "{\"a\":1}\nbad\n",
        None,
        &[],
        "struct<_corrupt_record:string,a:bigint>",
        &[&["NULL", "1"], &["bad", "NULL"]],
    )
    .await;
    json("{\"a\":1}\nbad\n", None, &[("mode", "DROPMALFORMED")], "struct<a:bigint>", &[&["1"]]).await;
    json("[{\"a\":1},{\"a\":2}]", None, &[], "struct<a:bigint>", &[&["1"], &["2"]]).await;
    json("{\"a\":1,\n\"b\":2}", None, &[("multiLine", "true")], "struct<a:bigint,b:bigint>", &[&["1", "2"]]).await;
    json("{\"a\":1}\n{\"a\":\"x\"}\n", None, &[], "struct<a:string>", &[&["1"], &["x"]]).await;
    json("{\"a\":[1,\"x\"]}\n{\"a\":{}}\n", None, &[], "struct<a:string>", &[&["[1,\"x\"]"], &["{}"]]).await;
    json("{\"a\":99999999999999999999}\n", None, &[], "struct<a:decimal(20,0)>", &[&["99999999999999999999"]]).await;
    json("{\"a\":[]}\n", None, &[], "struct<a:array<string>>", &[&["[]"]]).await;
    json("{\"a\":NaN}\n", None, &[], "struct<a:double>", &[&["NaN"]]).await;
    json("{'a':1}\n", None, &[], "struct<a:bigint>", &[&["1"]]).await;
    json("", None, &[], "struct<>", &[]).await;
}

#[tokio::test]
async fn json_values_are_read_into_the_wanted_types() {
    json("{\"a\":1}\n", Some("a string, b int"), &[], "struct<a:string,b:int>", &[&["1", "NULL"]]).await;
    json("{\"a\":\"1\"}\n{\"a\":true}\n", Some("a int"), &[], "struct<a:int>", &[&["NULL"], &["NULL"]]).await;
    json("{\"a\":{\"b\":1}}\n", Some("a string"), &[], "struct<a:string>", &[&["{\"b\":1}"]]).await;
    json("{\"a\":1.5}\n", Some("a int"), &[], "struct<a:int>", &[&["NULL"]]).await;
    json(
        "{\"d\":\"2020-01-02\",\"t\":\"2020-01-02T03:04:05Z\",\"m\":{\"k\":1},\"x\":\"QUI=\"}\n",
        Some("d date,t timestamp,m map<string,int>,x binary"),
        &[],
        "struct<d:date,t:timestamp,m:map<string,int>,x:binary>",
        &[&["2020-01-02", "2020-01-02 03:04:05", "{k -> 1}", "[41 42]"]],
    )
    .await;
}

#[tokio::test]
async fn text_is_a_line_a_row_or_a_file_a_row() {
    let types = "struct<value:string>";
    check("text", "a\r\nb\n\nc", None, &[], types, &[&["a"], &["b"], &[""], &["c"]]).await;
    check("text", "a\r\nb\n\nc", None, &[("wholetext", "true")], types, &[&["a\r\nb\n\nc"]]).await;
    check("text", "a;b", None, &[("lineSep", ";")], types, &[&["a"], &["b"]]).await;
}

#[tokio::test]
async fn libsvm_knows_how_many_features_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    fs::write(&path, "# comment\n1 1:0.5 3:2\n\n-1 2:1e-3\n0\n").unwrap();
    let found = try_read(&path, "libsvm", None, &[]).await.unwrap();
    assert_eq!(found.rows, [["1.0", "(3,[0,2],[0.5,2.0])"], ["-1.0", "(3,[1],[0.001])"], ["0.0", "(3,[],[])"]]);
    let features = found.schema.field(1);
    assert!(is_vector(features));
    assert_eq!(column_metadata(features), Some(r#"{"numFeatures":3,"ml_attr":{"num_attrs":3}}"#));
    let dense = try_read(&path, "libsvm", None, &[("numFeatures", "4"), ("vectorType", "dense")]).await.unwrap();
    assert_eq!(dense.rows[0], ["1.0", "[0.5,0.0,2.0,0.0]"]);
    for bad in ["1 0:1\n", "1 3:1 2:1\n", "x 1:1\n", "1 a\n", "1 a:1\n", "1 1:x\n"] {
        fs::write(&path, bad).unwrap();
        assert!(matches!(try_read(&path, "libsvm", None, &[]).await, Err(Error::Row { .. })), "{bad}");
    }
}

#[tokio::test]
async fn directories_and_patterns_leave_out_hidden_files() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a.txt", "1"), ("b.txt", "2"), ("_SUCCESS", "x"), (".a.crc", "x"), ("sub/c.txt", "3")] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let read = |path: std::path::PathBuf, pairs: &'static [(&str, &str)]| async move {
        let found = try_read(&path, "text", None, pairs).await.unwrap();
        found.rows.concat().join(" ")
    };
    assert_eq!(read(folder.path().into(), &[]).await, "1 2");
    assert_eq!(read(folder.path().into(), &[("recursiveFileLookup", "true")]).await, "1 2 3");
    assert_eq!(read(folder.path().into(), &[("pathGlobFilter", "b*")]).await, "2");
    assert_eq!(read(folder.path().join("[ab].txt"), &[]).await, "1 2");
    assert_eq!(read(folder.path().join("{a,c}.txt"), &[]).await, "1");
    assert_eq!(read(folder.path().join("s*"), &[]).await, "3");
    let file = format!("file://{}", folder.path().join("a.txt").display());
    assert_eq!(read(file.into(), &[]).await, "1");
}

#[tokio::test]
async fn binary_files_are_a_row_each() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "AB").unwrap();
    let found = try_read(folder.path(), "binaryFile", None, &[]).await.unwrap();
    assert_eq!(found.schema_text(), "struct<path:string,modificationTime:timestamp,length:bigint,content:binary>");
    assert_eq!(found.rows[0][0], format!("file://{}", folder.path().join("a").display()));
    assert_eq!(found.rows[0][2..], ["2", "[41 42]"]);
}

#[tokio::test]
async fn what_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nope");
    match try_read(&nowhere, "parquet", None, &[]).await {
        Err(Error::PathNotFound { path }) => assert_eq!(path, format!("file:{}", nowhere.display())),
        other => panic!("{:?}", other.err()),
    }
    let error = |format: &'static str, pairs: &'static [(&str, &str)]| {
        let path = folder.path().to_path_buf();
        async move { try_read(&path, format, None, pairs).await.err().unwrap() }
    };
    assert!(matches!(error("parquet", &[]).await, Error::UnableToInferSchema { format } if format == "Parquet"));
    assert!(matches!(error("zzz", &[]).await, Error::DataSourceNotFound { .. }));
    assert!(matches!(error("orc", &[]).await, Error::Unsupported { .. }));
    assert!(matches!(error("csv", &[("header", "zz")]).await, Error::InvalidOption { .. }));
    assert!(matches!(error("csv", &[("encoding", "UTF-16")]).await, Error::Unsupported { .. }));
    let elsewhere = try_read(std::path::Path::new("s3://bucket/x"), "text", None, &[]).await;
    assert!(matches!(elsewhere, Err(Error::Unsupported { .. })));
}
