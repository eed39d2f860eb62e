//! A session's models and summaries, by object id.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::embedded::Frame;
use ml::{Model, Summary};
use parking_lot::{Mutex, RwLock};

use crate::{Error, Result};

/// A fitted or loaded model.
pub struct CachedModel {
    pub model: Arc<dyn Model>,
    /// The summary of the fit with its dataset; gone after the model was evicted, back after `CreateSummary`.
    training: Mutex<Option<Arc<CachedSummary>>>,
    /// Hidden from the cache's listing: the client said that it may go.
    is_evicted: AtomicBool,
}

impl CachedModel {
    pub fn new(model: Arc<dyn Model>, training: Option<Arc<CachedSummary>>) -> CachedModel {
        CachedModel { model, training: Mutex::new(training), is_evicted: AtomicBool::new(false) }
    }

    /// # Errors
    /// [`Error::SummaryLost`], which makes the client send `CreateSummary` and ask again.
    pub fn training_summary(&self, id: &str) -> Result<Arc<CachedSummary>> {
        self.training.lock().clone().ok_or_else(|| Error::SummaryLost { id: id.into() })
    }

    pub fn set_training_summary(&self, summary: CachedSummary) {
        *self.training.lock() = Some(Arc::new(summary));
    }
}

/// A summary over a dataset: of the fit, or of a later `evaluate`.
pub struct CachedSummary {
    pub summary: Arc<dyn Summary>,
    pub model: Arc<dyn Model>,
    /// What the model is applied to for `predictions`.
    pub dataset: Frame,
    /// Held while the predictions are folded, so that attributes fetched at once wait for one fold.
    pub folding: tokio::sync::Mutex<()>,
}

/// An entry of the cache.
#[derive(Clone)]
pub enum Object {
    Model(Arc<CachedModel>),
    Summary(Arc<CachedSummary>),
}

/// One session's objects. Locks are held for a lookup only: a client's garbage collector deletes from any thread, in the
/// middle of a fit.
#[derive(Default)]
pub struct ModelCache {
    objects: RwLock<BTreeMap<String, Object>>,
}

impl ModelCache {
    /// Adds a model under a new id.
    pub fn add_model(&self, model: CachedModel) -> String {
        self.add(Object::Model(Arc::new(model)))
    }

    /// Adds a summary under a new id.
    pub fn add_summary(&self, summary: CachedSummary) -> String {
        self.add(Object::Summary(Arc::new(summary)))
    }

    fn add(&self, object: Object) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        self.objects.write().insert(id.clone(), object);
        id
    }

    pub fn get(&self, id: &str) -> Result<Object> {
        self.objects.read().get(id).cloned().ok_or_else(|| Error::ObjectNotFound { id: id.into() })
    }

    pub fn model(&self, id: &str) -> Result<Arc<CachedModel>> {
        match self.get(id)? {
            Object::Model(model) => Ok(model),
            Object::Summary(_) => Err(Error::ObjectNotFound { id: id.into() }),
        }
    }

    /// Removes an object; whether it was there.
    pub fn remove(&self, id: &str) -> bool {
        self.objects.write().remove(id).is_some()
    }

    /// Drops what of a model can be made again (its training summary) and hides it from the listing. Fetches go on.
    pub fn evict(&self, id: &str) -> bool {
        let Ok(model) = self.model(id) else { return false };
        model.training.lock().take();
        model.is_evicted.store(true, Ordering::Relaxed);
        true
    }

    /// Removes everything; how many objects there were.
    pub fn clear(&self) -> usize {
        std::mem::take(&mut *self.objects.write()).len()
    }

    /// The listing of `GetCacheInfo`, a line an object, in Spark's form.
    pub fn listing(&self) -> Vec<String> {
        let objects = self.objects.read();
        let line = |id: &String, class: &str, size: usize| format!("id: {id}, obj: class {class}, size: {size}");
        objects
            .iter()
            .filter_map(|(id, object)| match object {
                Object::Model(model) if model.is_evicted.load(Ordering::Relaxed) => None,
                Object::Model(model) => Some(line(id, model.model.class(), model.model.size_bytes())),
                Object::Summary(summary) => Some(line(id, &format!("{}Summary", summary.model.class()), 0)),
            })
            .collect()
    }
}
