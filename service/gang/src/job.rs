//! What a barrier job is, the states it passes through, and how it looks from outside.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::event::Progress;
use crate::partitions::Partitions;

/// A gang's worth of work.
#[derive(Debug, Clone)]
pub struct BarrierJob {
    pub job_id: String,
    /// For people.
    pub name: String,
    /// Jobs of one pool start in the order they came.
    pub pool: String,
    pub num_ranks: usize,
    /// With fewer than `num_ranks`, the job is elastic: each generation after one that lost a rank does without that
    /// rank, down to so many.
    pub min_ranks: usize,
    /// Which program every rank runs.
    pub program: String,
    /// What the program is told, the same for every rank.
    pub spec: Bytes,
    /// Where each rank finds its data; asked anew for every generation.
    pub partitions: Arc<dyn Partitions>,
    /// How long to wait for slots; `None` takes the service's own.
    pub queue_deadline: Option<Duration>,
    /// How many further generations may be started after a retryable failure.
    pub max_restarts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Waits for slots, holds none.
    Queued,
    /// Holds its slots; not all ranks have joined.
    Starting,
    /// All ranks have joined.
    Running,
    /// The outcome is known; processes are still there, and so are the slots.
    Stopping,
    Finished,
    Failed,
    Cancelled,
}

impl JobState {
    pub fn can_become(self, next: JobState) -> bool {
        use JobState::*;
        match self {
            Queued => matches!(next, Starting | Failed | Cancelled),
            Starting => matches!(next, Running | Stopping),
            Running => next == Stopping,
            // a restart goes from stopping to starting: the gang before it is gone by then
            Stopping => matches!(next, Starting | Finished | Failed | Cancelled),
            Finished | Failed | Cancelled => false,
        }
    }

    pub fn is_ended(self) -> bool {
        matches!(self, JobState::Finished | JobState::Failed | JobState::Cancelled)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Queued => "queued",
            JobState::Starting => "starting",
            JobState::Running => "running",
            JobState::Stopping => "stopping",
            JobState::Finished => "finished",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }
}

/// A job as a status page shows it.
#[derive(Debug, Clone)]
pub struct JobView {
    pub job_id: String,
    pub name: String,
    pub pool: String,
    pub state: JobState,
    /// Why it is in that state, in words.
    pub reason: String,
    pub num_ranks: usize,
    pub generation: u32,
    /// Since the job was submitted; stands still once it has ended.
    pub age: Duration,
    /// Empty unless a gang exists.
    pub ranks: Vec<RankView>,
}

#[derive(Debug, Clone)]
pub struct RankView {
    pub rank: usize,
    pub state: RankState,
    pub pid: Option<u32>,
    /// Its collective address, once it has joined.
    pub address: Option<String>,
    /// Time since its last sign of life, once it has joined.
    pub silent_for: Option<Duration>,
    pub progress: Option<Progress>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankState {
    Launching,
    Joined,
    Finished,
    Gone,
}

#[cfg(test)]
mod tests {
    use super::JobState::{self, *};

    #[test]
    fn only_the_listed_transitions_are_legal() {
        let all = [Queued, Starting, Running, Stopping, Finished, Failed, Cancelled];
        let legal: &[(JobState, &[JobState])] = &[
            (Queued, &[Starting, Failed, Cancelled]),
            (Starting, &[Running, Stopping]),
            (Running, &[Stopping]),
            (Stopping, &[Starting, Finished, Failed, Cancelled]),
            (Finished, &[]),
            (Failed, &[]),
            (Cancelled, &[]),
        ];
        for (from, nexts) in legal {
            for next in all {
                assert_eq!(from.can_become(next), nexts.contains(&next), "{from:?} to {next:?}");
            }
        }
    }
}
