//! The files of one version: written once under a name of their own, with a list of them last.

use bytes::Bytes;
use object_store::PutMode;
use serde::{Deserialize, Serialize};

use crate::manifest::{FORMAT, check_format};
use crate::{Error, Registry, Result, VersionEntry};

const LIST: &str = "files.json";

/// A version's files that no model has yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    pub folder: String,
    pub num_files: usize,
    pub bytes: u64,
}

/// Files by their path in the version's folder, such as `model/metadata/part-00000`.
pub type Files = Vec<(String, Bytes)>;

#[derive(Debug, Serialize, Deserialize)]
struct List {
    format: u32,
    files: Vec<Listed>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    path: String,
    bytes: u64,
    crc32: u32,
}

impl Registry {
    fn version_folder(&self, folder: &str) -> object_store::path::Path {
        self.root.clone().join("versions").join(folder)
    }

    /// Writes a version's files. They belong to no model before [`Registry::publish`].
    ///
    /// # Errors
    /// [`Error::Write`] naming the file; what was written is removed then.
    pub async fn stage(&self, files: &Files) -> Result<Staged> {
        let folder = uuid::Uuid::new_v4().to_string();
        let written = self.write_version(&folder, files).await;
        if written.is_err() {
            self.discard(&Staged { folder: folder.clone(), num_files: 0, bytes: 0 }).await;
        }
        let bytes = written?;
        Ok(Staged { folder, num_files: files.len(), bytes })
    }

    async fn write_version(&self, folder: &str, files: &Files) -> Result<u64> {
        let mut list = List { format: FORMAT, files: Vec::new() };
        for (path, content) in files {
            self.write_file(folder, path, content.clone()).await?;
            let (bytes, crc32) = (content.len() as u64, crc32fast::hash(content));
            list.files.push(Listed { path: path.clone(), bytes, crc32 });
        }
        let content = serde_json::to_vec_pretty(&list).map_err(|source| Error::Encode { source })?;
        self.write_file(folder, LIST, content.into()).await?;
        Ok(list.files.iter().map(|file| file.bytes).sum())
    }

    async fn write_file(&self, folder: &str, path: &str, content: Bytes) -> Result<()> {
        let path = path.split('/').fold(self.version_folder(folder), |folder, part| folder.join(part));
        let written = self.put(&path, content, PutMode::Create).await;
        written.map_err(|source| Error::Write { path: path.to_string(), source })
    }

    /// Removes the files of a version that was not published.
    pub async fn discard(&self, staged: &Staged) {
        let folder = self.version_folder(&staged.folder);
        if let Err(error) = self.remove_folder(&folder).await {
            tracing::warn!(%folder, %error, "the files of a version that was not published stay behind");
        }
    }

    /// Reads all files of a version.
    ///
    /// # Errors
    /// [`Error::Corrupted`] naming the file that is missing, cut short or changed; [`Error::UnknownFormat`].
    pub async fn files(&self, entry: &VersionEntry) -> Result<Files> {
        let folder = self.version_folder(&entry.folder);
        let list_path = folder.clone().join(LIST);
        let corrupted =
            |path: &object_store::path::Path, detail: String| Error::Corrupted { path: path.to_string(), detail };
        let content = self.get(&list_path).await?;
        let content = content.ok_or_else(|| corrupted(&list_path, "the file is missing".into()))?;
        check_format(list_path.as_ref(), &content)?;
        let list: List = serde_json::from_slice(&content).map_err(|error| corrupted(&list_path, error.to_string()))?;
        let mut files = Vec::with_capacity(list.files.len());
        for listed in list.files {
            let path = listed.path.split('/').fold(folder.clone(), |folder, part| folder.join(part));
            let content = self.get(&path).await?;
            let content = content.ok_or_else(|| corrupted(&path, "the file is missing".into()))?;
            if content.len() as u64 != listed.bytes {
                let detail = format!("it has {} bytes, {} were written", content.len(), listed.bytes);
                return Err(corrupted(&path, detail));
            }
            if crc32fast::hash(&content) != listed.crc32 {
                return Err(corrupted(&path, "its checksum is not that of what was written".into()));
            }
            files.push((listed.path, content));
        }
        Ok(files)
    }
}
