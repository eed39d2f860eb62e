//! What callers and the loop both touch: submissions on their way in, views on their way out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::{Error, Result};
use crate::event::Feed;
use crate::job::{BarrierJob, JobState, JobView};
use crate::options::Options;

pub struct Shared {
    options: Arc<Options>,
    wake: Arc<Notify>,
    /// Idle workers that could be leased now.
    pub idle_workers: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Accepted, not yet taken by the loop. Bounded together with the queue.
    submissions: Vec<Submission>,
    /// Every job that was accepted and has not ended, oldest first.
    live: Vec<Live>,
    /// Ended jobs, oldest first.
    history: VecDeque<JobView>,
    accepted: u64,
    closed: bool,
}

pub struct Submission {
    pub job: BarrierJob,
    /// Tells apart jobs that use the same id one after the other.
    pub number: u64,
    pub feed: Arc<Feed>,
    pub at: Instant,
    /// Whether only its slots are wanted.
    pub is_reservation: bool,
}

struct Live {
    number: u64,
    feed: Arc<Feed>,
    view: JobView,
}

impl Shared {
    pub fn new(options: Arc<Options>) -> Shared {
        Shared { options, wake: Arc::default(), idle_workers: AtomicUsize::new(0), inner: Mutex::default() }
    }

    pub fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    pub fn submit(&self, job: BarrierJob, is_reservation: bool) -> Result<Arc<Feed>> {
        if job.num_ranks == 0 {
            return Err(Error::NoRanks);
        }
        if job.num_ranks > self.options.slots {
            return Err(Error::NotEnoughSlots { needs: job.num_ranks, has: self.options.slots });
        }
        if job.min_ranks == 0 || job.min_ranks > job.num_ranks {
            return Err(Error::MinRanksOutOfRange { num_ranks: job.num_ranks, min_ranks: job.min_ranks });
        }
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(Error::ShuttingDown);
        }
        if inner.live.iter().any(|live| live.view.job_id == job.job_id) {
            return Err(Error::DuplicateJob { job_id: job.job_id });
        }
        let waiting = inner.live.iter().filter(|live| live.view.state == JobState::Queued).count();
        if waiting >= self.options.queue_jobs_max {
            return Err(Error::QueueFull { waiting, max: self.options.queue_jobs_max });
        }
        let feed = Arc::new(Feed::new(self.options.events_max, Arc::clone(&self.wake)));
        inner.accepted += 1;
        let number = inner.accepted;
        inner.live.push(Live { number, feed: Arc::clone(&feed), view: submitted(&job) });
        let at = Instant::now();
        inner.submissions.push(Submission { job, number, feed: Arc::clone(&feed), at, is_reservation });
        drop(inner);
        self.wake.notify_one();
        Ok(feed)
    }

    pub fn take_submissions(&self) -> Vec<Submission> {
        std::mem::take(&mut self.inner.lock().submissions)
    }

    pub fn cancel(&self, job_id: &str, reason: &str) -> bool {
        let inner = self.inner.lock();
        match inner.live.iter().find(|live| live.view.job_id == job_id) {
            Some(live) => {
                live.feed.cancel(reason);
                true
            }
            None => false,
        }
    }

    pub fn snapshot(&self) -> Vec<JobView> {
        let inner = self.inner.lock();
        inner.history.iter().chain(inner.live.iter().map(|live| &live.view)).cloned().collect()
    }

    pub fn publish(&self, number: u64, view: JobView) {
        let mut inner = self.inner.lock();
        if let Some(live) = inner.live.iter_mut().find(|live| live.number == number) {
            live.view = view;
        }
    }

    /// Moves a job to the ended ones.
    pub fn retire(&self, number: u64, view: JobView) {
        let mut inner = self.inner.lock();
        inner.live.retain(|live| live.number != number);
        inner.history.push_back(view);
        while inner.history.len() > self.options.history_jobs_max {
            inner.history.pop_front();
        }
    }

    /// No job is accepted from now on.
    pub fn close(&self) {
        self.inner.lock().closed = true;
    }
}

fn submitted(job: &BarrierJob) -> JobView {
    JobView {
        job_id: job.job_id.clone(),
        name: job.name.clone(),
        pool: job.pool.clone(),
        state: JobState::Queued,
        reason: "was just submitted".to_string(),
        num_ranks: job.num_ranks,
        generation: 0,
        age: Duration::ZERO,
        ranks: Vec::new(),
    }
}
