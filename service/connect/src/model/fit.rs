//! Rows to a model: features and classes learned from them, rows encoded with these, and an estimator fitted.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use ml::tabular::{Classes, FeatureFit, FeatureStatistics, Features};
use ml::{Model, Params, ml_attr};

use super::Refusal;
use super::columns::FeatureInput;
use super::options::{ClassWeight, HandleInvalid, Settings};
use super::plan::{Task, TrainPlan};
use super::rows::{Rows, find};
use super::stage::{self, KeptTransform, Stages};
use crate::ml::fit::{FitJob, FitStep, FittedModel, fit_model};
use crate::{Error, Operation, Result, Session};

/// The columns that estimators read, under the names of their defaults.
pub const FEATURES: &str = "features";
pub const LABEL: &str = "label";
pub const WEIGHT: &str = "weight";

/// What rows are read with: where label, weight and features are in them.
#[derive(Debug, Clone)]
pub struct Layout {
    pub label: Option<usize>,
    pub weight: Option<usize>,
    pub features: Vec<usize>,
}

/// What was learned of the columns.
#[derive(Clone)]
pub struct Encoders {
    pub features: Features,
    pub statistics: Vec<FeatureStatistics>,
    pub classes: Option<Classes>,
    /// By class number.
    pub class_weights: Option<Vec<f64>>,
    pub transform: Option<KeptTransform>,
    pub stages: Stages,
}

/// A fitted estimator with its encoders.
#[derive(Clone)]
pub struct Fitted {
    pub encoders: Arc<Encoders>,
    pub model: Arc<dyn Model>,
    pub steps: Vec<FitStep>,
}

/// Learns features and class weights from training rows.
///
/// # Errors
/// Data that cannot be trained on.
pub fn learn(
    settings: &Settings,
    inputs: &[FeatureInput],
    layout: &Layout,
    rows: &Rows,
    classes: Option<&Classes>,
    label: &str,
) -> Result<Encoders> {
    let kinds = inputs.iter().map(|input| (input.name.clone(), input.data_type.clone(), input.raw_type));
    let mut fit = FeatureFit::new(kinds.collect::<Vec<_>>());
    for batch in &rows.batches {
        let columns: Vec<ArrayRef> = layout.features.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        fit.update(&columns)?;
    }
    let (features, statistics) = fit.finish();
    let total = rows.num_rows() as u64;
    for (column, statistics) in features.columns.iter().zip(&statistics) {
        check_feature(settings, &column.name, statistics, total)?;
    }
    if settings.handle_invalid == HandleInvalid::Error {
        let is_number = |at: usize| features.columns[at].raw_type == ml::tabular::RawType::Number;
        let columns: Vec<(String, u64)> = statistics
            .iter()
            .enumerate()
            .filter(|(at, statistics)| statistics.null_rows > 0 && is_number(*at))
            .map(|(at, statistics)| (features.columns[at].name.clone(), statistics.null_rows))
            .collect();
        if !columns.is_empty() {
            return Err(Refusal::NullFeature { columns, total }.into());
        }
    }
    let class_weights = match (classes, &settings.class_weight) {
        (Some(classes), Some(weight)) => Some(class_weights(classes, weight, layout, rows, label)?),
        _ => None,
    };
    Ok(Encoders { features, statistics, classes: classes.cloned(), class_weights, transform: None, stages: Stages::new() })
}

fn check_feature(settings: &Settings, name: &str, statistics: &FeatureStatistics, total: u64) -> Result<()> {
    let column = name.to_string();
    if statistics.infinite_rows > 0 {
        return Err(Refusal::Infinite { column, rows: statistics.infinite_rows, total }.into());
    }
    if let Some((first, second)) = statistics.sizes {
        return Err(Refusal::UnevenVectors { column, first, second }.into());
    }
    match statistics.categories {
        Some(found) if found > settings.categories_max => {
            Err(Refusal::TooManyCategories { column, found, max: settings.categories_max }.into())
        }
        _ => Ok(()),
    }
}

