//! What everybody else holds of the service.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::shared::Shared;
use crate::error::Result;
use crate::job::{BarrierJob, JobView};
use crate::reservation::{Reservation, SlotRequest};
use crate::running_job::RunningJob;

#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    pub(super) fn new(shared: Arc<Shared>) -> Handle {
        Handle { shared }
    }

    /// Submits a job. It starts when all its slots are free at once; until then it holds none.
    ///
    /// # Errors
    /// The job can never fit, is malformed, or bears the id of a job that has not ended; the queue is full; the service
    /// is shutting down.
    pub fn submit(&self, job: BarrierJob) -> Result<RunningJob> {
        let job_id = job.job_id.clone();
        let feed = self.shared.submit(job, false)?;
        Ok(RunningJob::new(job_id, feed))
    }

    /// Asks for slots without ranks: the caller starts its own work once they are granted.
    ///
    /// # Errors
    /// Those of [`Handle::submit`].
    pub fn reserve(&self, request: SlotRequest) -> Result<Reservation> {
        let job = request.into_job();
        let job_id = job.job_id.clone();
        let feed = self.shared.submit(job, true)?;
        Ok(Reservation::new(RunningJob::new(job_id, feed)))
    }

    /// Returns all jobs that have not ended, and the last that have, oldest first.
    pub fn snapshot(&self) -> Vec<JobView> {
        self.shared.snapshot()
    }

    /// Returns how many idle workers could become ranks at once.
    pub fn num_idle_workers(&self) -> usize {
        self.shared.idle_workers.load(Ordering::Relaxed)
    }

    /// Asks for a job's end; returns whether there is such a job. Its caller sees the end as an event.
    pub fn cancel(&self, job_id: &str, reason: &str) -> bool {
        self.shared.cancel(job_id, reason)
    }
}
