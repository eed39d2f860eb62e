//! Models: found, listed, given new versions, changed and dropped.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use object_store::ObjectStore;

use crate::manifest::{check_alias, decode, now};
use crate::{Error, Manifest, ModelName, Registry, Result, Staged, VersionEntry};

/// How a staged version becomes one of a model.
#[derive(Debug, Clone, Default)]
pub struct Publish {
    pub training_id: String,
    pub created_by: String,
    /// Whether the default stays where it is, if there is one.
    pub keep_default: bool,
    pub alias: Option<String>,
    /// Over those the model has.
    pub tags: BTreeMap<String, String>,
    /// Over the one the model has; None leaves it.
    pub comment: Option<String>,
    /// Whether a model of the name may be there already.
    pub may_exist: bool,
}

/// What was dropped, for who removes files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    pub folders: Vec<String>,
}

impl Registry {
    /// The model of a name; it has a version at least.
    ///
    /// # Errors
    /// [`Error::ModelNotFound`]; [`Error::TrainingInProgress`] where its first version is being trained.
    pub async fn model(&self, name: &ModelName) -> Result<Manifest> {
        let found = self.find(name).await?;
        if let Some(manifest) = found.as_ref().filter(|manifest| manifest.has_versions()) {
            return Ok(manifest.clone());
        }
        if let Some(manifest) = &found
            && let Some(reservation) = self.live_reservation(manifest).await?
        {
            return Err(Error::TrainingInProgress {
                name: name.to_string(),
                training_id: reservation.training_id.clone(),
            });
        }
        Err(Error::ModelNotFound { name: name.to_string() })
    }

    pub(crate) async fn find(&self, name: &ModelName) -> Result<Option<Manifest>> {
        let Some(read) = self.read(&name.folder(&self.root)).await? else { return Ok(None) };
        Ok(self.present(&read.manifest).await?.cloned())
    }

    /// The models of a schema, or of all, by name.
    ///
    /// # Errors
    /// What the store says; a manifest that cannot be read.
    pub async fn models(&self, schema: Option<&str>) -> Result<Vec<Manifest>> {
        let mut folder = self.root.clone().join("models");
        if let Some(schema) = schema {
            folder = folder.join(schema.to_lowercase());
        }
        let mut newest: BTreeMap<String, object_store::path::Path> = BTreeMap::new();
        for object in self.list(&folder).await? {
            let path = object.location;
            let is_manifest = path.filename().is_some_and(|name| name.starts_with("manifest-"));
            if let Some((folder, _)) = path.as_ref().rsplit_once('/').filter(|_| is_manifest) {
                let known = newest.entry(folder.to_string()).or_insert_with(|| path.clone());
                if path.as_ref() > known.as_ref() {
                    *known = path;
                }
            }
        }
        let mut models = Vec::new();
        for path in newest.into_values() {
            let Some(content) = self.get(&path).await? else { continue };
            let manifest = decode(path.as_ref(), &content)?;
            if let Some(manifest) = self.present(&manifest).await?
                && manifest.has_versions()
            {
                models.push(manifest.clone());
            }
        }
        models.sort_by_key(|manifest| (manifest.name.schema.to_lowercase(), manifest.name.name.to_lowercase()));
        Ok(models)
    }

    /// Makes a staged version the next one of a model, in one put.
    ///
    /// # Errors
    /// [`Error::ModelExists`] unless it may; [`Error::InvalidAlias`]; what the store refuses. Nothing is changed then.
    pub async fn publish(&self, name: &ModelName, staged: &Staged, how: &Publish) -> Result<(u32, Manifest)> {
        if let Some(alias) = &how.alias {
            check_alias(alias)?;
        }
        self.change(name, |current| {
            if current.is_some_and(Manifest::has_versions) && !how.may_exist {
                return Err(Error::ModelExists { name: name.to_string() });
            }
            let mut manifest = current.cloned().unwrap_or_else(|| Manifest::new(name));
            let version = manifest.next_version;
            manifest.next_version += 1;
            manifest.versions.push(VersionEntry {
                version,
                folder: staged.folder.clone(),
                training_id: how.training_id.clone(),
                created_at: now(),
                created_by: how.created_by.clone(),
            });
            if manifest.default_version.is_none() || !how.keep_default {
                manifest.default_version = Some(version);
            }
            if let Some(alias) = &how.alias {
                manifest.set_alias(alias, version);
            }
            manifest.tags.extend(how.tags.clone());
            if how.comment.is_some() {
                manifest.comment.clone_from(&how.comment);
            }
            manifest.reservations.retain(|reservation| reservation.training_id != how.training_id);
            Ok((Some(manifest.clone()), (version, manifest)))
        })
        .await
    }

    /// Changes a model that has versions.
    async fn edit<T>(&self, name: &ModelName, mut edit: impl FnMut(&mut Manifest) -> Result<T>) -> Result<T> {
        self.change(name, |current| {
            let found = current.filter(|manifest| manifest.has_versions());
            let mut manifest = found.cloned().ok_or_else(|| Error::ModelNotFound { name: name.to_string() })?;
            let outcome = edit(&mut manifest)?;
            Ok((Some(manifest), outcome))
        })
        .await
    }

