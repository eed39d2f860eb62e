//! What a client has uploaded.

use bytes::Bytes;

use super::Session;

/// Where the rows of a cached local relation come from.
pub trait Artifacts {
    /// What was uploaded under the hash.
    fn cached_local_relation(&self, hash: &str) -> Option<Bytes>;
}

impl Artifacts for Session {
    fn cached_local_relation(&self, hash: &str) -> Option<Bytes> {
        self.artifact(&format!("cache/{hash}")).or_else(|| self.artifact(hash))
    }
}

impl Session {
    /// Keeps an artifact under its name, such as `cache/<hash>`.
    pub fn put_artifact(&self, name: &str, data: Bytes) {
        self.artifacts.write().insert(name.to_owned(), data);
    }

    pub fn artifact(&self, name: &str) -> Option<Bytes> {
        self.artifacts.read().get(name).cloned()
    }
}
