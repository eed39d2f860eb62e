//! SHOW MODELS, VERSIONS, TRAININGS and CREATE MODEL, DESCRIBE MODEL.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::data_type::simple_string;
use ml::tabular::RawType;
use registry::{Manifest, TrainingRecord, TrainingStatus, VersionEntry};
use spark_connect_proto::Relation;
use sql::model::{ModelRef, Version};

use super::answer::Answer;
use super::document::Document;
use super::loaded::{Loaded, load};
use super::name::{quoted, resolve, version_text};
use crate::{Error, Result, Session};

fn int(number: u32) -> Option<i32> {
    i32::try_from(number).ok()
}

/// The document of a version; None where its files are damaged, which must not hide the other versions.
async fn document(session: &Session, manifest: &Manifest, entry: &VersionEntry) -> Option<Arc<Document>> {
    match load(session, &manifest.name, &entry.version.to_string()).await {
        Ok(loaded) => Some(loaded.document),
        Err(error) => {
            tracing::warn!(model = %manifest.name, version = entry.version, %error, "a version cannot be read");
            None
        }
    }
}

pub async fn models(session: &Arc<Session>, namespace: &[String], pattern: Option<&str>) -> Result<Relation> {
    let schema = match namespace {
        [] => session.engine.current_database(),
        [.., schema] => schema.clone(),
    };
    if !session.engine.has_database(&schema) {
        return Err(Error::Engine(engine::Error::SchemaNotFound { name: schema }));
    }
    let mut models = session.services.models.registry.models(Some(&schema)).await?;
    let names = engine::embedded::matching(models.iter().map(|model| model.name.name.clone()).collect(), pattern);
    models.retain(|model| names.contains(&model.name.name));
    let mut documents = Vec::with_capacity(models.len());
    for model in &models {
        let entry = model.version("").ok().cloned();
        documents.push(match entry {
            Some(entry) => document(session, model, &entry).await,
            None => None,
        });
    }
    let aliases = |model: &Manifest| -> BTreeMap<String, i32> {
        model.aliases.iter().filter_map(|(alias, version)| Some((alias.clone(), int(*version)?))).collect()
    };
    let of_document = |read: &dyn Fn(&Document) -> String| {
        documents.iter().map(|document| document.as_deref().map(read)).collect::<Vec<Option<String>>>()
    };
    Answer::new()
        .texts("namespace", models.iter().map(|model| Some(model.name.schema.clone())).collect())
        .texts("model_name", models.iter().map(|model| Some(model.name.name.clone())).collect())
        .ints("default_version", models.iter().map(|model| model.default_version.and_then(int)).collect())
        .ints("versions", models.iter().map(|model| i32::try_from(model.versions.len()).ok()).collect())
        .texts("estimator", of_document(&|document| document.estimator.clone()))
        .texts("task", of_document(&|document| document.task.clone()))
        .int_maps("aliases", models.iter().map(aliases).collect())
        .times("created_at", models.iter().map(|model| Some(model.created_at.clone())).collect())
        .texts("comment", models.iter().map(|model| model.comment.clone()).collect())
        .relation(session)
}

pub async fn versions(session: &Arc<Session>, model: &ModelRef) -> Result<Relation> {
    let name = resolve(session, &model.parts)?;
    let manifest = session.services.models.registry.model(&name).await?;
    let entries = &manifest.versions;
    let mut documents = Vec::with_capacity(entries.len());
    for entry in entries {
        documents.push(document(session, &manifest, entry).await);
    }
    let aliases = |entry: &VersionEntry| -> Vec<String> {
        let of_version = manifest.aliases.iter().filter(|(_, version)| **version == entry.version);
        of_version.map(|(alias, _)| alias.clone()).collect()
    };
    let metrics = documents.iter().map(|document| document.as_ref().map(|d| d.main_metrics()).unwrap_or_default());
    let rows = documents.iter().map(|document| document.as_ref().and_then(|d| i64::try_from(d.counts.train).ok()));
    Answer::new()
        .ints("version", entries.iter().map(|entry| int(entry.version)).collect())
        .flags("is_default", entries.iter().map(|e| Some(manifest.default_version == Some(e.version))).collect())
        .text_lists("aliases", entries.iter().map(aliases).collect())
        .texts("estimator", documents.iter().map(|document| document.as_ref().map(|d| d.estimator.clone())).collect())
        .double_maps("metrics", metrics.collect())
        .longs("train_rows", rows.collect())
        .texts("training_id", entries.iter().map(|entry| Some(entry.training_id.clone())).collect())
        .times("created_at", entries.iter().map(|entry| Some(entry.created_at.clone())).collect())
        .texts("created_by", entries.iter().map(|entry| Some(entry.created_by.clone())).collect())
        .relation(session)
}

pub async fn create(session: &Arc<Session>, model: &ModelRef, version: Option<&Version>) -> Result<Relation> {
    let loaded = load(session, &resolve(session, &model.parts)?, &version_text(version)).await?;
    Answer::new().texts("createmodel_stmt", vec![Some(loaded.document.statement.clone())]).relation(session)
}

