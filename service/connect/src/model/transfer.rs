//! EXPORT and IMPORT: a version's files in a folder of the user's own.

use std::sync::Arc;

use object_store::{ObjectStoreExt, PutPayload};
use registry::{Intent, Publish};
use spark_connect_proto::Relation;
use sql::model::{ModelRef, Property, Version, Word};

use super::Refusal;
use super::answer::Answer;
use super::document::MODEL_FOLDER;
use super::loaded::{load, parse};
use super::name::{quoted, resolve, version_text};
use super::train::all_files;
use crate::ml::store::locate;
use crate::{Error, Result, Session};

/// All files of a version, as the registry has them.
const NATIVE: &str = "native";
/// The estimator's model alone, over a column of vectors, in Spark ML's own layout.
const SPARK_ML: &str = "spark_ml";

pub async fn export(
    session: &Arc<Session>,
    model: &ModelRef,
    version: Option<&Version>,
    path: &Word,
    format: Option<&Word>,
    options: &[Property],
) -> Result<Relation> {
    let name = resolve(session, &model.parts)?;
    if let Some(option) = options.first() {
        let (option, place) = (option.key.text.clone(), option.key.place);
        return Err(
            Refusal::OptionUnknown { option, estimator: "EXPORT MODEL".into(), known: Vec::new(), place }.into()
        );
    }
    let format = format.map_or(NATIVE.to_string(), |format| format.text.to_lowercase());
    if format != NATIVE && format != SPARK_ML {
        let (model, supported) = (name.to_string(), vec![NATIVE, SPARK_ML]);
        return Err(Refusal::UnsupportedFormat { model, format, supported }.into());
    }
    let registry = &session.services.models.registry;
    let manifest = registry.model(&name).await?;
    let entry = manifest.version(&version_text(version))?;
    let mut files = registry.files(entry).await?;
    if format == SPARK_ML {
        let prefix = format!("{MODEL_FOLDER}/");
        files = files
            .into_iter()
            .filter_map(|(path, content)| Some((path.strip_prefix(&prefix)?.to_string(), content)))
            .collect();
    }
    let (store, prefix) = locate(&path.text)?;
    if ml::persist::exists(store.as_ref(), &prefix).await? {
        return Err(Error::Engine(engine::Error::PathAlreadyExists { path: path.text.clone() }));
    }
    let mut bytes = 0;
    for (file, content) in &files {
        let target = file.split('/').fold(prefix.clone(), |folder, part| folder.join(part));
        bytes += content.len() as i64;
        store
            .put(&target, PutPayload::from(content.clone()))
            .await
            .map_err(|source| engine::Error::ObjectStore { source })?;
    }
    Answer::new()
        .texts("path", vec![Some(path.text.clone())])
        .texts("format", vec![Some(format)])
        .ints("files", vec![i32::try_from(files.len()).ok()])
        .longs("bytes", vec![Some(bytes)])
        .relation(session)
}

pub async fn import(
    session: &Arc<Session>,
    model: &ModelRef,
    replace: bool,
    if_not_exists: bool,
    path: &Word,
    format: Option<&Word>,
) -> Result<Relation> {
    let name = resolve(session, &model.parts)?;
    let registry = &session.services.models.registry;
    let format = format.map_or(NATIVE.to_string(), |format| format.text.to_lowercase());
    if format != NATIVE {
        // of features and labels Spark's files do not say how they came from columns
        let (model, supported) = (name.to_string(), vec![NATIVE]);
        return Err(Refusal::UnsupportedFormat { model, format, supported }.into());
    }
    if if_not_exists && let Ok(manifest) = registry.model(&name).await {
        return imported(session, &quoted(&manifest.name), manifest.default_version.unwrap_or(0));
    }
    let (store, prefix) = locate(&path.text)?;
    if !ml::persist::exists(store.as_ref(), &prefix).await? {
        return Err(Error::Engine(engine::Error::PathNotFound { path: path.text.clone() }));
    }
    let within = object_store::prefix::PrefixStore::new(store, prefix);
    let files = all_files(&within).await?;
    // what cannot be read is not taken in
    let (document, ..) = parse(&files, &path.text).await?;
    let id = uuid::Uuid::new_v4().to_string();
    let intent = if replace { Intent::Replace } else { Intent::Create };
    registry.reserve(&name, &id, intent).await?;
    let published = async {
        let staged = registry.stage(&files).await?;
        let how = Publish {
            training_id: id.clone(),
            created_by: session.user.clone(),
            may_exist: replace,
            ..Publish::default()
        };
        registry.publish(&name, &staged, &how).await
    };
    let (version, manifest) = match published.await {
        Ok(published) => published,
        Err(error) => {
            registry.release(&name, &id).await?;
            return Err(error.into());
        }
    };
    tracing::info!(model = %name, version, estimator = document.estimator, "model imported");
    load(session, &name, &version.to_string()).await?;
    imported(session, &quoted(&manifest.name), version)
}

fn imported(session: &Session, model: &str, version: u32) -> Result<Relation> {
    Answer::new()
        .texts("model", vec![Some(model.to_string())])
        .ints("version", vec![i32::try_from(version).ok()])
        .relation(session)
}
