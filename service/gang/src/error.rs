//! Why a job, a rank or a member could not go on.

use std::fmt;
use std::sync::Arc;

use crate::launcher::LaunchError;

pub type Result<T> = std::result::Result<T, Error>;

/// Who can do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The request, or the data it names.
    User,
    /// The machine, the network, another process.
    External,
    /// This program.
    Ours,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("the job needs {needs} slots, the server has {has}")]
    NotEnoughSlots { needs: usize, has: usize },
    #[error("a barrier job needs at least one rank")]
    NoRanks,
    #[error("a job of {num_ranks} ranks cannot be told to keep at least {min_ranks}")]
    MinRanksOutOfRange { num_ranks: usize, min_ranks: usize },
    #[error("the job has {num_ranks} ranks and {partitions} partitions, expected one partition a rank")]
    PartitionsMismatch { num_ranks: usize, partitions: usize },
    #[error("a job with id {job_id} is queued or running")]
    DuplicateJob { job_id: String },
    #[error("{waiting} jobs are waiting, the most allowed is {max}")]
    QueueFull { waiting: usize, max: usize },
    #[error("no slots after waiting {waited_ms} ms: {reason}")]
    QueueTimeout { waited_ms: u64, reason: String },
    #[error("generation {generation}: {joined} of {num_ranks} ranks joined within {timeout_ms} ms")]
    StartTimeout { generation: u32, joined: usize, num_ranks: usize, timeout_ms: u64, stderr_tail: Vec<String> },
    #[error("generation {generation}: the ranks could not be launched")]
    Launch {
        generation: u32,
        #[source]
        source: Arc<LaunchError>,
    },
    #[error("generation {generation}: the ranks' data could not be prepared")]
    Partitions {
        generation: u32,
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    #[error("rank {rank} of generation {generation} {cause}")]
    RankFailed { rank: usize, generation: u32, cause: RankFailure },
    /// The job was started again as often as it may be, and failed again.
    #[error("{first}; started again {}, at last {last}", Times(*.restarts))]
    OutOfRestarts { restarts: u32, first: Box<Error>, last: Box<Error> },
    #[error("cancelled: {reason}")]
    Cancelled { reason: String },
    #[error("the server is shutting down")]
    ShuttingDown,

    #[error("environment variable {name} is not set")]
    MissingEnvironment { name: &'static str },
    #[error("environment variable {name} is malformed, expected {expected}")]
    MalformedEnvironment { name: &'static str, expected: &'static str },
    #[error("{coordinator} is not a coordinator's address")]
    MalformedAddress {
        coordinator: String,
        #[source]
        source: Arc<tonic::transport::Error>,
    },
    #[error("no connection to the coordinator at {coordinator}")]
    Unreachable {
        coordinator: String,
        #[source]
        source: Arc<tonic::transport::Error>,
    },
    #[error("the coordinator refused the rank: {reason}")]
    Refused { reason: String },
    #[error("the control stream broke: {reason}")]
    ConnectionLost { reason: String },
    #[error("the coordinator sent {found}, expected {expected}")]
    UnexpectedMessage { found: &'static str, expected: &'static str },
    #[error("the member's thread could not be started")]
    MemberThread {
        #[source]
        source: Arc<std::io::Error>,
    },
}

impl Error {
    /// Returns who can do something about it.
    pub fn class(&self) -> Class {
        match self {
            Error::OutOfRestarts { first, .. } => first.class(),
            Error::NotEnoughSlots { .. }
            | Error::NoRanks
            | Error::MinRanksOutOfRange { .. }
            | Error::PartitionsMismatch { .. }
            | Error::DuplicateJob { .. }
            | Error::Cancelled { .. } => Class::User,
            Error::RankFailed { cause: RankFailure::Program { class, .. }, .. } if class == "user" => Class::User,
            Error::RankFailed { cause: RankFailure::Program { class, .. }, .. } if class == "ours" => Class::Ours,
            Error::UnexpectedMessage { .. } => Class::Ours,
            Error::QueueFull { .. }
            | Error::QueueTimeout { .. }
            | Error::StartTimeout { .. }
            | Error::Launch { .. }
            | Error::Partitions { .. }
            | Error::RankFailed { .. }
            | Error::ShuttingDown
            | Error::MissingEnvironment { .. }
            | Error::MalformedEnvironment { .. }
            | Error::MalformedAddress { .. }
            | Error::Unreachable { .. }
            | Error::Refused { .. }
            | Error::ConnectionLost { .. }
            | Error::MemberThread { .. } => Class::External,
        }
    }

    /// Returns whether the same job may succeed when it is tried again unchanged.
    pub fn retryable(&self) -> bool {
        match self {
            Error::RankFailed { cause, .. } => cause.retryable(),
            Error::OutOfRestarts { last, .. } => last.retryable(),
            Error::QueueFull { .. } | Error::QueueTimeout { .. } | Error::StartTimeout { .. } => true,
            _ => false,
        }
    }
}

/// How a rank failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RankFailure {
    /// Its process exited before it reported an outcome.
    Exited { code: i32, stderr_tail: Vec<String> },
    /// Its process was killed by a signal.
    Killed { signal: i32, stderr_tail: Vec<String> },
    /// It gave no sign of life for this long.
    Stalled { for_ms: u64 },
    /// It reported a failure itself. `class` is the program's own word: `user`, `external` or `ours`.
    /// `is_echo`: the rank itself says that it may only have seen another one go.
    Program { message: String, class: String, detail: String, is_echo: bool },
    /// Its control stream broke, and its process outlived that.
    Disconnected { stderr_tail: Vec<String> },
}

impl RankFailure {
    /// Returns whether another generation may do better. An error of the program would only come back, unless all it saw
    /// was that it lost its peers, as when a network is cut.
    pub fn retryable(&self) -> bool {
        match self {
            RankFailure::Exited { .. }
            | RankFailure::Killed { .. }
            | RankFailure::Stalled { .. }
            | RankFailure::Disconnected { .. } => true,
            RankFailure::Program { class, is_echo, .. } => *is_echo && class == "external",
        }
    }

    /// Puts the last lines of the rank's standard error where this kind of failure has a place for them.
    pub(crate) fn set_stderr_tail(&mut self, tail: Vec<String>) {
        match self {
            RankFailure::Exited { stderr_tail, .. }
            | RankFailure::Killed { stderr_tail, .. }
            | RankFailure::Disconnected { stderr_tail } => *stderr_tail = tail,
            RankFailure::Stalled { .. } | RankFailure::Program { .. } => {}
        }
    }
}

impl fmt::Display for RankFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RankFailure::Exited { code, stderr_tail } => {
                write!(f, "exited with code {code} before it finished{}", LastLine(stderr_tail))
            }
            RankFailure::Killed { signal, stderr_tail } => {
                write!(f, "was killed by signal {signal}{}", LastLine(stderr_tail))
            }
            RankFailure::Stalled { for_ms } => write!(f, "gave no sign of life for {for_ms} ms"),
            RankFailure::Program { message, .. } => write!(f, "failed: {message}"),
            RankFailure::Disconnected { stderr_tail } => {
                write!(f, "lost its control stream{}", LastLine(stderr_tail))
            }
        }
    }
}

struct Times(u32);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("once"),
            times => write!(f, "{times} times"),
        }
    }
}

/// The last line with something on it, which in most programs says why it died.
struct LastLine<'a>(&'a [String]);

impl fmt::Display for LastLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.iter().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => write!(f, "; its last words: {}", line.trim()),
            None => Ok(()),
        }
    }
}
