//! What can be set about the Spark Connect service.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Options {
    /// The bearer token that every call must carry. None: all calls are let in.
    pub token: Option<String>,
    /// The largest message either way; clients allow 128 MiB.
    pub message_bytes_max: usize,
    /// The largest plan that a compressed plan may unpack to.
    pub plan_bytes_max: usize,
    /// A session that no call has named for this long, and that runs nothing, ends.
    pub session_idle_timeout: Duration,
    /// How long the id of an ended session is refused rather than taken for a new one.
    pub closed_session_timeout: Duration,
    /// An operation whose stream no client has held for this long is cancelled and dropped.
    pub detached_timeout: Duration,
    /// How long an ended operation's state can still be asked for.
    pub ended_operation_timeout: Duration,
    /// Ranks that may run at the same time.
    pub slots: usize,
    /// Ranks a fit runs on where the session's configuration names no number.
    pub default_workers: usize,
    /// Partitions that evaluators and summaries fold in parallel.
    pub fold_partitions: usize,
    /// How often a running operation says that it runs.
    pub progress_interval: Duration,
    /// How long a cancelled operation may take to end by itself.
    pub cancel_grace: Duration,
    /// Responses made but not yet sent; beyond it an operation waits for its client.
    pub unsent_bytes_max: usize,
    /// Responses sent but not yet released, which a client may ask for again.
    pub sent_bytes_max: usize,
    /// What the artifacts of one session may hold together.
    pub artifact_bytes_max: usize,
    /// Whether clients may put files on the server's own file system.
    pub allow_local_destinations: bool,
    /// Errors of one session whose details can still be fetched.
    pub errors_max: usize,
    /// From the request to stop until connections that still stream are cut.
    pub drain_timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            token: None,
            message_bytes_max: 128 << 20,
            plan_bytes_max: 512 << 20,
            session_idle_timeout: Duration::from_secs(60 * 60),
            closed_session_timeout: Duration::from_secs(60 * 60),
            detached_timeout: Duration::from_secs(5 * 60),
            ended_operation_timeout: Duration::from_secs(10 * 60),
            slots: 1,
            default_workers: 1,
            fold_partitions: 1,
            progress_interval: Duration::from_secs(2),
            cancel_grace: Duration::from_millis(900),
            unsent_bytes_max: 32 << 20,
            sent_bytes_max: 10 << 20,
            artifact_bytes_max: 4 << 30,
            allow_local_destinations: false,
            errors_max: 100,
            drain_timeout: Duration::from_secs(5),
        }
    }
}
