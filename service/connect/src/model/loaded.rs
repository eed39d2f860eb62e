//! Models read from the registry, kept in memory while they are used.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::datatypes::DataType;
use bytes::Bytes;
use ml::{Kind, Model, Params, persist};
use object_store::memory::InMemory;
use object_store::{ObjectStoreExt, PutPayload};
use parking_lot::Mutex;
use registry::{ModelName, VersionEntry};

use super::document::{Document, FILE, MODEL_FOLDER};
use super::stage::{self, Stages};
use crate::{Error, Result, Session};

/// Models that stay in memory.
const MODELS_MAX: usize = 64;

/// A version of a model, ready to use.
#[derive(Clone)]
pub struct Loaded {
    pub name: ModelName,
    pub version: u32,
    pub document: Arc<Document>,
    pub model: Arc<dyn Model>,
    pub stages: Arc<Stages>,
    pub label_type: DataType,
}

impl Loaded {
    pub fn num_classes(&self) -> usize {
        self.document.classes.as_ref().map_or(0, |classes| classes.labels.len())
    }
}

struct Kept {
    folder: String,
    document: Arc<Document>,
    model: Arc<dyn Model>,
    stages: Arc<Stages>,
    label_type: DataType,
}

/// The models in memory, by the folder of their files: what is in one never changes.
#[derive(Default)]
pub struct LoadedModels {
    /// The one used last at the end.
    kept: Mutex<VecDeque<Arc<Kept>>>,
}

impl LoadedModels {
    fn get(&self, folder: &str) -> Option<Arc<Kept>> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|known| known.folder == folder)?;
        let found = kept.remove(at)?;
        kept.push_back(Arc::clone(&found));
        Some(found)
    }

    fn add(&self, new: Arc<Kept>) {
        let mut kept = self.kept.lock();
        kept.retain(|known| known.folder != new.folder);
        kept.push_back(new);
        while kept.len() > MODELS_MAX {
            kept.pop_front();
        }
    }
}

/// The version of a model: a number, an alias, or the default where the text is empty.
///
/// # Errors
/// What the registry says; files that are damaged.
pub async fn load(session: &Session, name: &ModelName, version: &str) -> Result<Loaded> {
    let store = &session.services.models;
    let manifest = store.registry.model(name).await?;
    let entry = manifest.version(version)?.clone();
    let kept = match store.loaded.get(&entry.folder) {
        Some(kept) => kept,
        None => {
            let kept = Arc::new(read(session, &entry).await?);
            store.loaded.add(Arc::clone(&kept));
            kept
        }
    };
    Ok(Loaded {
        name: manifest.name.clone(),
        version: entry.version,
        document: Arc::clone(&kept.document),
        model: Arc::clone(&kept.model),
        stages: Arc::clone(&kept.stages),
        label_type: kept.label_type.clone(),
    })
}

async fn read(session: &Session, entry: &VersionEntry) -> Result<Kept> {
    let files = session.services.models.registry.files(entry).await?;
    let (document, model, stages) = parse(&files, &entry.folder).await?;
    let label_type = document.label.field()?.data_type().clone();
    Ok(Kept {
        folder: entry.folder.clone(),
        document: Arc::new(document),
        model,
        stages: Arc::new(stages),
        label_type,
    })
}

/// The document, the estimator's model and the stages in a version's files.
///
/// # Errors
/// Files that are missing or cannot be read.
pub async fn parse(files: &registry::Files, folder: &str) -> Result<(Document, Arc<dyn Model>, Stages)> {
    let path = format!("{folder}/{FILE}");
    let missing = || registry::Error::Corrupted { path: path.clone(), detail: "the file is missing".into() };
    let (_, content) = files.iter().find(|(name, _)| name == FILE).ok_or_else(missing)?;
    let document = Document::decode(content, &path)?;
    let model = model_of(files, &format!("{MODEL_FOLDER}/"), &document.class).await?;
    let num_stages = document.transform.as_ref().map_or(0, |transform| transform.num_stages);
    let stages = stage::read(files, num_stages).await?;
    Ok((document, model, stages))
}

/// Reads a model in Spark ML's own layout from files whose paths begin with `prefix`.
pub async fn model_of(files: &[(String, Bytes)], prefix: &str, class: &str) -> Result<Arc<dyn Model>> {
    let store = InMemory::new();
    let failed = |source: object_store::Error| Error::Ml(source.into());
    for (path, content) in files {
        if let Some(path) = path.strip_prefix(prefix) {
            let path = object_store::path::Path::from(path);
            store.put(&path, PutPayload::from(content.clone())).await.map_err(failed)?;
        }
    }
    let loaded = persist::read_operator(&store, &object_store::path::Path::default()).await?;
    let operator = ml::catalog::operator(&loaded.class)?;
    let Kind::Estimator(estimator) = operator.kind else {
        return Err(ml::Error::OperatorNotSupported { class: class.to_string() }.into());
    };
    let params = Params::from_json(operator, &loaded.uid, &loaded.explicit)?;
    Ok(estimator.load(operator, &params, &loaded.saved)?)
}
