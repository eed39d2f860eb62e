//! `LogisticRegression` and `LinearRegression` against what real Spark 4.3 fitted: `tests/gold/linear_models.json`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "linear_models/fit.rs"]
mod fit;
#[path = "linear_models/gold.rs"]
mod gold;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::Float64Type;
use arrow::record_batch::RecordBatch;
use fit::{append_columns, fit, fit_batches, measure, observed};
use gold::{Case, Cases, Data, Footing, doubles, number};
use ml::{Argument, Attribute, Kind, Model, Summary, Value};
use serde_json::{Value as Json, json};
use udt::{Matrix, Vector, VectorArray, VectorBuilder};

/// The largest difference in proportion to the largest value.
fn distance(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len(), "{found:?} and {expected:?}");
    let scale = expected.iter().fold(0.0_f64, |scale, e| scale.max(e.abs())).max(1e-12);
    let differences = found.iter().zip(expected).map(|(f, e)| if f == e { 0.0 } else { (f - e).abs() / scale });
    differences.fold(0.0, f64::max)
}

fn value(model: &Arc<dyn Model>, name: &str) -> Value {
    match model.attribute(name, &[]).unwrap() {
        Attribute::Value(value) => value,
        _ => panic!("{name} is no value"),
    }
}

fn vector(model: &Arc<dyn Model>, name: &str) -> Vector {
    match value(model, name) {
        Value::Vector(vector) => vector,
        other => panic!("{name} is {other}"),
    }
}

fn history(model: &Arc<dyn Model>) -> Vec<f64> {
    measure(&model.summary().unwrap(), "objectiveHistory", &[])
}

/// How fits compare with Spark's.
#[derive(Default)]
struct Report {
    same_iterations: usize,
    cases: usize,
    failures: Vec<String>,
}

/// Objectives of this many first steps must be Spark's; rounding errors need longer to grow.
const FIRST_STEPS: usize = 8;

impl Report {
    fn check(&mut self, case: &Case, found: &[f64], history: &[f64]) {
        let expected = case.parameters();
        let expected_history = doubles(&case.result["objectiveHistory"]);
        let (objective, expected_objective) =
            (history[history.len() - 1], expected_history[expected_history.len() - 1]);
        let worse = (objective - expected_objective) / expected_objective.abs().max(1e-9);
        let coefficients = distance(found, &expected);
        let steps = history.len().min(expected_history.len()).min(FIRST_STEPS);
        let path = distance(&history[..steps], &expected_history[..steps]);
        let (iterations, expected_iterations) = (history.len() - 1, expected_history.len() - 1);
        let line = format!(
            "{} {}: coefficients {coefficients:.1e}, objective {worse:.1e}, path {path:.1e}, {iterations} of {expected_iterations} iterations",
            case.data, case.params
        );
        println!("{line}");
        self.cases += 1;
        self.same_iterations += usize::from(iterations == expected_iterations);
        let is_wrong = match case.footing() {
            Footing::Firm => coefficients > 1e-4 || worse > 1e-9,
            Footing::Flat => worse > 1e-6,
            // what is left to compare is the path, and that the end is not another
            Footing::Unfinished => worse > 5e-2,
            Footing::Balanced => coefficients > 1e-2 || worse > 1e-6,
        };
        let has_left_the_path = path > 1e-6 && case.footing() != Footing::Balanced;
        if is_wrong || has_left_the_path {
            self.failures.push(line);
        }
    }

    fn assert(&self, same_iterations_min: usize) {
        println!("{} of {} took as many iterations as Spark", self.same_iterations, self.cases);
        assert!(self.failures.is_empty(), "{} of {}:\n{}", self.failures.len(), self.cases, self.failures.join("\n"));
        assert!(self.same_iterations >= same_iterations_min, "{} of {}", self.same_iterations, self.cases);
    }
}

/// Coefficients, intercepts and scale, as [`Case::parameters`] has them.
fn parameters(model: &Arc<dyn Model>) -> Vec<f64> {
    if model.operator().short_name() == "LinearRegression" {
        let mut parameters = vector(model, "coefficients").to_dense();
        for name in ["intercept", "scale"] {
            let Value::Double(v) = value(model, name) else { panic!("{name} is no double") };
            parameters.push(v);
        }
        return parameters;
    }
    let Value::Matrix(matrix) = value(model, "coefficientMatrix") else { panic!("no matrix") };
    let mut parameters = matrix.to_row_major();
    parameters.extend(vector(model, "interceptVector").to_dense());
    parameters
}

fn all_rows(data: &Data) -> RecordBatch {
    data.batch(0..data.num_rows())
}

