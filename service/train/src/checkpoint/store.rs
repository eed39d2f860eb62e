//! Checkpoints as files of an object store, written by a thread of their own.
//!
//! A file is put as a whole or not at all, verifies itself, and is named after its step, so that no list of them needs to
//! be kept beside: the newest is the last by name that can be read.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use url::Url;

use super::{Checkpointer, Identity, Place, Saved, envelope};
use crate::{Error, Result};

const SUFFIX: &str = ".checkpoint";
/// How long the end of a program waits for its last checkpoint to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// The checkpoints of one job, as rank 0 holds them. Dropping it lets what is being written finish.
pub struct Store {
    place: Place,
    runtime: Handle,
    slot: Arc<Slot>,
    writer: Option<JoinHandle<()>>,
}

/// What waits to be written. There is room for one: a newer state takes the place of an older.
#[derive(Default)]
struct Slot {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    waiting: Option<(u64, Vec<u8>)>,
    is_writing: bool,
    is_closed: bool,
}

impl Store {
    /// Starts the thread that writes. Nothing is created before the first checkpoint.
    ///
    /// # Errors
    /// [`Error::CheckpointNotUsable`]: the folder's name means no object store that is known here; no thread is left.
    pub fn open(place: Place, runtime: Handle) -> Result<Store> {
        let folder = Folder::open(&place.folder)?;
        let slot = Arc::new(Slot::default());
        let (slot_of_writer, keep, runtime_of_writer) = (Arc::clone(&slot), place.keep, runtime.clone());
        let writer = std::thread::Builder::new()
            .name("checkpoints".into())
            .spawn(move || write_until_closed(&slot_of_writer, &folder, keep, &runtime_of_writer))
            .map_err(|source| not_usable(&place.folder, source))?;
        Ok(Store { place, runtime, slot, writer: Some(writer) })
    }

    /// Waits until what was saved is written, for a while.
    pub fn flush(&self) {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        let mut inner = self.slot.inner.lock();
        while inner.waiting.is_some() || inner.is_writing {
            if self.slot.changed.wait_until(&mut inner, deadline).timed_out() {
                tracing::warn!(folder = self.place.folder, "the last checkpoint is not written yet");
                return;
            }
        }
    }

    /// The newest whole state of this job's own folder.
    fn own(&self, identity: &Identity) -> Result<Option<Saved>> {
        let folder = Folder::open(&self.place.folder)?;
        self.runtime.block_on(folder.newest(identity)).map(|(saved, _)| saved)
    }

    /// The state that the user named.
    fn named(&self, name: &str, identity: &Identity) -> Result<Saved> {
        self.runtime.block_on(async {
            if name.ends_with(SUFFIX) {
                let (folder, file) = Folder::of_file(name)?;
                let bytes = folder.read(&file).await?;
                return envelope::unwrap(identity, &bytes).map_err(|refusal| refused(name, &refusal));
            }
            match Folder::open(name)?.newest(identity).await? {
                (Some(saved), _) => Ok(saved),
                (None, Some(refusal)) => Err(refused(name, &refusal)),
                (None, None) => {
                    Err(Error::CheckpointNotUsable { place: name.into(), reason: "there is no checkpoint".into() })
                }
            }
        })
    }
}

impl Checkpointer for Store {
    fn interval(&self) -> Option<u64> {
        (self.place.interval > 0).then_some(self.place.interval)
    }

    fn save(&self, identity: &Identity, step: u64, state: Vec<u8>) {
        let file = envelope::wrap(identity, step, &state);
        self.slot.inner.lock().waiting = Some((step, file));
        self.slot.changed.notify_all();
    }

