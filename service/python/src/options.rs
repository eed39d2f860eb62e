//! What can be set about Python workers.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Options {
    /// The interpreter that runs functions. It must import `pyspark`, of the 4.2 line or later.
    pub interpreter: PathBuf,
    /// Workers that may be busy at the same time, over all sessions.
    pub workers_max: usize,
    /// Workers without a session that are kept ready.
    pub spare_workers: usize,
    /// Bytes of private memory that a worker, and each process it starts, may have. None: no limit.
    pub memory_bytes_max: Option<u64>,
    /// How long a task waits for one of the busy workers to come free before it fails.
    pub wait_timeout: Duration,
    /// How long a worker may take from its start to its first word.
    pub start_timeout: Duration,
    /// How long an idle worker is kept for the session whose code it has loaded.
    pub idle_timeout: Duration,
    /// Where sessions' files are put that functions import or open.
    pub files_dir: PathBuf,
}
