//! The fitted model: its attributes, its columns, its saved form.

use std::sync::Arc;

use arrow::datatypes::Schema;
use udt::{Matrix, Vector, VectorRow};

use super::program::Fitted;
use super::solution::{Prediction, Solution};
use crate::classification::prediction::{Classifier, Scores, transform};
use crate::linear::saved::{Cell, compress, compress_vector, one_row, sparse_vector};
use crate::persist::Saved;
use crate::summary::classification::ClassificationSummary;
use crate::{Argument, Attribute, Error, Model, Operator, Params, Result, Summary, TransformStep, Value};

pub struct LogisticRegressionModel {
    operator: &'static Operator,
    params: Params,
    solution: Solution,
    /// With the fit's own thresholds, for `predict` and its kin.
    prediction: Prediction,
    summary: Option<Arc<ClassificationSummary>>,
}

impl LogisticRegressionModel {
    /// # Errors
    /// Thresholds that do not fit the classes.
    pub fn new(
        operator: &'static Operator,
        params: Params,
        solution: Solution,
        objective_history: Option<Vec<f64>>,
    ) -> Result<LogisticRegressionModel> {
        let prediction = Prediction::new(&solution, &params)?;
        let summary = objective_history
            .map(|history| Arc::new(ClassificationSummary::logistic(&params, solution.num_classes, Some(history))));
        Ok(LogisticRegressionModel { operator, params, solution, prediction, summary })
    }

    /// # Errors
    /// As [`LogisticRegressionModel::new`].
    pub(super) fn fitted(
        operator: &'static Operator,
        params: Params,
        fitted: Fitted,
    ) -> Result<LogisticRegressionModel> {
        let num_rows = fitted.intercepts.len();
        // a model of one label keeps its certain class as Spark stores it
        let intercepts = match (fitted.is_constant, fitted.is_multinomial) {
            (false, _) => compress_vector(fitted.intercepts),
            (true, false) => Vector::Dense(fitted.intercepts),
            (true, true) => sparse_vector(&fitted.intercepts),
        };
        let solution = Solution {
            num_classes: fitted.num_classes,
            is_multinomial: fitted.is_multinomial,
            coefficients: compress(num_rows, fitted.num_features, fitted.coefficients),
            intercepts,
        };
        LogisticRegressionModel::new(operator, params, solution, Some(fitted.objective_history))
    }

    fn num_features(&self) -> usize {
        self.solution.coefficients.num_cols()
    }

    fn not_allowed(&self, method: &str) -> Error {
        Error::AttributeNotAllowed { class: self.class().into(), method: method.into() }
    }

    /// # Errors
    /// A multinomial model has a matrix and a vector instead.
    fn only_binomial(&self, instead: &str) -> Result<()> {
        if self.solution.is_multinomial {
            let message = format!("Multinomial models contain a {instead} instead.");
            return Err(Error::InvalidData { class: "MULTINOMIAL_MODEL".into(), message });
        }
        Ok(())
    }

    fn coefficients(&self) -> Result<Vector> {
        self.only_binomial("matrix of coefficients, use coefficientMatrix")?;
        Ok(match &self.solution.coefficients {
            Matrix::Dense { values, .. } => Vector::Dense(values.clone()),
            sparse @ Matrix::Sparse { .. } => sparse_vector(&sparse.to_row_major()),
        })
    }

    fn scores(&self, name: &str, arguments: &[Argument]) -> Result<Scores> {
        let [Argument::Value(Value::Vector(vector))] = arguments else { return Err(self.not_allowed(name)) };
        let row = match vector {
            Vector::Dense(values) => VectorRow::Dense(values),
            Vector::Sparse { size, indices, values } => VectorRow::Sparse { size: *size, indices, values },
        };
        Ok(Scores { num_classes: self.prediction.num_classes(), values: self.prediction.raw_of(&row)? })
    }
}

impl Model for LogisticRegressionModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        transform(Arc::new(Prediction::new(&self.solution, params)?), params, schema)
    }

    fn attribute(&self, name: &str, arguments: &[Argument]) -> Result<Attribute> {
        let value = match name {
            "toString" => Value::String(self.describe()),
            "numClasses" => Value::Int(self.solution.num_classes as i32),
            "numFeatures" => Value::Int(self.num_features() as i32),
            "coefficients" => Value::Vector(self.coefficients()?),
            "intercept" => {
                self.only_binomial("vector of intercepts, use interceptVector")?;
                Value::Double(self.solution.intercepts.to_dense()[0])
            }
            "coefficientMatrix" => Value::Matrix(self.solution.coefficients.clone()),
            "interceptVector" => Value::Vector(self.solution.intercepts.clone()),
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
        Some(Arc::new(ClassificationSummary::logistic(&self.params, self.solution.num_classes, None)))
    }

    fn describe(&self) -> String {
        format!(
            "LogisticRegressionModel: uid={}, numClasses={}, numFeatures={}",
            self.params.uid,
            self.solution.num_classes,
            self.num_features()
        )
    }

    fn size_bytes(&self) -> usize {
        // the matrix as it is kept, and dense for predictions
        size_of::<LogisticRegressionModel>() + 16 * self.solution.coefficients.num_rows() * self.num_features()
    }

    fn save(&self) -> Result<Saved> {
        let rows = one_row(vec![
            ("numClasses", Cell::Int(self.solution.num_classes as i32)),
            ("numFeatures", Cell::Int(self.num_features() as i32)),
            ("interceptVector", Cell::Vector(self.solution.intercepts.clone())),
            ("coefficientMatrix", Cell::Matrix(self.solution.coefficients.clone())),
            ("isMultinomial", Cell::Boolean(self.solution.is_multinomial)),
        ])?;
        Ok(Saved { tables: vec![("data".into(), rows)], ..Saved::default() })
    }
}
