//! Whether a failed generation is followed by another, when, and of how many ranks. Pure, but for what it remembers of
//! the generations before.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::job::BarrierJob;
use crate::liveness::Verdict;
use crate::options::Options;

/// What a job remembers of its failed generations.
#[derive(Debug, Default)]
pub struct Restarts {
    /// Why the first of them failed.
    pub first: Option<Error>,
    /// When the pause ends that goes on now.
    due: Option<Instant>,
    /// The furthest step that any of them reached.
    step: u64,
    /// How many of the last ones came no further.
    fruitless: u32,
}

impl Restarts {
    pub fn is_pausing(&self) -> bool {
        self.due.is_some()
    }
}

/// What is known of a generation whose processes are gone.
pub struct Facts<'a> {
    pub verdict: &'a Verdict,
    pub generation: u32,
    pub num_ranks: usize,
    pub is_cancelled: bool,
    pub step: u64,
}

#[derive(Debug, PartialEq)]
pub enum Decision {
    End,
    /// Another generation follows, but not yet. `is_new`: this was not known before.
    Pause { is_new: bool },
    Start { num_ranks: usize },
}

/// To be asked again until it no longer says to pause.
pub fn decide(now: Instant, facts: &Facts<'_>, past: &mut Restarts, job: &BarrierJob, options: &Options) -> Decision {
    let Verdict::RankFailed { cause, .. } = facts.verdict else { return Decision::End };
    if facts.is_cancelled || !cause.retryable() || facts.generation >= job.max_restarts {
        return Decision::End;
    }
    match past.due {
        None => {
            past.fruitless = if facts.step > past.step { 0 } else { past.fruitless + 1 };
            past.step = past.step.max(facts.step);
            past.due = Some(now + pause(past.fruitless, options));
            Decision::Pause { is_new: true }
        }
        Some(due) if now < due => Decision::Pause { is_new: false },
        Some(_) => {
            past.due = None;
            // on an elastic job, what died is not waited for
            Decision::Start { num_ranks: (facts.num_ranks - 1).max(job.min_ranks).min(facts.num_ranks) }
        }
    }
}

fn pause(fruitless: u32, options: &Options) -> Duration {
    let doublings = fruitless.saturating_sub(1).min(16);
    (options.restart_pause * 2u32.pow(doublings)).min(options.restart_pause_max)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::error::RankFailure;

    fn job(num_ranks: usize, min_ranks: usize, max_restarts: u32) -> BarrierJob {
        BarrierJob {
            job_id: "job".into(),
            name: String::new(),
            pool: String::new(),
            num_ranks,
            min_ranks,
            program: String::new(),
            spec: Bytes::new(),
            partitions: Arc::new(Vec::new()),
            queue_deadline: None,
            max_restarts,
        }
    }

    fn killed() -> Verdict {
        Verdict::RankFailed { rank: 0, cause: RankFailure::Killed { signal: 9, stderr_tail: Vec::new() } }
    }

    fn facts(verdict: &Verdict, generation: u32, num_ranks: usize, step: u64) -> Facts<'_> {
        Facts { verdict, generation, num_ranks, is_cancelled: false, step }
    }

    /// Returns how long a generation's pause is, and of how many ranks the next one is.
    fn next(facts: &Facts<'_>, past: &mut Restarts, job: &BarrierJob) -> Option<(u64, usize)> {
        let options = Options::default();
        let start = Instant::now();
        for ms in 0..10_000 {
            match decide(start + Duration::from_millis(ms), facts, past, job, &options) {
                Decision::End => return None,
                Decision::Pause { is_new } => assert_eq!(is_new, ms == 0),
                Decision::Start { num_ranks } => return Some((ms, num_ranks)),
            }
        }
        panic!("the pause does not end");
    }

    #[test]
    fn pauses_grow_while_generations_come_no_further() {
        let (verdict, job, mut past) = (killed(), job(2, 2, 100), Restarts::default());
        let steps = [7, 7, 7, 7, 9, 8, 0, 0, 0, 0, 0, 0, 0];
        let pauses = steps.iter().zip(0..).map(|(step, generation)| {
            next(&facts(&verdict, generation, 2, *step), &mut past, &job).map(|(pause_ms, _)| pause_ms)
        });
        let pauses: Vec<u64> = pauses.map(Option::unwrap).collect();
        assert_eq!(pauses, [100, 100, 200, 400, 100, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }

    #[test]
    fn an_elastic_job_does_without_the_ranks_it_lost_down_to_its_minimum() {
        let (verdict, mut past) = (killed(), Restarts::default());
        let elastic = job(3, 2, 9);
        assert_eq!(next(&facts(&verdict, 0, 3, 5), &mut past, &elastic), Some((100, 2)));
        assert_eq!(next(&facts(&verdict, 1, 2, 9), &mut past, &elastic), Some((100, 2)));
        assert_eq!(next(&facts(&verdict, 0, 3, 5), &mut Restarts::default(), &job(3, 3, 9)), Some((100, 3)));
    }

    #[test]
    fn what_would_only_come_back_is_not_tried_again() {
        let program = |class: &str, is_echo| Verdict::RankFailed {
            rank: 1,
            cause: RankFailure::Program { message: "m".into(), class: class.into(), detail: "d".into(), is_echo },
        };
        let job = job(2, 2, 3);
        let ends = |facts: &Facts<'_>| next(facts, &mut Restarts::default(), &job).is_none();
        assert!(ends(&facts(&program("user", false), 0, 2, 1)));
        assert!(ends(&facts(&program("external", false), 0, 2, 1)));
        assert!(ends(&facts(&program("user", true), 0, 2, 1)));
        assert!(!ends(&facts(&program("external", true), 0, 2, 1)), "a lost network may come back");
        assert!(ends(&facts(&Verdict::LaunchFailed, 0, 2, 0)));
        assert!(ends(&facts(&killed(), 3, 2, 1)), "the restarts are spent");
        assert!(ends(&Facts { is_cancelled: true, ..facts(&killed(), 0, 2, 1) }));
    }
}
