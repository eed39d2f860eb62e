//! The fitted model: its attributes, its columns, its saved form.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::Schema;
use train::batch::{Features, Numbers};
use udt::{Vector, VectorArray};

use super::network::Network;
use crate::classification::prediction::{Classifier, Scores, argmax, argmax_by_thresholds, softmax, transform};
use crate::linear::saved::{Cell, one_row};
use crate::persist::Saved;
use crate::summary::classification::ClassificationSummary;
use crate::{Argument, Attribute, Error, Model, Operator, Params, Result, Summary, TransformStep, Value};

pub struct MultilayerPerceptronModel {
    operator: &'static Operator,
    params: Params,
    /// With the fit's own thresholds, for `predict` and its kin.
    prediction: Arc<Prediction>,
    summary: Option<Arc<ClassificationSummary>>,
}

/// Thresholds must be as many as classes.
///
/// # Errors
/// [`Error::InvalidParam`]
pub fn check_thresholds(params: &Params, num_classes: usize) -> Result<()> {
    let Ok(thresholds) = params.doubles("thresholds") else { return Ok(()) };
    if thresholds.len() == num_classes {
        return Ok(());
    }
    Err(Error::InvalidParam {
        operator: params.uid.clone(),
        param: "thresholds".into(),
        value: params.get("thresholds").map(ToString::to_string).unwrap_or_default(),
        detail: format!(", expected as many as there are classes, {num_classes}, found {}", thresholds.len()),
    })
}

impl MultilayerPerceptronModel {
    /// # Errors
    /// Thresholds that do not fit the classes.
    pub fn new(
        operator: &'static Operator,
        params: Params,
        network: Network,
        weights: Vec<f64>,
        objective_history: Option<Vec<f64>>,
    ) -> Result<MultilayerPerceptronModel> {
        let summary = objective_history
            .map(|history| Arc::new(ClassificationSummary::multilayer_perceptron(&params, Some(history))));
        let prediction = Arc::new(Prediction::new(&params, network, Arc::new(weights))?);
        Ok(MultilayerPerceptronModel { operator, params, prediction, summary })
    }

    fn network(&self) -> &Network {
        &self.prediction.network
    }

    fn not_allowed(&self, method: &str) -> Error {
        Error::AttributeNotAllowed { class: self.class().into(), method: method.into() }
    }

    fn scores(&self, name: &str, arguments: &[Argument]) -> Result<Scores> {
        let [Argument::Value(Value::Vector(vector))] = arguments else { return Err(self.not_allowed(name)) };
        let values = Numbers::from(vector.to_dense());
        self.prediction.scores(&Features::Dense { width: values.len(), num_rows: 1, values })
    }
}

impl Model for MultilayerPerceptronModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let weights = Arc::clone(&self.prediction.weights);
        transform(Arc::new(Prediction::new(params, self.network().clone(), weights)?), params, schema)
    }

    fn attribute(&self, name: &str, arguments: &[Argument]) -> Result<Attribute> {
        let value = match name {
            "toString" => Value::String(self.describe()),
            "numClasses" => Value::Int(self.network().num_classes() as i32),
            "numFeatures" => Value::Int(self.network().num_features() as i32),
            "weights" => Value::Vector(Vector::Dense(self.prediction.weights.to_vec())),
            "predictRaw" => Value::Vector(Vector::Dense(self.scores(name, arguments)?.values)),
            "predictProbability" => {
                let mut scores = self.scores(name, arguments)?;
                self.prediction.normalize(&mut scores);
                Value::Vector(Vector::Dense(scores.values))
            }
            "predict" => Value::Double(self.prediction.class_of_raw(&self.scores(name, arguments)?.values)),
            _ => return Err(self.not_allowed(name)),
        };
        Ok(Attribute::Value(value))
    }

    fn summary(&self) -> Option<Arc<dyn Summary>> {
        self.summary.clone().map(|summary| summary as Arc<dyn Summary>)
    }

    fn evaluate(&self) -> Option<Arc<dyn Summary>> {
        Some(Arc::new(ClassificationSummary::multilayer_perceptron(&self.params, None)))
    }

    fn describe(&self) -> String {
        format!(
            "MultilayerPerceptronClassificationModel: uid={}, numLayers={}, numClasses={}, numFeatures={}",
            self.params.uid,
            self.network().layers().len(),
            self.network().num_classes(),
            self.network().num_features()
        )
    }

    fn size_bytes(&self) -> usize {
        size_of::<MultilayerPerceptronModel>() + 8 * self.network().num_weights()
    }

    fn save(&self) -> Result<Saved> {
        let rows = one_row(vec![("weights", Cell::Vector(Vector::Dense(self.prediction.weights.to_vec())))])?;
        Ok(Saved { tables: vec![("data".into(), rows)], ..Saved::default() })
    }
}

/// The network with the thresholds of a transform.
struct Prediction {
    network: Network,
    weights: Arc<Vec<f64>>,
    thresholds: Option<Vec<f64>>,
}

impl Prediction {
    fn new(params: &Params, network: Network, weights: Arc<Vec<f64>>) -> Result<Prediction> {
        check_thresholds(params, network.num_classes())?;
        Ok(Prediction { network, weights, thresholds: params.doubles("thresholds").ok() })
    }

    fn scores(&self, features: &Features) -> Result<Scores> {
        let (expected, found) = (self.network.num_features(), features.width());
        if expected != found && features.num_rows() > 0 {
            let message = format!("the model takes vectors of {expected} values, found one of {found}");
            return Err(Error::InvalidRow { message });
        }
        let values = self.network.scores(&self.weights, features);
        Ok(Scores { num_classes: self.network.num_classes(), values })
    }
}

impl Classifier for Prediction {
    fn num_classes(&self) -> usize {
        self.network.num_classes()
    }

    fn raw(&self, features: &ArrayRef) -> Result<Scores> {
        let vectors = VectorArray::try_new(features.as_ref())?;
        let width = self.network.num_features();
        let mut values = Vec::with_capacity(vectors.len() * width);
        match vectors.as_dense_rows() {
            Some((found, rows)) if found == width => values.extend_from_slice(rows),
            _ => {
                for row in 0..vectors.len() {
                    let vector = vectors.row(row)?;
                    if vector.size() != width {
                        let found = vector.size();
                        let message = format!("the model takes vectors of {width} values, found one of {found}");
                        return Err(Error::InvalidRow { message });
                    }
                    values.extend(vector.to_vector().to_dense());
                }
            }
        }
        self.scores(&Features::Dense { width, num_rows: vectors.len(), values: values.into() })
    }

    fn normalize(&self, scores: &mut Scores) {
        scores.values.chunks_exact_mut(scores.num_classes).for_each(softmax);
    }

    fn class_of_raw(&self, raw: &[f64]) -> f64 {
        match &self.thresholds {
            None => argmax(raw),
            Some(_) => {
                let mut probability = raw.to_vec();
                softmax(&mut probability);
                self.class_of_probability(&probability)
            }
        }
    }

    fn class_of_probability(&self, probability: &[f64]) -> f64 {
        match &self.thresholds {
            None => argmax(probability),
            Some(thresholds) => argmax_by_thresholds(probability, thresholds),
        }
    }
}
