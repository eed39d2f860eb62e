//! What is kept of a version beside the estimator's own files: `version.json`.

use std::collections::BTreeMap;

use arrow::datatypes::Field;
use engine::data_type::{field_from_json, field_to_json};
use ml::tabular::{Classes, FeatureStatistics, Features};
use serde::{Deserialize, Serialize};

use super::stage::KeptTransform;
use crate::{Error, Result};

/// The file's name, and where the estimator's model is beside it.
pub const FILE: &str = "version.json";
pub const MODEL_FOLDER: &str = "model";
/// The layout that is written. A greater one is refused.
pub const FORMAT: u32 = 1;

/// A column as it was in training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptColumn {
    pub name: String,
    /// Spark's JSON of its type.
    pub data_type: serde_json::Value,
}

impl KeptColumn {
    pub fn of(field: &Field) -> KeptColumn {
        KeptColumn { name: field.name().clone(), data_type: field_to_json(field) }
    }

    /// # Errors
    /// A type that cannot be read.
    pub fn field(&self) -> Result<Field> {
        Ok(field_from_json(&self.name, &self.data_type, true)?)
    }
}

/// One metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptMetric {
    pub trial_id: Option<i32>,
    /// `validation`, `test` or `input`.
    pub split: String,
    /// None: over all classes.
    pub class: Option<String>,
    pub metric: String,
    pub value: f64,
    pub rows: u64,
}

/// How often rows of one class were taken for another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptConfusion {
    pub trial_id: Option<i32>,
    pub split: String,
    pub actual: String,
    pub predicted: String,
    pub rows: u64,
    pub weight: f64,
}

/// A step of a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptStep {
    pub trial_id: Option<i32>,
    pub fold: Option<i32>,
    pub iteration: u64,
    pub train_loss: f64,
    pub rows_per_s: Option<f64>,
    /// Since the fit began.
    pub duration_ms: u64,
}

/// A trial of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptTrial {
    pub trial_id: i32,
    /// `SUCCEEDED`, `STOPPED` or `FAILED`.
    pub status: String,
    pub params: BTreeMap<String, String>,
    pub metric: String,
    pub value: Option<f64>,
    pub fold_values: Vec<f64>,
    pub iterations: u64,
    pub stopped_early: bool,
    pub is_optimal: bool,
    pub duration_ms: u64,
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptWarning {
    pub code: String,
    pub message: String,
}

/// How many rows went where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    pub train: u64,
    pub validation: u64,
    pub test: u64,
    pub skipped: u64,
}

/// A version of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    pub format: u32,
    pub training_id: String,
    /// The name in SQL.
    pub estimator: String,
    /// Spark's class of the estimator.
    pub class: String,
    /// `classification` or `regression`.
    pub task: String,
    /// What was set, under its name in SQL, as SQL.
    pub options: BTreeMap<String, String>,
    pub label: KeptColumn,
    pub classes: Option<Classes>,
    pub weight: Option<String>,
    pub features: Features,
    pub statistics: Vec<FeatureStatistics>,
    /// TRANSFORM, if the statement had one.
    #[serde(default)]
    pub transform: Option<KeptTransform>,
    pub handle_invalid: String,
    /// In words.
    pub split: String,
    pub seed: i64,
    pub counts: Counts,
    pub metrics: Vec<KeptMetric>,
    pub confusion: Vec<KeptConfusion>,
    pub steps: Vec<KeptStep>,
    pub trials: Vec<KeptTrial>,
    pub best_params: BTreeMap<String, String>,
    pub warnings: Vec<KeptWarning>,
    /// With the values of its parameters in it; secrets are left out.
    pub statement: String,
    pub workers: u32,
    /// RFC 3339.
    pub started_at: String,
    pub duration_ms: u64,
    pub created_by: String,
    /// Versions by name.
    pub software: BTreeMap<String, String>,
    /// Of the rows that were trained on, whatever their order.
    pub fingerprint: String,
}

impl Document {
    pub fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec_pretty(self).map_err(|source| Error::Encode { source })
    }

    /// # Errors
    /// A format of a later version; what is no document.
    pub fn decode(content: &[u8], path: &str) -> Result<Document> {
        let corrupted =
            |error: serde_json::Error| registry::Error::Corrupted { path: path.into(), detail: error.to_string() };
        let head: serde_json::Value = serde_json::from_slice(content).map_err(corrupted)?;
        let found = head["format"].as_u64().unwrap_or(0);
        if found == 0 || found > u64::from(FORMAT) {
            return Err(registry::Error::UnknownFormat { path: path.into(), found, supported: FORMAT }.into());
        }
        Ok(serde_json::from_value(head).map_err(corrupted)?)
    }

    /// The metrics of the part that stands for new rows: the test part if there is one, else validation.
    pub fn main_metrics(&self) -> BTreeMap<String, f64> {
        let overall = |split: &str| {
            let of_split = self.metrics.iter().filter(|metric| metric.split == split && metric.class.is_none());
            of_split.map(|metric| (metric.metric.clone(), metric.value)).collect::<BTreeMap<String, f64>>()
        };
        let validation = overall("validation");
        if validation.is_empty() { overall("test") } else { validation }
    }
}
