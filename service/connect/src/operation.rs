//! One execution of a plan: who runs it, its responses, its tags, its end.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use spark_connect_proto::ExecutePlanResponse;
use spark_connect_proto::Plan;
use spark_connect_proto::execute_plan_response::execution_progress::StageInfo;
use spark_connect_proto::execute_plan_response::{ExecutionProgress, ObservedMetrics, ResponseType};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::error::Report;
use crate::response::{End, ResponseLog, result_complete};
use crate::{Error, Options, Result, Session};

#[derive(Debug)]
pub struct Operation {
    pub id: String,
    pub tags: Vec<String>,
    /// Whether the client may come back for the responses after its stream ends.
    pub is_reattachable: bool,
    /// What it runs, to tell a repeated request from a second operation of the same id.
    pub(crate) plan: Option<Plan>,
    pub(crate) log: ResponseLog,
    session_id: String,
    server_session_id: String,
    options: Options,
    cancelled: watch::Sender<bool>,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// What was reported last; none while nothing was.
    last: Option<ExecutionProgress>,
    /// When it was sent last.
    sent: Option<Instant>,
}

/// That something runs; clients show no progress without a task in it.
fn underway() -> ExecutionProgress {
    let stage = StageInfo { num_tasks: 1, ..StageInfo::default() };
    ExecutionProgress { stages: vec![stage], num_inflight_tasks: 1 }
}

/// How an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationState {
    Running,
    /// Cancelled, and not ended yet.
    Terminating,
    Succeeded,
    Failed,
    Cancelled,
}

/// What an operation is made of.
pub struct NewOperation {
    pub id: String,
    pub tags: Vec<String>,
    pub is_reattachable: bool,
    pub plan: Option<Plan>,
    pub session_id: String,
    pub server_session_id: String,
}

impl Operation {
    pub(crate) fn new(new: NewOperation, options: &Options) -> Operation {
        // Nothing is asked for twice on a stream that cannot be picked up again.
        let sent_bytes_max = if new.is_reattachable { options.sent_bytes_max } else { 0 };
        Operation {
            id: new.id,
            tags: new.tags,
            is_reattachable: new.is_reattachable,
            plan: new.plan,
            log: ResponseLog::new(options.unsent_bytes_max, sent_bytes_max),
            session_id: new.session_id,
            server_session_id: new.server_session_id,
            options: options.clone(),
            cancelled: watch::Sender::new(false),
            progress: Mutex::default(),
        }
    }

    /// An operation of the server's own, whose responses nobody reads: a training that nobody waits for, or a part of one.
    pub(crate) fn detached(id: String, session: &Session) -> Operation {
        let new = NewOperation {
            id,
            tags: Vec::new(),
            is_reattachable: false,
            plan: None,
            session_id: session.id.clone(),
            server_session_id: session.server_session_id.clone(),
        };
        Operation::new(new, session.options())
    }

    /// Completes once the operation is cancelled.
    pub async fn cancelled(&self) {
        let mut receiver = self.cancelled.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail before the value comes.
        let _ = receiver.wait_for(|is_cancelled| *is_cancelled).await;
    }

    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// Asks the operation to end; it does within the grace of the options.
    pub fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Cancels it and drops what it made: nobody will read it.
    pub(crate) fn abandon(&self) {
        self.cancel();
        self.log.release_all();
    }

