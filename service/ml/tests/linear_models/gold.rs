//! The gold cases and their data, as the script beside them wrote them.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use serde_json::{Map, Value as Json};
use udt::VectorBuilder;

fn read(path: &str) -> Json {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/gold").join(path);
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// A double that JSON may lack.
pub fn number(json: &Json) -> f64 {
    match json {
        Json::String(text) => match text.as_str() {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => f64::NAN,
        },
        json => json.as_f64().unwrap(),
    }
}

pub fn doubles(json: &Json) -> Vec<f64> {
    json.as_array().unwrap().iter().map(number).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Footing {
    /// A minimum that both must find, to the last digits.
    Firm,
    /// Classes that can be told apart, and no penalty: coefficients grow for ever, and only objectives compare.
    Flat,
    /// Cut off by `maxIter` on its way, where rounding errors have had time to grow.
    Unfinished,
    /// Classes of equal weight under OWL-QN: the gradient of an intercept is zero but for rounding, whose sign chooses the
    /// first orthant.
    Balanced,
}

/// One fit of Spark's.
#[derive(Debug)]
pub struct Case {
    pub data: String,
    pub params: Json,
    pub result: Map<String, Json>,
}

impl Case {
    /// Coefficients, then intercepts, then the scale where there is one.
    pub fn parameters(&self) -> Vec<f64> {
        let mut parameters = Vec::new();
        for part in self.result["coefficients"].as_array().unwrap() {
            match part {
                Json::Array(_) => parameters.extend(doubles(part)),
                part => parameters.push(number(part)),
            }
        }
        if let Some(intercepts) = self.result.get("intercepts") {
            parameters.extend(doubles(intercepts));
        }
        parameters.extend(["intercept", "scale"].iter().filter_map(|name| self.result.get(*name)).map(number));
        parameters
    }

    /// How closely a fit can be compared with Spark's.
    pub fn footing(&self) -> Footing {
        let param = |name: &str| self.params.get(name).and_then(Json::as_f64).unwrap_or(0.0);
        let fits_intercept = self.params.get("fitIntercept").and_then(Json::as_bool).unwrap_or(true);
        let is_unweighted = self.params.get("weightCol").is_none();
        let is_penalised = param("regParam") > 0.0;
        if !self.has_converged() {
            Footing::Unfinished
        } else if self.result.contains_key("numClasses") && !is_penalised {
            Footing::Flat
        } else if self.data.starts_with("iris") && param("elasticNetParam") > 0.0 && fits_intercept && is_unweighted {
            Footing::Balanced
        } else {
            Footing::Firm
        }
    }

    /// Whether Spark stopped by itself.
    pub fn has_converged(&self) -> bool {
        let max_iterations = self.params.get("maxIter").and_then(Json::as_u64).unwrap_or(100);
        self.result["totalIterations"].as_u64().unwrap() < max_iterations
    }
}

pub struct Cases;

impl Cases {
    pub fn read(kind: &str) -> Vec<Case> {
        let mut gold = read("linear_models.json");
        let cases = gold[kind].as_array_mut().unwrap();
        let of = |case: Json| {
            let Json::Object(mut result) = case else { panic!("a case is an object") };
            let data = result.remove("data").unwrap().as_str().unwrap().to_string();
            Case { data, params: result.remove("params").unwrap(), result }
        };
        std::mem::take(cases).into_iter().map(of).collect()
    }
}

/// A small data set: label, weight, features.
pub struct Data {
    pub num_features: usize,
    labels: Vec<f64>,
    weights: Vec<f64>,
    rows: Vec<Row>,
}

enum Row {
    Dense(Vec<f64>),
    Sparse(Vec<i32>, Vec<f64>),
}

impl Data {
    pub fn read(name: &str) -> Data {
        let json = read(&format!("data/{name}.json"));
        let values = json["values"].as_array().unwrap().iter().map(doubles);
        let rows = match json["indices"].as_array() {
            None => values.map(Row::Dense).collect(),
            Some(indices) => {
                let ints = |json: &Json| json.as_array().unwrap().iter().map(|i| i.as_i64().unwrap() as i32).collect();
                indices.iter().map(ints).zip(values).map(|(indices, values)| Row::Sparse(indices, values)).collect()
            }
        };
        Data {
            num_features: json["numFeatures"].as_u64().unwrap() as usize,
            labels: doubles(&json["labels"]),
            weights: doubles(&json["weights"]),
            rows,
        }
    }

    pub fn num_rows(&self) -> usize {
        self.rows.len()
    }

    pub fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("label", DataType::Float64, false),
            Field::new("weight", DataType::Float64, false),
            udt::field::vector_field("features"),
        ]))
    }

    /// Some rows. Features keep their storage.
    pub fn batch(&self, rows: std::ops::Range<usize>) -> RecordBatch {
        let mut features = VectorBuilder::default();
        for row in &self.rows[rows.clone()] {
            match row {
                Row::Dense(values) => features.append_dense(values),
                Row::Sparse(indices, values) => features.append_sparse(self.num_features, indices, values),
            }
        }
        let column = |values: &[f64]| -> ArrayRef { Arc::new(Float64Array::from(values[rows.clone()].to_vec())) };
        let columns = vec![column(&self.labels), column(&self.weights), features.finish()];
        RecordBatch::try_new(Data::schema(), columns).unwrap()
    }
}
