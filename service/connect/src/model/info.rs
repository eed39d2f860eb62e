//! What the functions tell of a version: metrics, losses, trials, features, weights, confusions.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use ml::tabular::RawType;
use ml::{Attribute, Value};
use spark_connect_proto::Relation;
use sql::model::Constant;

use super::stage::projection;
use super::Refusal;
use super::answer::Answer;
use super::document::{KeptConfusion, KeptMetric};
use super::evaluate;
use super::fit::{Encoders, Layout};
use super::loaded::Loaded;
use super::plan::Task;
use super::predict::{Arguments, inputs};
use super::rows::{Rows, find, names};
use super::train::{check_labels, keep_evaluation};
use crate::{Result, Session};

/// The feature that stands for the intercept.
const INTERCEPT: &str = "__intercept__";

fn unsupported(what: String) -> crate::Error {
    Refusal::UnsupportedOperation { what }.into()
}

/// `ml_evaluate`: over the rows of a relation, or as they were stored.
pub async fn evaluate(
    session: &Session,
    loaded: &Loaded,
    input: Option<&Relation>,
    arguments: &[(String, Constant)],
) -> Result<RecordBatch> {
    let arguments = Arguments::new(arguments)?;
    let Some(input) = input else {
        if loaded.document.metrics.is_empty() {
            let what = "ml_evaluate without a table of a model that was trained with NO SPLIT".to_string();
            return Err(unsupported(what));
        }
        if arguments.threshold.is_some() {
            return Err(unsupported("ml_evaluate with a threshold and without a table".into()));
        }
        return metrics(&loaded.document.metrics);
    };
    let transform = loaded.document.transform.as_ref();
    let projected = transform.map(|transform| transform.projected.as_slice()).unwrap_or_default();
    let input = projection(input.clone(), projected)?;
    let frame = Box::pin(session.engine.resolve(&input, session)).await?;
    let schema = frame.schema();
    let is_case_sensitive = session.engine.conf().case_sensitive();
    let features = inputs(loaded, &schema, is_case_sensitive)?;
    let label = &loaded.document.label.name;
    let Some(label_at) = find(&schema, label, is_case_sensitive) else {
        return Err(Refusal::ColumnNotFound { name: label.clone(), columns: names(&schema), place: None }.into());
    };
    let weight = match &loaded.document.weight {
        Some(weight) => find(&schema, weight, is_case_sensitive),
        None => None,
    };
    let rows = Rows::collect(session, &frame).await?;
    let layout = Layout { label: Some(label_at), weight, features };
    check_labels(&rows, &layout, loaded.document.classes.as_ref(), label)?;
    let encoders = Encoders {
        features: loaded.document.features.clone(),
        statistics: Vec::new(),
        classes: loaded.document.classes.clone(),
        class_weights: None,
        transform: loaded.document.transform.clone(),
        stages: loaded.stages.as_ref().clone(),
    };
    let (rows, layout) = encoders.apply(session, &layout, &rows).await?;
    let encoded = encoders.encode(&layout, &rows, false)?;
    let (task, num_classes) = (Task::named(&loaded.document.task), loaded.num_classes());
    if arguments.threshold.is_some() && num_classes != 2 {
        return Err(unsupported(format!("threshold of `{}` with {num_classes} classes", loaded.document.estimator)));
    }
    let evaluation =
        evaluate::evaluate(session, &loaded.model, &encoded, task, num_classes, arguments.threshold).await?;
    let (mut kept, mut confusion) = (Vec::new(), Vec::new());
    keep_evaluation(&evaluation, "input", None, loaded.document.classes.as_ref(), &mut kept, &mut confusion);
    metrics(&kept)
}

fn metrics(metrics: &[KeptMetric]) -> Result<RecordBatch> {
    Answer::new()
        .ints("trial_id", metrics.iter().map(|metric| metric.trial_id).collect())
        .texts("split", metrics.iter().map(|metric| Some(metric.split.clone())).collect())
        .texts("class", metrics.iter().map(|metric| metric.class.clone()).collect())
        .texts("metric", metrics.iter().map(|metric| Some(metric.metric.clone())).collect())
        .doubles("value", metrics.iter().map(|metric| Some(metric.value)).collect())
        .longs("rows", metrics.iter().map(|metric| i64::try_from(metric.rows).ok()).collect())
        .finish()
}

