//! Summaries of classifiers: by class, and for two classes by threshold.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::Float64Array;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;

use crate::evaluation::binary_metrics::{BinaryAccumulator, BinaryMetrics, NUM_BINS};
use crate::evaluation::multiclass_metrics::{MulticlassAccumulator, MulticlassMetrics};
use crate::{Accumulator, Argument, Attribute, Error, Params, Result, Summary, SummaryAttribute, Value};

/// What `weightCol` answers where none is set, as Spark does.
const NO_WEIGHT: &str = "weightCol";

pub struct ClassificationSummary {
    class: &'static str,
    prediction: String,
    label: String,
    weight: Option<String>,
    probability: String,
    features: String,
    is_binary: bool,
    /// Of the training, if this is its summary.
    objective_history: Option<Vec<f64>>,
    observed: Mutex<Option<Arc<Observed>>>,
}

struct Observed {
    by_class: MulticlassMetrics,
    by_threshold: Option<BinaryMetrics>,
}

impl ClassificationSummary {
    /// The summary of a logistic regression, of its training when there is a history.
    pub fn logistic(params: &Params, num_classes: usize, objective_history: Option<Vec<f64>>) -> ClassificationSummary {
        let is_binary = num_classes <= 2;
        let class = match (is_binary, objective_history.is_some()) {
            (true, true) => "org.apache.spark.ml.classification.BinaryLogisticRegressionTrainingSummaryImpl",
            (true, false) => "org.apache.spark.ml.classification.BinaryLogisticRegressionSummaryImpl",
            (false, true) => "org.apache.spark.ml.classification.LogisticRegressionTrainingSummaryImpl",
            (false, false) => "org.apache.spark.ml.classification.LogisticRegressionSummaryImpl",
        };
        ClassificationSummary::new(class, params, is_binary, objective_history)
    }

    /// The summary of a multilayer perceptron: by class only, whatever their number.
    pub fn multilayer_perceptron(params: &Params, objective_history: Option<Vec<f64>>) -> ClassificationSummary {
        let class = match objective_history.is_some() {
            true => "org.apache.spark.ml.classification.MultilayerPerceptronClassificationTrainingSummaryImpl",
            false => "org.apache.spark.ml.classification.MultilayerPerceptronClassificationSummaryImpl",
        };
        ClassificationSummary::new(class, params, false, objective_history)
    }

    fn new(
        class: &'static str,
        params: &Params,
        is_binary: bool,
        objective_history: Option<Vec<f64>>,
    ) -> ClassificationSummary {
        let column = |param: &str| params.column(param).unwrap_or_default().to_string();
        ClassificationSummary {
            class,
            prediction: column("predictionCol"),
            label: column("labelCol"),
            weight: params.column("weightCol").map(String::from),
            probability: column("probabilityCol"),
            features: column("featuresCol"),
            is_binary,
            objective_history,
            observed: Mutex::new(None),
        }
    }

    fn known(&self, name: &str) -> Option<Value> {
        let text = |text: &str| Some(Value::String(text.into()));
        match name {
            "predictionCol" => text(&self.prediction),
            "labelCol" => text(&self.label),
            "weightCol" => text(self.weight.as_deref().unwrap_or(NO_WEIGHT)),
            "probabilityCol" if self.is_logistic() => text(&self.probability),
            "featuresCol" if self.is_logistic() => text(&self.features),
            "scoreCol" if self.is_binary => text(&self.probability),
            "objectiveHistory" => self.objective_history.as_deref().map(Value::doubles),
            "totalIterations" => {
                self.objective_history.as_ref().map(|history| Value::Int(history.len().saturating_sub(1) as i32))
            }
            _ => None,
        }
    }

    /// Summaries of logistic regressions tell two columns more than others.
    fn is_logistic(&self) -> bool {
        self.class.contains("LogisticRegression")
    }

    fn not_allowed(&self, method: &str) -> Error {
        Error::AttributeNotAllowed { class: self.class.into(), method: method.into() }
    }
}

/// Names of what needs the predictions, of any classifier and of one of two classes.
const BY_CLASS: [&str; 12] = [
    "labels",
    "truePositiveRateByLabel",
    "falsePositiveRateByLabel",
    "precisionByLabel",
    "recallByLabel",
    "fMeasureByLabel",
    "accuracy",
    "weightedTruePositiveRate",
    "weightedFalsePositiveRate",
    "weightedRecall",
    "weightedPrecision",
    "weightedFMeasure",
];
const BY_THRESHOLD: [&str; 6] =
    ["areaUnderROC", "roc", "pr", "fMeasureByThreshold", "precisionByThreshold", "recallByThreshold"];

impl Summary for ClassificationSummary {
    fn attribute(&self, name: &str, arguments: &[Argument]) -> Result<SummaryAttribute> {
        if let Some(value) = self.known(name) {
            return Ok(SummaryAttribute::Ready(Attribute::Value(value)));
        }
        if name == "predictions" {
            return Ok(SummaryAttribute::Predictions { select: None });
        }
        let is_measure = BY_CLASS.contains(&name) || (self.is_binary && BY_THRESHOLD.contains(&name));
        if !is_measure {
            return Err(self.not_allowed(name));
        }
        let observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(observed) = observed else { return Ok(SummaryAttribute::NeedsPredictions) };
        let found = match &observed.by_threshold {
            Some(metrics) if BY_THRESHOLD.contains(&name) => by_threshold(metrics, name)?,
            _ => by_class(&observed.by_class, name, beta(arguments)).map(Attribute::Value),
        };
        found.map(SummaryAttribute::Ready).ok_or_else(|| self.not_allowed(name))
    }