#[test]
fn logistic_regression_is_that_of_spark() {
    let mut report = Report::default();
    for case in Cases::read("logistic") {
        let model = fit("LogisticRegression", &case, &Data::read(&case.data), 1).unwrap();
        if case.footing() == Footing::Firm {
            let Value::Matrix(matrix) = value(&model, "coefficientMatrix") else { panic!("no matrix") };
            let storage = if matches!(matrix, Matrix::Dense { .. }) { "dense" } else { "sparse" };
            assert_eq!(case.result["coefficientStorage"], storage, "{case:?}");
        }
        let is_dense = matches!(vector(&model, "interceptVector"), Vector::Dense(_));
        assert_eq!(case.result["interceptStorage"], if is_dense { "dense" } else { "sparse" }, "{case:?}");
        report.check(&case, &parameters(&model), &history(&model));
    }
    report.assert(145);
}

#[test]
fn linear_regression_is_that_of_spark() {
    let mut report = Report::default();
    for case in Cases::read("linear") {
        let model = fit("LinearRegression", &case, &Data::read(&case.data), 1).unwrap();
        let is_dense = matches!(vector(&model, "coefficients"), Vector::Dense(_));
        assert_eq!(case.result["coefficientStorage"], if is_dense { "dense" } else { "sparse" }, "{case:?}");
        report.check(&case, &parameters(&model), &history(&model));
    }
    report.assert(197);
}

#[test]
fn any_number_of_ranks_fits_the_same_model() {
    for (kind, operator) in [("logistic", "LogisticRegression"), ("linear", "LinearRegression")] {
        for case in Cases::read(kind).into_iter().filter(|case| case.footing() == Footing::Firm).step_by(5) {
            let data = Data::read(&case.data);
            let alone = fit(operator, &case, &data, 1).unwrap();
            // bounded intercepts keep features from being centered, which leaves the minimum shallow
            let tolerance = if case.params.get("lowerBoundsOnIntercepts").is_some() { 1e-4 } else { 1e-6 };
            for world_size in [2, 4] {
                let model = fit(operator, &case, &data, world_size).unwrap();
                let difference = distance(&parameters(&model), &parameters(&alone));
                assert!(difference <= tolerance, "{world_size} ranks: {difference:e} {} {}", case.data, case.params);
            }
        }
    }
}

#[test]
fn summaries_are_those_of_spark() {
    for (kind, operator) in [("logistic", "LogisticRegression"), ("linear", "LinearRegression")] {
        for case in Cases::read(kind)
            .into_iter()
            .filter(|case| case.footing() == Footing::Firm && case.result.contains_key("summary"))
        {
            let data = Data::read(&case.data);
            let model = fit(operator, &case, &data, 1).unwrap();
            let predictions = append_columns(&model, &all_rows(&data));
            let summary = observed(model.summary().unwrap(), &predictions);
            for (name, expected) in case.result["summary"].as_object().unwrap() {
                check_measure(&summary, name, expected, &case);
            }
        }
    }
}

/// Compares a measure, or a curve, of a summary. Measures by threshold count rows, so they are equal or of another row.
fn check_measure(summary: &Arc<dyn Summary>, name: &str, expected: &Json, case: &Case) {
    let arguments = match name {
        "fMeasureByLabel" => vec![Argument::Value(Value::Double(0.5))],
        "weightedFMeasure" => vec![Argument::Value(Value::Double(2.0))],
        _ => Vec::new(),
    };
    let found = measure(summary, name, &arguments);
    let expected: Vec<f64> = match expected {
        Json::Array(rows) if rows.first().is_some_and(Json::is_array) => rows.iter().flat_map(doubles).collect(),
        Json::Array(_) => doubles(expected),
        one => vec![number(one)],
    };
    let difference = distance(&found, &expected);
    // p-values near zero are what is left of a subtraction from 1
    let tolerance = if name == "pValues" { 1e-7 } else { 1e-5 };
    assert!(difference <= tolerance, "{name}: {difference:e}, {found:?} and {expected:?}, {case:?}");
}

#[test]
fn predictions_are_those_of_spark() {
    let cases = Cases::read("logistic");
    for case in
        cases.into_iter().filter(|case| case.footing() == Footing::Firm && case.result.contains_key("predictions"))
    {
        let data = Data::read(&case.data);
        let model = fit("LogisticRegression", &case, &data, 1).unwrap();
        let columns = append_columns(&model, &all_rows(&data));
        let expected = case.result["predictions"].as_array().unwrap();
        for (column, position) in [("rawPrediction", 0), ("probability", 1)] {
            let vectors = VectorArray::try_new(columns.column_by_name(column).unwrap().as_ref()).unwrap();
            for (row, expected) in expected.iter().enumerate() {
                let found = vectors.row(row).unwrap().to_vector().to_dense();
                let difference = distance(&found, &doubles(&expected[position]));
                assert!(difference <= 1e-4, "{column} of row {row}: {difference:e} {case:?}");
            }
        }
        let predictions = columns.column_by_name("prediction").unwrap().as_primitive::<Float64Type>();
        for (row, expected) in expected.iter().enumerate() {
            assert_eq!(predictions.value(row), number(&expected[2]), "row {row} of {case:?}");
        }
    }
}

