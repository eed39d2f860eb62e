//! `LinearRegression`: squared error or Huber's, by the normal equation or by minimizing.
//!
//! The estimator plans; [`program`] trains, on every rank; [`model`] predicts; [`crate::summary::regression`] tells how
//! well.

mod model;
mod normal;
mod program;

use std::sync::Arc;

use arrow::datatypes::Schema;

use crate::linear::params::{check_outputs, shared, training_columns};
use crate::linear::saved::SavedRow;
use crate::persist::Saved;
use crate::{Check, Error, Estimator, FitPlan, Kind, Model, Operator, Param, Params, Result};

pub use model::LinearRegressionModel;
use model::Solution;
pub use program::PROGRAM;
use program::{Fitted, Loss, Solver, Spec};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.regression.LinearRegression",
    model_class: Some("org.apache.spark.ml.regression.LinearRegressionModel"),
    params,
    kind: Kind::Estimator(&LinearRegression),
};

fn params() -> Vec<Param> {
    let mut params = shared();
    params.extend([
        Param::double("epsilon", 1.35, Check::Above(1.0)),
        Param::one_of("loss", "squaredError", &["squaredError", "huber"]),
        Param::one_of("solver", "auto", &["auto", "normal", "l-bfgs"]),
    ]);
    params
}

struct LinearRegression;

impl Estimator for LinearRegression {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let columns = training_columns(params, schema)?;
        check_outputs(params, schema, &["predictionCol"])?;
        let loss = if params.string("loss")?.eq_ignore_ascii_case("huber") { Loss::Huber } else { Loss::SquaredError };
        let solver = match params.string("solver")?.to_ascii_lowercase().as_str() {
            "normal" => Solver::Normal,
            "l-bfgs" => Solver::Lbfgs,
            _ => Solver::Auto,
        };
        check_huber(params, loss, solver)?;
        let spec = Spec {
            columns: columns.clone(),
            loss,
            solver,
            epsilon: params.double("epsilon")?,
            reg_param: params.double("regParam")?,
            elastic_net: params.double("elasticNetParam")?,
            max_iterations: params.int("maxIter")? as usize,
            tolerance: params.double("tol")?,
            fits_intercept: params.boolean("fitIntercept")?,
            is_standardized: params.boolean("standardization")?,
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
        Ok(Arc::new(LinearRegressionModel::fitted(operator, params.clone(), fitted)))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let row = SavedRow::new("data", saved.table("data")?)?;
        let solution = Solution {
            coefficients: row.vector("coefficients")?,
            intercept: row.double("intercept")?,
            scale: row.double("scale")?,
        };
        Ok(Arc::new(LinearRegressionModel::new(operator, params.clone(), solution, None)))
    }
}

/// Huber's loss has no normal equation, and no L1 penalty.
fn check_huber(params: &Params, loss: Loss, solver: Solver) -> Result<()> {
    let refused = |param: &str, value: String, detail: &str| Error::InvalidParam {
        operator: params.uid.clone(),
        param: param.into(),
        value,
        detail: detail.into(),
    };
    if loss == Loss::SquaredError {
        return Ok(());
    }
    if solver == Solver::Normal {
        let detail =
            ": LinearRegression with huber loss doesn't support normal solver, please change solver to auto or l-bfgs";
        return Err(refused("solver", "normal".into(), detail));
    }
    let elastic_net = params.double("elasticNetParam")?;
    if elastic_net != 0.0 {
        let detail = ": LinearRegression with huber loss only supports L2 regularization";
        return Err(refused("elasticNetParam", udt::vector::java_double(elastic_net), detail));
    }
    Ok(())
}
