//! The registry's store: manifests as numbered files, of which the next is written only where none stands.
//!
//! This needs no more of a store than a put that fails where an object is, which local directories and S3 have alike.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use crate::manifest::decode;
use crate::{Error, Manifest, ModelName, Result, ServerIdentity};

/// Manifests behind the newest one that stay, for people to look at.
const MANIFESTS_KEPT: usize = 8;
/// A writer whose read is older than this reads again, and no manifest is removed before twice this age: so no writer can
/// take the place of a manifest that others have gone past.
const WRITER_AGE_MAX: Duration = Duration::from_secs(30 * 60);
const ATTEMPTS_MAX: u32 = 200;

/// A registry of models in a folder of a store.
#[derive(Debug, Clone)]
pub struct Registry {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) root: Path,
    pub(crate) server: ServerIdentity,
}

/// The store of a location, and the path in it.
///
/// # Errors
/// [`Error::InvalidLocation`] for schemes that this server has no store for, and for folders that cannot be made.
pub fn locate(location: &str) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let invalid = |detail: String| Error::InvalidLocation { location: location.to_string(), detail };
    let local = match location.split_once("://") {
        None => location,
        Some(("file", rest)) => rest,
        Some((scheme, _)) => return Err(invalid(format!("{scheme}:// is not supported"))),
    };
    std::fs::create_dir_all(local).map_err(|error| invalid(error.to_string()))?;
    let absolute = std::fs::canonicalize(local).map_err(|error| invalid(error.to_string()))?;
    let root = Path::from_absolute_path(&absolute).map_err(|error| invalid(error.to_string()))?;
    Ok((Arc::new(LocalFileSystem::new()), root))
}

/// A manifest as it was read, and which of its files it was.
pub(crate) struct Read {
    pub manifest: Manifest,
    generation: u64,
    at: Instant,
    /// All manifests of the model, oldest first.
    files: Vec<(u64, ObjectMeta)>,
}

impl Registry {
    pub fn new(store: Arc<dyn ObjectStore>, root: Path, server: ServerIdentity) -> Registry {
        Registry { store, root, server }
    }

    /// # Errors
    /// [`Error::InvalidLocation`]
    pub fn open(location: &str, server: ServerIdentity) -> Result<Registry> {
        let (store, root) = locate(location)?;
        Ok(Registry::new(store, root, server))
    }

    pub(crate) async fn put(&self, path: &Path, content: Bytes, mode: PutMode) -> Result<(), object_store::Error> {
        let options = PutOptions { mode, ..PutOptions::default() };
        self.store.put_opts(path, PutPayload::from(content), options).await.map(drop)
    }

    pub(crate) async fn get(&self, path: &Path) -> Result<Option<Bytes>> {
        let read = |source| Error::Read { path: path.to_string(), source };
        match self.store.get(path).await {
            Ok(found) => found.bytes().await.map(Some).map_err(read),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(read(source)),
        }
    }

    /// The objects in a folder; a folder that is not there has none.
    pub(crate) async fn list(&self, folder: &Path) -> Result<Vec<ObjectMeta>> {
        match self.store.list(Some(folder)).try_collect().await {
            Ok(objects) => Ok(objects),
            Err(object_store::Error::NotFound { .. }) => Ok(Vec::new()),
            Err(source) => Err(Error::Read { path: folder.to_string(), source }),
        }
    }

    /// Reads the newest manifest of a folder.
    pub(crate) async fn read(&self, folder: &Path) -> Result<Option<Read>> {
        loop {
            let at = Instant::now();
            let objects = self.list(folder).await?;
            let mut files: Vec<(u64, ObjectMeta)> =
                objects.into_iter().filter_map(|object| Some((generation(&object.location)?, object))).collect();
            files.sort_by_key(|(generation, _)| *generation);
            let Some((generation, newest)) = files.last().map(|(generation, object)| (*generation, object.clone()))
            else {
                return Ok(None);
            };
            // one that has gone meanwhile was gone past by others
            if let Some(content) = self.get(&newest.location).await? {
                let manifest = decode(newest.location.as_ref(), &content)?;
                return Ok(Some(Read { manifest, generation, at, files }));
            }
        }
    }

    /// Writes the manifest that follows the one that was read. False: another writer was faster.
    async fn write(&self, folder: &Path, read: Option<&Read>, mut manifest: Manifest) -> Result<bool> {
        if read.is_some_and(|read| read.at.elapsed() > WRITER_AGE_MAX) {
            return Ok(false);
        }
        let path = manifest_path(folder, read.map_or(1, |read| read.generation + 1));
        manifest.write_id = uuid::Uuid::new_v4().to_string();
        let content = Bytes::from(serde_json::to_vec_pretty(&manifest).map_err(|source| Error::Encode { source })?);
        match self.put(&path, content.clone(), PutMode::Create).await {
            Ok(()) => {}
            // a put that was sent twice finds itself
            Err(object_store::Error::AlreadyExists { .. }) => match self.get(&path).await? {
                Some(found) if found == content => {}
                _ => return Ok(false),
            },
            Err(source) => return Err(Error::Write { path: path.to_string(), source }),
        }
        if let Some(read) = read {
            self.remove_old(&read.files).await;
        }
        Ok(true)
    }

    /// Removes manifests that nobody can still be about to follow. What cannot be removed stays until the next time.
    async fn remove_old(&self, files: &[(u64, ObjectMeta)]) {
        let Some(count) = files.len().checked_sub(MANIFESTS_KEPT) else { return };
        let age_min = chrono::Duration::from_std(2 * WRITER_AGE_MAX).unwrap_or(chrono::Duration::MAX);
        for (_, object) in &files[..count] {
            if chrono::Utc::now() - object.last_modified > age_min
                && let Err(error) = self.store.delete(&object.location).await
            {
                tracing::warn!(path = %object.location, %error, "an old manifest could not be removed");
            }
        }
    }

    /// Changes a model's manifest: reads it, changes it, and writes it unless another writer came between; then again.
    /// `change` gets none where there is no model, and gives none where nothing is to be written.
    pub(crate) async fn change<T>(
        &self,
        name: &ModelName,
        mut change: impl FnMut(Option<&Manifest>) -> Result<(Option<Manifest>, T)>,
    ) -> Result<T> {
        let folder = name.folder(&self.root);
        for attempt in 0..ATTEMPTS_MAX {
            let read = self.read(&folder).await?;
            let current = match &read {
                Some(read) => self.present(&read.manifest).await?,
                None => None,
            };
            let (manifest, outcome) = change(current)?;
            let Some(manifest) = manifest else { return Ok(outcome) };
            if self.write(&folder, read.as_ref(), manifest).await? {
                return Ok(outcome);
            }
            let pause_ms = rand::random_range(0..=u64::from(attempt.min(20)) + 1);
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        }
        Err(Error::Contended { name: name.to_string() })
    }
}

fn manifest_path(folder: &Path, generation: u64) -> Path {
    folder.clone().join(format!("manifest-{generation:020}.json"))
}

fn generation(path: &Path) -> Option<u64> {
    path.filename()?.strip_prefix("manifest-")?.strip_suffix(".json")?.parse().ok()
}
