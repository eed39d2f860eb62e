//! Slots held for work that this crate does not start: they wait in the same queue, and count the same, as those of gangs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::event::Event;
use crate::job::BarrierJob;
use crate::running_job::RunningJob;

/// Who wants how many slots.
#[derive(Debug, Clone)]
pub struct SlotRequest {
    /// As a job's id, it names the slots' holder in [`crate::Handle::snapshot`].
    pub job_id: String,
    /// For people.
    pub name: String,
    /// Requests and jobs of one pool are granted in the order they came.
    pub pool: String,
    pub num_slots: usize,
    /// How long to wait for the slots; `None` takes the service's own.
    pub queue_deadline: Option<Duration>,
}

impl SlotRequest {
    pub(crate) fn into_job(self) -> BarrierJob {
        BarrierJob {
            job_id: self.job_id,
            name: self.name,
            pool: self.pool,
            num_ranks: self.num_slots,
            min_ranks: self.num_slots,
            program: String::new(),
            spec: Bytes::new(),
            // A reservation has no ranks that would ask.
            partitions: Arc::new(Vec::<Bytes>::new()),
            queue_deadline: self.queue_deadline,
            max_restarts: 0,
        }
    }
}

/// Slots that are waited for, then held. Dropping it gives them back.
pub struct Reservation {
    job: RunningJob,
}

impl Reservation {
    pub(crate) fn new(job: RunningJob) -> Reservation {
        Reservation { job }
    }

    /// Waits until all slots are held at once.
    ///
    /// # Errors
    /// The time to wait is over, or the service is shutting down.
    pub async fn granted(&mut self) -> Result<()> {
        while let Some(event) = self.job.next_event().await {
            match event {
                Event::Started { .. } => return Ok(()),
                Event::Failed(error) => return Err(error),
                _ => {}
            }
        }
        Err(Error::ShuttingDown)
    }
}