    /// The future's result, unless the operation is cancelled first; the future is dropped then.
    ///
    /// # Errors
    /// Those of the future; [`Error::Cancelled`].
    pub(crate) async fn unless_cancelled<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.cancelled() => Err(Error::Cancelled),
            result = future => result,
        }
    }

    /// Tells the client how far the operation is: at once, and again at least every progress interval while it runs.
    pub fn progress(&self, progress: ExecutionProgress) {
        self.progress_with(progress, Vec::new());
    }

    /// As [`Operation::progress`], with metrics that are told once. They are lost when newer progress overtakes them.
    pub fn progress_with(&self, progress: ExecutionProgress, observed_metrics: Vec<ObservedMetrics>) {
        {
            let mut state = self.progress.lock();
            state.last = Some(progress.clone());
            state.sent = Some(Instant::now());
        }
        let response = self.response(ResponseType::ExecutionProgress(progress));
        self.log.push_progress(ExecutePlanResponse { observed_metrics, ..response });
    }

    /// Says again what was said last, or only that something runs, unless that was said just now.
    fn repeat_progress(&self) {
        let progress = {
            let mut state = self.progress.lock();
            let now = Instant::now();
            // Half an interval of slack: the ticks of the timer are not exact.
            if state.sent.is_some_and(|sent| now.duration_since(sent) < self.options.progress_interval / 2) {
                return;
            }
            state.sent = Some(now);
            state.last.clone().unwrap_or_else(underway)
        };
        self.log.push_progress(self.response(ResponseType::ExecutionProgress(progress)));
    }

    pub(crate) fn envelope(&self) -> ExecutePlanResponse {
        ExecutePlanResponse {
            session_id: self.session_id.clone(),
            server_side_session_id: self.server_session_id.clone(),
            operation_id: self.id.clone(),
            ..ExecutePlanResponse::default()
        }
    }

    fn response(&self, response_type: ResponseType) -> ExecutePlanResponse {
        ExecutePlanResponse { response_type: Some(response_type), ..self.envelope() }
    }

    /// Sends a result to the client, waiting while it is slow.
    ///
    /// # Errors
    /// [`Error::Cancelled`] once nobody will read it.
    pub(crate) async fn send(&self, response_type: ResponseType) -> Result<()> {
        self.log.push(self.response(response_type)).await
    }

    pub fn state(&self) -> OperationState {
        match self.log.end() {
            None if self.is_cancelled() => OperationState::Terminating,
            None => OperationState::Running,
            Some(End::Completed) => OperationState::Succeeded,
            Some(End::Failed(report)) if report.is_cancellation() => OperationState::Cancelled,
            Some(End::Failed(_)) => OperationState::Failed,
        }
    }

    pub fn is_running(&self) -> bool {
        self.log.end().is_none()
    }

    /// Watches the task that does the work: repeats its progress, ends it when it is cancelled and does not end by itself,
    /// and turns what became of it into the end of the responses. `keep` puts the error where its details can be fetched.
    pub(crate) async fn supervise(&self, mut work: JoinHandle<Result<()>>, keep: impl FnOnce(Arc<Report>)) {
        let mut ticks = tokio::time::interval(self.options.progress_interval);
        ticks.tick().await;
        let mut is_cancelled = false;
        let mut grace_end = Instant::now();
        let outcome = loop {
            tokio::select! {
                outcome = &mut work => break outcome.unwrap_or_else(|error| Err(Error::from_join(error))),
                () = self.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    grace_end = Instant::now() + self.options.cancel_grace;
                }
                () = tokio::time::sleep_until(grace_end.into()), if is_cancelled => {
                    work.abort();
                    break Err(Error::Cancelled);
                }
                _ = ticks.tick() => self.repeat_progress(),
            }
        };
        match outcome {
            Ok(()) => {
                let completion = self.is_reattachable.then(|| self.response(result_complete()));
                self.log.finish(End::Completed, completion);
            }
            Err(error) => {
                let report = Arc::new(Report::from(&error));
                self.log_failure(&error, &report);
                keep(Arc::clone(&report));
                self.log.finish(End::Failed(report), None);
            }
        }
    }

    fn log_failure(&self, error: &Error, report: &Report) {
        let class = report.class.as_deref().unwrap_or_default();
        match error {
            Error::Panicked { .. } | Error::Bug { .. } => {
                warn!(operation_id = self.id, error_id = report.id, class, %error, "operation failed by our own bug");
            }
            error => info!(operation_id = self.id, error_id = report.id, class, %error, "operation failed"),
        }
    }
}
