//! `BinaryClassificationEvaluator`: areas under the ROC and the precision-recall curve.

use arrow::datatypes::Schema;

use super::binary_metrics::{BinaryAccumulator, NUM_BINS, not_same};
use super::column;
use crate::{Accumulator, Check, Error, Evaluator, Kind, Operator, Param, ParamType, Params, Result};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.evaluation.BinaryClassificationEvaluator",
    model_class: None,
    params,
    kind: Kind::Evaluator(&BinaryClassificationEvaluator),
};

fn params() -> Vec<Param> {
    vec![
        Param::string("labelCol", "label"),
        Param::one_of("metricName", "areaUnderROC", &["areaUnderROC", "areaUnderPR"]),
        Param::int("numBins", NUM_BINS as i32, Check::AtLeast(0.0)),
        Param::string("rawPredictionCol", "rawPrediction"),
        Param::unset("weightCol", ParamType::String),
    ]
}

struct BinaryClassificationEvaluator;

impl Evaluator for BinaryClassificationEvaluator {
    fn columns(&self, params: &Params, schema: &Schema) -> Result<Vec<String>> {
        let score = params.string("rawPredictionCol")?;
        let field = column::field(schema, score)?;
        if !(field.data_type().is_floating() || udt::field::is_vector(field)) {
            return Err(column::wrong_type(score, "double or vector", field));
        }
        let label = params.string("labelCol")?;
        column::numeric(schema, label)?;
        let weight = column::weight(params, schema)?;
        Ok([score, label].into_iter().chain(weight).map(String::from).collect())
    }

    fn accumulator(&self, _: &Params) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(BinaryAccumulator::default()))
    }

    fn evaluate(&self, params: &Params, accumulator: Box<dyn Accumulator>) -> Result<f64> {
        let accumulator = accumulator.into_any().downcast::<BinaryAccumulator>().map_err(|_| not_same())?;
        let metrics = accumulator.metrics(params.int("numBins")? as usize);
        match params.string("metricName")? {
            "areaUnderROC" => Ok(metrics.area_under_roc()),
            "areaUnderPR" => Ok(metrics.area_under_pr()),
            other => Err(Error::Bug { invariant: format!("metric {other} was checked") }),
        }
    }
}
