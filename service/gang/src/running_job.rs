//! The caller's hold on a submitted job.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::event::{Event, Feed};

/// A job that was accepted. Dropping it cancels the job.
pub struct RunningJob {
    job_id: String,
    feed: Arc<Feed>,
}

impl RunningJob {
    pub(crate) fn new(job_id: String, feed: Arc<Feed>) -> RunningJob {
        RunningJob { job_id, feed }
    }

    pub fn job_id(&self) -> &str {
        &self.job_id
    }

    /// Waits for the next event; `None` after the last one.
    pub async fn next_event(&mut self) -> Option<Event> {
        self.feed.next().await
    }

    /// Waits for the end and returns what rank 0 returned.
    ///
    /// # Errors
    /// Why the job failed, was cancelled, or was lost with the service.
    pub async fn wait(mut self) -> Result<Bytes> {
        while let Some(event) = self.next_event().await {
            match event {
                Event::Finished { output } => return Ok(output),
                Event::Failed(error) => return Err(error),
                Event::Queued { .. }
                | Event::Starting { .. }
                | Event::Started { .. }
                | Event::Restarting { .. }
                | Event::Progress { .. }
                | Event::Record { .. }
                | Event::Log { .. } => {}
            }
        }
        Err(Error::ShuttingDown)
    }

    /// Asks for the job's end; the events go on until it is reached.
    pub fn cancel(&self, reason: &str) {
        self.feed.cancel(reason);
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        // harmless after the end: the coordinator no longer looks at the feed
        self.feed.cancel("its caller has gone");
    }
}
