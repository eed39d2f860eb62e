//! Files that no model has: what a crash between writing and publishing leaves.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use crate::manifest::decode;
use crate::{Registry, Result};

impl Registry {
    /// Removes the folders of versions that no manifest names and nobody has written to for `age_min`; how many. Manifests
    /// that were replaced count too, so that nothing a reader may still hold goes.
    ///
    /// # Errors
    /// What the store says; a manifest that cannot be read, since what it names must not go.
    pub async fn sweep(&self, age_min: Duration) -> Result<usize> {
        let mut newest: BTreeMap<String, chrono::DateTime<chrono::Utc>> = BTreeMap::new();
        let versions = self.root.clone().join("versions");
        let depth = versions.parts().count();
        for object in self.list(&versions).await? {
            let Some(folder) = object.location.parts().nth(depth).map(|part| part.as_ref().to_string()) else {
                continue;
            };
            let known = newest.entry(folder).or_insert(object.last_modified);
            *known = (*known).max(object.last_modified);
        }
        // Listed after the folders: a version that is published meanwhile is either named or too young.
        let mut named: HashSet<String> = HashSet::new();
        for object in self.list(&self.root.clone().join("models")).await? {
            if let Some(content) = self.get(&object.location).await? {
                let manifest = decode(object.location.as_ref(), &content)?;
                named.extend(manifest.versions.into_iter().map(|entry| entry.folder));
            }
        }
        let mut removed = 0;
        for (folder, modified) in newest {
            let age = (chrono::Utc::now() - modified).to_std().unwrap_or_default();
            if named.contains(&folder) || age < age_min {
                continue;
            }
            let path = versions.clone().join(folder.as_str());
            match self.remove_folder(&path).await {
                Ok(()) => removed += 1,
                Err(error) => tracing::warn!(%path, %error, "files that no model has could not be removed"),
            }
        }
        Ok(removed)
    }
}
