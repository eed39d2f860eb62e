//! A training, from rows to the files of a version: read once, shared out, encoded, fitted, measured.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{cast, concat, sort_to_indices};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::row::{RowConverter, SortField};
use bytes::Bytes;
use futures::TryStreamExt;
use ml::Model;
use ml::persist;
use ml::tabular::{Assignment, Classes, Encoding, FeatureColumn, Features, LabelError, Part, RawType, RowHashes};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use sql::model::Split;

use super::document::{
    Counts, Document, FILE, FORMAT, KeptColumn, KeptConfusion, KeptMetric, KeptStep, KeptWarning, MODEL_FOLDER,
};
use super::evaluate::{Evaluation, evaluate};
use super::fit::{self, Encoders, FitCall, Fitted, Layout};
use super::options::HandleInvalid;
use super::plan::{Task, TrainPlan};
use super::columns::{FeatureInput, raw_type};
use super::rows::Rows;
use super::stage::{self, HIDDEN, KeptTransform};
use super::store::Running;
use super::{Refusal, tune};
use crate::ml::fit::FitStep;
use crate::{Error, Operation, Result, Session};

/// The parts of the default split.
const FRACTIONS: [f64; 2] = [0.8, 0.2];
const ROWS_MIN: usize = 10;
const PART_ROWS_MIN: usize = 2;
/// A class of a smaller share gives a warning.
const CLASS_SHARE_MIN: f64 = 0.01;
/// The greatest integer up to which doubles are exact.
const EXACT_INTEGER_MAX: i64 = 1 << 53;

/// The rows of a training, shared out.
pub struct Prepared {
    pub layout: Layout,
    pub label: String,
    pub classes: Option<Classes>,
    pub train: Rows,
    pub validation: Option<Rows>,
    /// Where in VALIDATE ON's rows the columns are.
    pub validation_layout: Layout,
    pub test: Option<Rows>,
    pub skipped: u64,
    pub fingerprint: String,
    pub warnings: Vec<KeptWarning>,
}

impl Prepared {
    pub fn num_classes(&self) -> usize {
        self.classes.as_ref().map_or(0, |classes| classes.labels.len())
    }
}

/// Runs a plan. Cancelling the operation ends its gangs.
///
/// # Errors
/// Data that cannot be trained on; what the gangs say; [`Error::Cancelled`].
pub async fn train(
    session: &Arc<Session>,
    operation: &Arc<Operation>,
    running: &Running,
    plan: &TrainPlan,
    training_id: &str,
    started_at: &str,
) -> Result<(Document, registry::Files)> {
    let began = Instant::now();
    let prepared = operation.unless_cancelled(Box::pin(prepare(session, plan))).await?;
    running.enter("training", 0.1);
    let outcome = match &plan.tune {
        Some(search) => {
            Box::pin(tune::search(session, operation, running, plan, search, &prepared, training_id)).await?
        }
        None => Box::pin(one_fit(session, operation, plan, &prepared, training_id)).await?,
    };
    running.enter("evaluating", 0.9);
    let document =
        operation.unless_cancelled(Box::pin(document(session, plan, prepared, &outcome, training_id))).await?;
    let document = Document {
        started_at: started_at.to_string(),
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        created_by: session.user.clone(),
        ..document
    };
    let mut files = files(&document, &outcome.fitted.model).await?;
    files.extend(stage::files(&outcome.fitted.encoders.stages).await?);
    Ok((document, files))
}

/// What a fit, or a search of the best one, came to.
pub struct Outcome {
    pub fitted: Fitted,
    /// Of the validation part, before any refit.
    pub validation: Option<Evaluation>,
    pub steps: Vec<KeptStep>,
    pub trials: Vec<super::document::KeptTrial>,
    pub best_params: BTreeMap<String, String>,
    pub best_trial: Option<i32>,
    pub warnings: Vec<KeptWarning>,
}

