//! Summaries of linear regressions: errors, residuals, and what the normal equation says of the coefficients.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::Float64Array;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;

use super::student;
use crate::evaluation::column;
use crate::evaluation::regression_metrics::RegressionAccumulator;
use crate::{Accumulator, Argument, Attribute, Error, Params, Result, Summary, SummaryAttribute, Value};

/// The coefficients, and the diagonal of `(A^T W A)^-1`: a single 0 where a fit does not know it.
pub struct Inference {
    pub coefficients: Vec<f64>,
    pub intercept: f64,
    pub inverse_diagonal: Vec<f64>,
}

pub struct RegressionSummary {
    class: &'static str,
    prediction: String,
    label: String,
    weight: Option<String>,
    features: String,
    has_intercept: bool,
    inference: Inference,
    /// Of the training, if this is its summary.
    objective_history: Option<Vec<f64>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Residuals are kept, one double a row, only once somebody asked for them.
    wants_residuals: bool,
    observed: Option<Arc<Fold>>,
}

const NEED_PREDICTIONS: [&str; 13] = [
    "explainedVariance",
    "meanAbsoluteError",
    "meanSquaredError",
    "rootMeanSquaredError",
    "r2",
    "r2adj",
    "numInstances",
    "degreesOfFreedom",
    "devianceResiduals",
    "coefficientStandardErrors",
    "tValues",
    "pValues",
    "residuals",
];

impl RegressionSummary {
    /// The summary of a linear regression, of its training when there is a history.
    pub fn linear(params: &Params, inference: Inference, objective_history: Option<Vec<f64>>) -> RegressionSummary {
        let class = match objective_history {
            Some(_) => "org.apache.spark.ml.regression.LinearRegressionTrainingSummary",
            None => "org.apache.spark.ml.regression.LinearRegressionSummary",
        };
        let column = |param: &str| params.column(param).unwrap_or_default().to_string();
        RegressionSummary {
            class,
            prediction: column("predictionCol"),
            label: column("labelCol"),
            weight: params.column("weightCol").map(String::from),
            features: column("featuresCol"),
            has_intercept: params.boolean("fitIntercept").unwrap_or(true),
            inference,
            objective_history,
            state: Mutex::default(),
        }
    }

    fn known(&self, name: &str) -> Option<Value> {
        let text = |text: &str| Some(Value::String(text.into()));
        match name {
            "predictionCol" => text(&self.prediction),
            "labelCol" => text(&self.label),
            "featuresCol" => text(&self.features),
            "objectiveHistory" => self.objective_history.as_deref().map(Value::doubles),
            "totalIterations" => {
                self.objective_history.as_ref().map(|history| Value::Int(history.len().saturating_sub(1) as i32))
            }
            _ => None,
        }
    }

    fn degrees_of_freedom(&self, fold: &Fold) -> i64 {
        let parameters = self.inference.coefficients.len() + usize::from(self.has_intercept);
        fold.metrics.num_rows() as i64 - parameters as i64
    }

    fn standard_errors(&self, fold: &Fold) -> Vec<f64> {
        let variance = fold.metrics.error_square_sum() / self.degrees_of_freedom(fold) as f64;
        self.inference.inverse_diagonal.iter().map(|d| (d * variance).sqrt()).collect()
    }

    fn t_values(&self, fold: &Fold) -> Vec<f64> {
        let estimates =
            self.inference.coefficients.iter().chain(self.has_intercept.then_some(&self.inference.intercept));
        estimates.zip(self.standard_errors(fold)).map(|(estimate, error)| estimate / error).collect()
    }

    fn measure(&self, fold: &Fold, name: &str) -> Result<Attribute> {
        let metrics = &fold.metrics;
        let r2 = metrics.r2(!self.has_intercept);
        let degrees_of_freedom = self.degrees_of_freedom(fold);
        let rows = metrics.num_rows() as f64;
        Ok(Attribute::Value(match name {
            "explainedVariance" => Value::Double(metrics.explained_variance()),
            "meanAbsoluteError" => Value::Double(metrics.mean_absolute_error()),
            "meanSquaredError" => Value::Double(metrics.mean_squared_error()),
            "rootMeanSquaredError" => Value::Double(metrics.root_mean_squared_error()),
            "r2" => Value::Double(r2),
            "r2adj" => {
                let free = rows - f64::from(u8::from(self.has_intercept));
                Value::Double(1.0 - (1.0 - r2) * free / degrees_of_freedom as f64)
            }
            "numInstances" => Value::Long(metrics.num_rows() as i64),
            "degreesOfFreedom" => Value::Long(degrees_of_freedom),
            "devianceResiduals" => Value::doubles(&[fold.lowest, fold.highest]),
            "coefficientStandardErrors" => Value::doubles(&self.standard_errors(fold)),
            "tValues" => Value::doubles(&self.t_values(fold)),
            "pValues" => {
                let p_value = |t: &f64| 2.0 * (1.0 - student::cumulative(t.abs(), degrees_of_freedom as f64));
                Value::doubles(&self.t_values(fold).iter().map(p_value).collect::<Vec<f64>>())
            }
            _ => return Err(self.not_allowed(name)),
        }))
    }

