//! Metrics of a model on rows, by the evaluators that clients have.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use engine::embedded::extension::PlanTransform;
use ml::{Kind, Model, Params, Value};

use super::fit::{LABEL, WEIGHT};
use super::plan::Task;
use super::rows::{Rows, transformed};
use crate::ml::transform::steps;
use crate::{Error, Result, Session};

/// What a model did on rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evaluation {
    /// By name; the class where it is of one only, as its number.
    pub metrics: Vec<(Option<usize>, &'static str, f64)>,
    /// (label, prediction) to rows and weight.
    pub confusion: BTreeMap<(usize, usize), (u64, f64)>,
    pub rows: u64,
}

impl Evaluation {
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(class, known, _)| class.is_none() && *known == name).map(|(_, _, value)| *value)
    }
}

const BINARY: &str = "org.apache.spark.ml.evaluation.BinaryClassificationEvaluator";
const MULTICLASS: &str = "org.apache.spark.ml.evaluation.MulticlassClassificationEvaluator";
const REGRESSION: &str = "org.apache.spark.ml.evaluation.RegressionEvaluator";

/// A metric: its name in SQL, whether more is better, and the evaluator that computes it under which name.
pub struct MetricSpec {
    pub name: &'static str,
    pub is_maximized: bool,
    evaluator: &'static str,
    spark_name: &'static str,
}

const fn metric(
    name: &'static str,
    is_maximized: bool,
    evaluator: &'static str,
    spark_name: &'static str,
) -> MetricSpec {
    MetricSpec { name, is_maximized, evaluator, spark_name }
}

const CLASSIFICATION_METRICS: &[MetricSpec] = &[
    metric("auc", true, BINARY, "areaUnderROC"),
    metric("area_under_pr", true, BINARY, "areaUnderPR"),
    metric("accuracy", true, MULTICLASS, "accuracy"),
    metric("f1", true, MULTICLASS, "f1"),
    metric("precision", true, MULTICLASS, "weightedPrecision"),
    metric("recall", true, MULTICLASS, "weightedRecall"),
    metric("log_loss", false, MULTICLASS, "logLoss"),
    metric("balanced_accuracy", true, MULTICLASS, ""),
];
const REGRESSION_METRICS: &[MetricSpec] = &[
    metric("rmse", false, REGRESSION, "rmse"),
    metric("mse", false, REGRESSION, "mse"),
    metric("mae", false, REGRESSION, "mae"),
    metric("r2", true, REGRESSION, "r2"),
];

/// The metrics of a task. The first one is searched by where none is named; `auc` needs two classes.
pub fn metrics(task: Task) -> &'static [MetricSpec] {
    match task {
        Task::Classification => CLASSIFICATION_METRICS,
        Task::Regression => REGRESSION_METRICS,
    }
}

/// Applies a model to encoded rows and measures it. `num_classes` is 0 for regression; `threshold` moves the cut between
/// two classes.
///
/// # Errors
/// What the model or an evaluator says of the rows.
pub async fn evaluate(
    session: &Session,
    model: &Arc<dyn Model>,
    encoded: &Rows,
    task: Task,
    num_classes: usize,
    threshold: Option<f64>,
) -> Result<Evaluation> {
    let frame = encoded.frame(session).await?;
    let applied = Arc::clone(model);
    let changes = threshold.map(|threshold| ("threshold".to_string(), Value::Double(threshold)));
    let params = model.params().with(model.operator(), changes.into_iter().collect())?;
    let plan_transform: PlanTransform =
        Box::new(move |schema| steps(schema, |schema| applied.transform(&params, schema)));
    let predictions = transformed(session, frame, plan_transform).await?;
    let predictions = Rows::collect(session, &predictions).await?;
    tokio::task::yield_now().await;
    measure(&predictions, task, num_classes)
}

fn measure(predictions: &Rows, task: Task, num_classes: usize) -> Result<Evaluation> {
    let rows = predictions.num_rows() as u64;
    let mut evaluation = Evaluation { rows, ..Evaluation::default() };
    if rows == 0 {
        return Ok(evaluation);
    }
    if task == Task::Classification {
        evaluation.confusion = confusion(predictions)?;
        per_class(&mut evaluation, num_classes);
    }
    for spec in metrics(task) {
        if spec.evaluator == BINARY && num_classes != 2 {
            continue;
        }
        let value = match (spec.name, num_classes) {
            ("balanced_accuracy", _) => balanced_accuracy(&evaluation, num_classes),
            // of two classes, the positive one's
            ("precision" | "recall" | "f1", 2) => of_positive(&evaluation, spec.name),
            _ => Some(by_evaluator(predictions, spec)?),
        };
        if let Some(value) = value.filter(|value| value.is_finite()) {
            evaluation.metrics.push((None, spec.name, value));
        }
    }
    Ok(evaluation)
}

