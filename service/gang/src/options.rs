//! What can be set about the control plane.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Options {
    /// Where ranks reach this service, such as `http://127.0.0.1:15002`.
    pub coordinator: String,
    /// Ranks that may run at the same time, over all jobs.
    pub slots: usize,
    /// Jobs that may wait for slots at the same time, over all pools.
    pub queue_jobs_max: usize,
    /// How long a job waits for its slots when it names no deadline of its own.
    pub queue_timeout: Option<Duration>,
    /// After this long at the head of its queue, a job is no longer passed by smaller jobs of other pools.
    pub pass_timeout: Duration,
    /// Idle workers kept ready, so that a gang need not wait for processes to start. They hold no slot.
    pub warm_workers: usize,
    /// From the decision to start a gang until all its ranks have joined.
    pub start_timeout: Duration,
    /// How often a rank gives a sign of life.
    pub heartbeat_interval: Duration,
    /// A rank that was silent for this long is dead.
    pub stall_timeout: Duration,
    /// How long a failure that may be only the echo of another waits for that other to show.
    pub first_cause_timeout: Duration,
    /// From being told to cancel until SIGTERM.
    pub cancel_grace: Duration,
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
    /// How long a rank that has finished may take to exit by itself.
    pub exit_timeout: Duration,
    /// How long the first pause before another generation is. Each further one in a row whose generation came no step
    /// further than those before is twice as long.
    pub restart_pause: Duration,
    pub restart_pause_max: Duration,
    /// The largest output rank 0 may hand over.
    pub output_bytes_max: u64,
    /// Log lines and progress reports kept for a caller that reads slowly; beyond it the oldest are dropped.
    pub events_max: usize,
    /// Ended jobs that a snapshot still shows.
    pub history_jobs_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            coordinator: String::new(),
            slots: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            queue_jobs_max: 256,
            queue_timeout: None,
            pass_timeout: Duration::from_secs(10),
            warm_workers: 0,
            start_timeout: Duration::from_secs(30),
            heartbeat_interval: Duration::from_millis(500),
            stall_timeout: Duration::from_secs(6),
            first_cause_timeout: Duration::from_secs(1),
            cancel_grace: Duration::from_millis(200),
            grace: Duration::from_secs(1),
            exit_timeout: Duration::from_secs(2),
            restart_pause: Duration::from_millis(100),
            restart_pause_max: Duration::from_secs(5),
            output_bytes_max: 4 << 30,
            events_max: 4096,
            history_jobs_max: 32,
        }
    }
}
