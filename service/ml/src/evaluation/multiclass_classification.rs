//! `MulticlassClassificationEvaluator`: metrics of predicted classes.

use arrow::datatypes::Schema;

use super::binary_metrics::not_same;
use super::column;
use super::multiclass_metrics::MulticlassAccumulator;
use crate::{Accumulator, Check, Error, Evaluator, Kind, Operator, Param, ParamType, Params, Result, Value};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.evaluation.MulticlassClassificationEvaluator",
    model_class: None,
    params,
    kind: Kind::Evaluator(&MulticlassClassificationEvaluator),
};

const METRICS: &[&str] = &[
    "f1",
    "accuracy",
    "weightedPrecision",
    "weightedRecall",
    "weightedTruePositiveRate",
    "weightedFalsePositiveRate",
    "weightedFMeasure",
    "truePositiveRateByLabel",
    "falsePositiveRateByLabel",
    "precisionByLabel",
    "recallByLabel",
    "fMeasureByLabel",
    "logLoss",
    "hammingLoss",
];

fn params() -> Vec<Param> {
    let is_eps = |value: &Value| matches!(value, Value::Double(v) if *v > 0.0 && *v < 0.5);
    vec![
        Param::double("beta", 1.0, Check::Above(0.0)),
        Param::double("eps", 1e-15, Check::Holds(is_eps, "a number between 0 and 0.5")),
        Param::string("labelCol", "label"),
        Param::double("metricLabel", 0.0, Check::AtLeast(0.0)),
        Param::one_of("metricName", "f1", METRICS),
        Param::string("predictionCol", "prediction"),
        Param::string("probabilityCol", "probability"),
        Param::unset("weightCol", ParamType::String),
    ]
}

struct MulticlassClassificationEvaluator;

fn needs_probability(params: &Params) -> Result<bool> {
    Ok(params.string("metricName")? == "logLoss")
}

impl Evaluator for MulticlassClassificationEvaluator {
    fn columns(&self, params: &Params, schema: &Schema) -> Result<Vec<String>> {
        let (prediction, label) = (params.string("predictionCol")?, params.string("labelCol")?);
        column::numeric(schema, prediction)?;
        column::numeric(schema, label)?;
        let mut columns = vec![prediction, label];
        columns.extend(column::weight(params, schema)?);
        if needs_probability(params)? {
            let probability = params.string("probabilityCol")?;
            let field = column::field(schema, probability)?;
            if !udt::field::is_vector(field) {
                return Err(column::wrong_type(probability, "vector", field));
            }
            columns.push(probability);
        }
        Ok(columns.into_iter().map(String::from).collect())
    }

    fn accumulator(&self, params: &Params) -> Result<Box<dyn Accumulator>> {
        let eps = if needs_probability(params)? { Some(params.double("eps")?) } else { None };
        Ok(Box::new(MulticlassAccumulator::new(params.column("weightCol").is_some(), eps)))
    }

    fn evaluate(&self, params: &Params, accumulator: Box<dyn Accumulator>) -> Result<f64> {
        let accumulator = accumulator.into_any().downcast::<MulticlassAccumulator>().map_err(|_| not_same())?;
        let metrics = accumulator.metrics();
        let (label, beta) = (params.double("metricLabel")?, params.double("beta")?);
        Ok(match params.string("metricName")? {
            "f1" => metrics.weighted_f_measure(1.0),
            "accuracy" => metrics.accuracy(),
            "weightedPrecision" => metrics.weighted_precision(),
            "weightedRecall" | "weightedTruePositiveRate" => metrics.weighted_recall(),
            "weightedFalsePositiveRate" => metrics.weighted_false_positive_rate(),
            "weightedFMeasure" => metrics.weighted_f_measure(beta),
            "truePositiveRateByLabel" | "recallByLabel" => metrics.recall(label),
            "falsePositiveRateByLabel" => metrics.false_positive_rate(label),
            "precisionByLabel" => metrics.precision(label),
            "fMeasureByLabel" => metrics.f_measure(label, beta),
            "logLoss" => metrics.log_loss(),
            "hammingLoss" => metrics.hamming_loss(),
            other => return Err(Error::Bug { invariant: format!("metric {other} was checked") }),
        })
    }
}
