//! `LogisticRegression`: binomial or multinomial, with an elastic net penalty or within bounds.
//!
//! The estimator plans; [`program`] trains, on every rank; [`model`] predicts; [`crate::summary::classification`] tells
//! how well.

mod bounds;
mod model;
mod program;
mod solution;

use std::sync::Arc;

use arrow::datatypes::Schema;
use udt::{Matrix, Vector};

use crate::evaluation::column;
use crate::linear::params::{check_outputs, shared, training_columns};
use crate::linear::saved::SavedRow;
use crate::ml_attr::Attribute;
use crate::persist::Saved;
use crate::{Check, Error, Estimator, FitPlan, Kind, Model, Operator, Param, ParamType, Params, Result, Value};

use bounds::Bounds;
pub use model::LogisticRegressionModel;
pub use program::PROGRAM;
use program::{Family, Fitted, Spec};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.classification.LogisticRegression",
    model_class: Some("org.apache.spark.ml.classification.LogisticRegressionModel"),
    params,
    kind: Kind::Estimator(&LogisticRegression),
};

fn params() -> Vec<Param> {
    let mut params = shared();
    params.extend([
        Param::one_of("family", "auto", &["auto", "binomial", "multinomial"]),
        Param::unset("lowerBoundsOnCoefficients", ParamType::Matrix),
        Param::unset("lowerBoundsOnIntercepts", ParamType::Vector),
        Param::string("probabilityCol", "probability"),
        Param::string("rawPredictionCol", "rawPrediction"),
        Param::double("threshold", 0.5, Check::Within(0.0, 1.0)),
        Param::new(
            "thresholds",
            ParamType::DoubleArray,
            None,
            Check::Holds(
                super::prediction::are_thresholds,
                "numbers that are not negative, at most one of which is zero",
            ),
        ),
        Param::unset("upperBoundsOnCoefficients", ParamType::Matrix),
        Param::unset("upperBoundsOnIntercepts", ParamType::Vector),
    ]);
    params
}

struct LogisticRegression;

impl Estimator for LogisticRegression {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        check_thresholds(params)?;
        let bounds = bounds(params)?;
        let columns = training_columns(params, schema)?;
        check_outputs(params, schema, &["rawPredictionCol", "probabilityCol", "predictionCol"])?;
        let label = Attribute::of_column(column::field(schema, params.string("labelCol")?)?);
        let spec = Spec {
            columns: columns.clone(),
            family: Family::named(params.string("family")?),
            reg_param: params.double("regParam")?,
            elastic_net: params.double("elasticNetParam")?,
            max_iterations: params.int("maxIter")? as usize,
            tolerance: params.double("tol")?,
            fits_intercept: params.boolean("fitIntercept")?,
            is_standardized: params.boolean("standardization")?,
            num_classes: label.and_then(|label| label.num_values()),
            num_thresholds: params.doubles("thresholds").ok().map(|thresholds| thresholds.len()),
            bounds,
        };
        let spec = serde_json::to_vec(&spec).map_err(|source| train::Error::Spec { program: PROGRAM.name, source })?;
        Ok(FitPlan { columns, program: PROGRAM.name, spec })
    }

    fn model(
        &self,
        operator: &'static Operator,
        params: &Params,
        _schema: &Schema,
        fitted: &[u8],
    ) -> Result<Arc<dyn Model>> {
        let fitted: Fitted =
            serde_json::from_slice(fitted).map_err(|source| train::Error::Spec { program: PROGRAM.name, source })?;
        Ok(Arc::new(LogisticRegressionModel::fitted(operator, params.clone(), fitted)?))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let row = SavedRow::new("data", saved.table("data")?)?;
        let solution = solution::Solution {
            num_classes: usize::try_from(row.int("numClasses")?).unwrap_or(0),
            is_multinomial: row.boolean("isMultinomial")?,
            coefficients: row.matrix("coefficientMatrix")?,
            intercepts: row.vector("interceptVector")?,
        };
        let num_features = row.int("numFeatures")?;
        let expected = if solution.is_multinomial { solution.num_classes } else { 1 };
        let is_sound = solution.coefficients.num_rows() == expected
            && solution.intercepts.size() == expected
            && usize::try_from(num_features) == Ok(solution.coefficients.num_cols());
        if !is_sound {
            let detail = "coefficientMatrix, interceptVector, numClasses and numFeatures contradict each other";
            return Err(Error::Corrupted { path: "data".into(), detail: detail.into() });
        }
        Ok(Arc::new(LogisticRegressionModel::new(operator, params.clone(), solution, None)?))
    }
}

/// Whether `threshold` and `thresholds`, if a client set both, say the same.
fn check_thresholds(params: &Params) -> Result<()> {
    if !params.is_set("threshold") || !params.is_set("thresholds") {
        return Ok(());
    }
    let (threshold, thresholds) = (params.double("threshold")?, params.doubles("thresholds")?);
    let invalid = |detail: String| Error::InvalidParam {
        operator: params.uid.clone(),
        param: "threshold".into(),
        value: udt::vector::java_double(threshold),
        detail,
    };
    let [low, high] = thresholds[..] else {
        let detail = format!(", which is for two classes, but thresholds has length {}", thresholds.len());
        return Err(invalid(detail));
    };
    let equivalent = 1.0 / (1.0 + low / high);
    if (threshold - equivalent).abs() < 1e-5 {
        return Ok(());
    }
    Err(invalid(format!(", but thresholds is set too, and equivalent to {}", udt::vector::java_double(equivalent))))
}

/// The bounds a client set, row-major; checked against shapes once those are known.
fn bounds(params: &Params) -> Result<Option<Bounds>> {
    let matrix = |name: &str| match params.get(name) {
        Some(Value::Matrix(matrix)) => Some(matrix.clone()),
        _ => None,
    };
    let vector = |name: &str| match params.get(name) {
        Some(Value::Vector(vector)) => Some(vector.to_dense()),
        _ => None,
    };
    let rows = |matrix: Option<Matrix>| matrix.map(|m| (m.num_rows(), m.num_cols(), m.to_row_major()));
    let bounds = Bounds {
        lower_coefficients: rows(matrix("lowerBoundsOnCoefficients")).map(Into::into),
        upper_coefficients: rows(matrix("upperBoundsOnCoefficients")).map(Into::into),
        lower_intercepts: vector("lowerBoundsOnIntercepts"),
        upper_intercepts: vector("upperBoundsOnIntercepts"),
    };
    if bounds.is_empty() {
        return Ok(None);
    }
    let refused = |param: &str, value: String, detail: &str| Error::InvalidParam {
        operator: params.uid.clone(),
        param: param.into(),
        value,
        detail: detail.into(),
    };
    let elastic_net = params.double("elasticNetParam")?;
    if elastic_net != 0.0 {
        let detail = ": fitting under bound constrained optimization only supports L2 regularization";
        return Err(refused("elasticNetParam", udt::vector::java_double(elastic_net), detail));
    }
    let intercepts = bounds.lower_intercepts.as_ref().or(bounds.upper_intercepts.as_ref());
    if let (false, Some(intercepts)) = (params.boolean("fitIntercept")?, intercepts) {
        let name =
            if bounds.lower_intercepts.is_some() { "lowerBoundsOnIntercepts" } else { "upperBoundsOnIntercepts" };
        let shown = Vector::Dense(intercepts.clone()).to_string();
        return Err(refused(name, shown, ": please don't set bounds on intercepts if fitting without intercept"));
    }
    Ok(Some(bounds))
}
