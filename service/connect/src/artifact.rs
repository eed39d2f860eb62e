//! What clients upload: blobs that cached local relations name by their hash, and files to be put on a file system.
//!
//! Jars, Python files and archives would be for code that runs beside the data; there is none, so they are refused.

use std::collections::HashMap;
use std::path::{Component, Path};

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
            Some((kind @ ("jars" | "classes" | "pyfiles" | "archives" | "files"), _)) => {
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
}

impl Artifacts {
    pub fn new(bytes_max: usize) -> Artifacts {
        Artifacts { bytes_max, blobs: Mutex::default() }
    }

    /// What of the room is left.
    pub fn bytes_left(&self) -> usize {
        self.bytes_max.saturating_sub(self.blobs.lock().values().map(Bytes::len).sum())
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
    }

    #[test]
    fn names_that_leave_their_kind_are_refused() {
        for name in ["cache/../x", "/cache/a", "cache/", "x", "forward_to_fs/a/../../etc/passwd", "forward_to_fsx"] {
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
