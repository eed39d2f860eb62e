//! Where a path points: an object store, and a place in it.

use std::path::{Component, PathBuf};
use std::sync::Arc;

use datafusion::execution::context::SessionState;
use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::ObjectStore;
use object_store::path::Path;

use crate::{Error, Result};

#[derive(Debug, Clone)]
pub(super) struct Location {
    pub store: Arc<dyn ObjectStore>,
    pub url: ObjectStoreUrl,
    pub path: Path,
    /// What stands before a place of the store in Spark's messages: `file:/`, `s3://bucket/`.
    prefix: String,
}

impl Location {
    /// Reads a path: absolute, relative to the working directory, `file:` in any of its spellings, or the URL of a store
    /// that the server has.
    pub fn parse(state: &SessionState, text: &str) -> Result<Location> {
        let local = match text.split_once(':') {
            Some(("file", rest)) => Some(rest.strip_prefix("//").unwrap_or(rest)),
            Some((scheme, rest)) if rest.starts_with("//") && is_scheme(scheme) => None,
            _ => Some(text),
        };
        if let Some(local) = local {
            return Location::parse_local(state, local);
        }
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = format!("{scheme}://{bucket}/");
        let url = ObjectStoreUrl::parse(&prefix)
            .map_err(|_| Error::InvalidPlan { detail: format!("{text} is no valid path") })?;
        let store = state
            .runtime_env()
            .object_store(&url)
            .map_err(|_| Error::Unsupported { feature: format!("file system {scheme}://{bucket}") })?;
        Ok(Location { store, url, path: parse_path(key)?, prefix })
    }

    fn parse_local(state: &SessionState, text: &str) -> Result<Location> {
        let io = |source| Error::Io { path: text.into(), source };
        let absolute = std::path::absolute(text).map_err(io)?;
        let mut normal = PathBuf::new();
        for component in absolute.components() {
            match component {
                Component::ParentDir => {
                    normal.pop();
                }
                Component::CurDir => {}
                other => normal.push(other),
            }
        }
        let path = parse_path(&normal.to_string_lossy())?;
        let url = ObjectStoreUrl::local_filesystem();
        let store = state.runtime_env().object_store(&url)?;
        Ok(Location { store, url, path, prefix: "file:/".into() })
    }

    /// The same store, another place.
    pub fn at(&self, path: Path) -> Location {
        Location { path, ..self.clone() }
    }

    /// A place below this one. Names stand as they are on disk.
    pub fn below(&self, names: &str) -> Result<Location> {
        let path = if self.path.as_ref().is_empty() { names.to_string() } else { format!("{}/{names}", self.path) };
        Ok(self.at(parse_path(&path)?))
    }

    /// As Spark's messages have it: `file:/tmp/x`.
    pub fn display(&self) -> String {
        self.display_of(&self.path)
    }

    pub fn display_of(&self, path: &Path) -> String {
        format!("{}{path}", self.prefix)
    }

    /// As rows of files name it: `file:///tmp/x`.
    pub fn uri_of(&self, path: &Path) -> String {
        if self.prefix == "file:/" { format!("file:///{path}") } else { self.display_of(path) }
    }

    /// The place on this machine's disk, where directories exist by themselves.
    pub fn local_path(&self) -> Option<PathBuf> {
        (self.prefix == "file:/").then(|| PathBuf::from(format!("/{}", self.path)))
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ['+', '-', '.'].contains(&c))
}

fn parse_path(text: &str) -> Result<Path> {
    Path::parse(text.trim_matches('/')).map_err(|error| Error::InvalidPlan { detail: error.to_string() })
}
