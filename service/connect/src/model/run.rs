//! `TRAIN MODEL`: reserves the name, runs the training in a task of its own, and publishes what came of it in one put.

use std::sync::Arc;
use std::time::Instant;

use registry::{Intent, ModelName, Publish, TrainingRecord, TrainingStatus};
use spark_connect_proto::Relation;
use sql::model::Train;
use tracing::{info, warn};

use super::answer::Answer;
use super::document::Document;
use super::plan::{TrainPlan, plan};
use super::store::Running;
use super::{loaded, name, train as training};
use crate::error::Report;
use crate::{Error, Operation, Result, Session};

pub async fn train(
    session: &Arc<Session>,
    operation: &Arc<Operation>,
    train: Train,
    around: &(dyn Fn(Relation) -> Relation + Sync),
) -> Result<Relation> {
    let (if_not_exists, nowait) = (train.if_not_exists, train.nowait);
    let name = name::resolve(session, &train.model.parts)?;
    let begun = operation.unless_cancelled(Box::pin(begin(session, operation, train, around))).await;
    let (plan, id) = match begun {
        Ok(begun) => begun,
        Err(Error::Registry(registry::Error::ModelExists { .. })) if if_not_exists => {
            return skipped(session, &name).await;
        }
        Err(Error::Cancelled) => {
            // the name may just have been reserved
            session.services.models.registry.release(&name, &operation.id).await?;
            return Err(Error::Cancelled);
        }
        Err(error) => return Err(error),
    };
    // One that nobody waits for must not end with the statement.
    let own = if nowait { Arc::new(Operation::detached(id.clone(), session)) } else { Arc::clone(operation) };
    let running = Arc::new(Running::new(Arc::clone(&own)));
    session.services.models.add(&id, Arc::clone(&running));
    let answer = if nowait { Some(underway(session, &plan, &id)?) } else { None };
    let task = tokio::spawn(Box::pin(run_to_end(Arc::clone(session), own, running, Arc::new(plan), id)));
    match answer {
        Some(answer) => Ok(answer),
        None => {
            let (document, name, version, is_default) = task.await.map_err(Error::from_join)??;
            finished(session, &document, &name, version, is_default, "SUCCEEDED")
        }
    }
}

