//! Text beside what Spark 4.3 prints for the same values.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Field, Float64Type, Int32Type, IntervalMonthDayNano, Schema};
use udt::field::{matrix_data_type, matrix_field, vector_field};
use udt::{Vector, VectorBuilder};

use super::value::java_float;
use super::*;
use crate::Conf;
use crate::data_type::{parse_type, timestamp_type};

fn texts(array: ArrayRef, field: &Field, style: Style, conf: &Conf) -> Vec<Option<String>> {
    let texts = styled_column(&array, field, style, conf).unwrap();
    texts.iter().map(|text| text.map(str::to_string)).collect()
}

#[track_caller]
fn check(array: impl Array + 'static, type_name: &str, expected: &[&str]) {
    let field = parse_type(type_name).unwrap();
    let array: ArrayRef = Arc::new(array);
    let found: Vec<String> = texts(array, &field, Style::Show, &Conf::new()).into_iter().flatten().collect();
    assert_eq!(found, expected);
}

#[test]
fn numbers_print_as_in_java() {
    let floats = [1e-3f32, 3.4e38, 0.1, 1e10, 16777216.0, f32::NAN, -0.0, 1.17e-38];
    let expected = ["0.001", "3.4E38", "0.1", "1.0E10", "1.6777216E7", "NaN", "-0.0", "1.17E-38"];
    assert_eq!(floats.map(java_float), expected);
    check(Float64Array::from(vec![1e-5, 1e7, 1e22]), "double", &["1.0E-5", "1.0E7", "1.0E22"]);
    let decimals = Decimal128Array::from(vec![0, -150, 1]).with_precision_and_scale(10, 2).unwrap();
    check(decimals, "decimal(10,2)", &["0.00", "-1.50", "0.01"]);
    let scaled = Decimal128Array::from(vec![1]).with_precision_and_scale(7, 7).unwrap();
    check(scaled, "decimal(7,7)", &["0.0000001"]);
    check(Int8Array::from(vec![-128]), "tinyint", &["-128"]);
    check(UInt8Array::from(vec![255]), "smallint", &["255"]);
}

#[test]
fn dates_and_timestamps_print_without_needless_zeros() {
    check(
        Date32Array::from(vec![0, -719893, 3789548, -683369]),
        "date",
        &["1970-01-01", "-0001-01-01", "+12345-06-07", "0098-12-31"],
    );
    check(
        TimestampMicrosecondArray::from(vec![0, -1, 1_577_934_245_123_000, -62_135_596_800_000_000]),
        "timestamp_ntz",
        &["1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2020-01-02 03:04:05.123", "0001-01-01 00:00:00"],
    );
    check(Time64NanosecondArray::from(vec![45_296_001_200_000]), "time", &["12:34:56.0012"]);
    let extreme = TimestampMicrosecondArray::from(vec![i64::MAX, i64::MIN]).with_timezone("UTC");
    let extreme = texts(Arc::new(extreme), &Field::new("", timestamp_type(), true), Style::Cast, &Conf::new());
    assert_eq!(extreme[0].as_deref(), Some("+294247-01-10 04:00:54.775807"));
}

#[test]
fn instants_are_shown_in_the_session_time_zone() {
    let mut conf = Conf::new();
    conf.set("spark.sql.session.timeZone", "America/New_York").unwrap();
    let array = TimestampMicrosecondArray::from(vec![0, -5_364_662_400_000_000]).with_timezone("UTC");
    let found = texts(Arc::new(array), &Field::new("", timestamp_type(), true), Style::Cast, &conf);
    let found: Vec<&str> = found.iter().flatten().map(String::as_str).collect();
    assert_eq!(found, ["1969-12-31 19:00:00", "1799-12-31 19:03:58"]);
}

