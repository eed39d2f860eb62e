//! `Bucketizer`: the number of the interval that a number lies in. Set by hand, or fitted by `QuantileDiscretizer`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use udt::vector::java_double;

use super::columns;
use crate::evaluation::column;
use crate::persist::Saved;
use crate::{
    Argument, Attribute, Check, Error, Kind, Model, Operator, Param, ParamType, Params, Result, TransformStep,
    Transformer, Value, ml_attr,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.Bucketizer",
    model_class: None,
    params,
    kind: Kind::Transformer(&Bucketizer),
};

fn params() -> Vec<Param> {
    let mut params = columns::params();
    params.push(Param::one_of("handleInvalid", "error", &["skip", "error", "keep"]));
    let (one, many) = (Check::Holds(are_splits, RISING), Check::Holds(are_all_splits, RISING));
    params.push(Param::new("splits", ParamType::DoubleArray, None, one));
    params.push(Param::new("splitsArray", ParamType::DoubleArrayArray, None, many));
    params
}

const RISING: &str = "at least three strictly rising numbers";

fn doubles(value: &Value) -> Vec<f64> {
    let Value::Array { values, .. } = value else { return Vec::new() };
    values.iter().filter_map(|v| if let Value::Double(v) = v { Some(*v) } else { None }).collect()
}

fn are_splits(value: &Value) -> bool {
    let splits = doubles(value);
    splits.len() >= 3 && splits.windows(2).all(|pair| pair[0] < pair[1])
}

fn are_all_splits(value: &Value) -> bool {
    matches!(value, Value::Array { values, .. } if values.iter().all(are_splits))
}

struct Bucketizer;

impl Transformer for Bucketizer {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let invalid = params.string("handleInvalid")?.to_string();
        let pairs = columns::pairs(params)?;
        let splits = splits(params, pairs.len())?;
        let mut steps = Vec::new();
        for ((input, output), splits) in pairs.into_iter().zip(splits) {
            column::numeric(schema, &input)?;
            columns::check_new(schema, &output)?;
            if invalid == "skip" {
                let function = Arc::new(|columns: &[ArrayRef], _: usize| present(&columns[0]));
                steps.push(TransformStep::Filter { inputs: vec![input.clone()], function });
            }
            let levels: Vec<String> =
                splits.windows(2).map(|pair| format!("{}, {}", java_double(pair[0]), java_double(pair[1]))).collect();
            let attribute = ml_attr::Attribute::nominal_with_values(&levels).with_ordinal(true);
            let keeps_invalid = invalid == "keep";
            steps.push(TransformStep::Append {
                output: Arc::new(attribute.mark(Field::new(&output, DataType::Float64, true))),
                inputs: vec![input],
                function: Arc::new(move |columns, _| bucketed(&columns[0], &splits, keeps_invalid)),
            });
        }
        Ok(steps)
    }
}

/// A bucketizer that was fitted: its splits are params, as if set by hand.
pub struct FittedBucketizer {
    pub params: Params,
}

impl Model for FittedBucketizer {
    fn operator(&self) -> &'static Operator {
        &OPERATOR
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        Bucketizer.transform(params, schema)
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        let param = match name {
            "getSplits" => "splits",
            "getSplitsArray" => "splitsArray",
            _ => return Err(Error::AttributeNotAllowed { class: self.class().into(), method: name.into() }),
        };
        let not_set = || Error::ParamNotSet { operator: self.params.uid.clone(), param: param.into() };
        self.params.get(param).cloned().map(Attribute::Value).ok_or_else(not_set)
    }

    fn describe(&self) -> String {
        format!("Bucketizer: uid={}", self.params.uid)
    }

    fn size_bytes(&self) -> usize {
        1024
    }

    fn save(&self) -> Result<Saved> {
        Ok(Saved::default())
    }
}

/// The splits of each column.
fn splits(params: &Params, num_columns: usize) -> Result<Vec<Vec<f64>>> {
    if params.is_set("inputCol") {
        return Ok(vec![params.doubles("splits")?]);
    }
    let Some(Value::Array { values, .. }) = params.get("splitsArray") else {
        return Err(Error::ParamNotSet { operator: params.uid.clone(), param: "splitsArray".into() });
    };
    if values.len() == num_columns {
        return Ok(values.iter().map(doubles).collect());
    }
    let message = format!(
        "requirement failed: Bucketizer {} has mismatched Params for multi-column transform. Params (inputCols, \
         splitsArray) should have equal lengths, but they have different lengths: ({num_columns}, {}).",
        params.uid,
        values.len()
    );
    Err(Error::InvalidData { class: String::new(), message })
}

/// True where there is a number.
fn present(column: &ArrayRef) -> Result<ArrayRef> {
    let doubles = cast(column, &DataType::Float64)?;
    let mask: Vec<bool> =
        doubles.as_primitive::<Float64Type>().iter().map(|v| v.is_some_and(|v| !v.is_nan())).collect();
    Ok(Arc::new(BooleanArray::from(mask)))
}

fn bucketed(column: &ArrayRef, splits: &[f64], keeps_invalid: bool) -> Result<ArrayRef> {
    let doubles = cast(column, &DataType::Float64)?;
    let buckets = doubles.as_primitive::<Float64Type>().iter();
    let buckets = buckets.map(|v| v.map(|v| bucket(v, splits, keeps_invalid)).transpose());
    Ok(Arc::new(buckets.collect::<Result<Float64Array>>()?))
}

/// The last interval has both its ends, the others only their lower one.
fn bucket(value: f64, splits: &[f64], keeps_invalid: bool) -> Result<f64> {
    let num_buckets = splits.len() - 1;
    let (low, high) = (splits[0], splits[num_buckets]);
    if value.is_nan() {
        return match keeps_invalid {
            true => Ok(num_buckets as f64),
            false => Err(Error::InvalidRow {
                message: "Bucketizer encountered NaN value. To handle or skip NaNs, try setting \
                          Bucketizer.handleInvalid."
                    .into(),
            }),
        };
    }
    if value < low || value > high {
        let message = format!(
            "Feature value {} out of Bucketizer bounds [{}, {}]. Check your features, or loosen the lower/upper bound \
             constraints.",
            java_double(value),
            java_double(low),
            java_double(high)
        );
        return Err(Error::InvalidRow { message });
    }
    let not_above = splits.partition_point(|split| *split <= value);
    Ok(not_above.min(num_buckets).saturating_sub(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_intervals_belong_to_the_one_above_but_for_the_last() {
        let splits = [0.0, 1.0, 2.0];
        assert_eq!([0.0, 0.5, 1.0, 2.0].map(|v| bucket(v, &splits, false).unwrap()), [0.0, 0.0, 1.0, 1.0]);
        assert!(bucket(2.1, &splits, true).is_err());
    }
}