/// Checks the statement and reserves the name.
async fn begin(
    session: &Arc<Session>,
    operation: &Operation,
    train: Train,
    around: &(dyn Fn(Relation) -> Relation + Sync),
) -> Result<(TrainPlan, String)> {
    let registry = &session.services.models.registry;
    let name = name::resolve(session, &train.model.parts)?;
    if train.if_not_exists {
        // the statement that is skipped need not be right otherwise
        match registry.model(&name).await {
            Ok(_) => return Err(registry::Error::ModelExists { name: name.to_string() }.into()),
            Err(registry::Error::ModelNotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let plan = plan(session, train, around).await?;
    let id = operation.id.clone();
    let intent = if plan.replace { Intent::Replace } else { Intent::Create };
    registry.reserve(&plan.name, &id, intent).await?;
    Ok((plan, id))
}

type Done = (Document, ModelName, u32, bool);

/// Runs the training and, whatever comes of it, frees the name and writes its record.
async fn run_to_end(
    session: Arc<Session>,
    operation: Arc<Operation>,
    running: Arc<Running>,
    plan: Arc<TrainPlan>,
    id: String,
) -> Result<Done> {
    let started_at = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    let store = Arc::clone(&session.services.models);
    let mut record = TrainingRecord {
        training_id: id.clone(),
        model: plan.name.clone(),
        version: None,
        status: TrainingStatus::Running,
        phase: "reading".into(),
        progress: 0.0,
        workers: u32::try_from(plan.workers).unwrap_or(u32::MAX),
        started_at: started_at.clone(),
        duration_ms: 0,
        created_by: session.user.clone(),
        error_class: None,
        error_message: None,
        server: store.registry.server().clone(),
    };
    let work = {
        let (session, operation, running, plan, id) =
            (Arc::clone(&session), Arc::clone(&operation), Arc::clone(&running), Arc::clone(&plan), id.clone());
        let record = record.clone();
        // a panic in it is the end of the training only
        tokio::spawn(Box::pin(async move {
            session.services.models.registry.write_training(&record).await?;
            work(&session, &operation, &running, &plan, &id, &started_at).await
        }))
    };
    let outcome = work.await.unwrap_or_else(|error| Err(Error::from_join(error)));
    record.duration_ms = u64::try_from(running.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    record.phase = running.state().0.into();
    match &outcome {
        Ok((_, _, version, _)) => {
            (record.status, record.version, record.progress) = (TrainingStatus::Succeeded, Some(*version), 1.0);
        }
        Err(error) => {
            let report = Report::from(error);
            let is_cancelled = report.is_cancellation();
            record.status = if is_cancelled { TrainingStatus::Cancelled } else { TrainingStatus::Failed };
            record.progress = running.state().1;
            (record.error_class, record.error_message) = (report.class.clone(), Some(report.message.clone()));
            if let Err(error) = store.registry.release(&plan.name, &id).await {
                warn!(training_id = id, %error, "a model's name could not be freed");
            }
        }
    }
    if let Err(error) = store.registry.write_training(&record).await {
        warn!(training_id = id, %error, "a training's record could not be written");
    }
    store.remove(&id);
    outcome
}

async fn work(
    session: &Arc<Session>,
    operation: &Arc<Operation>,
    running: &Running,
    plan: &TrainPlan,
    id: &str,
    started_at: &str,
) -> Result<Done> {
    let (document, files) = training::train(session, operation, running, plan, id, started_at).await?;
    running.enter("publishing", 0.95);
    let registry = &session.services.models.registry;
    let staged = registry.stage(&files).await?;
    if operation.is_cancelled() {
        registry.discard(&staged).await;
        return Err(Error::Cancelled);
    }
    let how = Publish {
        training_id: id.to_string(),
        created_by: session.user.clone(),
        keep_default: plan.keep_default,
        alias: plan.alias.clone(),
        tags: plan.tags.clone(),
        comment: plan.comment.clone(),
        may_exist: plan.replace,
    };
    match registry.publish(&plan.name, &staged, &how).await {
        Ok((version, manifest)) => {
            info!(training_id = id, model = %plan.name, version, "model published");
            Ok((document, manifest.name.clone(), version, manifest.default_version == Some(version)))
        }
        Err(error) => {
            registry.discard(&staged).await;
            Err(error.into())
        }
    }
}

/// IF NOT EXISTS and the model is there: the row describes it.
async fn skipped(session: &Arc<Session>, name: &ModelName) -> Result<Relation> {
    let began = Instant::now();
    let loaded = loaded::load(session, name, "").await?;
    tracing::debug!(model = %name, elapsed = ?began.elapsed(), "model exists, training skipped");
    finished(session, &loaded.document, &loaded.name, loaded.version, true, "SKIPPED")
}

fn underway(session: &Session, plan: &TrainPlan, id: &str) -> Result<Relation> {
    let features = plan.columns.features.iter().map(|feature| feature.name.clone()).collect();
    let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    let label = plan.columns.label.as_ref().map(|label| label.name.clone());
    Answer::new()
        .texts("training_id", vec![Some(id.into())])
        .texts("model", vec![Some(name::quoted(&plan.name))])
        .ints("version", vec![None])
        .texts("status", vec![Some("RUNNING".into())])
        .flags("is_default", vec![None])
        .texts("estimator", vec![Some(plan.estimator_name())])
        .texts("task", vec![Some(plan.trainable.task.name().into())])
        .texts("label", vec![label])
        .text_lists("features", vec![features])
        .longs("train_rows", vec![None])
        .longs("validation_rows", vec![None])
        .longs("test_rows", vec![None])
        .longs("skipped_rows", vec![None])
        .double_maps("metrics", vec![Default::default()])
        .text_maps("best_params", vec![Default::default()])
        .longs("seed", vec![Some(plan.seed)])
        .ints("workers", vec![i32::try_from(plan.workers).ok()])
        .times("started_at", vec![Some(now)])
        .longs("duration_ms", vec![None])
        .warnings("warnings", vec![Vec::new()])
        .relation(session)
}

fn finished(
    session: &Session,
    document: &Document,
    name: &ModelName,
    version: u32,
    is_default: bool,
    status: &str,
) -> Result<Relation> {
    let long = |value: u64| vec![i64::try_from(value).ok()];
    Answer::new()
        .texts("training_id", vec![Some(document.training_id.clone())])
        .texts("model", vec![Some(name::quoted(name))])
        .ints("version", vec![i32::try_from(version).ok()])
        .texts("status", vec![Some(status.into())])
        .flags("is_default", vec![Some(is_default)])
        .texts("estimator", vec![Some(document.estimator.clone())])
        .texts("task", vec![Some(document.task.clone())])
        .texts("label", vec![Some(document.label.name.clone())])
        .text_lists("features", vec![document.features.inputs()])
        .longs("train_rows", long(document.counts.train))
        .longs("validation_rows", long(document.counts.validation))
        .longs("test_rows", long(document.counts.test))
        .longs("skipped_rows", long(document.counts.skipped))
        .double_maps("metrics", vec![document.main_metrics()])
        .text_maps("best_params", vec![document.best_params.clone()])
        .longs("seed", vec![Some(document.seed)])
        .ints("workers", vec![i32::try_from(document.workers).ok()])
        .times("started_at", vec![Some(document.started_at.clone())])
        .longs("duration_ms", long(document.duration_ms))
        .warnings("warnings", vec![document.warnings.clone()])
        .relation(session)
}