/// Rows of each class, by number.
pub fn class_counts(classes: &Classes, layout: &Layout, rows: &Rows) -> Result<Vec<u64>> {
    let mut counts = vec![0; classes.labels.len()];
    if let Some(label) = layout.label {
        for column in rows.column(label) {
            for number in classes.encode(&column)?.iter().flatten() {
                counts[number as usize] += 1;
            }
        }
    }
    Ok(counts)
}

fn class_weights(
    classes: &Classes,
    weight: &ClassWeight,
    layout: &Layout,
    rows: &Rows,
    label: &str,
) -> Result<Vec<f64>> {
    match weight {
        ClassWeight::Balanced => {
            let counts = class_counts(classes, layout, rows)?;
            let (total, num_classes) = (counts.iter().sum::<u64>() as f64, counts.len() as f64);
            Ok(counts.iter().map(|count| total / (num_classes * (*count).max(1) as f64)).collect())
        }
        ClassWeight::ByLabel(pairs) => {
            let mut weights = vec![1.0; classes.labels.len()];
            for (class, weight) in pairs {
                let Some(at) = classes.labels.iter().position(|known| known == class) else {
                    let (label, classes) = (label.to_string(), classes.labels.clone());
                    return Err(Refusal::UnknownClass { label, class: class.clone(), classes }.into());
                };
                weights[at] = *weight;
            }
            Ok(weights)
        }
    }
}

/// Where the features of TRANSFORM are in rows that its stages were applied to.
///
/// # Errors
/// [`Error::Bug`]: the stages promise these columns.
pub fn transformed_layout(transform: &KeptTransform, layout: &Layout, rows: &Rows) -> Result<Layout> {
    let at = |name: &String| {
        find(&rows.schema, name, false).ok_or(Error::Bug { invariant: "TRANSFORM gives the columns it promises" })
    };
    Ok(Layout { features: transform.columns.iter().map(at).collect::<Result<_>>()?, ..layout.clone() })
}

impl Encoders {
    /// Raw rows with TRANSFORM applied to them, and where the features are then.
    ///
    /// # Errors
    /// Rows that a stage refuses.
    pub async fn apply(&self, session: &Session, layout: &Layout, rows: &Rows) -> Result<(Rows, Layout)> {
        let Some(transform) = &self.transform else { return Ok((rows.clone(), layout.clone())) };
        let rows = stage::apply(session, &self.stages, rows).await?;
        let layout = transformed_layout(transform, layout, &rows)?;
        Ok((rows, layout))
    }

    /// Rows as estimators and evaluators take them: a vector, a label that is a number, and a weight if there is any.
    /// Evaluation does not weigh classes.
    ///
    /// # Errors
    /// Rows that cannot be encoded.
    pub fn encode(&self, layout: &Layout, rows: &Rows, weighs_classes: bool) -> Result<Rows> {
        let class_weights = self.class_weights.as_ref().filter(|_| weighs_classes);
        let label_field = match &self.classes {
            Some(classes) => {
                let attribute = ml_attr::Attribute::nominal_with_values(&classes.labels).with_name(LABEL);
                attribute.mark(Field::new(LABEL, DataType::Float64, true))
            }
            None => Field::new(LABEL, DataType::Float64, true),
        };
        let has_weight = layout.weight.is_some() || class_weights.is_some();
        let mut fields = vec![udt::field::vector_field(FEATURES), label_field];
        if has_weight {
            fields.push(Field::new(WEIGHT, DataType::Float64, true));
        }
        let schema = Arc::new(Schema::new(fields));
        let mut batches = Vec::with_capacity(rows.batches.len());
        for batch in &rows.batches {
            let columns: Vec<ArrayRef> = layout.features.iter().map(|at| Arc::clone(batch.column(*at))).collect();
            let features = self.features.encode(&columns, batch.num_rows())?;
            let label = self.label(layout, batch)?;
            let mut encoded = vec![features, Arc::new(label.clone()) as ArrayRef];
            if has_weight {
                let raw = match layout.weight {
                    Some(at) => cast(batch.column(at), &DataType::Float64)?.as_primitive::<Float64Type>().clone(),
                    None => Float64Array::from(vec![1.0; batch.num_rows()]),
                };
                let of_class = |label: Option<f64>| match (class_weights, label) {
                    (Some(weights), Some(label)) => weights.get(label as usize).copied().unwrap_or(1.0),
                    _ => 1.0,
                };
                let weights: Float64Array =
                    raw.iter().zip(&label).map(|(raw, label)| raw.map(|raw| raw * of_class(label))).collect();
                encoded.push(Arc::new(weights));
            }
            batches.push(RecordBatch::try_new(Arc::clone(&schema), encoded)?);
        }
        Ok(Rows { schema, batches })
    }

