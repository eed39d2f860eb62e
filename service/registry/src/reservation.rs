//! Names that are being trained: reserved from the start of a training to its end, or to the end of its server.

use serde::{Deserialize, Serialize};

use crate::manifest::now;
use crate::{Error, Manifest, ModelName, Registry, Result, ServerIdentity};

/// A training that holds a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub training_id: String,
    pub server: ServerIdentity,
    pub started_at: String,
    /// Whether others may add versions meanwhile.
    pub is_shared: bool,
}

/// What a training is about to do to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Make the first version; nobody else may.
    Create,
    /// Add a version, whether there is one or not.
    Replace,
}

impl Registry {
    /// Reserves a name for a training. Reservations of servers that are gone do not count.
    ///
    /// # Errors
    /// [`Error::ModelExists`] and [`Error::TrainingInProgress`].
    pub async fn reserve(&self, name: &ModelName, training_id: &str, intent: Intent) -> Result<()> {
        let current = self.find(name).await?;
        let mut gone: Vec<String> = Vec::new();
        for reservation in current.iter().flat_map(|manifest| &manifest.reservations) {
            if !self.is_alive(&reservation.server).await? {
                gone.push(reservation.training_id.clone());
            }
        }
        self.change(name, |current| {
            let mut manifest = current.cloned().unwrap_or_else(|| Manifest::new(name));
            if manifest.has_versions() && intent == Intent::Create {
                return Err(Error::ModelExists { name: name.to_string() });
            }
            manifest.reservations.retain(|reservation| !gone.contains(&reservation.training_id));
            let is_shared = intent == Intent::Replace;
            let other = manifest.reservations.iter().find(|other| {
                // beside a model that stands, trainings only add versions
                !manifest.has_versions() && !(is_shared && other.is_shared)
            });
            if let Some(other) = other {
                let training_id = other.training_id.clone();
                return Err(Error::TrainingInProgress { name: name.to_string(), training_id });
            }
            manifest.reservations.push(Reservation {
                training_id: training_id.to_string(),
                server: self.server.clone(),
                started_at: now(),
                is_shared,
            });
            Ok((Some(manifest), ()))
        })
        .await
    }

    /// Frees a name after a training that published nothing.
    ///
    /// # Errors
    /// What the store says; the reservation then counts until the server is gone.
    pub async fn release(&self, name: &ModelName, training_id: &str) -> Result<()> {
        self.change(name, |current| {
            let Some(current) = current else { return Ok((None, ())) };
            let mut manifest = current.clone();
            manifest.reservations.retain(|reservation| reservation.training_id != training_id);
            let is_changed = manifest.reservations.len() != current.reservations.len();
            Ok((is_changed.then_some(manifest), ()))
        })
        .await
    }

    /// The training that will give the model its first version, if one runs.
    pub(crate) async fn live_reservation<'a>(&self, manifest: &'a Manifest) -> Result<Option<&'a Reservation>> {
        for reservation in &manifest.reservations {
            if self.is_alive(&reservation.server).await? {
                return Ok(Some(reservation));
            }
        }
        Ok(None)
    }
}
