//! DROP, ALTER and COMMENT ON MODEL, CANCEL TRAINING.

use std::sync::Arc;

use spark_connect_proto::Relation;
use sql::model::{Change, ModelRef, Version, Word};

use super::Refusal;
use super::answer::nothing;
use super::name::{resolve, version_text};
use super::plan::tags;
use crate::{Error, Result, Session};

/// Lets the model be missing where the statement says IF EXISTS.
fn unless_missing(outcome: registry::Result<()>, if_exists: bool) -> Result<()> {
    match outcome {
        Err(registry::Error::ModelNotFound { .. }) if if_exists => Ok(()),
        other => Ok(other?),
    }
}

pub async fn drop(
    session: &Arc<Session>,
    model: &ModelRef,
    version: Option<&Version>,
    if_exists: bool,
) -> Result<Relation> {
    let name = resolve(session, &model.parts)?;
    let registry = &session.services.models.registry;
    let dropped = match version {
        None => registry.drop_model(&name).await,
        Some(version) => registry.drop_version(&name, &version_text(Some(version))).await,
    };
    match dropped {
        Err(registry::Error::VersionNotFound { .. }) if if_exists => {}
        other => unless_missing(other.map(std::mem::drop), if_exists)?,
    }
    nothing(session)
}

pub async fn alter(session: &Arc<Session>, model: &ModelRef, if_exists: bool, change: &Change) -> Result<Relation> {
    let name = resolve(session, &model.parts)?;
    let registry = &session.services.models.registry;
    let outcome = match change {
        Change::RenameTo(to) => {
            // a name without a schema stays in the model's own
            let to = match to.parts.as_slice() {
                [new] => registry::ModelName::new(&name.schema, new)?,
                parts => resolve(session, parts)?,
            };
            if !to.schema.eq_ignore_ascii_case(&name.schema) {
                let what = format!("Renaming a model into another schema, {}", to.schema);
                return Err(Refusal::UnsupportedOperation { what }.into());
            }
            registry.rename(&name, &to).await
        }
        Change::SetTags(properties) => registry.set_tags(&name, &tags(properties)?).await,
        Change::UnsetTags { if_exists, keys } => {
            let keys: Vec<String> = keys.iter().map(|key| key.text.clone()).collect();
            registry.unset_tags(&name, &keys, *if_exists).await
        }
        Change::SetAlias { alias, version } => {
            registry.set_alias(&name, &alias.text, &version_text(Some(version))).await
        }
        Change::UnsetAlias { if_exists, alias } => registry.unset_alias(&name, &alias.text, *if_exists).await,
        Change::SetDefault(version) => registry.set_default(&name, &version_text(Some(version))).await,
        Change::Comment(comment) => registry.set_comment(&name, comment.as_deref()).await,
    };
    unless_missing(outcome, if_exists)?;
    nothing(session)
}

/// Cancels a training of this server.
///
/// # Errors
/// [`Refusal::TrainingNotFound`] for one that does not run here, unless it may be missing.
pub async fn cancel(session: &Arc<Session>, id: &Word, if_exists: bool) -> Result<Relation> {
    match session.services.models.running(&id.text) {
        Some(running) => running.operation.cancel(),
        None if if_exists => {}
        None => return Err(Error::Model(Refusal::TrainingNotFound { id: id.text.clone() })),
    }
    nothing(session)
}