pub fn kept_steps(steps: &[FitStep], trial_id: Option<i32>, fold: Option<i32>) -> impl Iterator<Item = KeptStep> + '_ {
    steps.iter().filter(|step| step.loss.is_finite()).map(move |step| KeptStep {
        trial_id,
        fold,
        iteration: step.step,
        train_loss: step.loss,
        rows_per_s: step.rows_per_s.filter(|rate| rate.is_finite()),
        duration_ms: u64::try_from(step.elapsed.as_millis()).unwrap_or(u64::MAX),
    })
}

async fn one_fit(
    session: &Arc<Session>,
    operation: &Arc<Operation>,
    plan: &TrainPlan,
    prepared: &Prepared,
    training_id: &str,
) -> Result<Outcome> {
    let learned = Learn { session, operation, plan, prepared, job_id: training_id, workers: plan.workers };
    let (encoders, encoded) = Box::pin(learned.from(&prepared.train)).await?;
    let call =
        FitCall { job_id: training_id.to_string(), operation, workers: plan.workers, params: &plan.settings.params };
    let fitted = fit::fit(session, plan, call, &Arc::new(encoders), &encoded).await?;
    let validation = validate(session, plan, prepared, &fitted).await?;
    let warnings = not_converged(plan, &fitted).into_iter().collect();
    let steps = kept_steps(&fitted.steps, None, None).collect();
    Ok(Outcome {
        fitted,
        validation,
        steps,
        trials: Vec::new(),
        best_params: BTreeMap::new(),
        best_trial: None,
        warnings,
    })
}

/// What learning from rows needs beside them.
pub struct Learn<'a> {
    pub session: &'a Arc<Session>,
    pub operation: &'a Operation,
    pub plan: &'a TrainPlan,
    pub prepared: &'a Prepared,
    /// The jobs of stages are named after it.
    pub job_id: &'a str,
    pub workers: usize,
}