    fn columns(&self) -> Vec<String> {
        let mut columns = vec![self.prediction.clone(), self.label.clone()];
        columns.extend(self.weight.clone());
        if self.is_binary {
            columns.push(self.probability.clone());
        }
        columns
    }

    fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        let needed = [("predictionCol", &self.prediction, true), ("probabilityCol", &self.probability, self.is_binary)];
        for (param, column, is_needed) in needed {
            if is_needed && column.is_empty() {
                return Err(Error::Unsupported { feature: format!("a summary of a model whose {param} is empty") });
            }
        }
        Ok(Box::new(Fold {
            has_weight: self.weight.is_some(),
            by_class: MulticlassAccumulator::new(self.weight.is_some(), None),
            by_threshold: self.is_binary.then(BinaryAccumulator::default),
        }))
    }

    fn observe(&self, accumulator: Box<dyn Accumulator>) -> Result<()> {
        let fold = accumulator.into_any().downcast::<Fold>().map_err(|_| another_kind())?;
        let observed = Observed {
            by_class: fold.by_class.metrics(),
            by_threshold: fold.by_threshold.map(|scores| scores.metrics(NUM_BINS)),
        };
        *self.observed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(observed));
        Ok(())
    }
}

fn another_kind() -> Error {
    Error::Bug { invariant: "a summary observes its own accumulator".into() }
}

/// The weight of recall in an F-measure; 1 where a client leaves it out.
fn beta(arguments: &[Argument]) -> f64 {
    match arguments {
        [Argument::Value(Value::Double(beta)), ..] => *beta,
        [Argument::Value(Value::Int(beta)), ..] => f64::from(*beta),
        _ => 1.0,
    }
}

fn by_class(metrics: &MulticlassMetrics, name: &str, beta: f64) -> Option<Value> {
    let labels = metrics.labels();
    let each = |metric: &dyn Fn(f64) -> f64| {
        Some(Value::doubles(&labels.iter().map(|label| metric(*label)).collect::<Vec<f64>>()))
    };
    let one = |metric: f64| Some(Value::Double(metric));
    match name {
        "labels" => each(&|label| label),
        "truePositiveRateByLabel" | "recallByLabel" => each(&|label| metrics.recall(label)),
        "falsePositiveRateByLabel" => each(&|label| metrics.false_positive_rate(label)),
        "precisionByLabel" => each(&|label| metrics.precision(label)),
        "fMeasureByLabel" => each(&|label| metrics.f_measure(label, beta)),
        "accuracy" => one(metrics.accuracy()),
        "weightedTruePositiveRate" | "weightedRecall" => one(metrics.weighted_recall()),
        "weightedFalsePositiveRate" => one(metrics.weighted_false_positive_rate()),
        "weightedPrecision" => one(metrics.weighted_precision()),
        "weightedFMeasure" => one(metrics.weighted_f_measure(beta)),
        _ => None,
    }
}

fn by_threshold(metrics: &BinaryMetrics, name: &str) -> Result<Option<Attribute>> {
    let (columns, curve) = match name {
        "areaUnderROC" => return Ok(Some(Attribute::Value(Value::Double(metrics.area_under_roc())))),
        "roc" => (["FPR", "TPR"], metrics.roc()),
        "pr" => (["recall", "precision"], metrics.pr()),
        "fMeasureByThreshold" => (["threshold", "F-Measure"], metrics.f_measure_by_threshold(1.0)),
        "precisionByThreshold" => (["threshold", "precision"], metrics.precision_by_threshold()),
        "recallByThreshold" => (["threshold", "recall"], metrics.recall_by_threshold()),
        _ => return Ok(None),
    };
    let (x, y): (Vec<f64>, Vec<f64>) = curve.into_iter().unzip();
    let fields = columns.map(|name| Field::new(name, DataType::Float64, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let rows = RecordBatch::try_new(schema, vec![Arc::new(Float64Array::from(x)), Arc::new(Float64Array::from(y))])?;
    Ok(Some(Attribute::Rows(rows)))
}

/// Folds (prediction, label[, weight][, probability]).
struct Fold {
    has_weight: bool,
    by_class: MulticlassAccumulator,
    by_threshold: Option<BinaryAccumulator>,
}

impl Accumulator for Fold {
    fn update(&mut self, record_batch: &RecordBatch) -> Result<()> {
        let classes: &[usize] = if self.has_weight { &[0, 1, 2] } else { &[0, 1] };
        self.by_class.update(&record_batch.project(classes)?)?;
        if let Some(scores) = &mut self.by_threshold {
            let columns: &[usize] = if self.has_weight { &[3, 1, 2] } else { &[2, 1] };
            scores.update(&record_batch.project(columns)?)?;
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let other = other.into_any().downcast::<Fold>().map_err(|_| another_kind())?;
        self.by_class.add_all(&other.by_class);
        if let (Some(scores), Some(others)) = (&mut self.by_threshold, other.by_threshold) {
            scores.add_all(others);
        }
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
