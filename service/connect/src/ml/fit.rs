//! `Fit`: from the dataset to a gang, and from rank 0's bytes to a cached model.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gang::{BarrierJob, Event, RunningJob};
use ml::Kind;
use spark_connect_proto::ml_command::Fit;
use spark_connect_proto::ml_command_result::ResultType;
use tracing::info;

use super::cache::{CachedModel, CachedSummary};
use super::rank_data::RankData;
use super::restart::Restart;
use super::schedule::{Schedule, TIMEOUT_KEY};
use super::watch::{self, Watch};
use super::{literal, missing, objects};
use crate::operation::Operation;
use crate::session::Session;
use crate::{Error, Result};

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

    let schedule = Schedule::of(session)?;
    let num_ranks = schedule.num_ranks;
    let restart = Restart::of(session, &operation.id, num_ranks)?;
    let data = RankData::new(session, &frame, &plan.columns, num_ranks, restart.checkpoints.clone()).await?;
    let job = BarrierJob {
        job_id: operation.id.clone(),
        name: operator.short_name().into(),
        pool: schedule.pool,
        num_ranks,
        min_ranks: restart.min_ranks,
        program: plan.program.into(),
        spec: Bytes::from(plan.spec.clone()),
        partitions: Arc::clone(&data) as Arc<dyn gang::Partitions>,
        queue_deadline: schedule.queue_timeout,
        max_restarts: restart.max_restarts,
    };
    info!(job_id = job.job_id, operator = operator.short_name(), num_ranks, "fit submitted");
    let mut about = watch::about(session, operation, &params, &job)?;
    about.checkpoints = restart.checkpoints.as_ref().map(|place| place.folder.clone());
    let mut watch = Watch::begin(session, operation, about)?;
    let fitted = train(session, operation, job, schedule.timeout, &mut watch).await;
    let log = watch.end().await;
    let fitted = fitted.map_err(|error| data.first_cause(error))?;
    restart.clean_up().await;

    let model = estimator.model(operator, &params, &schema, &fitted)?;
    let training = model.summary().map(|summary| {
        let model = Arc::clone(&model);
        Arc::new(CachedSummary { summary, model, dataset: frame, folding: Default::default() })
    });
    let id = session.models.add_model(CachedModel::new(model, training));
    Ok(objects(&[id], Some(named.uid.clone()), log))
}

/// Runs the job to its end, telling the client how far it is. A cancelled operation, or one whose time is up, cancels the
/// job and waits until its ranks are gone.
async fn train(
    session: &Session,
    operation: &Operation,
    job: BarrierJob,
    timeout: Option<Duration>,
    watch: &mut Watch<'_>,
) -> Result<Bytes> {
    let mut running: RunningJob = match session.services.gang.submit(job) {
        Ok(running) => running,
        Err(error) => {
            watch.see(&Event::Failed(error.clone())).await;
            return Err(error.into());
        }
    };
    let time_up = async {
        match timeout {
            Some(timeout) => {
                tokio::time::sleep(timeout).await;
                timeout
            }
            None => std::future::pending().await,
        }
    };
    tokio::pin!(time_up);
    let mut ended_by_us: Option<Error> = None;
    loop {
        let event = tokio::select! {
            event = running.next_event() => event,
            () = operation.cancelled(), if ended_by_us.is_none() => {
                ended_by_us = Some(Error::Cancelled);
                running.cancel("the operation was cancelled");
                continue;
            }
            timeout = &mut time_up, if ended_by_us.is_none() => {
                running.cancel(&format!("{TIMEOUT_KEY} of {timeout:?} is over"));
                ended_by_us = Some(Error::FitTimeout { timeout, key: TIMEOUT_KEY });
                continue;
            }
        };
        if let Some(event) = &event {
            watch.see(event).await;
        }
        match event {
            Some(Event::Log { rank, line }) => info!(job_id = running.job_id(), rank, "{line}"),
            Some(Event::Finished { output }) => return Ok(output),
            Some(Event::Failed(error)) => return Err(ended_by_us.unwrap_or(error.into())),
            None => return Err(gang::Error::ShuttingDown.into()),
            Some(_) => {}
        }
    }
}
