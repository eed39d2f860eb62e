//! What the loop does about a decision.

use std::sync::Arc;
use std::time::Instant;

use super::restart::{self, Decision};
use super::{Contact, Happening, Job, Seat, Service, What, Whose, view};
use crate::admission;
use crate::attempt::{Ending, Gang, Launch, Process, Told};
use crate::error::{Error, RankFailure};
use crate::event::Event;
use crate::job::JobState;
use crate::launcher::{LaunchError, LogSink, RankLaunch, Signal};
use crate::liveness::{self, Verdict};
use crate::rendezvous::{Instruction, Payload};
use crate::wire::Start;

impl Service {
    pub(super) fn act_on_queue(&mut self, action: admission::Action, now: Instant) {
        match action {
            admission::Action::Start { job_id, reason } => {
                if let Some(index) = self.queued(&job_id) {
                    match self.jobs[index].is_reservation {
                        true => self.jobs[index].grant(reason),
                        false => self.start_gang(index, 0, reason, now),
                    }
                }
            }
            admission::Action::Wait { job_id, reason } => {
                if let Some(index) = self.queued(&job_id) {
                    let job = &mut self.jobs[index];
                    if job.reason != reason {
                        job.announced.push(Event::Queued { reason: reason.clone() });
                        job.reason = reason;
                    }
                }
            }
            admission::Action::Expire { job_id, waited, reason } => {
                if let Some(index) = self.queued(&job_id) {
                    let error = Error::QueueTimeout { waited_ms: waited.as_millis() as u64, reason };
                    self.end_job(index, JobState::Failed, error.to_string(), Event::Failed(error), now);
                }
            }
        }
    }

    fn queued(&self, job_id: &str) -> Option<usize> {
        self.jobs.iter().position(|job| job.job.job_id == job_id && job.state == JobState::Queued)
    }

    pub(super) fn act_on_gang(&mut self, index: usize, action: liveness::Action, now: Instant) {
        let job = &mut self.jobs[index];
        match action {
            liveness::Action::Begin => job.begin(),
            liveness::Action::End { verdict } => job.end_gang(verdict, now),
            liveness::Action::Terminate { rank } => job.signal(rank, Signal::Terminate),
            liveness::Action::Kill { rank } => job.signal(rank, Signal::Kill),
            liveness::Action::GiveUp { reason } => job.give_up(reason),
            liveness::Action::Release => self.release(index, now),
        }
    }

    fn start_gang(&mut self, index: usize, generation: u32, reason: String, now: Instant) {
        let job = &mut self.jobs[index];
        let num_ranks = job.num_ranks;
        tracing::info!(job_id = job.job.job_id, generation, num_ranks, reason, "a gang starts");
        job.set_state(JobState::Starting, reason);
        job.announced.push(Event::Starting { generation });
        job.gang = Some(Gang::new(generation, num_ranks, now));
        job.contacts = (0..num_ranks).map(|_| Contact::default()).collect();
        job.verdict = None;
        job.output = None;
        self.prepare(index, generation);
        let job = &mut self.jobs[index];
        self.pool.lease(job, &mut self.seats, now);
        let Some(gang) = &mut job.gang else { return };
        let unborn = gang.ranks.iter().enumerate().filter(|(_, state)| state.process == Process::Unborn);
        let launches = unborn.map(|(rank, _)| {
            let feed = Arc::clone(&job.feed);
            RankLaunch {
                coordinator: self.options.coordinator.clone(),
                job_id: job.job.job_id.clone(),
                name: job.job.name.clone(),
                generation,
                rank,
                world_size: num_ranks,
                secret: job.secret,
                reusable: false,
                log: LogSink::new(move |line| feed.push(Event::Log { rank, line })),
            }
        });
        let launches: Vec<RankLaunch> = launches.collect();
        if launches.is_empty() {
            gang.launch = Launch::Done;
            return;
        }
        let whose = Whose::Gang { number: job.number, generation };
        self.launch(whose, launches);
    }

    pub(super) fn launch(&self, whose: Whose, launches: Vec<RankLaunch>) {
        let expected = launches.len();
        let launcher = Arc::clone(&self.launcher);
        let happened = self.happened.clone();
        let timeout = self.options.start_timeout;
        tokio::spawn(async move {
            let launched = match tokio::time::timeout(timeout, launcher.launch(launches)).await {
                Ok(Ok(processes)) if processes.len() != expected => {
                    Err(LaunchError::WrongCount { started: processes.len(), expected })
                }
                Ok(launched) => launched.map(|processes| processes.into_iter().map(Arc::from).collect()),
                Err(_) => Err(LaunchError::Timeout { timeout_ms: timeout.as_millis() as u64 }),
            };
            // without the loop the processes are dropped here, and killed by that
            let _ = happened.send(Happening { whose, what: What::Launched(launched) }).await;
        });
    }