#[test]
fn a_saved_model_loads_as_it_was() {
    for (kind, operator) in [("logistic", "LogisticRegression"), ("linear", "LinearRegression")] {
        for case in Cases::read(kind).into_iter().filter(Case::has_converged).step_by(11) {
            let model = fit(operator, &case, &Data::read(&case.data), 1).unwrap();
            let Kind::Estimator(estimator) = model.operator().kind else { panic!("a model has an estimator") };
            let loaded = estimator.load(model.operator(), model.params(), &model.save().unwrap()).unwrap();
            assert_eq!(parameters(&loaded), parameters(&model));
            assert_eq!(loaded.describe(), model.describe());
            assert!(loaded.summary().is_none());
        }
    }
}

fn rows(labels: &[f64], width: usize, features: Vec<f64>) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Float64Array::from(labels.to_vec())),
        Arc::new(Float64Array::from(vec![1.0; labels.len()])),
        VectorBuilder::from_dense_rows(width, features),
    ];
    RecordBatch::try_new(Data::schema(), columns).unwrap()
}

fn message(operator: &str, params: Json, parts: Vec<Vec<RecordBatch>>) -> String {
    match fit_batches(operator, &params, &Data::schema(), parts) {
        Ok(_) => panic!("expected an error"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_single_label_is_predicted_for_certain() {
    for (label, intercept) in [(1.0, f64::INFINITY), (0.0, f64::NEG_INFINITY)] {
        let part = vec![rows(&[label; 3], 1, vec![1.0, 2.0, 3.0])];
        let model = fit_batches("LogisticRegression", &json!({}), &Data::schema(), vec![part.clone()]).unwrap();
        assert_eq!(parameters(&model), vec![0.0, intercept]);
        assert_eq!(history(&model), vec![0.0]);
        let columns = append_columns(&model, &part[0]);
        assert_eq!(columns.column_by_name("prediction").unwrap().as_primitive::<Float64Type>().value(0), label);
    }
}

#[test]
fn what_cannot_be_trained_on_is_named_on_every_rank() {
    let good = || vec![rows(&[0.0, 1.0], 1, vec![1.0, 2.0])];
    for (operator, bad, expected) in [
        (
            "LogisticRegression",
            rows(&[0.0, 0.5], 1, vec![1.0, 2.0]),
            "Labels MUST be Integers, but got 0.5 (1 row of column label)",
        ),
        (
            "LogisticRegression",
            rows(&[-1.0, -2.0], 1, vec![1.0, 2.0]),
            "Labels MUST be in [0, 2147483647), but got -1.0 (2 rows",
        ),
        (
            "LogisticRegression",
            rows(&[f64::NAN, 1.0], 1, vec![1.0, 2.0]),
            "Labels MUST NOT be Null or NaN (1 row of column label)",
        ),
        (
            "LinearRegression",
            rows(&[f64::INFINITY, 1.0], 1, vec![1.0, 2.0]),
            "Labels MUST NOT be Infinity, but got Infinity",
        ),
        (
            "LinearRegression",
            rows(&[0.0, 1.0], 1, vec![f64::NAN, 2.0]),
            "Vector values MUST NOT be NaN or Infinity, but got [NaN]",
        ),
        (
            "LinearRegression",
            rows(&[0.0, 1.0], 2, vec![1.0; 4]),
            "Dimensions mismatch: expected vectors of 1 values, found one of 2",
        ),
    ] {
        let found = message(operator, json!({}), vec![good(), vec![bad]]);
        assert!(found.contains(expected), "{found}");
    }
    assert!(message("LinearRegression", json!({}), vec![Vec::new(), Vec::new()]).contains("empty dataset"));
    let params = json!({"family": "binomial"});
    let three = vec![rows(&[0.0, 1.0, 2.0], 1, vec![1.0, 2.0, 3.0])];
    assert!(
        message("LogisticRegression", params, vec![three]).contains("only supports 1 or 2 outcome classes but found 3")
    );
    let params = json!({"lowerBoundsOnCoefficients": [[0.0, 0.0]]});
    assert!(message("LogisticRegression", params, vec![good()]).contains("found: (1, 2)"));
}
