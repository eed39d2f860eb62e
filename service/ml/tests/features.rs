//! Feature operators, evaluators and saved models against real Spark 4.3: `tests/gold/features.json`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "features/fit.rs"]
mod fit;
#[path = "features/gang.rs"]
mod gang;
#[path = "features/saved.rs"]
mod saved;
#[path = "features/table.rs"]
mod table;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::record_batch::RecordBatch;
use ml::{Attribute, Kind, Model, Value};
use serde_json::{Value as Json, json};
use table::{batch, is_close, number};

pub fn gold_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/gold")
}

fn gold() -> Json {
    serde_json::from_slice(&std::fs::read(gold_dir().join("features.json")).unwrap()).unwrap()
}

/// What differs from Spark in the table that a case gives.
fn difference(found: &RecordBatch, case: &Json) -> Option<String> {
    let (expected, is_assembled) = (&case["output"], case["class"] == "VectorAssembler");
    let rows = expected["rows"].as_array().unwrap();
    if found.num_rows() != rows.len() {
        return Some(format!("{} rows, expected {}", found.num_rows(), rows.len()));
    }
    for (i, json) in expected["schema"].as_array().unwrap().iter().enumerate() {
        let expected = table::field(json);
        let name = expected.name();
        let Ok(index) = found.schema().index_of(name) else { return Some(format!("no column {name}")) };
        let (field, column) = (found.schema().field(index).clone(), found.column(index));
        if field.data_type() != expected.data_type() {
            return Some(format!("{name} is {}, expected {}", field.data_type(), expected.data_type()));
        }
        let metadata = |field: &arrow::datatypes::Field| -> Json {
            udt::field::column_metadata(field).map_or(json!({}), |text| serde_json::from_str(text).unwrap())
        };
        if name != "id" && field.is_nullable() != expected.is_nullable() {
            return Some(format!("{name} is nullable: {}", field.is_nullable()));
        }
        // Spark reads a row to learn a vector's size; here an assembled column is then left without attributes
        let is_left_out = is_assembled && metadata(&field) == json!({});
        if !is_left_out && !is_close(&metadata(&field), &metadata(&expected)) {
            return Some(format!("{name} has metadata {}, expected {}", metadata(&field), metadata(&expected)));
        }
        for (row, expected) in rows.iter().enumerate() {
            let value = table::value(column, row);
            if !is_close(&value, &expected[i]) {
                return Some(format!("{name} in row {row} is {value}, expected {}", expected[i]));
            }
        }
    }
    None
}

/// What a fitted model knows of itself, as the gold file writes it.
fn attribute(model: &Arc<dyn Model>, name: &str) -> Json {
    fn json_of(value: &Value) -> Json {
        match value {
            Value::Array { values, .. } => values.iter().map(json_of).collect(),
            Value::Vector(vector) => table::vector_json(vector),
            Value::Int(v) => json!(v),
            Value::Long(v) => json!(v),
            Value::Double(v) => json!(v),
            Value::String(v) => json!(v),
            other => panic!("{other}"),
        }
    }
    match model.attribute(name, &[]) {
        Ok(Attribute::Value(found)) => json_of(&found),
        Ok(Attribute::Rows(rows)) => {
            let row = |row| rows.columns().iter().map(|column: &ArrayRef| table::value(column, row)).collect::<Json>();
            json!({"rows": (0..rows.num_rows()).map(row).collect::<Vec<Json>>()})
        }
        Ok(Attribute::Model(_)) => json!("a model"),
        Err(error) => json!({"error": error.to_string()}),
    }
}

fn model_difference(model: &Arc<dyn Model>, case: &Json) -> Option<String> {
    for (name, expected) in case["fitted"].as_object().into_iter().flatten() {
        let found = attribute(model, name);
        let expected = if name == "surrogateDF" { &json!({"rows": expected["rows"]}) } else { expected };
        if !is_close(&found, expected) {
            return Some(format!("{name} is {found}, expected {expected}"));
        }
    }
    let expected = case["toString"].as_str().unwrap().replace(case["modelUid"].as_str().unwrap(), &model.params().uid);
    (model.describe() != expected).then(|| format!("it says {:?}, expected {expected:?}", model.describe()))
}