pub fn trainings(loaded: &Loaded) -> Result<RecordBatch> {
    let document = &loaded.document;
    let steps = &document.steps;
    let started = chrono::DateTime::parse_from_rfc3339(&document.started_at).ok();
    let at = |duration_ms: u64| {
        let since = chrono::Duration::milliseconds(i64::try_from(duration_ms).ok()?);
        Some((started? + since).to_rfc3339())
    };
    let long = |value: u64| i64::try_from(value).ok();
    Answer::new()
        .texts("training_id", vec![Some(document.training_id.clone()); steps.len()])
        .ints("trial_id", steps.iter().map(|step| step.trial_id).collect())
        .ints("fold", steps.iter().map(|step| step.fold).collect())
        .longs("iteration", steps.iter().map(|step| long(step.iteration)).collect())
        .doubles("train_loss", steps.iter().map(|step| Some(step.train_loss)).collect())
        .doubles("validation_loss", vec![None; steps.len()])
        .double_maps("metrics", vec![Default::default(); steps.len()])
        .doubles("learning_rate", vec![None; steps.len()])
        .doubles("rows_per_s", steps.iter().map(|step| step.rows_per_s).collect())
        .longs("duration_ms", steps.iter().map(|step| long(step.duration_ms)).collect())
        .times("at", steps.iter().map(|step| at(step.duration_ms)).collect())
        .finish()
}

pub fn trials(loaded: &Loaded) -> Result<RecordBatch> {
    let trials = &loaded.document.trials;
    let long = |value: u64| i64::try_from(value).ok();
    Answer::new()
        .ints("trial_id", trials.iter().map(|trial| Some(trial.trial_id)).collect())
        .texts("status", trials.iter().map(|trial| Some(trial.status.clone())).collect())
        .text_maps("params", trials.iter().map(|trial| trial.params.clone()).collect())
        .texts("metric", trials.iter().map(|trial| Some(trial.metric.clone())).collect())
        .doubles("value", trials.iter().map(|trial| trial.value).collect())
        .double_lists("fold_values", trials.iter().map(|trial| trial.fold_values.clone()).collect())
        .longs("iterations", trials.iter().map(|trial| long(trial.iterations)).collect())
        .flags("stopped_early", trials.iter().map(|trial| Some(trial.stopped_early)).collect())
        .flags("is_optimal", trials.iter().map(|trial| Some(trial.is_optimal)).collect())
        .longs("duration_ms", trials.iter().map(|trial| long(trial.duration_ms)).collect())
        .texts("error", trials.iter().map(|trial| trial.error.clone()).collect())
        .finish()
}

pub fn features(loaded: &Loaded) -> Result<RecordBatch> {
    let columns = &loaded.document.features.columns;
    let statistics = &loaded.document.statistics;
    let long = |value: u64| i64::try_from(value).ok();
    let role = |raw_type: RawType| match raw_type {
        RawType::Number => "numeric",
        RawType::Text | RawType::Boolean => "categorical",
        RawType::Numbers => "vector",
    };
    let top: Vec<&Vec<(String, u64)>> = statistics.iter().map(|statistics| &statistics.top_categories).collect();
    let values: StringArray =
        top.iter().flat_map(|levels| levels.iter()).map(|(level, _)| Some(level.as_str())).collect();
    let rows: Int64Array = top.iter().flat_map(|levels| levels.iter()).map(|(_, rows)| long(*rows)).collect();
    let parts: [ArrayRef; 2] = [Arc::new(values), Arc::new(rows)];
    Answer::new()
        .ints("trial_id", vec![None; columns.len()])
        .texts("feature", columns.iter().map(|column| Some(column.name.clone())).collect())
        .texts("data_type", columns.iter().map(|column| Some(column.data_type.clone())).collect())
        .texts("role", columns.iter().map(|column| Some(role(column.raw_type).to_string())).collect())
        .longs("rows", statistics.iter().map(|statistics| long(statistics.rows)).collect())
        .longs("null_rows", statistics.iter().map(|statistics| long(statistics.null_rows)).collect())
        .doubles("min", statistics.iter().map(|statistics| statistics.min).collect())
        .doubles("max", statistics.iter().map(|statistics| statistics.max).collect())
        .doubles("mean", statistics.iter().map(|statistics| statistics.mean).collect())
        .doubles("stddev", statistics.iter().map(|statistics| statistics.stddev).collect())
        .longs("categories", statistics.iter().map(|statistics| statistics.categories.and_then(long)).collect())
        .struct_lists("top_categories", top.iter().map(|levels| levels.len()).collect(), ["value", "rows"], parts)
        .doubles("importance", vec![None; columns.len()])
        .finish()
}

