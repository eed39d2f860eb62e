//! What starts ranks somewhere, tells which one died, and kills them. The coordinator knows no more about where ranks run.

use std::sync::Arc;

use async_trait::async_trait;

use crate::secret::Secret;

/// Starts all ranks of a gang, or none.
#[async_trait]
pub trait Launcher: Send + Sync {
    /// Starts the ranks; the result is in the same order. Dropping the future, or a rank, kills what was started.
    ///
    /// # Errors
    /// A rank could not be started; none is left behind.
    async fn launch(&self, ranks: Vec<RankLaunch>) -> Result<Vec<Box<dyn LaunchedRank>>, LaunchError>;
}

/// A rank's process, wherever it runs. Dropping it kills the process and all its children.
#[async_trait]
pub trait LaunchedRank: Send + Sync {
    /// The process's number on this machine, if it is on this machine.
    fn pid(&self) -> Option<u32>;
    /// Waits until the process, its group included, is gone. May be asked again.
    async fn wait(&self) -> Exit;
    /// Sends to the process and its children. Does nothing when they are gone.
    fn signal(&self, signal: Signal);
    /// The last lines of standard error. After [`LaunchedRank::wait`] it waits, briefly, for what is still in the pipe.
    async fn stderr_tail(&self) -> Vec<String>;
    /// Forgets those lines: what follows belongs to another job.
    fn clear_stderr_tail(&self);
}

/// What a rank's process is told to become.
#[derive(Clone, Debug)]
pub struct RankLaunch {
    /// Where the rank joins its gang.
    pub coordinator: String,
    pub job_id: String,
    /// The job's name, for people.
    pub name: String,
    pub generation: u32,
    pub rank: usize,
    pub world_size: usize,
    /// Proves to the coordinator that the rank is the one it launched.
    pub secret: Secret,
    /// Whether the process may join again after a job that went well. It is an idle worker then, whose job's id, rank and
    /// world size stand for nothing: it learns the real ones when a gang takes it.
    pub reusable: bool,
    /// Takes what the process prints.
    pub log: LogSink,
}

impl RankLaunch {
    /// Returns the environment from which [`crate::MemberOptions::from_env`] reads the same in the rank's process. It
    /// holds the secret: it must not travel in arguments, which every user of a machine can read.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut environment = vec![
            (COORDINATOR_VARIABLE, self.coordinator.clone()),
            (JOB_ID_VARIABLE, self.job_id.clone()),
            (GENERATION_VARIABLE, self.generation.to_string()),
            (RANK_VARIABLE, self.rank.to_string()),
            (SECRET_VARIABLE, self.secret.to_hex()),
        ];
        if self.reusable {
            environment.push((REUSABLE_VARIABLE, "1".to_string()));
        }
        environment
    }
}

pub(crate) const COORDINATOR_VARIABLE: &str = "PHALANX_GANG_COORDINATOR";
pub(crate) const JOB_ID_VARIABLE: &str = "PHALANX_GANG_JOB_ID";
pub(crate) const GENERATION_VARIABLE: &str = "PHALANX_GANG_GENERATION";
pub(crate) const RANK_VARIABLE: &str = "PHALANX_GANG_RANK";
pub(crate) const SECRET_VARIABLE: &str = "PHALANX_GANG_SECRET";
pub(crate) const REUSABLE_VARIABLE: &str = "PHALANX_GANG_REUSABLE";

/// Takes the lines a rank prints; never waits.
#[derive(Clone)]
pub struct LogSink(Arc<dyn Fn(String) + Send + Sync>);

impl LogSink {
    pub fn new(take: impl Fn(String) + Send + Sync + 'static) -> LogSink {
        LogSink(Arc::new(take))
    }

    pub fn line(&self, line: String) {
        (self.0)(line);
    }
}

impl std::fmt::Debug for LogSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogSink(..)")
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Asks to end (SIGTERM).
    Terminate,
    /// Ends (SIGKILL).
    Kill,
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("rank {rank}: {program} could not be started")]
    Spawn {
        rank: usize,
        program: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the launcher's thread could not be started")]
    Thread {
        #[source]
        source: std::io::Error,
    },
    #[error("the launcher has stopped")]
    Stopped,
    #[error("the secret could not be drawn")]
    Secret {
        #[source]
        source: std::io::Error,
    },
    #[error("{started} ranks were started, expected {expected}")]
    WrongCount { started: usize, expected: usize },
    #[error("the ranks were not started within {timeout_ms} ms")]
    Timeout { timeout_ms: u64 },
    /// For launchers outside this crate.
    #[error("{place} could not start the ranks")]
    Remote {
        place: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
