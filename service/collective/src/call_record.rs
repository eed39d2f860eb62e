//! A call that has returned, as whoever watches a group sees it.

use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRecord {
    /// Such as `all_reduce`.
    pub collective: &'static str,
    /// Counts the calls of the group from 1; the same on all ranks.
    pub sequence: u64,
    /// What this rank gave or got, whichever is more; not what travelled.
    pub bytes: u64,
    pub started: Instant,
    /// From the call to its return: waiting for the other ranks counts.
    pub elapsed: Duration,
}

/// Sees every call of a group when it returns, on the thread that made it.
pub trait CallObserver: Send + Sync {
    fn call_returned(&self, record: CallRecord);
}