    /// # Errors
    /// [`Error::InvalidAlias`], [`Error::ModelNotFound`], [`Error::VersionNotFound`]
    pub async fn set_alias(&self, name: &ModelName, alias: &str, version: &str) -> Result<()> {
        check_alias(alias)?;
        self.edit(name, |manifest| {
            let number = manifest.version(version)?.version;
            manifest.set_alias(alias, number);
            Ok(())
        })
        .await
    }

    /// # Errors
    /// [`Error::ModelNotFound`]; [`Error::AliasNotFound`] unless `if_exists`
    pub async fn unset_alias(&self, name: &ModelName, alias: &str, if_exists: bool) -> Result<()> {
        self.edit(name, |manifest| {
            let count = manifest.aliases.len();
            manifest.aliases.retain(|known, _| known.to_lowercase() != alias.to_lowercase());
            if manifest.aliases.len() == count && !if_exists {
                return Err(Error::AliasNotFound { name: name.to_string(), alias: alias.to_string() });
            }
            Ok(())
        })
        .await
    }

    /// # Errors
    /// [`Error::ModelNotFound`]
    pub async fn set_tags(&self, name: &ModelName, tags: &BTreeMap<String, String>) -> Result<()> {
        self.edit(name, |manifest| {
            manifest.tags.extend(tags.clone());
            Ok(())
        })
        .await
    }

    /// # Errors
    /// [`Error::ModelNotFound`]; [`Error::TagNotFound`] unless `if_exists`
    pub async fn unset_tags(&self, name: &ModelName, tags: &[String], if_exists: bool) -> Result<()> {
        self.edit(name, |manifest| {
            for tag in tags {
                if manifest.tags.remove(tag).is_none() && !if_exists {
                    return Err(Error::TagNotFound { name: name.to_string(), tag: tag.clone() });
                }
            }
            Ok(())
        })
        .await
    }

    /// # Errors
    /// [`Error::ModelNotFound`], [`Error::VersionNotFound`]
    pub async fn set_default(&self, name: &ModelName, version: &str) -> Result<()> {
        self.edit(name, |manifest| {
            manifest.default_version = Some(manifest.version(version)?.version);
            Ok(())
        })
        .await
    }

    /// # Errors
    /// [`Error::ModelNotFound`]
    pub async fn set_comment(&self, name: &ModelName, comment: Option<&str>) -> Result<()> {
        self.edit(name, |manifest| {
            manifest.comment = comment.map(str::to_string);
            Ok(())
        })
        .await
    }

    /// Drops one version, with its aliases.
    ///
    /// # Errors
    /// [`Error::ModelNotFound`], [`Error::VersionNotFound`]; [`Error::VersionInUse`] for the default.
    pub async fn drop_version(&self, name: &ModelName, version: &str) -> Result<Dropped> {
        let folder = self
            .edit(name, |manifest| {
                let entry = manifest.version(version)?.clone();
                if manifest.default_version == Some(entry.version) {
                    return Err(Error::VersionInUse { name: name.to_string(), version: entry.version });
                }
                manifest.versions.retain(|known| known.version != entry.version);
                manifest.aliases.retain(|_, known| *known != entry.version);
                Ok(entry.folder)
            })
            .await?;
        let dropped = Dropped { folders: vec![folder] };
        self.remove(&dropped).await;
        Ok(dropped)
    }

    /// Drops a model with all its versions. The name is free afterwards, and counts from 1 again.
    ///
    /// # Errors
    /// [`Error::ModelNotFound`]
    pub async fn drop_model(&self, name: &ModelName) -> Result<Dropped> {
        let folders = self
            .change(name, |current| {
                let found = current.filter(|manifest| manifest.has_versions());
                let manifest = found.ok_or_else(|| Error::ModelNotFound { name: name.to_string() })?;
                let folders = manifest.versions.iter().map(|entry| entry.folder.clone()).collect();
                let mut empty = Manifest::new(name);
                empty.reservations.clone_from(&manifest.reservations);
                Ok((Some(empty), folders))
            })
            .await?;
        let dropped = Dropped { folders };
        self.remove(&dropped).await;
        Ok(dropped)
    }

    /// Removes the files of versions that no manifest names any more. What stays behind is swept later.
    async fn remove(&self, dropped: &Dropped) {
        for folder in &dropped.folders {
            let folder = self.root.clone().join("versions").join(folder.as_str());
            if let Err(error) = self.remove_folder(&folder).await {
                tracing::warn!(%folder, %error, "the files of a dropped version stay behind");
            }
        }
    }

    pub(crate) async fn remove_folder(&self, folder: &object_store::path::Path) -> Result<(), object_store::Error> {
        let objects: Vec<_> = match self.store.list(Some(folder)).map_ok(|object| object.location).try_collect().await {
            Err(object_store::Error::NotFound { .. }) => Vec::new(),
            other => other?,
        };
        let locations = futures::stream::iter(objects.into_iter().map(Ok));
        let removed: Result<Vec<_>, _> = self.store.delete_stream(Box::pin(locations)).try_collect().await;
        match removed {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
