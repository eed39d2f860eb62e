//! `QuantileDiscretizer`: finds the splits of a `Bucketizer` that give buckets of like size.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Schema};
use serde::{Deserialize, Serialize};
use train::{RankContext, RankProgram};

use super::bucketizer::{self, FittedBucketizer};
use super::columns;
use super::quantiles::Sketch;
use crate::evaluation::column;
use crate::persist::Saved;
use crate::{
    Check, Error, Estimator, FitPlan, Kind, Model, Operator, Param, ParamType, Params, Result, Value,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.QuantileDiscretizer",
    // an operator of its own, which the catalogue lists first
    model_class: Some("org.apache.spark.ml.feature.Bucketizer"),
    params,
    kind: Kind::Estimator(&QuantileDiscretizer),
};

pub static PROGRAM: RankProgram = RankProgram { name: "quantile_discretizer", run };

fn params() -> Vec<Param> {
    let are_counts = |value: &Value| {
        matches!(value, Value::Array { values, .. } if values.iter().all(|v| matches!(v, Value::Int(2..))))
    };
    let mut params = columns::params();
    params.push(Param::one_of("handleInvalid", "error", &["skip", "error", "keep"]));
    params.push(Param::int("numBuckets", 2, Check::AtLeast(2.0)));
    let counts = Check::Holds(are_counts, "numbers from 2");
    params.push(Param::new("numBucketsArray", ParamType::IntArray, None, counts));
    params.push(Param::double("relativeError", 0.001, Check::Within(0.0, 1.0)));
    params
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fitted {
    /// By column, the quantiles between the buckets, ascending and distinct, as bits: JSON lacks infinities.
    quantiles: Vec<Vec<u64>>,
}

/// `spec` is the number of buckets of each column.
fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let program = PROGRAM.name;
    let counts: Vec<i32> = serde_json::from_slice(spec).map_err(|source| train::Error::Spec { program, source })?;
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); counts.len()];
    for record_batch in &mut *ctx.partition.record_batches {
        for (values, column) in values.iter_mut().zip(record_batch?.columns()) {
            let column = cast(column, &DataType::Float64)?;
            values.extend(column.as_primitive::<Float64Type>().iter().flatten().filter(|value| !value.is_nan()));
        }
    }
    let sketches: Vec<Sketch> = values.into_iter().map(Sketch::of).collect();
    let parts = super::gather(program, ctx, &sketches)?;
    let quantiles = counts.iter().enumerate().map(|(i, count)| {
        let sketch = Sketch::merged(parts.iter().map(|part| &part[i]));
        let at = |bucket: i32| sketch.quantile(f64::from(bucket) / f64::from(*count));
        // both zeros are one split
        let mut found: Vec<f64> = (1..*count).filter_map(at).map(|v| if v == 0.0 { 0.0 } else { v }).collect();
        found.dedup();
        found.retain(|v| v.is_finite());
        found.into_iter().map(f64::to_bits).collect()
    });
    super::on_rank_0(program, ctx, &Fitted { quantiles: quantiles.collect() })
}

struct QuantileDiscretizer;

/// The number of buckets of each column.
fn counts(params: &Params, num_columns: usize) -> Result<Vec<i32>> {
    let Some(Value::Array { values, .. }) = params.get("numBucketsArray") else {
        return Ok(vec![params.int("numBuckets")?; num_columns]);
    };
    if values.len() == num_columns {
        return Ok(values.iter().filter_map(|v| if let Value::Int(v) = v { Some(*v) } else { None }).collect());
    }
    let message = format!(
        "requirement failed: QuantileDiscretizer {} has mismatched Params for multi-column transform. Params (inputCols, \
         numBucketsArray) should have equal lengths, but they have different lengths: ({num_columns}, {}).",
        params.uid,
        values.len()
    );
    Err(Error::InvalidData { class: String::new(), message })
}

impl Estimator for QuantileDiscretizer {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let mut columns = Vec::new();
        for (input, output) in columns::pairs(params)? {
            column::numeric(schema, &input)?;
            columns::check_new(schema, &output)?;
            columns.push(input);
        }
        let spec = serde_json::to_vec(&counts(params, columns.len())?)
            .map_err(|source| train::Error::Spec { program: PROGRAM.name, source })?;
        Ok(FitPlan { columns, program: PROGRAM.name, spec })
    }

    fn model(&self, _: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let Fitted { quantiles } = super::from_rank_0(PROGRAM.name, fitted)?;
        let splits = |quantiles: &Vec<u64>| {
            let inner = quantiles.iter().map(|bits| f64::from_bits(*bits));
            Value::doubles(&[f64::NEG_INFINITY].into_iter().chain(inner).chain([f64::INFINITY]).collect::<Vec<f64>>())
        };
        let mut all: Vec<Value> = quantiles.iter().map(splits).collect();
        let mut supplied: BTreeMap<String, Value> = BTreeMap::new();
        for name in ["inputCol", "inputCols", "outputCol", "outputCols", "handleInvalid"] {
            supplied.extend(params.get(name).map(|value| (name.to_string(), value.clone())));
        }
        if params.is_set("inputCol") {
            supplied.insert("splits".into(), all.pop().unwrap_or(Value::Null));
        } else {
            supplied.remove("outputCol");
            let splits = Value::Array { element: ParamType::DoubleArray, values: all };
            supplied.insert("splitsArray".into(), splits);
        }
        let number = uuid::Uuid::new_v4().simple().to_string();
        let params = Params::new(&bucketizer::OPERATOR, &format!("Bucketizer_{}", &number[..12]), supplied)?;
        Ok(Arc::new(FittedBucketizer { params }))
    }

    fn load(&self, _: &'static Operator, params: &Params, _: &Saved) -> Result<Arc<dyn Model>> {
        Ok(Arc::new(FittedBucketizer { params: params.clone() }))
    }
}
