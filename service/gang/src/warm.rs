//! How many idle workers to start, and which to end. Pure.
//!
//! An idle worker is a process that has joined without a job, so that a gang need not wait for processes to start. It
//! holds no slot. A gang that starts leases idle workers as ranks; one that finished well may come back.

use std::time::{Duration, Instant};

use crate::options::Options;

/// A worker is replaced after so many jobs: what leaks in a rank program must not add up for ever.
pub const JOBS_MAX: u32 = 64;
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct State {
    pub workers: Vec<Idler>,
    /// Workers that died idle, or could not be started, one after the other; and the time of the last.
    pub failures: u32,
    pub failed_at: Option<Instant>,
    pub stopping: bool,
}

#[derive(Debug, Clone)]
pub struct Idler {
    pub id: u64,
    pub launched: bool,
    /// Since it was launched.
    pub since: Instant,
    /// The last sign of life, once it has joined.
    pub last_seen: Option<Instant>,
    pub leased: bool,
    /// Was told to end.
    pub killed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Launch { count: usize },
    Kill { id: u64, reason: String },
}

pub fn decide(now: Instant, state: &State, options: &Options) -> Vec<Action> {
    let mut actions = Vec::new();
    for worker in state.workers.iter().filter(|worker| worker.launched && !worker.leased && !worker.killed) {
        let seen = worker.last_seen.map(|seen| now.saturating_duration_since(seen));
        let age = now.saturating_duration_since(worker.since);
        let reason = match seen {
            _ if state.stopping => "the server is shutting down".to_string(),
            Some(silent) if silent >= options.stall_timeout => format!("was silent for {} ms", silent.as_millis()),
            None if age >= options.start_timeout => format!("did not join within {} ms", age.as_millis()),
            Some(_) | None => continue,
        };
        actions.push(Action::Kill { id: worker.id, reason });
    }
    let missing = options.warm_workers.saturating_sub(state.workers.len());
    let retry = RETRY_MIN.saturating_mul(1 << state.failures.saturating_sub(1).min(16)).min(RETRY_MAX);
    let rested = state.failed_at.is_none_or(|failed| now.saturating_duration_since(failed) >= retry);
    if missing > 0 && !state.stopping && (state.failures == 0 || rested) {
        actions.push(Action::Launch { count: missing });
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options { warm_workers: 2, ..Options::default() }
    }

    fn idler(id: u64, since: Instant) -> Idler {
        Idler { id, launched: true, since, last_seen: Some(since), leased: false, killed: false }
    }

    fn state(workers: Vec<Idler>) -> State {
        State { workers, failures: 0, failed_at: None, stopping: false }
    }

    #[test]
    fn missing_workers_are_launched_and_leased_ones_are_not_missing() {
        let now = Instant::now();
        assert_eq!(decide(now, &state(vec![]), &options()), [Action::Launch { count: 2 }]);
        let mut leased = idler(1, now);
        leased.leased = true;
        assert_eq!(decide(now, &state(vec![leased]), &options()), [Action::Launch { count: 1 }]);
    }

    #[test]
    fn a_program_that_keeps_dying_is_started_ever_more_seldom() {
        let failed = Instant::now();
        let mut state = state(vec![]);
        state.failed_at = Some(failed);
        for (failures, seconds) in [(1, 1), (2, 2), (4, 8), (30, 60)] {
            state.failures = failures;
            let early = failed + Duration::from_millis(seconds * 1000 - 1);
            assert_eq!(decide(early, &state, &options()), []);
            let late = failed + Duration::from_secs(seconds);
            assert_eq!(decide(late, &state, &options()), [Action::Launch { count: 2 }]);
        }
    }

    #[test]
    fn silent_and_late_workers_are_ended_unless_they_are_leased() {
        let start = Instant::now();
        let now = start + Duration::from_secs(30);
        let silent = idler(1, start);
        let mut late = idler(2, start);
        late.last_seen = None;
        let kills = decide(now, &state(vec![silent.clone(), late.clone()]), &options());
        let reasons = ["was silent for 30000 ms", "did not join within 30000 ms"].map(String::from);
        let [first, second] = reasons;
        assert_eq!(kills, [Action::Kill { id: 1, reason: first }, Action::Kill { id: 2, reason: second }]);
        let (mut silent, mut late) = (silent, late);
        silent.leased = true;
        late.killed = true;
        assert_eq!(decide(now, &state(vec![silent, late]), &options()), []);
    }

    #[test]
    fn a_shutdown_ends_the_idle_and_starts_nobody() {
        let now = Instant::now();
        let mut state = state(vec![idler(1, now)]);
        state.stopping = true;
        let reason = "the server is shutting down".to_string();
        assert_eq!(decide(now, &state, &options()), [Action::Kill { id: 1, reason }]);
    }
}