pub async fn trainings(session: &Arc<Session>, model: Option<&ModelRef>) -> Result<Relation> {
    let store = &session.services.models;
    let mut records = store.registry.trainings().await?;
    if let Some(model) = model {
        let name = resolve(session, &model.parts)?;
        records.retain(|record| record.model.is_same(&name));
    }
    for record in &mut records {
        if let Some(running) = store.running(&record.training_id).filter(|_| record.status == TrainingStatus::Running) {
            let (phase, progress) = running.state();
            (record.phase, record.progress) = (phase.into(), progress);
            record.duration_ms = u64::try_from(running.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        }
    }
    let texts = |read: &dyn Fn(&TrainingRecord) -> Option<String>| records.iter().map(read).collect::<Vec<_>>();
    Answer::new()
        .texts("training_id", texts(&|record| Some(record.training_id.clone())))
        .texts("model", texts(&|record| Some(quoted(&record.model))))
        .ints("version", records.iter().map(|record| record.version.and_then(int)).collect())
        .texts("status", texts(&|record| Some(record.status.name().into())))
        .texts("phase", texts(&|record| Some(record.phase.clone())))
        .doubles("progress", records.iter().map(|record| Some(record.progress)).collect())
        .ints("workers", records.iter().map(|record| int(record.workers)).collect())
        .times("started_at", texts(&|record| Some(record.started_at.clone())))
        .longs("duration_ms", records.iter().map(|record| i64::try_from(record.duration_ms).ok()).collect())
        .texts("created_by", texts(&|record| Some(record.created_by.clone())))
        .texts("error_class", texts(&|record| record.error_class.clone()))
        .texts("error_message", texts(&|record| record.error_message.clone()))
        .relation(session)
}

pub async fn describe(
    session: &Arc<Session>,
    model: &ModelRef,
    version: Option<&Version>,
    extended: bool,
) -> Result<Relation> {
    let name = resolve(session, &model.parts)?;
    let loaded = load(session, &name, &version_text(version)).await?;
    let document = &loaded.document;
    let mut rows: Vec<[Option<String>; 3]> = Vec::new();
    let text = |text: &str| Some(text.to_string());
    for input in document.transform.iter().flat_map(|transform| &transform.inputs) {
        rows.push([text(&input.name), Some(simple_string(&input.field()?)), text("input of TRANSFORM")]);
    }
    let features = if document.transform.is_some() { &[] } else { document.features.columns.as_slice() };
    for column in features {
        let role = match column.raw_type {
            RawType::Number => "numeric",
            RawType::Text | RawType::Boolean => "categorical",
            RawType::Numbers => "vector",
        };
        rows.push([text(&column.name), text(&column.data_type), text(role)]);
    }
    rows.push([text(""), text(""), text("")]);
    rows.push([text("# Output"), text(""), text("")]);
    let label = document.label.field()?;
    match &document.classes {
        Some(_) => {
            let label_type = simple_string(&label);
            rows.push([text("prediction"), text(&label_type), None]);
            let probability = format!("array<struct<label:{label_type},prob:double>>");
            rows.push([text("probability"), text(&probability), None]);
        }
        None => rows.push([text("prediction"), text("double"), None]),
    }
    if extended {
        rows.push([text(""), text(""), text("")]);
        rows.push([text("# Model Information"), text(""), text("")]);
        let manifest = session.services.models.registry.model(&name).await?;
        for (key, value) in information(&loaded, &manifest) {
            rows.push([Some(key.to_string()), Some(value), None]);
        }
    }
    let column = |at: usize| rows.iter().map(|row| row[at].clone()).collect::<Vec<_>>();
    Answer::new()
        .texts("col_name", column(0))
        .texts("data_type", column(1))
        .texts("comment", column(2))
        .relation(session)
}

fn information(loaded: &Loaded, manifest: &Manifest) -> Vec<(&'static str, String)> {
    let document = &loaded.document;
    let pairs = |pairs: &BTreeMap<String, String>| {
        pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
    };
    let metrics = document.main_metrics();
    let metrics: Vec<String> = metrics.iter().map(|(metric, value)| format!("{metric}={value}")).collect();
    let counts = document.counts;
    let of_version = manifest.aliases.iter().filter(|(_, version)| **version == loaded.version);
    let aliases: Vec<&str> = of_version.map(|(alias, _)| alias.as_str()).collect();
    let mut rows = vec![
        ("Model", quoted(&loaded.name)),
        ("Version", loaded.version.to_string()),
        ("Is Default", (manifest.default_version == Some(loaded.version)).to_string()),
        ("Aliases", aliases.join(", ")),
        ("Tags", pairs(&manifest.tags)),
        ("Comment", manifest.comment.clone().unwrap_or_default()),
        ("Estimator", document.estimator.clone()),
        ("Class", document.class.clone()),
        ("Task", document.task.clone()),
        ("Options", pairs(&document.options)),
        ("Best Params", pairs(&document.best_params)),
        ("Label", document.label.name.clone()),
    ];
    if let Some(classes) = &document.classes {
        rows.push(("Label Classes", classes.labels.join(", ")));
        if let [_, positive] = classes.labels.as_slice() {
            rows.push(("Positive Label", positive.clone()));
        }
    }
    rows.extend([
        ("Weight", document.weight.clone().unwrap_or_default()),
        ("Handle Invalid", document.handle_invalid.clone()),
        ("Seed", document.seed.to_string()),
        ("Split", document.split.clone()),
        (
            "Rows",
            format!(
                "train={}, validation={}, test={}, skipped={}",
                counts.train, counts.validation, counts.test, counts.skipped
            ),
        ),
        ("Metrics", metrics.join(", ")),
        ("Workers", document.workers.to_string()),
        ("Training", document.training_id.clone()),
        ("Trained At", document.started_at.clone()),
        ("Duration", format!("{} ms", document.duration_ms)),
        ("Created By", document.created_by.clone()),
        ("Statement", document.statement.clone()),
        ("Fingerprint", document.fingerprint.clone()),
        ("Software", pairs(&document.software)),
    ]);
    rows
}
