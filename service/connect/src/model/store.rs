//! What sessions share of models by name: the registry, the trainings that run, and the models in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use registry::{Registry, ServerIdentity};

use super::loaded::LoadedModels;
use crate::{Operation, Result};

/// Well within the time after which a silent server counts as gone.
const BEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Files that no model has stay this long: a training of another server may be about to publish them.
const SWEEP_AGE: Duration = Duration::from_secs(24 * 60 * 60);

pub struct ModelStore {
    pub(crate) registry: Registry,
    pub(crate) loaded: LoadedModels,
    running: Mutex<HashMap<String, Arc<Running>>>,
}

/// A training of this server.
pub struct Running {
    /// Cancelling it cancels the training.
    pub operation: Arc<Operation>,
    pub started: Instant,
    state: Mutex<(&'static str, f64)>,
}

impl Running {
    pub fn new(operation: Arc<Operation>) -> Running {
        Running { operation, started: Instant::now(), state: Mutex::new(("reading", 0.0)) }
    }

    /// What it does now, and how much of all is done, from 0 to 1.
    pub fn enter(&self, phase: &'static str, progress: f64) {
        *self.state.lock() = (phase, progress);
    }

    pub fn state(&self) -> (&'static str, f64) {
        *self.state.lock()
    }
}

impl ModelStore {
    /// Opens the registry at a folder or `file://` URL.
    ///
    /// # Errors
    /// A location that cannot be used.
    pub fn open(location: &str) -> Result<Arc<ModelStore>> {
        let registry = Registry::open(location, ServerIdentity::of_this_process())?;
        Ok(Arc::new(ModelStore { registry, loaded: LoadedModels::default(), running: Mutex::default() }))
    }

    /// Gives signs of life for as long as the server runs, and removes once what crashes left.
    pub async fn keep_up(self: Arc<ModelStore>) {
        match self.registry.sweep(SWEEP_AGE).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "files that no model has were removed"),
            Err(error) => tracing::warn!(%error, "the model registry could not be swept"),
        }
        let mut ticks = tokio::time::interval(BEAT_INTERVAL);
        loop {
            ticks.tick().await;
            if let Err(error) = self.registry.beat().await {
                tracing::warn!(%error, "a sign of life could not be given");
            }
        }
    }

    pub(crate) fn add(&self, id: &str, running: Arc<Running>) {
        self.running.lock().insert(id.to_string(), running);
    }

    pub(crate) fn remove(&self, id: &str) {
        self.running.lock().remove(id);
    }

    pub(crate) fn running(&self, id: &str) -> Option<Arc<Running>> {
        self.running.lock().get(id).cloned()
    }
}