#[test]
fn intervals_print_by_their_units() {
    let micros = DurationMicrosecondArray::from(vec![-93_784_500_000, 0]);
    for (units, expected) in [
        ("day to second", ["INTERVAL '-1 02:03:04.5' DAY TO SECOND", "INTERVAL '0 00:00:00' DAY TO SECOND"]),
        ("day", ["INTERVAL '-1' DAY", "INTERVAL '0' DAY"]),
        ("hour", ["INTERVAL '-26' HOUR", "INTERVAL '00' HOUR"]),
        ("hour to minute", ["INTERVAL '-26:03' HOUR TO MINUTE", "INTERVAL '00:00' HOUR TO MINUTE"]),
        ("second", ["INTERVAL '-93784.5' SECOND", "INTERVAL '00' SECOND"]),
    ] {
        check(micros.clone(), &format!("interval {units}"), &expected);
    }
    let months = IntervalYearMonthArray::from(vec![14, -13]);
    for (units, expected) in [
        ("year to month", ["INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '-1-1' YEAR TO MONTH"]),
        ("month", ["INTERVAL '14' MONTH", "INTERVAL '-13' MONTH"]),
        ("year", ["INTERVAL '1' YEAR", "INTERVAL '-1' YEAR"]),
    ] {
        check(months.clone(), &format!("interval {units}"), &expected);
    }
    check(
        IntervalMonthDayNanoArray::from(vec![
            IntervalMonthDayNano::new(14, 25, 18_367_500_000_000),
            IntervalMonthDayNano::new(0, 0, 0),
            IntervalMonthDayNano::new(-10, 0, 0),
            IntervalMonthDayNano::new(0, 1, -7_204_500_000_000 + 3_780_000_000_000),
            IntervalMonthDayNano::new(0, 0, -1000),
        ]),
        "interval",
        &[
            "1 years 2 months 25 days 5 hours 6 minutes 7.5 seconds",
            "0 seconds",
            "-10 months",
            "1 days -57 minutes -4.5 seconds",
            "-0.000001 seconds",
        ],
    );
}

#[test]
fn nested_values_show_their_nulls_as_the_style_wants() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None, Some(3)]), None]);
    let field = parse_type("array<int>").unwrap();
    let list: ArrayRef = Arc::new(list);
    let conf = Conf::new();
    assert_eq!(texts(list.clone(), &field, Style::Show, &conf), [Some("[1, NULL, 3]".into()), None]);
    assert_eq!(texts(list.slice(0, 1), &field, Style::Cast, &conf), [Some("[1, null, 3]".into())]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("a");
    map.values().append_value(1);
    map.keys().append_value("b");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(true).unwrap();
    check(map.finish(), "map<string,int>", &["{a -> 1, b -> NULL}", "{}"]);
    let parts: Vec<(Arc<Field>, ArrayRef)> = vec![
        (Arc::new(Field::new("x", DataType::Int32, true)), Arc::new(Int32Array::from(vec![1]))),
        (Arc::new(Field::new("n", DataType::Null, true)), Arc::new(NullArray::new(1))),
        (Arc::new(Field::new("b", DataType::Binary, true)), Arc::new(BinaryArray::from(vec![&b"AB"[..]]))),
    ];
    let rows: ArrayRef = Arc::new(StructArray::from(parts));
    let field = parse_type("struct<x:int,n:void,b:binary>").unwrap();
    assert_eq!(texts(rows.clone(), &field, Style::Show, &conf), [Some("{1, NULL, [41 42]}".into())]);
    assert_eq!(texts(rows, &field, Style::Cast, &conf), [Some("{1, null, AB}".into())]);
}

