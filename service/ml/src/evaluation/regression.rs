//! `RegressionEvaluator`: metrics of predicted numbers.

use arrow::datatypes::Schema;

use super::binary_metrics::not_same;
use super::column;
use super::regression_metrics::RegressionAccumulator;
use crate::{Accumulator, Error, Evaluator, Kind, Operator, Param, ParamType, Params, Result};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.evaluation.RegressionEvaluator",
    model_class: None,
    params,
    kind: Kind::Evaluator(&RegressionEvaluator),
};

fn params() -> Vec<Param> {
    vec![
        Param::string("labelCol", "label"),
        Param::one_of("metricName", "rmse", &["mse", "rmse", "r2", "mae", "var"]),
        Param::string("predictionCol", "prediction"),
        Param::boolean("throughOrigin", false),
        Param::unset("weightCol", ParamType::String),
    ]
}

struct RegressionEvaluator;

impl Evaluator for RegressionEvaluator {
    fn columns(&self, params: &Params, schema: &Schema) -> Result<Vec<String>> {
        let (prediction, label) = (params.string("predictionCol")?, params.string("labelCol")?);
        column::numeric(schema, prediction)?;
        column::numeric(schema, label)?;
        let weight = column::weight(params, schema)?;
        Ok([prediction, label].into_iter().chain(weight).map(String::from).collect())
    }

    fn accumulator(&self, _: &Params) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(RegressionAccumulator::default()))
    }

    fn evaluate(&self, params: &Params, accumulator: Box<dyn Accumulator>) -> Result<f64> {
        let metrics = accumulator.into_any().downcast::<RegressionAccumulator>().map_err(|_| not_same())?;
        Ok(match params.string("metricName")? {
            "mse" => metrics.mean_squared_error(),
            "rmse" => metrics.root_mean_squared_error(),
            "r2" => metrics.r2(params.boolean("throughOrigin")?),
            "mae" => metrics.mean_absolute_error(),
            "var" => metrics.explained_variance(),
            other => return Err(Error::Bug { invariant: format!("metric {other} was checked") }),
        })
    }
}