impl Learn<'_> {
    /// Learns TRANSFORM's stages and the encoders from rows of the query; these rows come back encoded.
    ///
    /// # Errors
    /// Data that cannot be trained on; what the gangs of stages say.
    pub async fn from(&self, rows: &Rows) -> Result<(Encoders, Rows)> {
        let (plan, prepared) = (self.plan, self.prepared);
        let (classes, label) = (prepared.classes.as_ref(), &prepared.label);
        let Some(transform) = &plan.transform else {
            let inputs = &plan.columns.features;
            let encoders = fit::learn(&plan.settings, inputs, &prepared.layout, rows, classes, label)?;
            let encoded = encoders.encode(&prepared.layout, rows, true)?;
            return Ok((encoders, encoded));
        };
        let fitted =
            stage::fit(self.session, self.operation, &transform.stages, rows, self.job_id, self.workers).await?;
        let (stages, rows) = fitted;
        let layout = fit::transformed_layout(&transform.kept, &prepared.layout, &rows)?;
        let inputs = layout.features.iter().zip(&transform.names).map(|(at, name)| {
            let field = rows.schema.field(*at);
            let found = || Refusal::FeatureType { column: name.clone(), found: engine::data_type::sql_name(field) };
            Ok(FeatureInput {
                index: *at,
                name: name.clone(),
                data_type: engine::data_type::simple_string(field),
                raw_type: raw_type(field).ok_or_else(found)?,
            })
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let mut encoders = fit::learn(&plan.settings, &inputs, &layout, &rows, classes, label)?;
        let num_stages = stages.len();
        (encoders.stages, encoders.transform) = (stages, Some(KeptTransform { num_stages, ..transform.kept.clone() }));
        let encoded = encoders.encode(&layout, &rows, true)?;
        Ok((encoders, encoded))
    }
}

async fn validate(
    session: &Arc<Session>,
    plan: &TrainPlan,
    prepared: &Prepared,
    fitted: &Fitted,
) -> Result<Option<Evaluation>> {
    match &prepared.validation {
        Some(rows) => measured(session, plan, prepared, fitted, rows, &prepared.validation_layout).await.map(Some),
        None => Ok(None),
    }
}

/// Measures a fitted model on raw rows.
pub async fn measured(
    session: &Arc<Session>,
    plan: &TrainPlan,
    prepared: &Prepared,
    fitted: &Fitted,
    rows: &Rows,
    layout: &Layout,
) -> Result<Evaluation> {
    let (rows, layout) = fitted.encoders.apply(session, layout, rows).await?;
    let encoded = fitted.encoders.encode(&layout, &rows, false)?;
    let (task, num_classes) = (plan.trainable.task, prepared.num_classes());
    evaluate(session, &fitted.model, &encoded, task, num_classes, None).await
}

fn not_converged(plan: &TrainPlan, fitted: &Fitted) -> Option<KeptWarning> {
    let max_iter = match fitted.model.params().get("maxIter") {
        Some(ml::Value::Int(max_iter)) if *max_iter > 1 => u64::try_from(*max_iter).ok()?,
        _ => return None,
    };
    let last = fitted.steps.last()?.step;
    (last >= max_iter).then(|| {
        warning(
            "NOT_CONVERGED",
            format!("`{}` ended at max_iter = {max_iter} before it converged.", plan.estimator_name()),
        )
    })
}

pub fn warning(code: &str, message: String) -> KeptWarning {
    KeptWarning { code: code.into(), message }
}

/// Reads the rows, drops those that are to be dropped, and shares out the others.
async fn prepare(session: &Arc<Session>, plan: &TrainPlan) -> Result<Prepared> {
    let rows = Rows::collect(session, &plan.frame).await?;
    let total = rows.num_rows();
    let layout = Layout {
        label: plan.columns.label.as_ref().map(|label| label.index),
        weight: plan.columns.weight.as_ref().map(|weight| weight.index),
        features: plan.columns.features.iter().map(|feature| feature.index).collect(),
    };
    let Some(label) = &plan.columns.label else {
        return Err(Error::Bug { invariant: "estimators that SQL trains have a label" });
    };
    let mut dropped = vec![false; total];
    drop_null_labels(plan, &rows, label.index, &label.name, &mut dropped)?;
    if plan.settings.handle_invalid == HandleInvalid::Skip {
        drop_missing_features(plan, &rows, &layout, &mut dropped)?;
    }
    if let Some(weight) = &plan.columns.weight {
        check_weights(&weight.name, &rows.column(weight.index), total)?;
    }
    let skipped = dropped.iter().filter(|dropped| **dropped).count() as u64;
    let kept = rows.filter(|row| !dropped[row])?;
    let classes = match plan.trainable.task {
        Task::Classification => Some(find_classes(plan, &kept, label.index, &label.name)?),
        Task::Regression => None,
    };
    let hashes = hashes(plan, &kept)?;
    let total_hash = hashes.hashes.iter().fold(0u64, |sum, hash| sum.wrapping_add(*hash));
    let mut prepared = Prepared {
        layout: layout.clone(),
        label: label.name.clone(),
        classes,
        train: kept.clone(),
        validation: None,
        validation_layout: layout,
        test: None,
        skipped,
        fingerprint: format!("{total_hash:016x}-{}", kept.num_rows()),
        warnings: Vec::new(),
    };
    match &plan.validate {
        Some(frame) => validation_rows(session, plan, frame, &mut prepared).await?,
        None => share_out(plan, &kept, &hashes, &mut prepared)?,
    }
    check_train(&prepared)?;
    prepared.warnings = data_warnings(plan, &prepared, &kept, skipped)?;
    Ok(prepared)
}

/// A label that is null, or not a number, is none.
fn is_null_label(column: &ArrayRef) -> Result<Vec<bool>> {
    if column.data_type().is_floating() {
        let values = cast(column, &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>();
        return Ok(values.iter().map(|value| value.is_none_or(f64::is_nan)).collect());
    }
    Ok((0..column.len()).map(|row| column.is_null(row)).collect())
}

fn drop_null_labels(plan: &TrainPlan, rows: &Rows, index: usize, name: &str, dropped: &mut [bool]) -> Result<()> {
    let total = dropped.len() as u64;
    let (mut nulls, mut infinite, mut start) = (0, 0, 0);
    for column in rows.column(index) {
        for (row, is_null) in is_null_label(&column)?.into_iter().enumerate() {
            dropped[start + row] |= is_null;
            nulls += u64::from(is_null);
        }
        if column.data_type().is_floating() {
            let values = cast(&column, &DataType::Float64)?;
            infinite +=
                values.as_primitive::<Float64Type>().iter().flatten().filter(|v| v.is_infinite()).count() as u64;
        }
        start += column.len();
    }
    if infinite > 0 {
        return Err(Refusal::Infinite { column: name.into(), rows: infinite, total }.into());
    }
    if nulls > 0 && !plan.settings.skips_null_labels {
        return Err(Refusal::NullLabel { label: name.into(), rows: nulls, total }.into());
    }
    Ok(())
}

fn drop_missing_features(plan: &TrainPlan, rows: &Rows, layout: &Layout, dropped: &mut [bool]) -> Result<()> {
    let columns = plan.columns.features.iter().map(|feature| FeatureColumn {
        name: feature.name.clone(),
        data_type: feature.data_type.clone(),
        raw_type: feature.raw_type,
        encoding: Encoding::Numbers { size: 0 },
    });
    let features = Features { columns: columns.collect() };
    let mut start = 0;
    for batch in &rows.batches {
        let columns: Vec<ArrayRef> = layout.features.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        for (row, is_missing) in features.missing(&columns, batch.num_rows())?.iter().enumerate() {
            dropped[start + row] |= is_missing.unwrap_or(false);
        }
        start += batch.num_rows();
    }
    Ok(())
}

fn check_weights(name: &str, columns: &[ArrayRef], total: usize) -> Result<()> {
    let mut invalid = 0;
    for column in columns {
        invalid += fit::invalid_weights(column)?;
    }
    match invalid {
        0 => Ok(()),
        rows => Err(Refusal::InvalidWeight { column: name.into(), rows, total: total as u64 }.into()),
    }
}

fn find_classes(plan: &TrainPlan, rows: &Rows, index: usize, name: &str) -> Result<Classes> {
    let labels = Classes::distinct(&rows.column(index))?;
    if labels.len() < 2 {
        return Err(Refusal::SingleClass { label: name.into(), classes: labels }.into());
    }
    let max = plan.settings.classes_max;
    let shown = labels.clone();
    Classes::new(labels, plan.settings.positive_label.as_deref(), max).map_err(|error| match error {
        LabelError::TooMany { classes } => Refusal::TooManyClasses { label: name.into(), found: classes, max }.into(),
        LabelError::UnknownPositive { label } => {
            Refusal::UnknownClass { label: name.into(), class: label, classes: shown }.into()
        }
    })
}

/// What rows are ranked by: their content, the keys that stay together, or the column they are in order of.
fn hashes(plan: &TrainPlan, rows: &Rows) -> Result<RowHashes> {
    if let Some(Split::Sequential { .. }) = &plan.split {
        let index = plan.columns.split.first().map_or(0, |column| column.index);
        return ranks(&rows.column(index));
    }
    let keys: Vec<usize> = match &plan.split {
        Some(Split::Random { by, .. }) if !by.is_empty() => {
            plan.columns.split.iter().map(|column| column.index).collect()
        }
        // what TRANSFORM adds says nothing more of a row
        _ => (0..rows.schema.fields().len()).filter(|at| !rows.schema.field(*at).name().starts_with(HIDDEN)).collect(),
    };
    let mut hashes = RowHashes::default();
    for batch in &rows.batches {
        let columns: Vec<ArrayRef> = keys.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        hashes.add(&columns, batch.num_rows(), plan.seed)?;
    }
    Ok(hashes)
}

/// The place of each row's value among all values; equal values share one.
fn ranks(columns: &[ArrayRef]) -> Result<RowHashes> {
    let parts: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
    if parts.is_empty() {
        return Ok(RowHashes::default());
    }
    let values = concat(&parts)?;
    let order = sort_to_indices(&values, None, None)?;
    let rows = RowConverter::new(vec![SortField::new(values.data_type().clone())])?.convert_columns(&[values])?;
    let mut hashes = vec![0; order.len()];
    let mut rank = 0u64;
    for (position, at) in order.values().iter().enumerate() {
        let at = *at as usize;
        if position > 0 && rows.row(order.value(position - 1) as usize) != rows.row(at) {
            rank += 1;
        }
        hashes[at] = rank;
    }
    Ok(RowHashes { hashes })
}

fn share_out(plan: &TrainPlan, rows: &Rows, hashes: &RowHashes, prepared: &mut Prepared) -> Result<()> {
    let total = rows.num_rows();
    let mut assignment = Assignment { parts: vec![Part::Train; total] };
    let fractions: &[f64] = match &plan.split {
        Some(Split::None { .. }) => return Ok(()),
        Some(Split::Column { column, .. }) => {
            let index = plan.columns.split.first().map_or(0, |column| column.index);
            assignment.parts = parts_of_column(&rows.column(index), &column.text, column.place)?;
            &[]
        }
        Some(Split::Random { fractions, is_stratified, .. }) => {
            let classes = if *is_stratified { class_numbers(prepared, rows)? } else { vec![0; total] };
            assignment.cut(hashes, fractions, |row| classes[row]);
            fractions
        }
        Some(Split::Sequential { fractions, .. }) => {
            assignment.cut(hashes, fractions, |_| 0);
            fractions
        }
        None => {
            assignment.cut(hashes, &FRACTIONS, |_| 0);
            &FRACTIONS
        }
    };
    let [train, validation, test] = [Part::Train, Part::Validation, Part::Test].map(|part| assignment.count(part));
    let has_test = fractions.len() == 3 || test > 0;
    let is_too_small = train < PART_ROWS_MIN || validation < PART_ROWS_MIN || has_test && test < PART_ROWS_MIN;
    if is_too_small || !fractions.is_empty() && total < ROWS_MIN {
        return Err(Refusal::SplitTooSmall { rows: total, train, validation, test }.into());
    }
    let part = |part: Part| rows.filter(|row| assignment.parts[row] == part);
    prepared.train = part(Part::Train)?;
    prepared.validation = Some(part(Part::Validation)?);
    prepared.test = if has_test { Some(part(Part::Test)?) } else { None };
    Ok(())
}

/// The class of each row; 0 where labels are no classes.
fn class_numbers(prepared: &Prepared, rows: &Rows) -> Result<Vec<usize>> {
    let (Some(classes), Some(label)) = (&prepared.classes, prepared.layout.label) else {
        return Ok(vec![0; rows.num_rows()]);
    };
    let mut numbers = Vec::with_capacity(rows.num_rows());
    for column in rows.column(label) {
        numbers.extend(classes.encode(&column)?.iter().map(|number| number.unwrap_or(0.0) as usize));
    }
    Ok(numbers)
}

fn parts_of_column(columns: &[ArrayRef], name: &str, place: sql::model::Place) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let refused = |found: String| Refusal::SplitValue { column: name.into(), found, place };
    for column in columns {
        let is_boolean = column.data_type() == &DataType::Boolean;
        if !is_boolean && !matches!(column.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
            return Err(refused(format!("a column of type {}", column.data_type())).into());
        }
        let texts = cast(column, &DataType::Utf8)?;
        for text in texts.as_string::<i32>() {
            parts.push(match text.map(str::to_ascii_uppercase).as_deref() {
                Some("TRUE") if is_boolean => Part::Validation,
                Some("FALSE") if is_boolean => Part::Train,
                Some("TRAIN") if !is_boolean => Part::Train,
                Some("VALIDATE") if !is_boolean => Part::Validation,
                Some("TEST") if !is_boolean => Part::Test,
                None => return Err(refused("NULL".into()).into()),
                Some(_) => return Err(refused(format!("'{}'", text.unwrap_or_default())).into()),
            });
        }
    }
    Ok(parts)
}

async fn validation_rows(
    session: &Arc<Session>,
    plan: &TrainPlan,
    frame: &engine::embedded::Frame,
    prepared: &mut Prepared,
) -> Result<()> {
    let rows = Rows::collect(session, frame).await?;
    let is_case_sensitive = session.engine.conf().case_sensitive();
    let at = |name: &str| super::rows::find(&rows.schema, name, is_case_sensitive).unwrap_or(0);
    let layout = Layout {
        label: plan.columns.label.as_ref().map(|label| at(&label.name)),
        weight: plan.columns.weight.as_ref().map(|weight| at(&weight.name)),
        features: plan.columns.features.iter().map(|feature| at(&feature.name)).collect(),
    };
    for (feature, at) in plan.columns.features.iter().zip(&layout.features) {
        let field = rows.schema.field(*at);
        if !feature.raw_type.takes(field) {
            let found = engine::data_type::sql_name(field);
            return Err(Refusal::FeatureType { column: feature.name.clone(), found }.into());
        }
    }
    check_labels(&rows, &layout, prepared.classes.as_ref(), &prepared.label)?;
    (prepared.validation, prepared.validation_layout) = (Some(rows), layout);
    Ok(())
}

/// Labels of rows to measure on: none is missing, and each is a class.
///
/// # Errors
/// [`Refusal::NullLabel`], [`Refusal::UnknownClass`]
pub fn check_labels(rows: &Rows, layout: &Layout, classes: Option<&Classes>, name: &str) -> Result<()> {
    let Some(index) = layout.label else { return Ok(()) };
    let mut nulls = 0;
    for column in rows.column(index) {
        let is_null = is_null_label(&column)?;
        nulls += is_null.iter().filter(|is_null| **is_null).count() as u64;
        let Some(classes) = classes else { continue };
        let numbers = classes.encode(&column)?;
        let unknown = (0..column.len()).find(|row| numbers.is_null(*row) && !is_null[*row]);
        if let Some(row) = unknown {
            let texts = cast(&column, &DataType::Utf8)?;
            let class = texts.as_string::<i32>().value(row).to_string();
            let classes = classes.labels.clone();
            return Err(Refusal::UnknownClass { label: name.into(), class, classes }.into());
        }
    }
    match nulls {
        0 => Ok(()),
        nulls => Err(Refusal::NullLabel { label: name.into(), rows: nulls, total: rows.num_rows() as u64 }.into()),
    }
}

/// A part without a class teaches nothing about it; of one class there is nothing to teach.
fn check_train(prepared: &Prepared) -> Result<()> {
    let Some(classes) = &prepared.classes else { return Ok(()) };
    let counts = fit::class_counts(classes, &prepared.layout, &prepared.train)?;
    let present: Vec<String> =
        classes.labels.iter().zip(&counts).filter(|(_, count)| **count > 0).map(|(label, _)| label.clone()).collect();
    match present.len() {
        0 | 1 => Err(Refusal::SingleClass { label: prepared.label.clone(), classes: present }.into()),
        _ => Ok(()),
    }
}

fn data_warnings(plan: &TrainPlan, prepared: &Prepared, rows: &Rows, skipped: u64) -> Result<Vec<KeptWarning>> {
    let mut warnings = Vec::new();
    if skipped > 0 {
        warnings
            .push(warning("ROWS_SKIPPED", format!("{skipped} rows were skipped: a label or a feature was missing.")));
    }
    if let Some(classes) = &prepared.classes {
        let counts = fit::class_counts(classes, &prepared.layout, rows)?;
        let total = counts.iter().sum::<u64>().max(1) as f64;
        for (label, count) in classes.labels.iter().zip(counts) {
            if (count as f64) < CLASS_SHARE_MIN * total {
                warnings.push(warning("CLASS_IMBALANCE", format!("Class '{label}' has {count} of {total} rows.")));
            }
        }
    }
    for feature in plan.columns.features.iter().filter(|feature| feature.raw_type == RawType::Number) {
        for column in rows.column(feature.index).iter().filter(|column| column.data_type() == &DataType::Int64) {
            let values = column.as_primitive::<Int64Type>();
            if values.iter().flatten().any(|value| value.unsigned_abs() > EXACT_INTEGER_MAX as u64) {
                let message = format!("Feature `{}` has integers that a double does not hold exactly.", feature.name);
                warnings.push(warning("PRECISION_LOSS", message));
                break;
            }
        }
    }
    Ok(warnings)
}

/// What the training rows say of single features.
fn feature_warnings(encoders: &Encoders, handle_invalid: HandleInvalid) -> Vec<KeptWarning> {
    let mut warnings = Vec::new();
    let mut missing = Vec::new();
    for (column, statistics) in encoders.features.columns.iter().zip(&encoders.statistics) {
        let name = &column.name;
        let is_constant = match column.raw_type {
            RawType::Number => {
                statistics.min.is_some() && statistics.min == statistics.max && statistics.null_rows == 0
            }
            RawType::Text | RawType::Boolean => {
                statistics.categories == Some(1) && statistics.null_rows == 0 || statistics.categories == Some(0)
            }
            RawType::Numbers => false,
        };
        if is_constant {
            warnings.push(warning("CONSTANT_FEATURE", format!("Feature `{name}` has one value in all training rows.")));
        }
        if column.raw_type == RawType::Text && statistics.rows > 2 && statistics.categories == Some(statistics.rows) {
            let message = format!("Feature `{name}` has another value in each training row, as an id has.");
            warnings.push(warning("UNIQUE_FEATURE", message));
        }
        if column.raw_type == RawType::Number && statistics.null_rows > 0 {
            missing.push(format!("`{name}` in {} of {} rows", statistics.null_rows, statistics.rows));
        }
    }
    if !missing.is_empty() && handle_invalid == HandleInvalid::Keep {
        let message = format!(
            "Numbers are missing, and were replaced by the mean of their feature beside a flag: {}.",
            missing.join(", ")
        );
        warnings.push(warning("MISSING_VALUES", message));
    }
    warnings
}

async fn document(
    session: &Arc<Session>,
    plan: &TrainPlan,
    prepared: Prepared,
    outcome: &Outcome,
    training_id: &str,
) -> Result<Document> {
    let fitted = &outcome.fitted;
    let mut metrics = Vec::new();
    let mut confusion = Vec::new();
    if let Some(evaluation) = &outcome.validation {
        keep_evaluation(
            evaluation,
            "validation",
            outcome.best_trial,
            prepared.classes.as_ref(),
            &mut metrics,
            &mut confusion,
        );
    }
    if let Some(rows) = &prepared.test {
        let evaluation = measured(session, plan, &prepared, fitted, rows, &prepared.layout).await?;
        keep_evaluation(&evaluation, "test", None, prepared.classes.as_ref(), &mut metrics, &mut confusion);
    }
    let mut warnings = prepared.warnings.clone();
    warnings.extend(feature_warnings(&fitted.encoders, plan.settings.handle_invalid));
    warnings.extend(outcome.warnings.clone());
    let count = |rows: &Option<Rows>| rows.as_ref().map_or(0, |rows| rows.num_rows() as u64);
    let Some(label) = &plan.columns.label else {
        return Err(Error::Bug { invariant: "estimators that SQL trains have a label" });
    };
    Ok(Document {
        format: FORMAT,
        training_id: training_id.to_string(),
        estimator: plan.estimator_name(),
        class: plan.trainable.operator.class.into(),
        task: plan.trainable.task.name().into(),
        options: plan.settings.shown.clone(),
        label: KeptColumn::of(&label.field),
        classes: prepared.classes.clone(),
        weight: plan.columns.weight.as_ref().map(|weight| weight.name.clone()),
        features: fitted.encoders.features.clone(),
        statistics: fitted.encoders.statistics.clone(),
        transform: fitted.encoders.transform.clone(),
        handle_invalid: plan.settings.handle_invalid.name().into(),
        split: split_in_words(plan),
        seed: plan.seed,
        counts: Counts {
            train: prepared.train.num_rows() as u64,
            validation: count(&prepared.validation),
            test: count(&prepared.test),
            skipped: prepared.skipped,
        },
        metrics,
        confusion,
        steps: outcome.steps.clone(),
        trials: outcome.trials.clone(),
        best_params: outcome.best_params.clone(),
        warnings,
        statement: plan.statement.clone(),
        workers: u32::try_from(plan.workers).unwrap_or(u32::MAX),
        started_at: String::new(),
        duration_ms: 0,
        created_by: String::new(),
        software: BTreeMap::from([
            ("phalanx".to_string(), env!("CARGO_PKG_VERSION").to_string()),
            ("spark_layout".to_string(), persist::SPARK_VERSION.to_string()),
        ]),
        fingerprint: prepared.fingerprint,
    })
}

pub fn split_in_words(plan: &TrainPlan) -> String {
    let shown = |fractions: &[f64]| fractions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match &plan.split {
        _ if plan.validate.is_some() => "VALIDATE ON".into(),
        Some(Split::None { .. }) => "NO SPLIT".into(),
        Some(Split::Column { column, .. }) => format!("SPLIT BY COLUMN {}", column.text),
        Some(Split::Sequential { column, fractions, .. }) => {
            format!("SPLIT SEQUENTIAL ON {} ({})", column.text, shown(fractions))
        }
        Some(Split::Random { fractions, by, is_stratified, .. }) => {
            let keys: Vec<&str> = by.iter().map(|word| word.text.as_str()).collect();
            let by = if keys.is_empty() { String::new() } else { format!(" BY ({})", keys.join(", ")) };
            let stratified = if *is_stratified { " STRATIFIED" } else { "" };
            format!("SPLIT RANDOM({}){by}{stratified} SEED {}", shown(fractions), plan.seed)
        }
        None => format!("SPLIT RANDOM({}) SEED {}", shown(&FRACTIONS), plan.seed),
    }
}

/// Turns an evaluation into what is kept of it.
pub fn keep_evaluation(
    evaluation: &Evaluation,
    split: &str,
    trial_id: Option<i32>,
    classes: Option<&Classes>,
    metrics: &mut Vec<KeptMetric>,
    confusion: &mut Vec<KeptConfusion>,
) {
    let label = |number: usize| {
        let label = classes.and_then(|classes| classes.labels.get(number));
        label.cloned().unwrap_or_else(|| number.to_string())
    };
    metrics.extend(evaluation.metrics.iter().map(|(class, metric, value)| KeptMetric {
        trial_id,
        split: split.into(),
        class: class.map(label),
        metric: metric.to_string(),
        value: *value,
        rows: evaluation.rows,
    }));
    confusion.extend(evaluation.confusion.iter().map(|((actual, predicted), (rows, weight))| KeptConfusion {
        trial_id,
        split: split.into(),
        actual: label(*actual),
        predicted: label(*predicted),
        rows: *rows,
        weight: *weight,
    }));
}

/// The files of a version: the document, and the estimator's model in Spark ML's own layout.
pub async fn files(document: &Document, model: &Arc<dyn Model>) -> Result<registry::Files> {
    let store = InMemory::new();
    let prefix = object_store::path::Path::from(MODEL_FOLDER);
    let saved = model.save()?;
    persist::write_operator(&store, &prefix, model.class(), model.params(), &saved, false).await?;
    let mut files = vec![(FILE.to_string(), Bytes::from(document.encode()?))];
    files.extend(all_files(&store).await?);
    Ok(files)
}

/// Everything in a store, by path.
pub async fn all_files(store: &dyn ObjectStore) -> Result<registry::Files> {
    let failed = |source: object_store::Error| Error::Ml(source.into());
    let objects: Vec<_> = store.list(None).try_collect().await.map_err(failed)?;
    let mut files = Vec::with_capacity(objects.len());
    for object in objects {
        let content = store.get(&object.location).await.map_err(failed)?.bytes().await.map_err(failed)?;
        files.push((object.location.to_string(), content));
    }
    files.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(files)
}
