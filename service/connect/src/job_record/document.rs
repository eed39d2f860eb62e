//! `record.json`: what a job was, how it went, and how it ended.

use std::collections::BTreeMap;

use gang::{Error, Event, Progress};
use serde::Serialize;

use super::now_text;
use crate::metrics::cause_name;

/// Losses kept of one job. When there are more, every other one goes, and from then on every other one is left out.
const LOSSES_MAX: usize = 2048;
/// Restarts whose causes are kept.
const RESTARTS_MAX: usize = 100;

/// What a job is, before anything happens to it.
#[derive(Debug, Clone, Serialize)]
pub struct About {
    pub job_id: String,
    pub operator: String,
    pub uid: String,
    /// Those that were set, as Spark prints them.
    pub params: BTreeMap<String, String>,
    pub program: String,
    pub num_ranks: usize,
    pub user: String,
    /// The queue that it waited in.
    pub pool: String,
    pub session_id: String,
    pub tags: Vec<String>,
    /// Whether the ranks send a timeline.
    pub is_traced: bool,
    /// The folder of its checkpoints, from which it can be resumed.
    pub checkpoints: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct JobRecord {
    #[serde(flatten)]
    pub about: About,
    /// `queued`, `starting`, `running`, `restarting`, `finished`, `failed` or `cancelled`; after a restart of the server
    /// `lost`.
    pub state: &'static str,
    /// Why it is in that state, in words.
    pub reason: String,
    pub submitted_at: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub generation: u32,
    pub restarts: Vec<Restart>,
    pub first_cause: Option<FirstCause>,
    pub step: u64,
    /// 0 when it is not known.
    pub steps_max: u64,
    pub loss: Option<f64>,
    /// Rows that the last generation has used, over all ranks.
    pub rows: u64,
    /// Over all ranks, at the last step.
    pub rows_per_s: f64,
    /// By step, oldest first.
    pub losses: Vec<StepLoss>,
    /// One a rank of the last generation, by rank.
    pub ranks: Vec<RankRecord>,
    pub log_lines: u64,
    #[serde(skip)]
    losses_stride: u64,
}

#[derive(Debug, Serialize)]
pub struct Restart {
    /// The one that failed.
    pub generation: u32,
    pub at: String,
    pub cause: String,
}

/// What ended the job.
#[derive(Debug, Serialize)]
pub struct FirstCause {
    /// As the metrics name it.
    pub kind: String,
    pub rank: Option<usize>,
    pub generation: Option<u32>,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepLoss {
    pub step: u64,
    /// None where it is no number.
    pub loss: Option<f64>,
}

#[derive(Debug, Default, Serialize)]
pub struct RankRecord {
    pub rank: usize,
    pub step: u64,
    pub rows: u64,
    pub loss: Option<f64>,
    /// What else the rank told with its last step, such as `step_s`, `rows_per_s` and `communication_share`.
    pub metrics: BTreeMap<String, f64>,
}

/// The last state of a job that ended with an error.
pub fn last_state(error: &Error) -> &'static str {
    match error {
        Error::Cancelled { .. } | Error::ShuttingDown => "cancelled",
        _ => "failed",
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

impl JobRecord {
    pub fn new(about: About) -> JobRecord {
        JobRecord {
            about,
            state: "queued",
            reason: "was just submitted".to_string(),
            submitted_at: now_text(),
            started_at: None,
            ended_at: None,
            generation: 0,
            restarts: Vec::new(),
            first_cause: None,
            step: 0,
            steps_max: 0,
            loss: None,
            rows: 0,
            rows_per_s: 0.0,
            losses: Vec::new(),
            ranks: Vec::new(),
            log_lines: 0,
            losses_stride: 1,
        }
    }

    pub fn is_ended(&self) -> bool {
        self.ended_at.is_some()
    }

    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Queued { reason } => self.enter("queued", reason),
            Event::Starting { generation } => {
                self.generation = *generation;
                self.ranks.clear();
                self.enter("starting", "its ranks are being launched");
            }
            Event::Started { .. } => {
                self.started_at.get_or_insert_with(now_text);
                self.enter("running", "all ranks have joined");
            }
            Event::Restarting { generation, cause } => {
                if self.restarts.len() < RESTARTS_MAX {
                    let restart = Restart { generation: *generation, at: now_text(), cause: cause.to_string() };
                    self.restarts.push(restart);
                }
                self.enter("restarting", &cause.to_string());
            }
            Event::Progress { rank, progress } => self.progress(*rank, progress),
            Event::Log { .. } => self.log_lines += 1,
            Event::Record { .. } => {}
            Event::Finished { .. } => self.end("finished", "all ranks have finished"),
            Event::Failed(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: &Error) {
        self.end(last_state(error), &error.to_string());
        let (rank, generation) = match error {
            Error::RankFailed { rank, generation, .. } => (Some(*rank), Some(*generation)),
            _ => (None, None),
        };
        let kind = cause_name(error).to_string();
        self.first_cause = Some(FirstCause { kind, rank, generation, message: error.to_string() });
    }

    /// Ends a job that whoever ran it has let go of.
    pub fn abandon(&mut self) {
        self.end("cancelled", "its operation ended before it");
    }

    fn enter(&mut self, state: &'static str, reason: &str) {
        self.state = state;
        self.reason = reason.to_string();
    }

    fn end(&mut self, state: &'static str, reason: &str) {
        self.enter(state, reason);
        self.ended_at = Some(now_text());
    }

    fn progress(&mut self, rank: usize, progress: &Progress) {
        while self.ranks.len() <= rank {
            self.ranks.push(RankRecord { rank: self.ranks.len(), ..RankRecord::default() });
        }
        let record = &mut self.ranks[rank];
        record.step = progress.step;
        record.rows = progress.rows;
        record.loss = finite(progress.loss);
        let finite_metrics = progress.metrics.iter().filter(|(_, value)| value.is_finite());
        record.metrics = finite_metrics.cloned().collect();
        self.rows = self.ranks.iter().map(|rank| rank.rows).sum();
        self.rows_per_s = self.ranks.iter().filter_map(|rank| rank.metrics.get("rows_per_s")).sum();
        if rank == 0 {
            self.step = progress.step;
            self.steps_max = progress.steps_max;
            self.loss = finite(progress.loss);
            self.keep_loss(StepLoss { step: progress.step, loss: self.loss });
        }
    }

    fn keep_loss(&mut self, loss: StepLoss) {
        // a generation that starts from a checkpoint does steps again
        while self.losses.last().is_some_and(|last| last.step >= loss.step) {
            self.losses.pop();
        }
        if loss.step % self.losses_stride != 0 {
            return;
        }
        self.losses.push(loss);
        if self.losses.len() > LOSSES_MAX {
            self.losses_stride *= 2;
            let stride = self.losses_stride;
            self.losses.retain(|loss| loss.step % stride == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use gang::RankFailure;

    use super::*;

    fn record() -> JobRecord {
        JobRecord::new(About {
            job_id: "j".into(),
            operator: "LogisticRegression".into(),
            uid: "u".into(),
            params: BTreeMap::new(),
            program: "p".into(),
            num_ranks: 2,
            user: String::new(),
            pool: String::new(),
            session_id: "s".into(),
            tags: Vec::new(),
            is_traced: false,
            checkpoints: None,
        })
    }

    fn progress(rank: usize, step: u64, loss: f64) -> Event {
        let metrics = vec![("rows_per_s".to_string(), 10.0), ("odd".to_string(), f64::NAN)];
        Event::Progress { rank, progress: Progress { step, steps_max: 10_000, rows: 100 * step, loss, metrics } }
    }

    #[test]
    fn losses_are_thinned_out_evenly() {
        let mut record = record();
        for step in 0..10_000 {
            record.apply(&progress(0, step, 1.0 / step as f64));
        }
        assert!(record.losses.len() <= LOSSES_MAX && record.losses.len() > LOSSES_MAX / 4);
        let stride = record.losses[1].step - record.losses[0].step;
        assert!(record.losses.windows(2).all(|pair| pair[1].step - pair[0].step == stride));
        assert_eq!((record.losses[0].loss, record.loss), (None, Some(1.0 / 9999.0)));
    }

    #[test]
    fn rows_are_those_of_all_ranks_and_a_new_generation_does_steps_again() {
        let mut record = record();
        record.apply(&progress(0, 3, 0.5));
        record.apply(&progress(1, 3, 0.5));
        assert_eq!((record.rows, record.rows_per_s), (600, 20.0));
        let cause = RankFailure::Killed { signal: 9, stderr_tail: Vec::new() };
        let error = Error::RankFailed { rank: 1, generation: 0, cause };
        record.apply(&Event::Restarting { generation: 0, cause: error.clone() });
        record.apply(&Event::Starting { generation: 1 });
        record.apply(&progress(0, 2, 0.6));
        assert_eq!(record.losses, [StepLoss { step: 2, loss: Some(0.6) }]);
        record.apply(&Event::Failed(error));
        assert_eq!(record.state, "failed");
        let first_cause = record.first_cause.as_ref().unwrap();
        assert_eq!((first_cause.kind.as_str(), first_cause.rank), ("rank_killed", Some(1)));
        assert!(serde_json::to_string(&record).is_ok());
    }
}
