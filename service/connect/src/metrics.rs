//! What the server counts, for Prometheus: operations, sessions, and what barrier jobs tell of themselves.
//!
//! What can be read off the gang's own state (jobs by state, slots) is not counted here: whoever serves the metrics asks
//! for it when they are read. Labels are operators, states and causes, never ids: their number is bounded.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Seconds = Counter<f64, AtomicU64>;
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OfOperation {
    /// What the plan is: `relation`, `ml_fit`, `sql_command` and so on.
    pub kind: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Outcome {
    pub kind: &'static str,
    pub outcome: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OfJob {
    pub operator: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct JobEnd {
    pub operator: String,
    pub state: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Cause {
    pub cause: String,
}

/// All of them. A clone counts into the same.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub(crate) sessions: Gauge,
    pub(crate) operations_running: Family<OfOperation, Gauge>,
    pub(crate) operations: Family<Outcome, Counter>,
    pub(crate) operation_seconds: Histograms<OfOperation>,
    pub(crate) jobs: Family<JobEnd, Counter>,
    pub(crate) job_seconds: Histograms<OfJob>,
    pub(crate) job_queue_seconds: Histogram,
    pub(crate) job_restarts: Counter,
    pub(crate) job_failures: Family<Cause, Counter>,
    pub(crate) steps: Family<OfJob, Counter>,
    pub(crate) step_seconds: Histograms<OfJob>,
    pub(crate) rows: Family<OfJob, Counter>,
    /// What running jobs use at present, all ranks together.
    pub(crate) rows_per_s: Gauge<f64, AtomicU64>,
    /// Summed over ranks, as the next two.
    pub(crate) collective_seconds: Seconds,
    pub(crate) collective_calls: Counter,
    pub(crate) collective_bytes: Counter,
}

/// From a millisecond to four hours.
fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 3.0, 16))
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            sessions: Gauge::default(),
            operations_running: Family::default(),
            operations: Family::default(),
            operation_seconds: Family::new_with_constructor(durations),
            jobs: Family::default(),
            job_seconds: Family::new_with_constructor(durations),
            job_queue_seconds: durations(),
            job_restarts: Counter::default(),
            job_failures: Family::default(),
            steps: Family::default(),
            step_seconds: Family::new_with_constructor(durations),
            rows: Family::default(),
            rows_per_s: Gauge::default(),
            collective_seconds: Seconds::default(),
            collective_calls: Counter::default(),
            collective_bytes: Counter::default(),
        }
    }
}

impl Metrics {
    /// Adds them to what is served.
    pub fn register(&self, registry: &mut Registry) {
        let Metrics {
            sessions,
            operations_running,
            operations,
            operation_seconds,
            jobs,
            job_seconds,
            job_queue_seconds,
            job_restarts,
            job_failures,
            steps,
            step_seconds,
            rows,
            rows_per_s,
            collective_seconds,
            collective_calls,
            collective_bytes,
        } = self.clone();
        registry.register("sessions", "Sessions that are open", sessions);
        registry.register("operations_running", "Operations that run, by kind of plan", operations_running);
        registry.register("operations", "Operations that have ended", operations);
        registry.register("operation_duration_seconds", "From an operation's request to its end", operation_seconds);
        registry.register("jobs_ended", "Barrier jobs that have ended, by last state", jobs);
        registry.register("job_duration_seconds", "From a job's submission to its end", job_seconds);
        registry.register("job_queue_seconds", "From a job's submission to the start of its gang", job_queue_seconds);
        registry.register("job_restarts", "Generations that followed one that failed", job_restarts);
        registry.register("job_failures", "Failures of generations, by first cause", job_failures);
        registry.register("training_steps", "Training steps done", steps);
        registry.register("training_step_duration_seconds", "How long steps take, on rank 0", step_seconds);
        registry.register("training_rows", "Rows used by training, each as often as it was, over all ranks", rows);
        registry.register("training_rows_per_second", "Rows that running jobs use in a second", rows_per_s);
        registry.register("collective_seconds", "Time in collectives, over all ranks", collective_seconds);
        registry.register("collective_calls", "Calls of collectives, over all ranks", collective_calls);
        registry.register("collective_bytes", "Bytes given to collectives, over all ranks", collective_bytes);
    }

    /// Counts an operation from now until the guard is dropped.
    pub(crate) fn operation(&self, kind: &'static str) -> RunningOperation {
        self.operations_running.get_or_create(&OfOperation { kind }).inc();
        RunningOperation { metrics: self.clone(), kind, started: std::time::Instant::now(), outcome: "failed" }
    }
}

/// An operation that is counted as running.
pub(crate) struct RunningOperation {
    metrics: Metrics,
    kind: &'static str,
    started: std::time::Instant,
    /// Unless it is told otherwise, it has failed.
    pub outcome: &'static str,
}

