//! What a rank tells of itself while its program runs: steps with what they cost, log lines, and a timeline when asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use gang::{Assignment, Cancellation, Reporter};
use train::progress::{Meter, Timeline};
use train::{Progress, Step};

/// Takes the program's steps to the coordinator, and so to the client and to the job's record; a cancel comes from there.
pub struct RankReport {
    reporter: Reporter,
    cancellation: Cancellation,
    meter: Arc<Meter>,
    began: Instant,
    bytes_read: AtomicU64,
    /// As the last step told them.
    steps: AtomicU64,
    rows: AtomicU64,
}

impl RankReport {
    pub fn new(assignment: &Assignment, is_traced: bool, reporter: Reporter, cancellation: Cancellation) -> RankReport {
        let timeline = is_traced.then(|| {
            let reporter = reporter.clone();
            let send = move |lines: String| reporter.record(Bytes::from(lines));
            Timeline::new(assignment.rank, assignment.generation, send)
        });
        reporter.log(format!(
            "joined as rank {} of {}, generation {}, process {}",
            assignment.rank,
            assignment.world_size,
            assignment.generation,
            std::process::id()
        ));
        RankReport {
            reporter,
            cancellation,
            meter: Arc::new(Meter::new(timeline)),
            began: Instant::now(),
            bytes_read: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            rows: AtomicU64::new(0),
        }
    }

    /// To be told of every call of the rank's group.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// The partition has given so many more bytes.
    pub fn has_read(&self, bytes: usize) {
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Says in one line how the program ended.
    pub fn program_ended<T>(&self, result: &train::Result<T>) {
        let (collective, elapsed) = self.meter.shares(self.began);
        let share = 100.0 * collective.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        let outcome = match result {
            Ok(_) => "finished".to_string(),
            Err(error) => format!("failed: {}", crate::chain(error)),
        };
        self.reporter.log(format!(
            "{outcome}; {} steps, {} rows used, {:.3} s, {share:.0} % of it in collectives",
            self.steps.load(Ordering::Relaxed),
            self.rows.load(Ordering::Relaxed),
            elapsed.as_secs_f64()
        ));
    }
}

impl Progress for RankReport {
    fn report(&self, step: Step) {
        self.steps.store(step.step, Ordering::Relaxed);
        self.rows.store(step.rows, Ordering::Relaxed);
        let cost = self.meter.step_done(&step);
        let bytes_read = ("bytes_read", self.bytes_read.load(Ordering::Relaxed) as f64);
        let metrics = cost.metrics().into_iter().chain([bytes_read]).chain(step.metrics);
        self.reporter.report(gang::Progress {
            step: step.step,
            steps_max: step.steps_max,
            rows: step.rows,
            loss: step.loss.unwrap_or(f64::NAN),
            metrics: metrics.map(|(name, value)| (name.to_string(), value)).collect(),
        });
    }

    fn cancelled(&self) -> Option<String> {
        self.cancellation.reason()
    }
}
