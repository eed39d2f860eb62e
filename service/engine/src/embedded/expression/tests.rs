//! Expressions as text, against what Spark gives for them.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use datafusion::common::DFSchema;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlanBuilder;

use super::{Scope, resolve};
use crate::embedded::{Frame, ResolveContext};
use crate::{Conf, Error, data_type, show};

/// Each line: an expression, its type, and its value as text, `!` and a class for an error. Observed with Spark 4.3 in the
/// zone America/Los_Angeles.
const OBSERVED: &str = include_str!("tests/observed.txt");

fn context() -> ResolveContext {
    let mut conf = Conf::new();
    conf.set("spark.sql.session.timeZone", "America/Los_Angeles").unwrap();
    ResolveContext::new(conf)
}

/// The type of an expression over no columns, and its value as text or an error.
fn evaluate(text: &str) -> Result<(String, Result<Option<String>, Error>), Error> {
    let context = context();
    let state = SessionStateBuilder::new().with_default_features().build();
    let frame = Frame { plan: LogicalPlanBuilder::empty(true).build()?, columns: vec![] };
    let expression = sql::parse_expression(text)?;
    let resolved = resolve(&context, &state, &expression, &Scope::new(&frame))?;
    let run = || {
        let physical = state.create_physical_expr(resolved.expr.clone(), &DFSchema::empty())?;
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
        let array = physical.evaluate(&batch)?.into_array(1)?;
        assert_eq!(array.data_type(), resolved.field.data_type(), "{text} has the type it says");
        assert!(resolved.field.is_nullable() || array.null_count() == 0, "{text} is null though it says it is not");
        let column: arrow::array::ArrayRef = Arc::new(show::string_column(&array, &resolved.field, &context.conf)?);
        let texts = column.as_string::<i32>();
        Ok((!texts.is_null(0)).then(|| texts.value(0).to_string()))
    };
    Ok((data_type::simple_string(&resolved.field), run()))
}

fn class(error: &Error) -> String {
    match error {
        Error::Row { class, .. } => (*class).into(),
        Error::UserRaised { .. } => "USER_RAISED_EXCEPTION".into(),
        Error::DatatypeMismatch { kind, .. } => format!("DATATYPE_MISMATCH.{kind}"),
        Error::WrongNumArgs { .. } => "WRONG_NUM_ARGS.WITHOUT_SUGGESTION".into(),
        Error::UnresolvedRoutine { .. } => "UNRESOLVED_ROUTINE".into(),
        other => format!("{other:?}"),
    }
}

#[test]
fn expressions_give_what_spark_gives() {
    let mut wrong = Vec::new();
    for line in OBSERVED.lines() {
        let [text, expected_type, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let found = std::panic::catch_unwind(|| match evaluate(text) {
            Ok((found_type, Ok(value))) => (found_type, value.unwrap_or("NULL".into())),
            Ok((found_type, Err(error))) => (found_type, format!("!{}", class(&error))),
            Err(error) => ("!".into(), class(&error)),
        });
        let found = found.unwrap_or_else(|_| ("panic".into(), String::new()));
        // Java's own functions of doubles may differ from the C library's in the last place.
        let is_near = match (found.1.parse::<f64>(), expected.parse::<f64>()) {
            (Ok(found), Ok(expected)) => (found - expected).abs() <= 2.0 * f64::EPSILON * expected.abs(),
            _ => false,
        };
        if found.0 != expected_type || (found.1 != expected && !(is_near && expected_type == "double")) {
            wrong.push(format!("{text}\n   expected {expected_type} {expected}\n   found    {} {}", found.0, found.1));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), OBSERVED.lines().count(), wrong.join("\n"));
}

mod frames;
