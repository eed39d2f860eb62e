//! Renaming: a model is at one name, then at the other, and never at both or none.
//!
//! The new name's manifest is written first and says where the model comes from: it does not count before the old name's
//! manifest says where the model has gone. That one put is the moment.

use crate::{Error, Manifest, ModelName, Registry, Result};

impl Registry {
    /// The manifest, if the model is here: it is not while it has yet to come, or has gone.
    pub(crate) async fn present<'a>(&self, manifest: &'a Manifest) -> Result<Option<&'a Manifest>> {
        if manifest.renamed_to.is_some() {
            return Ok(None);
        }
        let Some(from) = &manifest.renamed_from else { return Ok(Some(manifest)) };
        let old = self.read(&from.folder(&self.root)).await?;
        let has_left = old.is_none_or(|old| {
            // whoever took the old name since is another model
            old.manifest.model_id != manifest.model_id || old.manifest.renamed_to.is_some()
        });
        Ok(has_left.then_some(manifest))
    }

    /// # Errors
    /// [`Error::ModelNotFound`]; [`Error::ModelExists`] and [`Error::TrainingInProgress`] for the new name.
    pub async fn rename(&self, from: &ModelName, to: &ModelName) -> Result<()> {
        if from.is_same(to) {
            return self
                .change(from, |current| {
                    let mut manifest = existing(current, from)?.clone();
                    manifest.name = to.clone();
                    Ok((Some(manifest), ()))
                })
                .await;
        }
        let model = self.find(from).await?;
        let model = existing(model.as_ref(), from)?.clone();
        if let Some(taken) = self.find(to).await?
            && let Some(reservation) = self.live_reservation(&taken).await?
        {
            let (name, training_id) = (to.to_string(), reservation.training_id.clone());
            return Err(Error::TrainingInProgress { name, training_id });
        }
        self.change(to, |current| {
            if current.is_some_and(Manifest::has_versions) {
                return Err(Error::ModelExists { name: to.to_string() });
            }
            let mut coming = model.clone();
            (coming.name, coming.renamed_from) = (to.clone(), Some(from.clone()));
            coming.reservations.clear();
            Ok((Some(coming), ()))
        })
        .await?;
        let expected = &model;
        let has_left = self
            .change(from, |current| {
                let current = existing(current, from)?;
                // what was changed meanwhile is not at the new name
                let is_unchanged = current.write_id == expected.write_id;
                let mut leaving = current.clone();
                leaving.renamed_to = Some(to.clone());
                leaving.versions.clear();
                Ok((is_unchanged.then_some(leaving), is_unchanged))
            })
            .await?;
        if !has_left {
            return Err(Error::Contended { name: from.to_string() });
        }
        // The new name need not look at the old one any more. Where this fails, it goes on doing so.
        let settled = self
            .change(to, |current| {
                let arrived = current.filter(|manifest| manifest.renamed_from.is_some()).cloned();
                Ok((arrived.map(|manifest| Manifest { renamed_from: None, ..manifest }), ()))
            })
            .await;
        if let Err(error) = settled {
            tracing::warn!(%from, %to, %error, "a renamed model still looks at its old name");
        }
        Ok(())
    }
}

fn existing<'a>(current: Option<&'a Manifest>, name: &ModelName) -> Result<&'a Manifest> {
    let found = current.filter(|manifest| manifest.has_versions());
    found.ok_or_else(|| Error::ModelNotFound { name: name.to_string() })
}
