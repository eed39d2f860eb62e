//! Names against those that Spark 4.3 gave for the same expressions over a table `t`.

use super::{automatic_name, automatic_name_with};
use crate::message::{cast, column, function, integer, string};
use crate::parse_expression;
use spark_connect_proto::expression::cast::EvalMode;

/// An expression, a tab and its name, as real Spark answered.
const SPARK_NAMES: &str = include_str!("spark_names.txt");

#[test]
fn names_are_those_that_spark_gives() {
    let mut wrong = Vec::new();
    for line in SPARK_NAMES.lines() {
        let (text, expected) = line.split_once('\t').expect("a line without a tab");
        let found = match parse_expression(text) {
            Ok(expression) => {
                automatic_name_with(&expression, &|parts| usize::from(parts[0] == "t" && parts.len() > 1))
            }
            Err(error) => format!("error: {error}"),
        };
        if found != expected {
            wrong.push(format!("{text}: {found}, but Spark says {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_names_of_dataframe_expressions_follow_the_same_rules() {
    let sum = function("sum", vec![column(&["t", "a"])]);
    assert_eq!(automatic_name(&sum), "sum(a)");
    let cast_column = cast(column(&["a"]), "long".into(), EvalMode::Unspecified);
    assert_eq!(automatic_name(&cast_column), "a");
    assert_eq!(automatic_name(&function("+", vec![cast_column, integer(1)])), "(CAST(a AS BIGINT) + 1)");
    assert_eq!(automatic_name(&function("negative", vec![column(&["a"])])), "negative(a)");
    let case = function("when", vec![function(">", vec![column(&["a"]), integer(1)]), string("x")]);
    assert_eq!(automatic_name(&case), "CASE WHEN (a > 1) THEN x END");
}
