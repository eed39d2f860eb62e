//! A job as a status page shows it.

use std::time::Instant;

use super::Job;
use crate::attempt::{Process, Rank};
use crate::job::{JobView, RankState, RankView};

pub fn view(job: &Job, now: Instant) -> JobView {
    let ranks = job.gang.iter().flat_map(|gang| gang.ranks.iter().enumerate());
    JobView {
        job_id: job.job.job_id.clone(),
        name: job.job.name.clone(),
        pool: job.job.pool.clone(),
        state: job.state,
        reason: job.reason.clone(),
        num_ranks: job.num_ranks,
        generation: job.gang.as_ref().map_or(0, |gang| gang.generation),
        age: now.saturating_duration_since(job.submitted),
        ranks: ranks.map(|(rank, state)| rank_view(rank, state, now)).collect(),
    }
}

fn rank_view(rank: usize, state: &Rank, now: Instant) -> RankView {
    let joined = state.address.is_some();
    RankView {
        rank,
        state: match state.process {
            Process::Exited(_) | Process::Gone { .. } => RankState::Gone,
            Process::Unborn | Process::Alive if state.finished => RankState::Finished,
            Process::Unborn | Process::Alive if joined => RankState::Joined,
            Process::Unborn | Process::Alive => RankState::Launching,
        },
        pid: state.pid,
        address: state.address.clone(),
        silent_for: joined.then(|| now.saturating_duration_since(state.last_seen)),
        progress: state.progress.clone(),
    }
}
