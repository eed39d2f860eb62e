//! What became of trainings: a small file each, written by the server that runs it.

use bytes::Bytes;
use object_store::{ObjectStoreExt, PutMode};
use serde::{Deserialize, Serialize};

use crate::{Error, ModelName, Registry, Result, ServerIdentity};

/// Records beyond this go, the oldest first.
const RECORDS_MAX: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TrainingStatus {
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

impl TrainingStatus {
    pub fn name(self) -> &'static str {
        match self {
            TrainingStatus::Running => "RUNNING",
            TrainingStatus::Succeeded => "SUCCEEDED",
            TrainingStatus::Failed => "FAILED",
            TrainingStatus::Cancelled => "CANCELLED",
        }
    }
}

/// One training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingRecord {
    pub training_id: String,
    pub model: ModelName,
    pub version: Option<u32>,
    pub status: TrainingStatus,
    /// What it does, in a word.
    pub phase: String,
    /// From 0 to 1.
    pub progress: f64,
    pub workers: u32,
    /// RFC 3339.
    pub started_at: String,
    pub duration_ms: u64,
    pub created_by: String,
    pub error_class: Option<String>,
    pub error_message: Option<String>,
    pub server: ServerIdentity,
}

impl Registry {
    pub fn server(&self) -> &ServerIdentity {
        &self.server
    }

    /// # Errors
    /// What the store refuses.
    pub async fn write_training(&self, record: &TrainingRecord) -> Result<()> {
        let path = self.training_path(&record.training_id);
        let content = serde_json::to_vec_pretty(record).map_err(|source| Error::Encode { source })?;
        let written = self.put(&path, Bytes::from(content), PutMode::Overwrite).await;
        written.map_err(|source| Error::Write { path: path.to_string(), source })
    }

    /// All records, the newest first. One that runs on a server that is gone has failed.
    ///
    /// # Errors
    /// What the store says; a record that cannot be read is left out, with a warning in the log.
    pub async fn trainings(&self) -> Result<Vec<TrainingRecord>> {
        let mut records = Vec::new();
        for object in self.list(&self.root.clone().join("trainings")).await? {
            let Some(content) = self.get(&object.location).await? else { continue };
            match serde_json::from_slice::<TrainingRecord>(&content) {
                Ok(record) => records.push(self.checked(record).await?),
                Err(error) => {
                    tracing::warn!(path = %object.location, %error, "the record of a training is not readable")
                }
            }
        }
        records.sort_by(|left, right| right.started_at.cmp(&left.started_at));
        for old in records.iter().skip(RECORDS_MAX) {
            let path = self.training_path(&old.training_id);
            if let Err(error) = self.store.delete(&path).await {
                tracing::debug!(%path, %error, "the record of an old training could not be removed");
            }
        }
        records.truncate(RECORDS_MAX);
        Ok(records)
    }

    /// # Errors
    /// [`Error::TrainingNotFound`], and [`Error::Corrupted`] naming the file.
    pub async fn training(&self, id: &str) -> Result<TrainingRecord> {
        let path = self.training_path(id);
        let content = self.get(&path).await?.ok_or_else(|| Error::TrainingNotFound { id: id.to_string() })?;
        let record = serde_json::from_slice(&content)
            .map_err(|error| Error::Corrupted { path: path.to_string(), detail: error.to_string() })?;
        self.checked(record).await
    }

    async fn checked(&self, record: TrainingRecord) -> Result<TrainingRecord> {
        if record.status != TrainingStatus::Running || self.is_alive(&record.server).await? {
            return Ok(record);
        }
        Ok(TrainingRecord {
            status: TrainingStatus::Failed,
            phase: "lost".into(),
            error_class: Some("TRAINING_LOST".into()),
            error_message: Some("The server that ran the training is gone.".into()),
            ..record
        })
    }

    fn training_path(&self, id: &str) -> object_store::path::Path {
        self.root.clone().join("trainings").join(format!("{id}.json"))
    }
}
