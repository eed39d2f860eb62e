//! Which waiting jobs start now: all or nothing, first come first served within a pool. Pure.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::options::Options;

/// What admission looks at.
#[derive(Debug, Clone)]
pub struct State {
    pub slots_free: usize,
    /// In the order of arrival.
    pub waiting: Vec<Waiting>,
}

#[derive(Debug, Clone)]
pub struct Waiting {
    pub job_id: String,
    pub pool: String,
    pub num_ranks: usize,
    pub since: Instant,
    pub deadline: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Start { job_id: String, reason: String },
    Wait { job_id: String, reason: String },
    Expire { job_id: String, waited: Duration, reason: String },
}

/// Decides about every waiting job, in the order of arrival.
///
/// A pool is a queue: its jobs start in order. Between pools the oldest goes first, and a job that does not fit lets
/// younger ones of other pools pass, but only for `pass_timeout`: then it holds the free slots back, lest small jobs
/// starve it.
pub fn decide(now: Instant, state: &State, options: &Options) -> Vec<Action> {
    let mut actions = Vec::with_capacity(state.waiting.len());
    let mut free = state.slots_free;
    let mut blocked_pools: HashSet<&str> = HashSet::new();
    let mut held_for: Option<&str> = None;
    for job in &state.waiting {
        let waited = now.saturating_duration_since(job.since);
        let pool_blocked = blocked_pools.contains(job.pool.as_str());
        if !pool_blocked && held_for.is_none() && job.num_ranks <= free {
            let reason = format!("{} of {} free slots taken", job.num_ranks, free);
            free -= job.num_ranks;
            actions.push(Action::Start { job_id: job.job_id.clone(), reason });
            continue;
        }
        let mut reason = format!("needs {}, {free} of {} free", plural(job.num_ranks, "slot"), options.slots);
        let ahead = actions
            .iter()
            .zip(&state.waiting)
            .filter(|(action, other)| matches!(action, Action::Wait { .. }) && other.pool == job.pool);
        match (ahead.count(), held_for) {
            (0, Some(holder)) => {
                reason.push_str(&format!("; slots are held back for job {holder}, which waited longest"))
            }
            (0, None) => {}
            (count, _) => reason.push_str(&format!("; {} ahead", plural(count, "job"))),
        }
        if job.deadline.or(options.queue_timeout).is_some_and(|deadline| waited >= deadline) {
            actions.push(Action::Expire { job_id: job.job_id.clone(), waited, reason });
            continue;
        }
        if !pool_blocked && held_for.is_none() && waited >= options.pass_timeout {
            held_for = Some(&job.job_id);
        }
        blocked_pools.insert(&job.pool);
        actions.push(Action::Wait { job_id: job.job_id.clone(), reason });
    }
    actions
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        slots_free: usize,
        slots: usize,
        waiting: Vec<(&'static str, &'static str, usize, u64, Option<u64>)>,
        expected: &'static [&'static str],
    }

    /// Jobs are (id, pool, ranks, seconds waited, deadline in seconds).
    fn check(case: Case) {
        let now = Instant::now() + Duration::from_secs(1000);
        let waiting = case.waiting.iter().map(|&(job_id, pool, num_ranks, waited_s, deadline_s)| Waiting {
            job_id: job_id.to_string(),
            pool: pool.to_string(),
            num_ranks,
            since: now - Duration::from_secs(waited_s),
            deadline: deadline_s.map(Duration::from_secs),
        });
        let state = State { slots_free: case.slots_free, waiting: waiting.collect() };
        let options = Options { slots: case.slots, pass_timeout: Duration::from_secs(10), ..Options::default() };
        let shown: Vec<String> = decide(now, &state, &options)
            .into_iter()
            .map(|action| match action {
                Action::Start { job_id, .. } => format!("{job_id} starts"),
                Action::Wait { job_id, reason } => format!("{job_id} waits: {reason}"),
                Action::Expire { job_id, reason, .. } => format!("{job_id} expires: {reason}"),
            })
            .collect();
        assert_eq!(shown, case.expected);
    }

    #[test]
    fn a_job_starts_when_all_its_slots_are_free() {
        check(Case { slots_free: 2, slots: 2, waiting: vec![("a", "p", 2, 0, None)], expected: &["a starts"] });
    }

    #[test]
    fn a_job_takes_nothing_while_one_slot_is_missing() {
        check(Case {
            slots_free: 1,
            slots: 2,
            waiting: vec![("a", "p", 2, 0, None)],
            expected: &["a waits: needs 2 slots, 1 of 2 free"],
        });
    }

    #[test]
    fn a_small_job_does_not_pass_a_large_one_of_its_pool() {
        check(Case {
            slots_free: 1,
            slots: 2,
            waiting: vec![("a", "p", 2, 1, None), ("b", "p", 1, 0, None)],
            expected: &["a waits: needs 2 slots, 1 of 2 free", "b waits: needs 1 slot, 1 of 2 free; 1 job ahead"],
        });
    }

    #[test]
    fn a_job_of_another_pool_passes_one_that_does_not_fit() {
        check(Case {
            slots_free: 1,
            slots: 2,
            waiting: vec![("a", "p", 2, 9, None), ("b", "q", 1, 0, None)],
            expected: &["a waits: needs 2 slots, 1 of 2 free", "b starts"],
        });
    }

    #[test]
    fn a_job_that_waited_long_is_passed_no_more() {
        check(Case {
            slots_free: 1,
            slots: 2,
            waiting: vec![("a", "p", 2, 10, None), ("b", "q", 1, 0, None)],
            expected: &[
                "a waits: needs 2 slots, 1 of 2 free",
                "b waits: needs 1 slot, 1 of 2 free; slots are held back for job a, which waited longest",
            ],
        });
    }

    #[test]
    fn several_jobs_start_together_as_far_as_slots_reach() {
        check(Case {
            slots_free: 4,
            slots: 4,
            waiting: vec![("a", "p", 2, 2, None), ("b", "p", 2, 1, None), ("c", "p", 1, 0, None)],
            expected: &["a starts", "b starts", "c waits: needs 1 slot, 0 of 4 free"],
        });
    }

    #[test]
    fn a_job_past_its_deadline_expires_and_blocks_nobody() {
        check(Case {
            slots_free: 1,
            slots: 2,
            waiting: vec![("a", "p", 2, 5, Some(5)), ("b", "p", 1, 0, None)],
            expected: &["a expires: needs 2 slots, 1 of 2 free", "b starts"],
        });
    }
}