    /// Asks where the ranks of a generation find their data, while their processes start.
    fn prepare(&self, index: usize, generation: u32) {
        let job = &self.jobs[index];
        let (partitions, num_ranks) = (Arc::clone(&job.job.partitions), job.num_ranks);
        let whose = Whose::Gang { number: job.number, generation };
        let happened = self.happened.clone();
        tokio::spawn(async move {
            let prepared = match partitions.prepare(generation, num_ranks).await {
                Ok(partitions) if partitions.len() != num_ranks => {
                    Err(Error::PartitionsMismatch { num_ranks, partitions: partitions.len() })
                }
                Ok(partitions) => Ok(partitions),
                Err(source) => Err(Error::Partitions { generation, source: Arc::from(source) }),
            };
            // without the loop nobody is left to start
            let _ = happened.send(Happening { whose, what: What::Prepared(prepared) }).await;
        });
    }

    /// No process is left: starts the next generation once its pause is over, or ends the job.
    fn release(&mut self, index: usize, now: Instant) {
        let number = self.jobs[index].number;
        self.seats.retain(|_, seat| !matches!(seat, Seat::Rank { number: seated, .. } if *seated == number));
        let job = &mut self.jobs[index];
        job.contacts.clear();
        let Some((verdict, gang)) = job.verdict.clone().zip(job.gang.as_ref()) else { return };
        let facts = restart::Facts {
            verdict: &verdict,
            generation: gang.generation,
            num_ranks: job.num_ranks,
            is_cancelled: gang.cancel.is_some(),
            step: gang.step(),
        };
        match restart::decide(now, &facts, &mut job.restarts, &job.job, &self.options) {
            _ if job.reported => {}
            Decision::End => {}
            Decision::Pause { is_new: false } => return,
            Decision::Pause { is_new: true } => {
                let (cause, generation) = (job.error_of(&verdict), facts.generation);
                tracing::warn!(job_id = job.job.job_id, generation, error = %cause, "the gang will start again");
                job.restarts.first.get_or_insert_with(|| cause.clone());
                job.announced.push(Event::Restarting { generation, cause });
                return;
            }
            Decision::Start { num_ranks } => {
                let (error, generation) = (job.error_of(&verdict), facts.generation + 1);
                job.num_ranks = num_ranks;
                return self.start_gang(index, generation, format!("starts again: {error}"), now);
            }
        }
        self.conclude(index, verdict, now);
    }

    /// Ends a job whose gang is gone, as the verdict on its last generation says.
    fn conclude(&mut self, index: usize, verdict: Verdict, now: Instant) {
        let job = &mut self.jobs[index];
        let cancelled = job.gang.as_ref().and_then(|gang| gang.cancel.clone());
        let verdict = match cancelled {
            // a job that is cancelled in the pause between two generations has not failed
            Some(reason) if job.restarts.is_pausing() => Verdict::Cancelled { reason },
            _ => verdict,
        };
        match verdict {
            Verdict::Finished => {
                let output = Event::Finished { output: job.output.take().unwrap_or_default() };
                self.end_job(index, JobState::Finished, "all ranks have finished".to_string(), output, now);
            }
            Verdict::Cancelled { reason } => {
                let error = Event::Failed(Error::Cancelled { reason: reason.clone() });
                self.end_job(index, JobState::Cancelled, reason, error, now);
            }
            verdict => {
                let last = job.error_of(&verdict);
                let error = match (job.restarts.first.take(), job.gang.as_ref()) {
                    (Some(first), Some(gang)) if last.retryable() => Error::OutOfRestarts {
                        restarts: gang.generation,
                        first: Box::new(first),
                        last: Box::new(last),
                    },
                    _ => last,
                };
                self.end_job(index, JobState::Failed, error.to_string(), Event::Failed(error), now);
            }
        }
    }

    /// Takes the slots of a reservation back: its holder has gone, or the server stops.
    pub(super) fn end_reservation(&mut self, index: usize, reason: String, now: Instant) {
        self.jobs[index].set_state(JobState::Stopping, reason.clone());
        let error = Event::Failed(Error::Cancelled { reason: reason.clone() });
        self.end_job(index, JobState::Finished, reason, error, now);
    }

    /// Ends a job that has no process, and marks it to be removed.
    pub(super) fn end_job(&mut self, index: usize, state: JobState, reason: String, last: Event, now: Instant) {
        let job = &mut self.jobs[index];
        tracing::info!(job_id = job.job.job_id, state = state.as_str(), reason, "the job has ended");
        job.set_state(state, reason);
        self.shared.retire(job.number, view::view(job, now));
        job.report(last);
    }
}

impl Job {
    fn set_state(&mut self, next: JobState, reason: String) {
        debug_assert!(self.state.can_become(next), "{:?} became {next:?}", self.state);
        self.state = next;
        self.reason = reason;
    }

    /// Gives the caller the events that wait for the snapshot to show the same.
    pub(super) fn flush(&mut self) {
        for event in self.announced.drain(..) {
            self.feed.push(event);
        }
    }

    /// Gives the caller its last event, once.
    fn report(&mut self, last: Event) {
        self.flush();
        if !self.reported {
            self.reported = true;
            self.feed.end(last);
        }
    }

