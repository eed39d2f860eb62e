//! `MultilayerPerceptronClassifier`: layers of sigmoids with a softmax on top, trained by L-BFGS or gradient descent.
//!
//! The estimator plans; [`program`] trains, on every rank; [`network`] is the objective; [`model`] predicts.

mod model;
mod network;
mod program;
mod random;

use std::sync::Arc;

use arrow::datatypes::Schema;

use crate::linear::params::{check_outputs, training_columns};
use crate::linear::saved::SavedRow;
use crate::persist::Saved;
use crate::{Check, Error, Estimator, FitPlan, Kind, Model, Operator, Param, ParamType, Params, Result, Value};

use model::MultilayerPerceptronModel;
use network::Network;
pub use program::PROGRAM;
use program::{Fitted, Solver, Spec};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.classification.MultilayerPerceptronClassifier",
    model_class: Some("org.apache.spark.ml.classification.MultilayerPerceptronClassificationModel"),
    params,
    kind: Kind::Estimator(&MultilayerPerceptron),
};

/// Java's hash of the estimator's class name, Spark's seed where none is set.
const DEFAULT_SEED: i64 = -763_139_545;

fn params() -> Vec<Param> {
    vec![
        Param::int("blockSize", 128, Check::Above(0.0)),
        Param::string("featuresCol", "features"),
        Param::unset("initialWeights", ParamType::Vector),
        Param::string("labelCol", "label"),
        Param::new("layers", ParamType::IntArray, None, Check::Holds(are_layers, "at least two sizes, all above zero")),
        Param::int("maxIter", 100, Check::AtLeast(0.0)),
        Param::string("predictionCol", "prediction"),
        Param::string("probabilityCol", "probability"),
        Param::string("rawPredictionCol", "rawPrediction"),
        Param::new("seed", ParamType::Long, Some(Value::Long(DEFAULT_SEED)), Check::Any),
        Param::one_of("solver", "l-bfgs", &["gd", "l-bfgs"]),
        Param::double("stepSize", 0.03, Check::Above(0.0)),
        Param::new(
            "thresholds",
            ParamType::DoubleArray,
            None,
            Check::Holds(
                super::prediction::are_thresholds,
                "numbers that are not negative, at most one of which is zero",
            ),
        ),
        Param::double("tol", 1e-6, Check::AtLeast(0.0)),
    ]
}

fn are_layers(value: &Value) -> bool {
    let Value::Array { values, .. } = value else { return false };
    values.len() > 1 && values.iter().all(|v| matches!(v, Value::Int(v) if *v > 0))
}

struct MultilayerPerceptron;

impl Estimator for MultilayerPerceptron {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let network = network(params)?;
        let columns = training_columns(params, schema)?;
        check_outputs(params, schema, &["rawPredictionCol", "probabilityCol", "predictionCol"])?;
        model::check_thresholds(params, network.num_classes())?;
        let initial_weights = match params.get("initialWeights") {
            Some(Value::Vector(weights)) if weights.size() == network.num_weights() => Some(weights.to_dense()),
            Some(Value::Vector(weights)) => {
                let detail = format!(
                    ": requirement failed: Expected weight vector of size {} but got size {}.",
                    network.num_weights(),
                    weights.size()
                );
                let (operator, param) = (params.uid.clone(), String::from("initialWeights"));
                return Err(Error::InvalidParam { operator, param, value: weights.to_string(), detail });
            }
            _ => None,
        };
        let spec = Spec {
            columns: columns.clone(),
            layers: network.layers().to_vec(),
            initial_weights,
            seed: params.long("seed")?,
            block_rows: params.int("blockSize")? as usize,
            max_iterations: params.int("maxIter")? as usize,
            tolerance: params.double("tol")?,
            solver: match params.string("solver")?.eq_ignore_ascii_case("gd") {
                true => Solver::GradientDescent { step_size: params.double("stepSize")? },
                false => Solver::Lbfgs,
            },
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
        let history = Some(fitted.objective_history);
        let network = network(params)?;
        Ok(Arc::new(MultilayerPerceptronModel::new(operator, params.clone(), network, fitted.weights, history)?))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let weights = SavedRow::new("data", saved.table("data")?)?.vector("weights")?.to_dense();
        let network = network(params)?;
        if weights.len() != network.num_weights() {
            let detail = format!("expected {} weights, found {}", network.num_weights(), weights.len());
            return Err(Error::Corrupted { path: "data".into(), detail });
        }
        Ok(Arc::new(MultilayerPerceptronModel::new(operator, params.clone(), network, weights, None)?))
    }
}

fn network(params: &Params) -> Result<Network> {
    Ok(Network::new(params.ints("layers")?.into_iter().map(|size| size as usize).collect()))
}