#[test]
fn vectors_and_matrices_print_as_spark_prints_them() {
    let mut builder = VectorBuilder::default();
    builder.append_vector(&Vector::Dense(vec![1.0, 2e10, f64::NAN]));
    builder.append_null();
    builder.append_sparse(3, &[0], &[1.0]);
    let found = texts(builder.finish(), &vector_field("v"), Style::Show, &Conf::new());
    assert_eq!(found, [Some("[1.0,2.0E10,NaN]".into()), None, Some("(3,[0],[1.0])".into())]);
    let list = |values: ArrayRef| -> ArrayRef {
        let element = Arc::new(Field::new("element", values.data_type().clone(), false));
        let offsets = arrow::buffer::OffsetBuffer::from_lengths([values.len()]);
        Arc::new(ListArray::new(element, offsets, values, None))
    };
    let DataType::Struct(fields) = matrix_data_type() else { panic!("a matrix is a struct") };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int8Array::from(vec![1])),
        Arc::new(Int32Array::from(vec![2])),
        Arc::new(Int32Array::from(vec![2])),
        list(Arc::new(PrimitiveArray::<Int32Type>::from(vec![0]))),
        list(Arc::new(PrimitiveArray::<Int32Type>::from(vec![0]))),
        list(Arc::new(PrimitiveArray::<Float64Type>::from(vec![1.0, 2.0, 3.0, 4.0]))),
        Arc::new(BooleanArray::from(vec![false])),
    ];
    let matrix: ArrayRef = Arc::new(StructArray::new(fields, columns, None));
    let found = texts(matrix, &matrix_field("m"), Style::Show, &Conf::new());
    assert_eq!(found, [Some("1.0  3.0  \n2.0  4.0  ".into())]);
}

fn frame() -> (Schema, RecordBatch) {
    let schema = Schema::new(vec![
        Field::new("b", DataType::Int32, true),
        Field::new("long name", DataType::Utf8, true),
        Field::new("列", DataType::Utf8, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(1), None])),
        Arc::new(StringArray::from(vec![Some("INTERVAL '1 02:03:04.5' DAY"), Some("a\nb")])),
        Arc::new(StringArray::from(vec![Some("字字"), None])),
    ];
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
    (schema, batch)
}

#[track_caller]
fn check_table(num_rows: i32, truncate: i32, vertical: bool, expected: &str) {
    let (schema, batch) = frame();
    let shown = show_string(&[batch], &schema, num_rows, truncate, vertical, &Conf::new()).unwrap();
    assert_eq!(shown, expected);
}

#[test]
fn a_table_is_right_aligned_when_cells_are_cut() {
    let expected = "\
+----+--------------------+----+
|   b|           long name|  列|
+----+--------------------+----+
|   1|INTERVAL '1 02:03...|字字|
|NULL|                a\\nb|NULL|
+----+--------------------+----+
";
    check_table(20, 20, false, expected);
}

#[test]
fn a_table_is_left_aligned_when_cells_are_whole() {
    let expected = "\
+---+---------------------------+----+
|b  |long name                  |列  |
+---+---------------------------+----+
|1  |INTERVAL '1 02:03:04.5' DAY|字字|
+---+---------------------------+----+
only showing top 1 row";
    check_table(1, 0, false, expected);
}

#[test]
fn rows_can_be_shown_one_below_the_other() {
    let expected = "\
-RECORD 0---------
 b         | 1    
 long name | IN   
 列        | 字字 
-RECORD 1---------
 b         | NU   
 long name | a\\   
 列        | NU   
";
    check_table(2, 2, true, expected);
}

#[test]
fn no_rows_still_have_a_header() {
    let expected = "\
+---+---------+---+
|  b|long name| 列|
+---+---------+---+
+---+---------+---+
only showing top 0 rows";
    check_table(-1, 20, false, expected);
    let schema = Schema::new(vec![Field::new("b", DataType::Int32, true)]);
    let empty = |vertical| show_string(&[], &schema, 20, 20, vertical, &Conf::new()).unwrap();
    assert_eq!(empty(false), "+---+\n|  b|\n+---+\n+---+\n");
    assert_eq!(empty(true), "(0 rows)");
}

#[test]
fn html_escapes_what_cells_hold() {
    let schema = Schema::new(vec![Field::new("<b>", DataType::Utf8, true)]);
    let column: ArrayRef = Arc::new(StringArray::from(vec!["<a>&\"x'", "y"]));
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![column]).unwrap();
    let expected = "<table border='1'>\n<tr><th>&lt;b&gt;</th></tr>\n<tr><td>&lt;a&gt;&amp;&quot;x'</td></tr>\n\
                    </table>\nonly showing top 1 row\n";
    assert_eq!(html_string(&[batch], &schema, 1, 20, &Conf::new()).unwrap(), expected);
}
