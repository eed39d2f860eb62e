//! Where a path of a client points: the object store behind it.

use std::path::{Component, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;

use crate::{Error, Result};

/// The store of a path and the path in it. `/a/b`, `a/b` (from the server's working directory), `file:/a/b` and
/// `file:///a/b` are local.
///
/// # Errors
/// [`engine::Error::Unsupported`] for other schemes.
pub fn locate(path: &str) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let local = match path.split_once(':') {
        Some(("file", rest)) => format!("/{}", rest.trim_start_matches('/')),
        Some(("models", _)) => {
            let feature = "saving to models: paths, which TRAIN MODEL and IMPORT MODEL write".to_string();
            return Err(Error::Engine(engine::Error::Unsupported { feature }));
        }
        Some((scheme, _)) if !scheme.contains('/') => {
            return Err(Error::Engine(engine::Error::Unsupported { feature: format!("saving to {scheme}: paths") }));
        }
        _ => path.to_string(),
    };
    let io = |source| Error::Engine(engine::Error::Io { path: path.into(), source });
    let mut absolute = PathBuf::new();
    for part in std::path::absolute(&local).map_err(io)?.components() {
        match part {
            Component::ParentDir => {
                absolute.pop();
            }
            part => absolute.push(part),
        }
    }
    let invalid = |source: object_store::path::Error| Error::Engine(engine::Error::ObjectStore { source: source.into() });
    let prefix = Path::from_absolute_path(&absolute).map_err(invalid)?;
    Ok((Arc::new(LocalFileSystem::new().with_automatic_cleanup(true)), prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_paths_of_every_form_are_one_path() {
        for path in ["/tmp/a/b", "file:/tmp/a/b", "file:///tmp/a/b", "/tmp/x/../a/b"] {
            assert_eq!(locate(path).unwrap().1.as_ref(), "tmp/a/b", "{path}");
        }
        assert!(locate("s3://bucket/a").is_err());
    }
}
