//! The fitted model: its attributes, its column, its saved form.

use std::sync::Arc;

use arrow::array::Float64Array;
use arrow::datatypes::{DataType, Field, Schema};
use udt::{Matrix, Vector, VectorRow};

use super::program::Fitted;
use crate::linear::margins::Margins;
use crate::linear::params::{check_outputs, features_column};
use crate::linear::saved::{Cell, compress_vector, one_row};
use crate::ml_attr::Attribute as ColumnAttribute;
use crate::persist::Saved;
use crate::summary::regression::{Inference, RegressionSummary};
use crate::{Argument, Attribute, Error, Model, Operator, Params, Result, Summary, TransformStep, Value};

/// A fitted function, and the scale of Huber's loss (else 1).
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    pub coefficients: Vector,
    pub intercept: f64,
    pub scale: f64,
}

pub struct LinearRegressionModel {
    operator: &'static Operator,
    params: Params,
    solution: Solution,
    margins: Margins,
    summary: Option<Arc<RegressionSummary>>,
}

/// What a fit knows beside its solution.
pub struct Training {
    pub objective_history: Vec<f64>,
    pub inverse_diagonal: Vec<f64>,
}

impl LinearRegressionModel {
    pub fn new(
        operator: &'static Operator,
        params: Params,
        solution: Solution,
        training: Option<Training>,
    ) -> LinearRegressionModel {
        let dense = solution.coefficients.to_dense();
        let margins = Margins::new(&Matrix::from_rows(1, dense.len(), dense), &[solution.intercept]);
        let summary = training.map(|training| Arc::new(summary(&params, &solution, Some(training))));
        LinearRegressionModel { operator, params, solution, margins, summary }
    }

    pub(super) fn fitted(operator: &'static Operator, params: Params, fitted: Fitted) -> LinearRegressionModel {
        let coefficients = compress_vector(fitted.coefficients);
        let solution = Solution { coefficients, intercept: fitted.intercept, scale: fitted.scale };
        let training =
            Training { objective_history: fitted.objective_history, inverse_diagonal: fitted.inverse_diagonal };
        LinearRegressionModel::new(operator, params, solution, Some(training))
    }

    fn not_allowed(&self, method: &str) -> Error {
        Error::AttributeNotAllowed { class: self.class().into(), method: method.into() }
    }
}

fn summary(params: &Params, solution: &Solution, training: Option<Training>) -> RegressionSummary {
    let (history, inverse_diagonal) = match training {
        Some(training) => (Some(training.objective_history), training.inverse_diagonal),
        None => (None, vec![0.0]),
    };
    let inference =
        Inference { coefficients: solution.coefficients.to_dense(), intercept: solution.intercept, inverse_diagonal };
    RegressionSummary::linear(params, inference, history)
}

impl Model for LinearRegressionModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let features = features_column(params, schema)?.to_string();
        check_outputs(params, schema, &["predictionCol"])?;
        let Some(prediction) = params.column("predictionCol") else { return Ok(Vec::new()) };
        let margins = self.margins.clone();
        Ok(vec![TransformStep::Append {
            output: Arc::new(ColumnAttribute::numeric().mark(Field::new(prediction, DataType::Float64, false))),
            inputs: vec![features],
            function: Arc::new(move |columns, _| {
                let predicted = margins.of_column(&columns[0])?.pop().unwrap_or_default();
                Ok(Arc::new(Float64Array::from(predicted)))
            }),
        }])
    }

    fn attribute(&self, name: &str, arguments: &[Argument]) -> Result<Attribute> {
        let value = match name {
            "toString" => Value::String(self.describe()),
            "numFeatures" => Value::Int(self.solution.coefficients.size() as i32),
            "coefficients" => Value::Vector(self.solution.coefficients.clone()),
            "intercept" => Value::Double(self.solution.intercept),
            "scale" => Value::Double(self.solution.scale),
            "predict" => {
                let [Argument::Value(Value::Vector(vector))] = arguments else { return Err(self.not_allowed(name)) };
                let row = match vector {
                    Vector::Dense(values) => VectorRow::Dense(values),
                    Vector::Sparse { size, indices, values } => VectorRow::Sparse { size: *size, indices, values },
                };
                Value::Double(self.margins.of_vector(&row)?[0])
            }
            _ => return Err(self.not_allowed(name)),
        };
        Ok(Attribute::Value(value))
    }

    fn summary(&self) -> Option<Arc<dyn Summary>> {
        self.summary.clone().map(|summary| summary as Arc<dyn Summary>)
    }

    fn evaluate(&self) -> Option<Arc<dyn Summary>> {
        Some(Arc::new(summary(&self.params, &self.solution, None)))
    }

    fn describe(&self) -> String {
        let num_features = self.solution.coefficients.size();
        format!("LinearRegressionModel: uid={}, numFeatures={num_features}", self.params.uid)
    }

    fn size_bytes(&self) -> usize {
        // the vector as it is kept, and dense for predictions
        size_of::<LinearRegressionModel>() + 16 * self.solution.coefficients.size()
    }

    fn save(&self) -> Result<Saved> {
        let rows = one_row(vec![
            ("intercept", Cell::Double(self.solution.intercept)),
            ("coefficients", Cell::Vector(self.solution.coefficients.clone())),
            ("scale", Cell::Double(self.solution.scale)),
        ])?;
        Ok(Saved { tables: vec![("data".into(), rows)], ..Saved::default() })
    }
}
