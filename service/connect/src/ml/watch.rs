//! Follows a job for people: each event goes into the job's record and the metrics, and the client is told how far its
//! ranks are.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use gang::{BarrierJob, Event};
use ml::Params;
use spark_connect_proto::execute_plan_response::{ExecutionProgress, ObservedMetrics, execution_progress::StageInfo};
use spark_connect_proto::expression::Literal;
use spark_connect_proto::expression::literal::LiteralType;

use super::settings;
use crate::Result;
use crate::job_record::{About, Recorder};
use crate::operation::Operation;
use crate::session::Session;

/// Whether the ranks of this session's fits keep a timeline of their steps and collectives.
pub const TRACE_KEY: &str = "spark.phalanx.trace";
/// Whether the last lines of the ranks' logs come back with a fitted model, as the warning that clients log.
pub const LOG_KEY: &str = "spark.phalanx.log.toClient";

const METRICS_INTERVAL: Duration = Duration::from_millis(500);
const LINES_MAX: usize = 100;

pub struct Watch<'a> {
    operation: &'a Operation,
    recorder: Recorder,
    /// What each rank told last.
    ranks: Vec<Option<gang::Progress>>,
    metrics_sent: Option<Instant>,
    /// The last lines of all ranks; None when the client does not want them.
    lines: Option<VecDeque<String>>,
}

impl<'a> Watch<'a> {
    /// `about`: what [`about`] says of the job.
    pub fn begin(session: &Session, operation: &'a Operation, about: About) -> Result<Watch<'a>> {
        let lines = settings::flag(session, LOG_KEY)?.then(VecDeque::new);
        let recorder = Recorder::begin(&session.services, about);
        Ok(Watch { operation, recorder, ranks: Vec::new(), metrics_sent: None, lines })
    }

    pub async fn see(&mut self, event: &Event) {
        match event {
            Event::Starting { .. } => self.ranks.clear(),
            Event::Log { rank, line } => self.keep_line(*rank, line),
            Event::Progress { rank, progress } => {
                if self.ranks.len() <= *rank {
                    self.ranks.resize(rank + 1, None);
                }
                self.ranks[*rank] = Some(progress.clone());
                if *rank == 0 {
                    let metrics = self.metrics();
                    self.operation.progress_with(self.progress(), metrics);
                }
            }
            _ => {}
        }
        self.recorder.event(event).await;
    }

    /// Waits until the record is complete. Returns what the client is to be told of the ranks' logs.
    pub async fn end(self) -> Option<String> {
        self.recorder.close().await;
        let lines = self.lines.filter(|lines| !lines.is_empty())?;
        Some(Vec::from(lines).join("\n"))
    }

    fn keep_line(&mut self, rank: usize, line: &str) {
        let Some(lines) = &mut self.lines else { return };
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(format!("[rank {rank}] {line}"));
    }

    /// A rank is shown as a stage and a step as a task of it, which is what a client's progress bar counts.
    fn progress(&self) -> ExecutionProgress {
        let stages = self.ranks.iter().enumerate().filter_map(|(rank, progress)| {
            let progress = progress.as_ref()?;
            Some(StageInfo {
                stage_id: rank as i64,
                num_tasks: progress.steps_max.max(progress.step) as i64,
                num_completed_tasks: progress.step as i64,
                input_bytes_read: metric(progress, "bytes_read").map_or(0, |bytes| bytes as i64),
                done: progress.step >= progress.steps_max && progress.steps_max > 0,
            })
        });
        let stages: Vec<StageInfo> = stages.collect();
        ExecutionProgress { num_inflight_tasks: stages.len() as i64, stages }
    }

    /// Loss and metrics of each rank, now and then: clients keep all of them until the operation ends.
    fn metrics(&mut self) -> Vec<ObservedMetrics> {
        let now = Instant::now();
        if self.metrics_sent.is_some_and(|sent| now.duration_since(sent) < METRICS_INTERVAL) {
            return Vec::new();
        }
        self.metrics_sent = Some(now);
        let ranks = self.ranks.iter().enumerate();
        ranks.filter_map(|(rank, progress)| Some(observed(rank, progress.as_ref()?))).collect()
    }
}

fn metric(progress: &gang::Progress, name: &str) -> Option<f64> {
    progress.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
}

fn observed(rank: usize, progress: &gang::Progress) -> ObservedMetrics {
    let literal = |literal_type| Literal { literal_type: Some(literal_type), ..Literal::default() };
    let mut keys = vec!["step".to_string(), "loss".to_string()];
    let mut values =
        vec![literal(LiteralType::Long(progress.step as i64)), literal(LiteralType::Double(progress.loss))];
    for (name, value) in &progress.metrics {
        keys.push(name.clone());
        values.push(literal(LiteralType::Double(*value)));
    }
    ObservedMetrics { name: format!("rank {rank}"), keys, values, ..ObservedMetrics::default() }
}

/// What the record says of a job before it runs.
///
/// # Errors
/// [`crate::Error::InvalidConf`]
pub fn about(session: &Session, operation: &Operation, params: &Params, job: &BarrierJob) -> Result<About> {
    Ok(About {
        job_id: job.job_id.clone(),
        operator: job.name.clone(),
        uid: params.uid.clone(),
        params: params.explicit().iter().map(|(name, value)| (name.clone(), value.to_string())).collect(),
        program: job.program.clone(),
        num_ranks: job.num_ranks,
        user: session.user.clone(),
        pool: job.pool.clone(),
        session_id: session.id.clone(),
        tags: operation.tags.clone(),
        is_traced: is_traced(session)?,
        checkpoints: None,
    })
}

/// # Errors
/// [`crate::Error::InvalidConf`]
pub fn is_traced(session: &Session) -> Result<bool> {
    settings::flag(session, TRACE_KEY)
}
