//! The idle workers: started ahead, leased to gangs, taken back after success.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{Contact, Job, Seat, Service, What, Whose};
use crate::attempt::{Gang, Process};
use crate::event::{Event, Feed};
use crate::launcher::{LaunchedRank, LogSink, RankLaunch, Signal};
use crate::rendezvous::{Instruction, StreamId};
use crate::secret::Secret;
use crate::warm;
use crate::wire::Join;

#[derive(Default)]
pub struct Pool {
    workers: Vec<Worker>,
    launched: u64,
    failures: u32,
    failed_at: Option<Instant>,
}

struct Worker {
    id: u64,
    /// What it presents in place of a job's id.
    name: String,
    secret: Secret,
    since: Instant,
    process: Option<Arc<dyn LaunchedRank>>,
    joined: Option<Joined>,
    /// The gang's rank it is, while it is one.
    lease: Option<Lease>,
    /// Where its lines go.
    reader: Reader,
    num_jobs: u32,
    killed: bool,
}

/// The job and rank that a worker's lines belong to, while it is leased.
type Reader = Arc<Mutex<Option<(Arc<Feed>, usize)>>>;

/// An idle worker's stream.
struct Joined {
    stream: StreamId,
    orders: mpsc::Sender<Instruction>,
    address: String,
    last_seen: Instant,
}

#[derive(Clone, Copy)]
struct Lease {
    number: u64,
    generation: u32,
    rank: usize,
}

impl Pool {
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    fn find(&mut self, id: u64) -> Option<&mut Worker> {
        self.workers.iter_mut().find(|worker| worker.id == id)
    }

    pub fn forgive(&mut self, away: Duration, now: Instant) {
        for joined in self.workers.iter_mut().filter_map(|worker| worker.joined.as_mut()) {
            joined.last_seen = (joined.last_seen + away).min(now);
        }
    }

    fn failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.failed_at = Some(now);
    }

    fn state(&self, stopping: bool) -> warm::State {
        let workers = self.workers.iter().map(|worker| warm::Idler {
            id: worker.id,
            launched: worker.process.is_some(),
            since: worker.since,
            last_seen: worker.joined.as_ref().map(|joined| joined.last_seen),
            leased: worker.lease.is_some(),
            killed: worker.killed,
        });
        warm::State { workers: workers.collect(), failures: self.failures, failed_at: self.failed_at, stopping }
    }

    fn num_ready(&self) -> usize {
        self.workers.iter().filter(|worker| worker.joined.is_some() && worker.lease.is_none()).count()
    }

    /// Gives ranks of a starting gang to idle workers, as far as there are any: those that have joined first.
    pub fn lease(&mut self, job: &mut Job, seats: &mut HashMap<StreamId, Seat>, now: Instant) {
        let Some(gang) = &mut job.gang else { return };
        let free = |worker: &&mut Worker| worker.lease.is_none() && !worker.killed && worker.process.is_some();
        let mut idle: Vec<&mut Worker> = self.workers.iter_mut().filter(free).collect();
        idle.sort_by_key(|worker| worker.joined.is_none());
        for (rank, worker) in (0..gang.ranks.len()).zip(idle) {
            let lease = Lease { number: job.number, generation: gang.generation, rank };
            worker.lease = Some(lease);
            *worker.reader.lock() = Some((Arc::clone(&job.feed), rank));
            if let Some(process) = &worker.process {
                process.clear_stderr_tail();
                gang.ranks[rank].pid = process.pid();
                gang.ranks[rank].process = Process::Alive;
            }
            job.contacts[rank].process = worker.process.clone();
            if let Some(joined) = worker.joined.take() {
                seats.insert(joined.stream, lease.seat());
                take_place(gang, &mut job.contacts[rank], rank, joined.address, joined.orders, now);
            }
        }
    }
}

impl Lease {
    fn seat(self) -> Seat {
        Seat::Rank { number: self.number, generation: self.generation, rank: self.rank }
    }
}

/// Notes that a rank has joined.
pub fn take_place(
    gang: &mut Gang,
    contact: &mut Contact,
    rank: usize,
    address: String,
    orders: mpsc::Sender<Instruction>,
    now: Instant,
) {
    gang.ranks[rank].address = Some(address);
    gang.ranks[rank].last_seen = now;
    contact.orders = Some(orders);
}

impl Service {
    pub(super) fn decide_pool(&mut self, now: Instant, stopping: bool) {
        for action in warm::decide(now, &self.pool.state(stopping), &self.options) {
            match action {
                warm::Action::Launch { count } => (0..count).for_each(|_| self.launch_idle(now)),
                warm::Action::Kill { id, reason } => {
                    tracing::info!(worker = id, reason, "an idle worker is ended");
                    if let Some(worker) = self.pool.find(id) {
                        worker.killed = true;
                        worker.process.iter().for_each(|process| process.signal(Signal::Kill));
                    }
                }
            }
        }
        self.shared.idle_workers.store(self.pool.num_ready(), Ordering::Relaxed);
    }