fn by_evaluator(predictions: &Rows, spec: &MetricSpec) -> Result<f64> {
    let operator = ml::catalog::operator(spec.evaluator)?;
    let Kind::Evaluator(evaluator) = operator.kind else {
        return Err(Error::Bug { invariant: "an evaluator's class is one's" });
    };
    let mut params = BTreeMap::from([("metricName".to_string(), Value::String(spec.spark_name.into()))]);
    if predictions.schema.column_with_name(WEIGHT).is_some() {
        params.insert("weightCol".into(), Value::String(WEIGHT.into()));
    }
    let params = Params::new(operator, "metric", params)?;
    let columns = evaluator.columns(&params, &predictions.schema)?;
    let indices: Vec<usize> = columns
        .iter()
        .map(|name| predictions.schema.index_of(name))
        .collect::<Result<_, arrow::error::ArrowError>>()?;
    let mut accumulator = evaluator.accumulator(&params)?;
    for batch in &predictions.batches {
        accumulator.update(&batch.project(&indices)?)?;
    }
    Ok(evaluator.evaluate(&params, accumulator)?)
}

fn numbers(batch: &RecordBatch, name: &str) -> Result<Option<ArrayRef>> {
    match batch.column_by_name(name) {
        Some(column) => Ok(Some(cast(column, &DataType::Float64)?)),
        None => Ok(None),
    }
}

fn confusion(predictions: &Rows) -> Result<BTreeMap<(usize, usize), (u64, f64)>> {
    let mut confusion: BTreeMap<(usize, usize), (u64, f64)> = BTreeMap::new();
    for batch in &predictions.batches {
        let (Some(labels), Some(predicted)) = (numbers(batch, LABEL)?, numbers(batch, "prediction")?) else {
            return Err(Error::Bug { invariant: "predictions have a label and a prediction" });
        };
        let weights = numbers(batch, WEIGHT)?;
        let (labels, predicted) = (labels.as_primitive::<Float64Type>(), predicted.as_primitive::<Float64Type>());
        for row in 0..batch.num_rows() {
            // a label that training has not seen is no class: it counts against the model
            let label = if labels.is_null(row) { usize::MAX } else { labels.value(row) as usize };
            let weight = weights.as_ref().map_or(1.0, |weights| weights.as_primitive::<Float64Type>().value(row));
            let cell = confusion.entry((label, predicted.value(row) as usize)).or_default();
            cell.0 += 1;
            cell.1 += weight;
        }
    }
    Ok(confusion)
}

/// Weights of a class: right ones, all of the label, all of the prediction.
fn sums(evaluation: &Evaluation, class: usize) -> (f64, f64, f64) {
    let sum = |keep: &dyn Fn(usize, usize) -> bool| {
        let cells = evaluation.confusion.iter().filter(|((label, predicted), _)| keep(*label, *predicted));
        cells.map(|(_, (_, weight))| weight).sum::<f64>()
    };
    (
        sum(&|label, predicted| label == class && predicted == class),
        sum(&|label, _| label == class),
        sum(&|_, predicted| predicted == class),
    )
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn of_positive(evaluation: &Evaluation, name: &str) -> Option<f64> {
    let (right, labels, predictions) = sums(evaluation, 1);
    match name {
        "recall" => ratio(right, labels),
        "precision" => Some(ratio(right, predictions).unwrap_or(0.0)),
        _ => Some(ratio(2.0 * right, labels + predictions).unwrap_or(0.0)),
    }
}

fn balanced_accuracy(evaluation: &Evaluation, num_classes: usize) -> Option<f64> {
    let recalls: Vec<f64> = (0..num_classes)
        .filter_map(|class| {
            let (right, labels, _) = sums(evaluation, class);
            ratio(right, labels)
        })
        .collect();
    ratio(recalls.iter().sum(), recalls.len() as f64)
}

fn per_class(evaluation: &mut Evaluation, num_classes: usize) {
    for class in 0..num_classes {
        let (right, labels, predictions) = sums(evaluation, class);
        if let Some(recall) = ratio(right, labels) {
            evaluation.metrics.push((Some(class), "recall", recall));
        }
        if let Some(precision) = ratio(right, predictions) {
            evaluation.metrics.push((Some(class), "precision", precision));
        }
    }
}