    fn label(&self, layout: &Layout, batch: &RecordBatch) -> Result<Float64Array> {
        let Some(at) = layout.label else { return Ok(Float64Array::from(vec![0.0; batch.num_rows()])) };
        match &self.classes {
            Some(classes) => Ok(classes.encode(batch.column(at))?),
            None => Ok(cast(batch.column(at), &DataType::Float64)?.as_primitive::<Float64Type>().clone()),
        }
    }
}

/// One fit's place in a training.
pub struct FitCall<'a> {
    pub job_id: String,
    pub operation: &'a Operation,
    pub workers: usize,
    pub params: &'a std::collections::BTreeMap<String, ml::Value>,
}

/// Fits the plan's estimator to encoded rows.
///
/// # Errors
/// What the estimator, the gang or the data say.
pub async fn fit(
    session: &Arc<Session>,
    plan: &TrainPlan,
    call: FitCall<'_>,
    encoders: &Arc<Encoders>,
    encoded: &Rows,
) -> Result<Fitted> {
    let operator = plan.trainable.operator;
    let mut values = call.params.clone();
    let has = |name: &str| (operator.params)().iter().any(|param| param.name == name);
    if encoded.schema.column_with_name(WEIGHT).is_some() {
        if !has("weightCol") {
            let what = format!("WEIGHT or class_weight of `{}`", plan.estimator_name());
            return Err(Refusal::UnsupportedOperation { what }.into());
        }
        values.insert("weightCol".into(), ml::Value::String(WEIGHT.into()));
    }
    // One-hot levels beside an intercept are collinear: the normal equation would be as good as singular.
    let is_normal = plan.trainable.task == Task::Regression && has("solver") && !values.contains_key("solver");
    let takes_lbfgs = ml::Params::new(operator, "solver", [("solver".to_string(), lbfgs())].into()).is_ok();
    if is_normal && takes_lbfgs && encoders.features.has_categories() {
        values.insert("solver".into(), lbfgs());
    }
    let uid = format!("{}_{}", operator.short_name(), &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let params = Params::new(operator, &uid, values)?;
    let frame = encoded.frame(session).await?;
    let job = FitJob {
        job_id: call.job_id,
        operator,
        estimator: plan.trainable.estimator,
        params: &params,
        num_ranks: call.workers,
    };
    let FittedModel { model, steps, .. } = Box::pin(fit_model(session, call.operation, job, &frame)).await?;
    Ok(Fitted { encoders: Arc::clone(encoders), model, steps })
}

fn lbfgs() -> ml::Value {
    ml::Value::String("l-bfgs".into())
}

/// Rows whose weight cannot be one.
pub fn invalid_weights(column: &ArrayRef) -> Result<u64> {
    let weights = cast(column, &DataType::Float64)?;
    let weights = weights.as_primitive::<Float64Type>();
    let invalid = weights.iter().filter(|weight| weight.is_none_or(|weight| !(weight >= 0.0 && weight.is_finite())));
    Ok(invalid.count() as u64)
}
