//! A rank's side of its gang: join, learn who the others are, report, finish, and hear of a cancellation.
//!
//! The control stream lives on a thread of its own, so that heartbeats go out however busy the rank program keeps the
//! process. When the stream breaks under a rank that runs, the process ends: nobody is left who wants its result.

mod link;
mod outbox;

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::error::{Error, Result};
use crate::event::Progress;
use crate::launcher::{
    COORDINATOR_VARIABLE, GENERATION_VARIABLE, JOB_ID_VARIABLE, RANK_VARIABLE, REUSABLE_VARIABLE, SECRET_VARIABLE,
};
use crate::secret::Secret;
use crate::wire::{self, FailureReport, RECORD_BYTES_MAX};
use outbox::{Outbox, Outgoing};

/// What a rank's process was told by whoever launched it.
#[derive(Debug, Clone)]
pub struct MemberOptions {
    /// Such as `http://127.0.0.1:15002`.
    pub coordinator: String,
    pub job_id: String,
    pub generation: u32,
    pub rank: usize,
    /// Proves that this process is the one that was launched.
    pub secret: Secret,
    /// Whether this process may join again once [`Member::finish`] has confirmed a success.
    pub reusable: bool,
}

impl MemberOptions {
    /// Reads what a launcher put into the environment.
    ///
    /// # Errors
    /// A variable is missing or malformed.
    pub fn from_env() -> Result<MemberOptions> {
        let read = |name: &'static str| std::env::var(name).map_err(|_| Error::MissingEnvironment { name });
        let malformed = |name, expected| Error::MalformedEnvironment { name, expected };
        Ok(MemberOptions {
            coordinator: read(COORDINATOR_VARIABLE)?,
            job_id: read(JOB_ID_VARIABLE)?,
            generation: read(GENERATION_VARIABLE)?
                .parse()
                .map_err(|_| malformed(GENERATION_VARIABLE, "a whole number"))?,
            rank: read(RANK_VARIABLE)?.parse().map_err(|_| malformed(RANK_VARIABLE, "a whole number"))?,
            secret: Secret::from_hex(&read(SECRET_VARIABLE)?)
                .ok_or_else(|| malformed(SECRET_VARIABLE, "64 hexadecimal digits"))?,
            reusable: std::env::var_os(REUSABLE_VARIABLE).is_some(),
        })
    }
}

/// What a rank is to do, known once all ranks have joined.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub job_id: String,
    pub rank: usize,
    pub world_size: usize,
    pub generation: u32,
    /// Every rank's collective address, in the order of ranks.
    pub addresses: Vec<String>,
    /// Shared by the ranks of the job.
    pub secret: [u8; 32],
    pub program: String,
    pub spec: Bytes,
    pub partition: Bytes,
}

/// Why a rank program did not succeed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    /// Who can do something about it: `user`, `external` or `ours`.
    pub class: String,
    /// More for the log, such as the chain of causes.
    pub detail: String,
    /// Whether it may be only the echo of another rank's failure, such as a lost peer.
    pub secondary: bool,
}

/// A rank that has joined its gang. Dropping it without [`Member::finish`] breaks the stream, and fails the gang.
pub struct Member {
    outbox: Arc<Outbox>,
    cancelled: watch::Receiver<Option<String>>,
}

impl Member {
    /// Joins, and waits until all ranks of the gang have. `address` is where the other ranks reach this one.
    ///
    /// # Errors
    /// The coordinator cannot be reached, refuses this process, or went away before all ranks had joined.
    pub async fn join(options: MemberOptions, address: String) -> Result<(Member, Assignment)> {
        let outbox = Arc::new(Outbox::default());
        let (cancel, cancelled) = watch::channel(None);
        let (assigned, assignment) = oneshot::channel();
        // from here on a dropped join takes the stream with it
        let member = Member { outbox: Arc::clone(&outbox), cancelled };
        link::start(options, address, outbox, assigned, cancel)?;
        match assignment.await {
            Ok(assignment) => Ok((member, assignment?)),
            Err(_) => Err(Error::ConnectionLost { reason: "the member's thread ended".to_string() }),
        }
    }

    /// Tells how far the rank is. Never waits; when the coordinator does not keep up, the oldest reports are dropped.
    pub fn report(&self, progress: Progress) {
        self.outbox.push(Outgoing::Progress(progress));
    }

    /// Adds a line to the job's log. Never waits; the oldest lines are dropped like reports.
    pub fn log(&self, line: impl Into<String>) {
        self.outbox.push(Outgoing::Log(line.into()));
    }

    /// Waits until the gang is told to stop, and returns why.
    pub fn cancelled(&self) -> impl Future<Output = String> + Send + 'static {
        let cancellation = self.cancellation();
        async move { cancellation.wait().await }
    }

    /// Returns a handle that tells, from any thread, whether the gang was told to stop.
    pub fn cancellation(&self) -> Cancellation {
        Cancellation { cancelled: self.cancelled.clone() }
    }

    /// Returns a handle to report and log from any thread.
    pub fn reporter(&self) -> Reporter {
        Reporter { outbox: Arc::clone(&self.outbox) }
    }

    /// Hands the outcome over, and waits until the coordinator has all of it. Only rank 0's output is kept.
    ///
    /// # Errors
    /// The stream broke before the coordinator had confirmed the outcome.
    pub async fn finish(self, result: std::result::Result<Bytes, Failure>) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.outbox.finish(result, reply);
        match answer.await {
            Ok(result) => result,
            Err(_) => Err(Error::ConnectionLost { reason: "the member's thread ended".to_string() }),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

/// Reports and logs on behalf of a [`Member`].
#[derive(Clone)]
pub struct Reporter {
    outbox: Arc<Outbox>,
}

impl Reporter {
    /// As [`Member::report`].
    pub fn report(&self, progress: Progress) {
        self.outbox.push(Outgoing::Progress(progress));
    }

    /// As [`Member::log`].
    pub fn log(&self, line: impl Into<String>) {
        self.outbox.push(Outgoing::Log(line.into()));
    }

    /// Sends bytes of the rank program's own to the job's caller; they are dropped like lines, and whole when there are
    /// more than [`RECORD_BYTES_MAX`].
    pub fn record(&self, record: Bytes) {
        if record.len() <= RECORD_BYTES_MAX {
            self.outbox.push(Outgoing::Record(record));
        }
    }
}

/// Tells whether a rank was told to stop.
#[derive(Clone)]
pub struct Cancellation {
    cancelled: watch::Receiver<Option<String>>,
}

impl Cancellation {
    /// Returns why the rank is to stop, if it is. For code between two steps that cannot wait.
    pub fn reason(&self) -> Option<String> {
        self.cancelled.borrow().clone()
    }

    /// Waits until the rank is to stop, and returns why. Waits forever once the member has finished.
    pub async fn wait(&self) -> String {
        let mut cancelled = self.cancelled.clone();
        let reason = match cancelled.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone(),
            Err(_) => None,
        };
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}

impl From<Failure> for FailureReport {
    fn from(failure: Failure) -> Self {
        FailureReport {
            message: wire::cut(failure.message, wire::FAILURE_TEXT_BYTES_MAX),
            class: wire::cut(failure.class, wire::FAILURE_TEXT_BYTES_MAX),
            detail: wire::cut(failure.detail, wire::FAILURE_TEXT_BYTES_MAX),
            secondary: failure.secondary,
        }
    }
}

impl From<FailureReport> for Failure {
    fn from(report: FailureReport) -> Self {
        Failure { message: report.message, class: report.class, detail: report.detail, secondary: report.secondary }
    }
}