impl Drop for RunningOperation {
    fn drop(&mut self) {
        let RunningOperation { metrics, kind, started, outcome } = self;
        metrics.operations_running.get_or_create(&OfOperation { kind }).dec();
        metrics.operations.get_or_create(&Outcome { kind, outcome }).inc();
        metrics.operation_seconds.get_or_create(&OfOperation { kind }).observe(started.elapsed().as_secs_f64());
    }
}

/// What a training has told so far, by which its counters grow.
#[derive(Debug)]
pub(crate) struct JobMeter {
    metrics: Metrics,
    operator: OfJob,
    ranks: Vec<Seen>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    step: u64,
    rows: u64,
    rows_per_s: f64,
    collective_s: f64,
    collective_calls: f64,
    collective_bytes: f64,
}

impl JobMeter {
    pub fn new(metrics: &Arc<Metrics>, operator: &str) -> JobMeter {
        JobMeter {
            metrics: metrics.as_ref().clone(),
            operator: OfJob { operator: operator.to_string() },
            ranks: Vec::new(),
        }
    }

    pub fn progress(&mut self, rank: usize, progress: &gang::Progress) {
        if self.ranks.len() <= rank {
            self.ranks.resize(rank + 1, Seen::default());
        }
        let metric = |name: &str| progress.metrics.iter().find(|(known, _)| known == name).map_or(0.0, |(_, v)| *v);
        let now = Seen {
            step: progress.step,
            rows: progress.rows,
            rows_per_s: metric("rows_per_s"),
            collective_s: metric("collective_s"),
            collective_calls: metric("collective_calls"),
            collective_bytes: metric("collective_bytes"),
        };
        let seen = std::mem::replace(&mut self.ranks[rank], now);
        let metrics = &self.metrics;
        metrics.rows.get_or_create(&self.operator).inc_by(now.rows.saturating_sub(seen.rows));
        metrics.rows_per_s.inc_by(now.rows_per_s - seen.rows_per_s);
        metrics.collective_seconds.inc_by((now.collective_s - seen.collective_s).max(0.0));
        metrics.collective_calls.inc_by((now.collective_calls - seen.collective_calls).max(0.0) as u64);
        metrics.collective_bytes.inc_by((now.collective_bytes - seen.collective_bytes).max(0.0) as u64);
        if rank == 0 {
            metrics.steps.get_or_create(&self.operator).inc_by(now.step.saturating_sub(seen.step));
            metrics.step_seconds.get_or_create(&self.operator).observe(metric("step_s"));
        }
    }

    /// A new generation counts its rows and its time in collectives from zero; its steps go on from a checkpoint's.
    pub fn generation_begins(&mut self) {
        for seen in &mut self.ranks {
            self.metrics.rows_per_s.dec_by(seen.rows_per_s);
            *seen = Seen { step: seen.step, ..Seen::default() };
        }
    }

    pub fn restarts(&mut self, cause: &gang::Error) {
        self.metrics.job_restarts.inc();
        self.failed(cause);
    }

    fn failed(&mut self, cause: &gang::Error) {
        self.metrics.job_failures.get_or_create(&Cause { cause: cause_name(cause).to_string() }).inc();
    }

    /// `state` is the job's last one.
    pub fn ended(&mut self, state: &'static str, error: Option<&gang::Error>, seconds: f64) {
        if let Some(error) = error {
            self.failed(error);
        }
        self.metrics.jobs.get_or_create(&JobEnd { operator: self.operator.operator.clone(), state }).inc();
        self.metrics.job_seconds.get_or_create(&self.operator).observe(seconds);
    }

    pub fn queued_for(&self, seconds: f64) {
        self.metrics.job_queue_seconds.observe(seconds);
    }
}

impl Drop for JobMeter {
    fn drop(&mut self) {
        for seen in &self.ranks {
            self.metrics.rows_per_s.dec_by(seen.rows_per_s);
        }
    }
}

/// A failure's first cause in one word.
pub(crate) fn cause_name(error: &gang::Error) -> &str {
    use gang::{Error, RankFailure};
    match error {
        Error::OutOfRestarts { last, .. } => cause_name(last),
        Error::RankFailed { cause, .. } => match cause {
            RankFailure::Exited { .. } => "rank_exited",
            RankFailure::Killed { .. } => "rank_killed",
            RankFailure::Stalled { .. } => "rank_stalled",
            RankFailure::Disconnected { .. } => "rank_disconnected",
            RankFailure::Program { class, .. } if class == "user" => "data",
            RankFailure::Program { class, .. } if class == "external" => "peer_or_partition",
            RankFailure::Program { .. } => "program",
        },
        Error::StartTimeout { .. } => "start_timeout",
        Error::Launch { .. } => "launch",
        Error::QueueFull { .. } => "queue_full",
        Error::QueueTimeout { .. } => "queue_timeout",
        Error::NotEnoughSlots { .. } => "not_enough_slots",
        Error::ShuttingDown => "shutting_down",
        Error::Cancelled { .. } => "cancelled",
        _ => "other",
    }
}