    fn load(&self, identity: &Identity) -> Result<Option<Saved>> {
        if let Some(saved) = self.own(identity)? {
            tracing::info!(step = saved.step, folder = self.place.folder, "resumes from a checkpoint");
            return Ok(Some(saved));
        }
        let Some(name) = &self.place.resume_from else { return Ok(None) };
        let saved = self.named(name, identity)?;
        tracing::info!(step = saved.step, from = name, "resumes from a checkpoint");
        Ok(Some(saved))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.slot.inner.lock().is_closed = true;
        self.slot.changed.notify_all();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn write_until_closed(slot: &Slot, folder: &Folder, keep: usize, runtime: &Handle) {
    loop {
        let (step, file) = {
            let mut inner = slot.inner.lock();
            inner.is_writing = false;
            slot.changed.notify_all();
            loop {
                if let Some(waiting) = inner.waiting.take() {
                    inner.is_writing = true;
                    break waiting;
                }
                if inner.is_closed {
                    return;
                }
                slot.changed.wait(&mut inner);
            }
        };
        // a fit is worth more than its checkpoint: it goes on, and the log says what is missing
        if let Err(error) = runtime.block_on(folder.write(step, file, keep)) {
            tracing::warn!(step, %error, "a checkpoint could not be written");
        }
    }
}

fn not_usable(place: &str, cause: impl std::fmt::Display) -> Error {
    Error::CheckpointNotUsable { place: place.into(), reason: cause.to_string() }
}

fn refused(place: &str, refusal: &str) -> Error {
    Error::CheckpointNotUsable { place: place.into(), reason: format!("it {refusal}") }
}

/// A folder of an object store.
struct Folder {
    name: String,
    store: Box<dyn ObjectStore>,
    path: Path,
}

impl Folder {
    /// Takes an absolute path or a URL.
    fn open(name: &str) -> Result<Folder> {
        let url = match name.contains("://") {
            true => Url::parse(name).map_err(|source| not_usable(name, source))?,
            false => Url::from_directory_path(name)
                .map_err(|()| not_usable(name, "expected an absolute path or a URL"))?,
        };
        let (store, path) = object_store::parse_url(&url).map_err(|source| not_usable(name, source))?;
        Ok(Folder { name: name.into(), store, path })
    }

    fn of_file(name: &str) -> Result<(Folder, String)> {
        let (folder, file) = name.rsplit_once('/').ok_or_else(|| not_usable(name, "expected an absolute path or a URL"))?;
        Ok((Folder::open(folder)?, file.into()))
    }

    fn file(&self, name: &str) -> Path {
        self.path.clone().join(name)
    }

    async fn read(&self, name: &str) -> Result<Vec<u8>> {
        let failed = |source| not_usable(&format!("{}/{name}", self.name), source);
        let found = self.store.get(&self.file(name)).await.map_err(failed)?;
        Ok(found.bytes().await.map_err(failed)?.to_vec())
    }

    /// The names of the checkpoints, oldest first.
    async fn names(&self) -> std::result::Result<Vec<String>, object_store::Error> {
        let mut names: Vec<String> = self
            .store
            .list(Some(&self.path))
            .try_filter_map(|found| async move {
                let name = found.location.filename().filter(|name| name.ends_with(SUFFIX));
                Ok(name.map(String::from))
            })
            .try_collect()
            .await?;
        names.sort();
        Ok(names)
    }

    /// The newest state that is whole and of this identity, and why a newer file was passed over.
    async fn newest(&self, identity: &Identity) -> Result<(Option<Saved>, Option<String>)> {
        let mut newest_refusal = None;
        for name in self.names().await.map_err(|source| not_usable(&self.name, source))?.iter().rev() {
            let unwrapped = match self.read(name).await {
                Ok(bytes) => envelope::unwrap(identity, &bytes),
                Err(error) => Err(format!("cannot be read: {error}")),
            };
            match unwrapped {
                Ok(saved) => return Ok((Some(saved), newest_refusal)),
                Err(refusal) => {
                    tracing::warn!(folder = self.name, file = name, "a checkpoint is passed over: it {refusal}");
                    newest_refusal.get_or_insert(refusal);
                }
            }
        }
        Ok((None, newest_refusal))
    }

    /// Writes a file as a whole, then removes those that are too old. An object store shows a put file whole or not at all.
    async fn write(&self, step: u64, file: Vec<u8>, keep: usize) -> std::result::Result<(), object_store::Error> {
        self.store.put(&self.file(&format!("{step:012}{SUFFIX}")), file.into()).await?;
        let names = self.names().await?;
        for name in &names[..names.len().saturating_sub(keep.max(1))] {
            self.store.delete(&self.file(name)).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
