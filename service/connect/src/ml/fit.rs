//! `Fit`: from the dataset to a gang, and from rank 0's bytes to a cached model.

use std::sync::Arc;

use bytes::Bytes;
use engine::registered::RegisteredPartition;
use gang::{BarrierJob, Event, RankFailure, RunningJob};
use ml::{FitPlan, Kind};
use serde::{Deserialize, Serialize};
use spark_connect_proto::execute_plan_response::{ExecutionProgress, execution_progress::StageInfo};
use spark_connect_proto::ml_command::Fit;
use spark_connect_proto::ml_command_result::ResultType;
use tracing::info;

use super::cache::{CachedModel, CachedSummary};
use super::{literal, missing, objects};
use crate::operation::Operation;
use crate::session::Session;
use crate::{Error, Result};

/// How many ranks train a model of this session. Default: the server's slots.
pub const WORKERS_KEY: &str = "spark.phalanx.workers";

/// Where a rank finds its rows. The coordinator passes it on unread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionAddress {
    pub uri: String,
    pub ticket: String,
}

/// Fits an estimator.
///
/// # Errors
/// What the estimator says of params and schema before anything is started; more ranks than slots; what the gang's first
/// failing rank said.
pub async fn run(session: &Arc<Session>, operation: &Arc<Operation>, fit: &Fit) -> Result<ResultType> {
    let named = fit.estimator.as_ref().ok_or_else(|| missing("estimator of Fit"))?;
    let operator = ml::catalog::operator(&named.name)?;
    let Kind::Estimator(estimator) = operator.kind else {
        return Err(ml::Error::OperatorNotSupported { class: named.name.clone() }.into());
    };
    let params = ml::Params::new(operator, &named.uid, literal::params(fit.params.as_ref())?)?;
    let dataset = fit.dataset.as_ref().ok_or_else(|| missing("dataset of Fit"))?;
    let frame = session.engine.resolve(dataset, session.as_ref()).await?;
    let schema = frame.schema();
    let plan = estimator.plan_fit(&params, &schema)?;

    let num_ranks = num_ranks(session)?;
    let streams = session.engine.partitions(&frame, &plan.columns, num_ranks).await?;
    let partitions: Vec<RegisteredPartition> =
        streams.into_iter().map(|stream| RegisteredPartition::new(&session.services.partitions, stream)).collect();
    let job = barrier_job(session, operation, operator.short_name(), &plan, &partitions)?;
    info!(job_id = job.job_id, operator = operator.short_name(), num_ranks, "fit submitted");
    let fitted = train(session, operation, job).await.map_err(|error| first_cause(error, &partitions))?;

    let model = estimator.model(operator, &params, &schema, &fitted)?;
    let training = model.summary().map(|summary| {
        let model = Arc::clone(&model);
        Arc::new(CachedSummary { summary, model, dataset: frame, folding: Default::default() })
    });
    let id = session.models.add_model(CachedModel::new(model, training));
    Ok(objects(&[id], Some(named.uid.clone())))
}

fn num_ranks(session: &Session) -> Result<usize> {
    let Some(text) = session.engine.conf().get(WORKERS_KEY) else { return Ok(session.services.options.default_workers) };
    match text.trim().parse::<usize>() {
        Ok(num_ranks) if num_ranks > 0 => Ok(num_ranks),
        _ => Err(Error::InvalidConf { key: WORKERS_KEY, value: text, expected: "a whole number of at least 1" }),
    }
}

fn barrier_job(
    session: &Session,
    operation: &Operation,
    name: &str,
    plan: &FitPlan,
    partitions: &[RegisteredPartition],
) -> Result<BarrierJob> {
    let uri = &session.services.internal_uri;
    let address = |partition: &RegisteredPartition| {
        let address = PartitionAddress { uri: uri.clone(), ticket: partition.ticket().into() };
        serde_json::to_vec(&address).map(Bytes::from).map_err(|source| Error::Encode { source })
    };
    Ok(BarrierJob {
        job_id: operation.id.clone(),
        name: name.into(),
        pool: session.user.clone(),
        num_ranks: partitions.len(),
        program: plan.program.into(),
        spec: Bytes::from(plan.spec.clone()),
        partitions: partitions.iter().map(address).collect::<Result<Vec<Bytes>>>()?,
        queue_deadline: None,
        max_restarts: 0,
    })
}

/// Runs the job to its end, telling the client how far it is. A cancelled operation cancels the job and waits until its
/// ranks are gone.
async fn train(session: &Session, operation: &Operation, job: BarrierJob) -> Result<Bytes> {
    let mut running: RunningJob = session.services.gang.submit(job)?;
    let mut is_cancelled = false;
    loop {
        let event = tokio::select! {
            event = running.next_event() => event,
            () = operation.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                running.cancel("the operation was cancelled");
                continue;
            }
        };
        match event {
            Some(Event::Progress { rank: 0, progress }) => operation.progress(execution_progress(&progress)),
            Some(Event::Log { rank, line }) => info!(job_id = running.job_id(), rank, "{line}"),
            Some(Event::Finished { output }) => return Ok(output),
            Some(Event::Failed(_)) if is_cancelled => return Err(Error::Cancelled),
            Some(Event::Failed(error)) => return Err(error.into()),
            None => return Err(gang::Error::ShuttingDown.into()),
            Some(_) => {}
        }
    }
}

/// A step is shown as a task of a stage, which is what a client's progress bar counts.
fn execution_progress(progress: &gang::Progress) -> ExecutionProgress {
    let num_tasks = progress.steps_max.max(progress.step) as i64;
    let stage = StageInfo {
        stage_id: 0,
        num_tasks,
        num_completed_tasks: progress.step as i64,
        input_bytes_read: 0,
        done: progress.step >= progress.steps_max && progress.steps_max > 0,
    };
    ExecutionProgress { stages: vec![stage], num_inflight_tasks: 1 }
}

/// A rank that could not read its rows only knows that the stream broke; why it broke is known where the rows come from.
fn first_cause(error: Error, partitions: &[RegisteredPartition]) -> Error {
    let is_rank_failure =
        matches!(&error, Error::Gang(gang::Error::RankFailed { cause: RankFailure::Program { .. }, .. }));
    match partitions.iter().find_map(RegisteredPartition::take_error) {
        Some(cause) if is_rank_failure => Error::Engine(cause),
        _ => error,
    }
}
