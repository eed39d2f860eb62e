//! What clients upload: blobs that cached local relations name by their hash, what Python functions import and open, and
//! files to be put on a file system.
//!
//! Jars and classes would be for code in a JVM; there is none, so they are refused.

use std::collections::HashMap;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::{Error, Result};

const CACHE: &str = "cache/";
const FORWARD_TO_FS: &str = "forward_to_fs";

/// Where an artifact goes, by its name.
#[derive(Debug, PartialEq, Eq)]
pub enum Destination {
    /// A blob of the session's cache, by its hash.
    Cache { hash: String },
    /// A module for Python functions, or an archive of modules.
    Module { name: String },
    /// A file for Python functions.
    SessionFile { name: String },
    /// An archive that is unpacked for Python functions, into a folder of theirs.
    Archive { name: String, folder: String },
    /// A file of the server's file system.
    File { path: String },
}

impl Destination {
    /// # Errors
    /// [`Error::InvalidArtifactName`], [`Error::Unsupported`] for kinds of artifacts that would do nothing here.
    pub fn of(name: &str) -> Result<Destination> {
        let invalid = || Error::InvalidArtifactName { name: name.to_string() };
        if let Some(path) = name.strip_prefix(FORWARD_TO_FS) {
            let is_absolute = path.starts_with('/');
            let has_parent = Path::new(path).components().any(|part| matches!(part, Component::ParentDir));
            return if is_absolute && !has_parent {
                Ok(Destination::File { path: path.to_string() })
            } else {
                Err(invalid())
            };
        }
        if Path::new(name).components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(invalid());
        }
        if let Some(hash) = name.strip_prefix(CACHE) {
            let is_hash = !hash.is_empty() && hash.chars().all(|c| c.is_ascii_alphanumeric());
            return if is_hash { Ok(Destination::Cache { hash: hash.to_string() }) } else { Err(invalid()) };
        }
        match name.split_once('/') {
            Some(("pyfiles", name)) => Ok(Destination::Module { name: name.to_string() }),
            Some(("files", name)) => Ok(Destination::SessionFile { name: name.to_string() }),
            Some(("archives", name)) => {
                // As in Spark, what follows a # is the folder's name.
                let (name, folder) = name.split_once('#').unwrap_or((name, name));
                if folder.is_empty() || folder.contains('/') || folder == ".." {
                    return Err(invalid());
                }
                Ok(Destination::Archive { name: name.to_string(), folder: folder.to_string() })
            }
            Some((kind @ ("jars" | "classes"), _)) => {
                Err(Error::Unsupported { feature: format!("artifacts of the kind {kind}") })
            }
            _ => Err(invalid()),
        }
    }
}

/// The cached blobs of one session.
#[derive(Debug)]
pub struct Artifacts {
    bytes_max: usize,
    blobs: Mutex<HashMap<String, Bytes>>,
    /// Of what was kept on disk.
    file_bytes: AtomicUsize,
}

impl Artifacts {
    pub fn new(bytes_max: usize) -> Artifacts {
        Artifacts { bytes_max, blobs: Mutex::default(), file_bytes: AtomicUsize::new(0) }
    }

    /// What of the room is left.
    pub fn bytes_left(&self) -> usize {
        let blob_bytes: usize = self.blobs.lock().values().map(Bytes::len).sum();
        self.bytes_max.saturating_sub(blob_bytes + self.file_bytes.load(Ordering::Relaxed))
    }

    /// # Errors
    /// [`Error::ArtifactsTooLarge`].
    pub fn insert(&self, hash: String, data: Bytes) -> Result<()> {
        if data.len() > self.bytes_left() {
            return Err(Error::ArtifactsTooLarge { bytes_max: self.bytes_max });
        }
        self.blobs.lock().insert(hash, data);
        Ok(())
    }

    /// Counts a file against the room.
    ///
    /// # Errors
    /// [`Error::ArtifactsTooLarge`].
    pub fn count_file(&self, bytes: usize) -> Result<()> {
        if bytes > self.bytes_left() {
            return Err(Error::ArtifactsTooLarge { bytes_max: self.bytes_max });
        }
        self.file_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    pub fn contains(&self, hash: &str) -> bool {
        self.blobs.lock().contains_key(hash)
    }

    pub fn copy_from(&self, other: &Artifacts) {
        let blobs = other.blobs.lock().clone();
        self.blobs.lock().extend(blobs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_goes_where_its_name_says() {
        let cache = Destination::of("cache/00ff").unwrap();
        assert_eq!(cache, Destination::Cache { hash: "00ff".into() });
        let file = Destination::of("forward_to_fs/tmp/x").unwrap();
        assert_eq!(file, Destination::File { path: "/tmp/x".into() });
        let module = Destination::of("pyfiles/a/b.py").unwrap();
        assert_eq!(module, Destination::Module { name: "a/b.py".into() });
        let archive = Destination::of("archives/a.zip#env").unwrap();
        assert_eq!(archive, Destination::Archive { name: "a.zip".into(), folder: "env".into() });
    }

    #[test]
    fn names_that_leave_their_kind_are_refused() {
        for name in ["cache/../x", "/cache/a", "cache/", "x", "forward_to_fs/a/../../etc/passwd", "forward_to_fsx", "archives/a#.."] {
            assert!(matches!(Destination::of(name), Err(Error::InvalidArtifactName { .. })), "{name}");
        }
        assert!(matches!(Destination::of("jars/a.jar"), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn a_session_holds_no_more_than_its_limit() {
        let artifacts = Artifacts::new(10);
        artifacts.insert("a".into(), Bytes::from_static(b"12345678")).unwrap();
        assert!(matches!(
            artifacts.insert("b".into(), Bytes::from_static(b"123")),
            Err(Error::ArtifactsTooLarge { .. })
        ));
        assert!(artifacts.contains("a") && !artifacts.contains("b"));
    }
}