    /// Gives a reservation its slots.
    fn grant(&mut self, reason: String) {
        tracing::info!(job_id = self.job.job_id, slots = self.num_ranks, reason, "slots are held");
        self.set_state(JobState::Starting, reason.clone());
        self.set_state(JobState::Running, reason);
        self.announced.push(Event::Starting { generation: 0 });
        self.announced.push(Event::Started { generation: 0 });
    }

    fn begin(&mut self) {
        let (Some(gang), Ok(partitions)) = (&mut self.gang, &self.partitions) else { return };
        gang.started = true;
        let generation = gang.generation;
        let addresses: Vec<String> = gang.ranks.iter().filter_map(|rank| rank.address.clone()).collect();
        for (rank, contact) in self.contacts.iter().enumerate() {
            let payload = Payload { spec: self.job.spec.clone(), partition: partitions[rank].clone() };
            let start = Start {
                rank: rank as u64,
                generation,
                addresses: addresses.clone(),
                secret: self.secret.bytes().to_vec().into(),
                program: self.job.program.clone(),
                spec_bytes: payload.spec.len() as u64,
                partition_bytes: payload.partition.len() as u64,
                job_id: self.job.job_id.clone(),
            };
            contact.order(Instruction::Start(start, payload));
        }
        self.set_state(JobState::Running, "all ranks have joined".to_string());
        self.announced.push(Event::Started { generation });
    }

    fn end_gang(&mut self, verdict: Verdict, now: Instant) {
        let reason = match &verdict {
            Verdict::Finished => "all ranks have finished".to_string(),
            Verdict::Cancelled { reason } => format!("cancelled: {reason}"),
            verdict => self.error_of(verdict).to_string(),
        };
        let Some(gang) = &mut self.gang else { return };
        let stalled = match &verdict {
            Verdict::RankFailed { rank, cause: RankFailure::Stalled { .. } } => Some(*rank),
            _ => None,
        };
        let peaceful = verdict == Verdict::Finished;
        gang.ending = Some(Ending { since: now, peaceful, stalled });
        for (rank, contact) in gang.ranks.iter().zip(&self.contacts) {
            if !rank.reported {
                contact.order(Instruction::Cancel(reason.clone()));
            }
        }
        self.verdict = Some(verdict);
        self.set_state(JobState::Stopping, reason);
        if peaceful {
            // the result is whole: its owner need not wait for processes to exit
            let output = self.output.take().unwrap_or_default();
            self.report(Event::Finished { output });
        }
    }

    fn signal(&mut self, rank: usize, signal: Signal) {
        let Some(state) = self.gang.as_mut().and_then(|gang| gang.ranks.get_mut(rank)) else { return };
        state.told = match signal {
            Signal::Terminate => Told::Terminate,
            Signal::Kill => Told::Kill,
        };
        if let Some(process) = &self.contacts[rank].process {
            process.signal(signal);
        }
    }

    fn give_up(&mut self, reason: String) {
        if self.reported {
            return;
        }
        tracing::error!(job_id = self.job.job_id, reason, "a gang cannot be ended, its slots stay taken");
        if let Some(verdict) = self.verdict.clone() {
            let error = self.error_of(&verdict);
            self.report(Event::Failed(error));
        }
        self.reason = reason;
    }

    /// The error a verdict comes to, with the last words of the rank it is about.
    fn error_of(&self, verdict: &Verdict) -> Error {
        let generation = self.gang.as_ref().map_or(0, |gang| gang.generation);
        match verdict {
            Verdict::RankFailed { rank, cause } => {
                let mut cause = cause.clone();
                cause.set_stderr_tail(self.stderr_tail(*rank));
                Error::RankFailed { rank: *rank, generation, cause }
            }
            Verdict::StartTimeout { joined, missing, after } => Error::StartTimeout {
                generation,
                joined: *joined,
                num_ranks: self.num_ranks,
                timeout_ms: after.as_millis() as u64,
                stderr_tail: self.stderr_tail(*missing),
            },
            Verdict::LaunchFailed => match &self.launch_error {
                Some(source) => Error::Launch { generation, source: Arc::clone(source) },
                None => Error::Launch { generation, source: Arc::new(LaunchError::Stopped) },
            },
            Verdict::PreparationFailed => match &self.partitions {
                Err(error) => error.clone(),
                Ok(partitions) => {
                    Error::PartitionsMismatch { num_ranks: self.num_ranks, partitions: partitions.len() }
                }
            },
            Verdict::Cancelled { reason } => Error::Cancelled { reason: reason.clone() },
            Verdict::Finished => Error::Cancelled { reason: "it had finished".to_string() },
        }
    }

    fn stderr_tail(&self, rank: usize) -> Vec<String> {
        match self.gang.as_ref().and_then(|gang| gang.ranks.get(rank)).map(|rank| &rank.process) {
            Some(Process::Gone { stderr_tail }) => stderr_tail.clone(),
            _ => Vec::new(),
        }
    }
}

impl Contact {
    /// Never waits: a rank is given fewer orders than fit.
    pub(super) fn order(&self, instruction: Instruction) {
        if let Some(orders) = &self.orders
            && orders.try_send(instruction).is_err()
        {
            tracing::debug!("an order found its stream closed");
        }
    }
}