    fn launch_idle(&mut self, now: Instant) {
        let secret = match Secret::random() {
            Ok(secret) => secret,
            Err(error) => {
                tracing::error!(%error, "no idle worker without a secret");
                return self.pool.failed(now);
            }
        };
        self.pool.launched += 1;
        let id = self.pool.launched;
        let reader = Reader::default();
        let worker = Worker {
            id,
            name: format!("idle-worker-{id}"),
            secret,
            since: now,
            process: None,
            joined: None,
            lease: None,
            reader: Arc::clone(&reader),
            num_jobs: 0,
            killed: false,
        };
        let launch = RankLaunch {
            coordinator: self.options.coordinator.clone(),
            job_id: worker.name.clone(),
            name: worker.name.clone(),
            generation: 0,
            rank: 0,
            world_size: 1,
            secret,
            reusable: true,
            log: LogSink::new(move |line| match &*reader.lock() {
                Some((feed, rank)) => feed.push(Event::Log { rank: *rank, line }),
                None => tracing::debug!(worker = id, line, "an idle worker prints"),
            }),
        };
        self.pool.workers.push(worker);
        self.launch(Whose::Idle { id }, vec![launch]);
    }

    pub(super) fn learn_idle(&mut self, id: u64, what: What, now: Instant) {
        let happened = self.happened.clone();
        let Some(worker) = self.pool.find(id) else { return };
        let lease = worker.lease;
        match what {
            // an idle worker has no data of its own
            What::Prepared(_) => {}
            What::Launched(Ok(processes)) => {
                for process in processes {
                    worker.process = Some(Arc::clone(&process));
                    super::watch(happened.clone(), Whose::Idle { id }, 0, process);
                }
            }
            What::Launched(Err(error)) => {
                tracing::error!(worker = id, %error, "an idle worker could not be started");
                self.pool.workers.retain(|worker| worker.id != id);
                self.pool.failed(now);
            }
            What::Exited { exit, at, .. } => {
                let wanted = !worker.killed;
                worker.killed = true;
                worker.joined = None;
                match lease {
                    Some(lease) => {
                        if let Some((_, gang)) = gang_of(&mut self.jobs, lease) {
                            gang.exited(lease.rank, exit, at.min(now));
                        }
                    }
                    None if wanted => {
                        tracing::warn!(worker = id, ?exit, "an idle worker died");
                        self.pool.failed(now);
                    }
                    None => {}
                }
            }
            What::Gone { stderr_tail, .. } => {
                if let Some(lease) = lease
                    && let Some((_, gang)) = gang_of(&mut self.jobs, lease)
                {
                    gang.ranks[lease.rank].process = Process::Gone { stderr_tail };
                }
                self.pool.workers.retain(|worker| worker.id != id);
            }
        }
    }

    /// Seats a worker of the pool that presents itself: for the first time, or after a job.
    pub(super) fn seat_idle(
        &mut self,
        stream: StreamId,
        join: &Join,
        orders: mpsc::Sender<Instruction>,
        now: Instant,
    ) -> Result<(), String> {
        let stranger = || "no such job, or not its secret".to_string();
        let worker = self.pool.workers.iter_mut().find(|worker| worker.name == join.job_id).ok_or_else(stranger)?;
        if !worker.secret.matches(&join.secret) {
            return Err(stranger());
        }
        if worker.killed || worker.joined.is_some() {
            return Err("the worker has joined already, or was told to end".to_string());
        }
        let address = join.address.clone();
        if let Some(lease) = worker.lease
            && let Some((contact, gang)) = gang_of(&mut self.jobs, lease)
        {
            if gang.ranks[lease.rank].address.is_none() && gang.ending.is_none() {
                take_place(gang, contact, lease.rank, address, orders, now);
                self.seats.insert(stream, lease.seat());
                return Ok(());
            }
            if !gang.ranks[lease.rank].finished {
                return Err("the worker's gang is not done with it".to_string());
            }
            // for its gang it is as if the process were gone
            gang.ranks[lease.rank].process = Process::Gone { stderr_tail: Vec::new() };
            contact.process = None;
        }
        if worker.lease.take().is_some() {
            worker.num_jobs += 1;
            *worker.reader.lock() = None;
            self.pool.failures = 0;
        }
        if worker.num_jobs >= warm::JOBS_MAX {
            worker.killed = true;
            worker.process.iter().for_each(|process| process.signal(Signal::Kill));
            return Err(format!("the worker has served {} jobs", worker.num_jobs));
        }
        worker.joined = Some(Joined { stream, orders, address, last_seen: now });
        self.seats.insert(stream, Seat::Idle { id: worker.id });
        Ok(())
    }

    pub(super) fn hear_idle(&mut self, id: u64, stream: StreamId, left: bool, now: Instant) {
        let Some(worker) = self.pool.find(id) else { return };
        let Some(joined) = worker.joined.as_mut().filter(|joined| joined.stream == stream) else { return };
        joined.last_seen = now;
        if left {
            // a worker without its stream is of no use
            worker.joined = None;
            worker.killed = true;
            worker.process.iter().for_each(|process| process.signal(Signal::Kill));
            self.pool.failed(now);
        }
    }
}

fn gang_of(jobs: &mut [Job], lease: Lease) -> Option<(&mut Contact, &mut Gang)> {
    let job = jobs.iter_mut().find(|job| job.number == lease.number)?;
    let gang = job.gang.as_mut().filter(|gang| gang.generation == lease.generation)?;
    Some((job.contacts.get_mut(lease.rank)?, gang))
}