fn run(case: &Json, tables: &Json, world_size: usize) -> Result<(), String> {
    let rows = |key: &str| batch(&tables[case[key].as_str().unwrap()]);
    let outcome = || -> ml::Result<(Option<Arc<dyn Model>>, RecordBatch)> {
        let operator = fit::operator(case["class"].as_str().unwrap())?;
        let params = fit::params(operator, &case["params"])?;
        match operator.kind {
            Kind::Estimator(estimator) => {
                let model = fit::fit(operator, estimator, &params, &rows("table"), world_size)?;
                let output = fit::apply(model.transform(model.params(), &rows("applied").schema())?, rows("applied"))?;
                Ok((Some(model), output))
            }
            Kind::Transformer(transformer) => {
                let steps = transformer.transform(&params, &rows("applied").schema())?;
                Ok((None, fit::apply(steps, rows("applied"))?))
            }
            Kind::Evaluator(_) => panic!("an evaluator transforms nothing"),
        }
    };
    match (outcome(), case.get("error")) {
        (Ok((model, output)), None) => {
            let differs = model.and_then(|model| model_difference(&model, case));
            differs.or_else(|| difference(&output, case)).map_or(Ok(()), Err)
        }
        (Err(error), Some(expected)) => {
            let expected = expected.as_str().unwrap();
            let found = match &error {
                ml::Error::Train { source } => source.to_string(),
                // told in the words of every other missing column
                ml::Error::ColumnNotFound { name, .. } if expected.contains(name.as_str()) => expected.to_string(),
                error => error.to_string(),
            };
            if found == expected { Ok(()) } else { Err(format!("error {found:?}, expected {expected:?}")) }
        }
        (Ok(_), Some(expected)) => Err(format!("no error, expected {expected}")),
        (Err(error), None) => Err(format!("error {error}")),
    }
}

#[test]
fn features_are_sparks_on_every_number_of_ranks() {
    let gold = gold();
    let mut failures = Vec::new();
    for case in gold["cases"].as_array().unwrap().iter().filter(|case| case.get("params").is_some()) {
        for world_size in 1..=3 {
            if let Err(difference) = run(case, &gold["tables"], world_size) {
                failures.push(format!("{} on {world_size}: {difference}", case["name"].as_str().unwrap()));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn metrics_are_sparks_however_the_rows_are_split() {
    let gold = gold();
    let mut failures = Vec::new();
    for case in gold["metrics"].as_array().unwrap() {
        let operator = fit::operator(case["class"].as_str().unwrap()).unwrap();
        let Kind::Evaluator(evaluator) = operator.kind else { panic!("{} is no evaluator", operator.class) };
        let params = fit::params(operator, &case["params"]).unwrap();
        let rows = batch(&gold["tables"][case["table"].as_str().unwrap()]);
        let columns = evaluator.columns(&params, &rows.schema()).unwrap();
        let columns: Vec<usize> = columns.iter().map(|name| rows.schema().index_of(name).unwrap()).collect();
        let rows = rows.project(&columns).unwrap();
        let third = rows.num_rows() / 3;
        let mut first = evaluator.accumulator(&params).unwrap();
        first.update(&rows.slice(0, third)).unwrap();
        first.merge(evaluator.accumulator(&params).unwrap()).unwrap();
        let mut second = evaluator.accumulator(&params).unwrap();
        second.update(&rows.slice(third, third)).unwrap();
        second.update(&rows.slice(2 * third, rows.num_rows() - 2 * third)).unwrap();
        first.merge(second).unwrap();
        let found = evaluator.evaluate(&params, first).unwrap();
        let expected = number(&case["metric"]).unwrap();
        if !is_close(&json!(found), &json!(expected)) {
            failures.push(format!("{} {}: {found}, expected {expected}", operator.short_name(), case["params"]));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn models_that_spark_saved_transform_as_there() {
    let gold = gold();
    let mut failures = Vec::new();
    for case in gold["cases"].as_array().unwrap() {
        let Some(name) = case["saved"].as_str() else { continue };
        let outcome = || -> ml::Result<Option<String>> {
            let model = saved::load(&gold_dir().join("spark_models").join(name))?;
            let rows = batch(&gold["tables"][case["applied"].as_str().unwrap()]);
            let output = fit::apply(model.transform(model.params(), &rows.schema())?, rows.clone())?;
            // and once more after a save of ours
            let again = saved::save_and_load(&model)?;
            let output_again = fit::apply(again.transform(again.params(), &rows.schema())?, rows)?;
            let differs = model_difference(&model, case).or_else(|| difference(&output, case));
            let of_the_copy = || model_difference(&again, case).or_else(|| difference(&output_again, case));
            Ok(differs.or_else(of_the_copy))
        };
        match outcome() {
            Ok(None) => {}
            Ok(Some(difference)) => failures.push(format!("{name}: {difference}")),
            Err(error) => failures.push(format!("{name}: error {error}")),
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