    fn not_allowed(&self, method: &str) -> Error {
        Error::AttributeNotAllowed { class: self.class.into(), method: method.into() }
    }
}

/// What a fit by minimizing cannot say.
fn check_inference(inference: &Inference, name: &str) -> Result<()> {
    let what = match name {
        "coefficientStandardErrors" => "Std. Error of coefficients",
        "tValues" => "t-statistic",
        "pValues" => "p-value",
        _ => return Ok(()),
    };
    if inference.inverse_diagonal == [0.0] {
        let message = format!("No {what} available for this LinearRegressionModel");
        return Err(Error::InvalidData { class: "UNSUPPORTED_OPERATION".into(), message });
    }
    Ok(())
}

impl Summary for RegressionSummary {
    fn attribute(&self, name: &str, _arguments: &[Argument]) -> Result<SummaryAttribute> {
        if let Some(value) = self.known(name) {
            return Ok(SummaryAttribute::Ready(Attribute::Value(value)));
        }
        if name == "predictions" {
            return Ok(SummaryAttribute::Predictions { select: None });
        }
        if !NEED_PREDICTIONS.contains(&name) {
            return Err(self.not_allowed(name));
        }
        check_inference(&self.inference, name)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.wants_residuals |= name == "residuals";
        let Some(fold) = state.observed.clone() else { return Ok(SummaryAttribute::NeedsPredictions) };
        drop(state);
        if name != "residuals" {
            return Ok(SummaryAttribute::Ready(self.measure(&fold, name)?));
        }
        let Some(residuals) = &fold.residuals else { return Ok(SummaryAttribute::NeedsPredictions) };
        let schema = Arc::new(Schema::new(vec![Field::new("residuals", DataType::Float64, false)]));
        let rows = RecordBatch::try_new(schema, vec![Arc::new(Float64Array::from(residuals.clone()))])?;
        Ok(SummaryAttribute::Ready(Attribute::Rows(rows)))
    }

    fn columns(&self) -> Vec<String> {
        let mut columns = vec![self.prediction.clone(), self.label.clone()];
        columns.extend(self.weight.clone());
        columns
    }

    fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        if self.prediction.is_empty() {
            return Err(Error::Unsupported { feature: "a summary of a model whose predictionCol is empty".into() });
        }
        let wants_residuals = self.state.lock().unwrap_or_else(PoisonError::into_inner).wants_residuals;
        Ok(Box::new(Fold {
            metrics: RegressionAccumulator::default(),
            lowest: f64::INFINITY,
            highest: f64::NEG_INFINITY,
            residuals: wants_residuals.then(Vec::new),
        }))
    }

    fn observe(&self, accumulator: Box<dyn Accumulator>) -> Result<()> {
        let fold = accumulator.into_any().downcast::<Fold>().map_err(|_| another_kind())?;
        self.state.lock().unwrap_or_else(PoisonError::into_inner).observed = Some(Arc::new(*fold));
        Ok(())
    }
}

fn another_kind() -> Error {
    Error::Bug { invariant: "a summary observes its own accumulator".into() }
}

/// Folds (prediction, label[, weight]).
struct Fold {
    metrics: RegressionAccumulator,
    /// Residuals times the square root of the weight.
    lowest: f64,
    highest: f64,
    /// In the order of rows.
    residuals: Option<Vec<f64>>,
}

impl Accumulator for Fold {
    fn update(&mut self, record_batch: &RecordBatch) -> Result<()> {
        let predictions = column::doubles(record_batch.column(0), "the prediction")?;
        let labels = column::doubles(record_batch.column(1), "the label")?;
        let weights = column::weights(record_batch.columns().get(2), record_batch.num_rows())?;
        for ((prediction, label), weight) in predictions.values().iter().zip(labels.values()).zip(weights.iter()) {
            self.metrics.add(*prediction, *label, *weight);
            let residual = label - prediction;
            let scaled = residual * weight.sqrt();
            self.lowest = self.lowest.min(scaled);
            self.highest = self.highest.max(scaled);
            if let Some(residuals) = &mut self.residuals {
                residuals.push(residual);
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let other = other.into_any().downcast::<Fold>().map_err(|_| another_kind())?;
        self.metrics.add_all(&other.metrics);
        self.lowest = self.lowest.min(other.lowest);
        self.highest = self.highest.max(other.highest);
        if let (Some(residuals), Some(others)) = (&mut self.residuals, other.residuals) {
            residuals.extend(others);
        }
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
