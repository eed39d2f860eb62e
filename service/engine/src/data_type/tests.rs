//! Types in every textual form, beside what Spark 4.3 gives for the same.

use arrow::datatypes::{DataType, Field, Schema};
use udt::field::{column_metadata, matrix_field, vector_field, with_column_metadata};

use super::*;
use crate::Error;

/// A schema of all kinds of types.
fn schema() -> Schema {
    let mut fields: Vec<Field> = parse_ddl(
        "b tinyint not null, d decimal(10,2), a array<array<int>>, s struct<t:timestamp,n:void,i:interval day to \
         second,y:interval year>, z timestamp_ntz, c char(3), t time(3)",
    )
    .unwrap()
    .fields()
    .iter()
    .map(|field| field.as_ref().clone())
    .collect();
    let value = DataType::Struct(vec![Field::new("x", DataType::Int64, false), vector_field("v")].into());
    let key = std::sync::Arc::new(Field::new("key", DataType::Utf8, false));
    let value = std::sync::Arc::new(Field::new("value", value, false));
    fields.insert(3, SparkType::Map { key: &key, value: &value }.field("m", true));
    fields.push(with_column_metadata(matrix_field("mm"), r#"{"ml_attr":{"num_attrs":2}}"#));
    Schema::new(fields)
}

#[test]
fn a_tree_is_drawn_as_spark_draws_it() {
    let tree = "\
root
 |-- b: byte (nullable = false)
 |-- d: decimal(10,2) (nullable = true)
 |-- a: array (nullable = true)
 |    |-- element: array (containsNull = true)
 |    |    |-- element: integer (containsNull = true)
 |-- m: map (nullable = true)
 |    |-- key: string
 |    |-- value: struct (valueContainsNull = false)
 |    |    |-- x: long (nullable = false)
 |    |    |-- v: vector (nullable = true)
 |-- s: struct (nullable = true)
 |    |-- t: timestamp (nullable = true)
 |    |-- n: void (nullable = true)
 |    |-- i: interval day to second (nullable = true)
 |    |-- y: interval year (nullable = true)
 |-- z: timestamp_ntz (nullable = true)
 |-- c: char(3) (nullable = true)
 |-- t: time(3) (nullable = true)
 |-- mm: matrix (nullable = true)
";
    assert_eq!(tree_string(&schema(), None), tree);
    assert_eq!(tree_string(&schema(), Some(3)), tree);
    let keep = |depth: usize| -> String {
        let is_shallow = |line: &&str| line.matches('|').count() <= depth;
        tree.lines().filter(is_shallow).map(|line| format!("{line}\n")).collect()
    };
    assert_eq!(tree_string(&schema(), Some(1)), keep(1));
    assert_eq!(tree_string(&schema(), Some(2)), keep(2));
}

#[test]
fn names_are_those_of_spark() {
    let root = SparkType::Struct(schema().fields()).field("", true);
    assert_eq!(
        simple_string(&root),
        "struct<b:tinyint,d:decimal(10,2),a:array<array<int>>,m:map<string,struct<x:bigint,v:vector>>,\
         s:struct<t:timestamp,n:void,i:interval day to second,y:interval year>,z:timestamp_ntz,c:char(3),t:time(3),\
         mm:matrix>"
    );
    let vector = "STRUCT<type: TINYINT NOT NULL, size: INT, indices: ARRAY<INT>, values: ARRAY<DOUBLE>>";
    assert_eq!(
        sql_name(&root),
        format!(
            "STRUCT<b: TINYINT NOT NULL, d: DECIMAL(10,2), a: ARRAY<ARRAY<INT>>, m: MAP<STRING, STRUCT<x: BIGINT NOT \
             NULL, v: {vector}>>, s: STRUCT<t: TIMESTAMP, n: VOID, i: INTERVAL DAY TO SECOND, y: INTERVAL YEAR>, z: \
             TIMESTAMP_NTZ, c: CHAR(3), t: TIME(3), mm: STRUCT<type: TINYINT NOT NULL, numRows: INT NOT NULL, \
             numCols: INT NOT NULL, colPtrs: ARRAY<INT>, rowIndices: ARRAY<INT>, values: ARRAY<DOUBLE>, isTransposed: \
             BOOLEAN NOT NULL>>"
        )
    );
    let wide: Vec<Field> = (0..30).map(|i| Field::new(format!("c{i}"), DataType::Int32, true)).collect();
    let wide = simple_string(&Field::new("", DataType::Struct(wide.into()), true));
    assert!(wide.ends_with("c23:int,... 6 more fields>"), "{wide}");
}

#[test]
fn json_and_messages_keep_every_type() {
    let schema = schema();
    let json = schema_to_json(&schema);
    assert!(json.starts_with(
        r#"{"type":"struct","fields":[{"name":"b","type":"byte","nullable":false,"metadata":{}},{"name":"d","type":"decimal(10,2)","nullable":true,"metadata":{}},{"name":"a","type":{"type":"array","elementType":{"type":"array","elementType":"integer","containsNull":true},"containsNull":true},"nullable":true,"metadata":{}},{"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"struct","fields":[{"name":"x","type":"long","nullable":false,"metadata":{}},{"name":"v","type":{"type":"udt","class":"org.apache.spark.ml.linalg.VectorUDT","pyClass":"pyspark.ml.linalg.VectorUDT","sqlType":{"type":"struct","fields":[{"name":"type","type":"byte","nullable":false,"metadata":{}},{"name":"size","type":"integer","nullable":true,"metadata":{}},{"name":"indices","type":{"type":"array","elementType":"integer","containsNull":false},"nullable":true,"metadata":{}},{"name":"values","type":{"type":"array","elementType":"double","containsNull":false},"nullable":true,"metadata":{}}]}},"nullable":true,"metadata":{}}]},"valueContainsNull":false},"nullable":true,"metadata":{}}"#
    ), "{json}");
    assert_eq!(schema_from_json(&json).unwrap(), schema);
    assert_eq!(schema_from_proto(&schema_to_proto(&schema)).unwrap(), schema);
    assert_eq!(schema_from_text(&json).unwrap(), schema);
    assert_eq!(column_metadata(schema.field_with_name("mm").unwrap()), Some(r#"{"ml_attr":{"num_attrs":2}}"#));
}

#[test]
fn a_python_only_type_carries_its_storage() {
    let json = r#"{"type":"struct","fields":[{"name":"p","type":{"type":"udt","pyClass":"m.PointUDT","serializedClass":"gA==","sqlType":{"type":"array","elementType":"double","containsNull":false}},"nullable":true,"metadata":{}}]}"#;
    let schema = schema_from_json(json).unwrap();
    assert_eq!(schema_to_json(&schema), json);
    assert_eq!(schema_from_proto(&schema_to_proto(&schema)).unwrap(), schema);
    assert_eq!(simple_string(schema.field(0)), "pythonuserdefined");
}

#[test]
fn ddl_is_read_as_spark_reads_it() {
    for (text, expected) in [
        ("a int", "struct<a:int>"),
        ("a: int, b string", "struct<a:int,b:string>"),
        ("int", "int"),
        ("array<double>", "array<double>"),
        ("struct<a:int,b:string not null comment 'x'>", "struct<a:int,b:string>"),
        ("a decimal, b dec(5), c numeric(7,3)", "struct<a:decimal(10,0),b:decimal(5,0),c:decimal(7,3)>"),
        (
            "c interval day to second, d interval year, e interval hour to minute, f interval",
            "struct<c:interval day to second,d:interval year,e:interval hour to minute,f:interval>",
        ),
        ("a map<string,array<int>> COMMENT 'it''s'", "struct<a:map<string,array<int>>>"),
        ("`a b` long, `x``y` short", "struct<a b:bigint,x`y:smallint>"),
        ("a struct<>", "struct<a:struct<>>"),
        (
            "a real, b byte, c tinyint, d bigint, e void, f binary",
            "struct<a:float,b:tinyint,c:tinyint,d:bigint,e:void,f:binary>",
        ),
        ("a time(3), t time", "struct<a:time(3),t:time(6)>"),
        ("date int, time string", "struct<date:int,time:string>"),
        ("array int", "struct<array:int>"),
        ("1a int", "struct<1a:int>"),
        (
            "a timestamp without time zone, b timestamp with local time zone",
            "struct<a:timestamp_ntz,b:timestamp>",
        ),
    ] {
        assert_eq!(simple_string(&parse_ddl_or_type(text).unwrap()), expected, "{text}");
    }
    let noted = parse_ddl("a boolean NOT NULL COMMENT 'it''s'").unwrap();
    assert!(!noted.field(0).is_nullable());
    assert_eq!(column_metadata(noted.field(0)), Some(r#"{"comment":"it's"}"#));
}

#[test]
fn text_that_is_no_type_is_refused() {
    for text in [
        "a interval days x", "g bool", "a int b int", "decimal(39,1)", "a array", "a.b int", "a-b int", "a int NULL",
        "a struct<b:int", "`a int", "a int,", "a decimal(2,3)", "a char", "a time(7)", "é", "a ☃", "'x' int",
        "interval second to day", "a int COMMENT 5",
    ] {
        assert!(matches!(parse_ddl_or_type(text), Err(Error::InvalidDataType { .. })), "{text}");
    }
    for text in ["a variant", "a string collate UTF8_LCASE", "geometry"] {
        assert!(matches!(parse_ddl_or_type(text), Err(Error::Unsupported { .. })), "{text}");
    }
    let deep = format!("{}int{}", "array<".repeat(5000), ">".repeat(5000));
    assert!(matches!(parse_type(&deep), Err(Error::InvalidDataType { .. })));
    for json in ["", "[]", "{}", r#"{"type":"struct"}"#, r#"{"type":"struct","fields":[{"name":"a"}]}"#, "\"int\""] {
        assert!(matches!(schema_from_json(json), Err(Error::InvalidDataType { .. })), "{json}");
    }
}

#[test]
fn arrow_types_that_spark_lacks_are_read_as_what_holds_them() {
    for (data_type, expected) in [
        (DataType::UInt8, "smallint"),
        (DataType::UInt64, "decimal(20,0)"),
        (DataType::LargeUtf8, "string"),
        (DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), "string"),
        (DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, None), "timestamp_ntz"),
    ] {
        assert_eq!(simple_string(&Field::new("a", data_type, true)), expected);
    }
}