/// One weight of a linear model.
struct Weight {
    class: Option<String>,
    feature: String,
    category: Option<String>,
    weight: f64,
}

pub fn weights(loaded: &Loaded) -> Result<RecordBatch> {
    let rows = coefficients(loaded)?;
    Answer::new()
        .ints("trial_id", vec![None; rows.len()])
        .texts("class", rows.iter().map(|row| row.class.clone()).collect())
        .texts("feature", rows.iter().map(|row| Some(row.feature.clone())).collect())
        .texts("category", rows.iter().map(|row| row.category.clone()).collect())
        .doubles("weight", rows.iter().map(|row| Some(row.weight)).collect())
        .finish()
}

fn coefficients(loaded: &Loaded) -> Result<Vec<Weight>> {
    let refused = || {
        unsupported(format!("ml_weights is not supported for `{}`. Use ml_feature_info: it", loaded.document.estimator))
    };
    let fetch = |name: &str| match loaded.model.attribute(name, &[]) {
        Ok(Attribute::Value(value)) => Ok(value),
        _ => Err(refused()),
    };
    let elements = loaded.document.features.elements();
    let (matrix, intercepts): (Vec<Vec<f64>>, Vec<f64>) = match loaded.model.attribute("coefficientMatrix", &[]) {
        Ok(Attribute::Value(Value::Matrix(matrix))) => {
            let values = matrix.to_row_major();
            let width = matrix.num_cols().max(1);
            let Value::Vector(intercepts) = fetch("interceptVector")? else { return Err(refused()) };
            (values.chunks(width).map(<[f64]>::to_vec).collect(), intercepts.to_dense())
        }
        _ => {
            let (Value::Vector(weights), Value::Double(intercept)) = (fetch("coefficients")?, fetch("intercept")?)
            else {
                return Err(refused());
            };
            (vec![weights.to_dense()], vec![intercept])
        }
    };
    let classes = loaded.document.classes.as_ref();
    let mut rows = Vec::new();
    for (at, (weights, intercept)) in matrix.iter().zip(&intercepts).enumerate() {
        // two classes have one row of weights: those of the positive one
        let class =
            classes.and_then(|classes| if matrix.len() == 1 { classes.labels.get(1) } else { classes.labels.get(at) });
        for (element, weight) in elements.iter().zip(weights) {
            let (feature, category) = (element.feature.clone(), element.category.clone());
            rows.push(Weight { class: class.cloned(), feature, category, weight: *weight });
        }
        rows.push(Weight { class: class.cloned(), feature: INTERCEPT.into(), category: None, weight: *intercept });
    }
    Ok(rows)
}

pub fn confusion(loaded: &Loaded) -> Result<RecordBatch> {
    let document = &loaded.document;
    if document.classes.is_none() {
        return Err(unsupported(format!("ml_confusion_matrix of `{}`", document.estimator)));
    }
    let rows: &[KeptConfusion] = &document.confusion;
    Answer::new()
        .ints("trial_id", rows.iter().map(|row| row.trial_id).collect())
        .texts("split", rows.iter().map(|row| Some(row.split.clone())).collect())
        .texts("actual", rows.iter().map(|row| Some(row.actual.clone())).collect())
        .texts("predicted", rows.iter().map(|row| Some(row.predicted.clone())).collect())
        .longs("rows", rows.iter().map(|row| i64::try_from(row.rows).ok()).collect())
        .doubles("weight", rows.iter().map(|row| Some(row.weight)).collect())
        .finish()
}
