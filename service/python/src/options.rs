//! What can be set about Python workers.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

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
    /// Where the tasks of barrier stages get their slots.
    pub slots: Arc<dyn Slots>,
}

/// What admits barrier stages: all tasks of one, or none.
#[async_trait]
pub trait Slots: Send + Sync + Debug {
    /// Waits for as many slots at once; they are held until what it gives is dropped. `name` is for people.
    ///
    /// # Errors
    /// They can never be had, or not in time.
    async fn hold(&self, name: &str, num_tasks: usize) -> Result<HeldSlots, SlotsError>;
}

/// Held slots, given back when dropped.
pub type HeldSlots = Box<dyn Send + Sync>;
pub type SlotsError = Arc<dyn std::error::Error + Send + Sync>;
