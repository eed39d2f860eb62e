//! What the loop makes of the things that happen: facts about gangs, no decisions.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use super::idle::take_place;
use super::restart::Restarts;
use super::{Happening, Job, Seat, Service, What, Whose, watch};
use crate::attempt::{Launch, Observation, Preparation, Process, Weight};
use crate::error::{Error, RankFailure};
use crate::event::Event;
use crate::job::JobState;
use crate::launcher::LaunchError;
use crate::rendezvous::{Instruction, Said, Saying, StreamId};
use crate::secret::Secret;
use crate::wire::Join;

/// An address is text for the other ranks, sent to each of them.
const ADDRESS_BYTES_MAX: usize = 4096;

impl Service {
    pub(super) fn take_submissions(&mut self, now: Instant) {
        for submission in self.shared.take_submissions() {
            let secret = Secret::random();
            self.jobs.push(Job {
                num_ranks: submission.job.num_ranks,
                partitions: Ok(Vec::new()),
                restarts: Restarts::default(),
                job: Arc::new(submission.job),
                number: submission.number,
                feed: submission.feed,
                is_reservation: submission.is_reservation,
                submitted: submission.at,
                state: JobState::Queued,
                reason: String::new(),
                // with an error the job ends below, before anybody could present a secret
                secret: secret.as_ref().map_or_else(|_| Secret::from_bytes([0; 32]), Secret::clone),
                gang: None,
                contacts: Vec::new(),
                verdict: None,
                launch_error: None,
                output: None,
                announced: Vec::new(),
                reported: false,
            });
            if let Err(source) = secret {
                let error = Error::Launch { generation: 0, source: Arc::new(LaunchError::Secret { source }) };
                let index = self.jobs.len() - 1;
                self.end_job(index, JobState::Failed, error.to_string(), Event::Failed(error), now);
            }
        }
        self.jobs.retain(|job| !job.state.is_ended());
    }

    pub(super) fn take_cancellations(&mut self, stopping: bool, now: Instant) {
        for index in 0..self.jobs.len() {
            let job = &mut self.jobs[index];
            let asked = job.feed.cancel_reason();
            let reason = asked.or_else(|| stopping.then(|| "the server is shutting down".to_string()));
            let Some(reason) = reason else { continue };
            match &mut job.gang {
                Some(gang) => {
                    gang.cancel.get_or_insert(reason);
                }
                None if job.is_reservation && job.state == JobState::Running => self.end_reservation(index, reason, now),
                None => {
                    let error =
                        if stopping { Error::ShuttingDown } else { Error::Cancelled { reason: reason.clone() } };
                    self.end_job(index, JobState::Cancelled, reason, Event::Failed(error), now);
                }
            }
        }
        self.jobs.retain(|job| !job.state.is_ended());
    }

    pub(super) fn hear(&mut self, saying: Saying, now: Instant) {
        let stream = saying.stream;
        if let Said::Joins { join, orders, verdict } = saying.said {
            return self.hear_join(stream, join, orders, verdict, now);
        }
        let left = matches!(saying.said, Said::Left);
        let seat = if left { self.seats.remove(&stream) } else { self.seats.get(&stream).copied() };
        let (number, generation, rank) = match seat {
            Some(Seat::Rank { number, generation, rank }) => (number, generation, rank),
            Some(Seat::Idle { id }) => return self.hear_idle(id, stream, left, now),
            None => return,
        };
        let Some(job) = self.jobs.iter_mut().find(|job| job.number == number) else { return };
        let Some(gang) = job.gang.as_mut().filter(|gang| gang.generation == generation) else { return };
        let Some(state) = gang.ranks.get_mut(rank) else { return };
        state.last_seen = now;
        if state.reported {
            // the first outcome counts
            return;
        }
        match saying.said {
            Said::Joins { .. } | Said::IsAlive => {}
            Said::Progress(progress) => {
                state.progress = Some(progress.clone());
                job.feed.push(Event::Progress { rank, progress });
            }
            Said::Log(line) => job.feed.push(Event::Log { rank, line }),
            Said::Record(record) => job.feed.push(Event::Record { rank, record }),
            Said::Finished { output } => {
                state.reported = true;
                state.finished = true;
                if rank == 0 {
                    job.output = Some(output);
                }
                job.contacts[rank].order(Instruction::Accept);
            }
            Said::Failed(failure) => {
                state.reported = true;
                let weight = if failure.secondary { Weight::Secondary } else { Weight::Primary };
                let (message, class, detail) = (failure.message, failure.class, failure.detail);
                let cause = RankFailure::Program { message, class, detail, is_echo: failure.secondary };
                gang.observations.push(Observation { rank, at: now, cause, weight });
                job.contacts[rank].order(Instruction::Accept);
            }
            Said::Left => gang.disconnected(rank, now),
        }
    }

    fn hear_join(
        &mut self,
        stream: StreamId,
        join: Join,
        orders: mpsc::Sender<Instruction>,
        verdict: oneshot::Sender<Result<(), String>>,
        now: Instant,
    ) {
        let answer = self.seat(stream, &join, orders, now);
        if let Err(reason) = &answer {
            let (job_id, generation, rank) = (join.job_id, join.generation, join.rank);
            tracing::warn!(job_id, generation, rank, reason, "a member was refused");
        }
        // the stream may have broken meanwhile: then it says so next
        let _ = verdict.send(answer);
    }

    fn seat(
        &mut self,
        stream: StreamId,
        join: &Join,
        orders: mpsc::Sender<Instruction>,
        now: Instant,
    ) -> Result<(), String> {
        if join.address.len() > ADDRESS_BYTES_MAX {
            return Err(format!("an address has at most {ADDRESS_BYTES_MAX} bytes"));
        }
        let Some(job) = self.jobs.iter_mut().find(|job| job.job.job_id == join.job_id) else {
            return self.seat_idle(stream, join, orders, now);
        };
        if !job.secret.matches(&join.secret) {
            // the same answer as for no job, so that a stranger learns nothing about which jobs there are
            return Err("no such job, or not its secret".to_string());
        }
        let gang = job.gang.as_mut().ok_or("the job is not starting")?;
        if gang.generation != join.generation {
            return Err(format!("generation {} joins, the job is at generation {}", join.generation, gang.generation));
        }
        if gang.ending.is_some() {
            return Err("the gang is ending".to_string());
        }
        let rank = usize::try_from(join.rank).ok().filter(|rank| *rank < gang.ranks.len());
        let rank = rank.ok_or_else(|| format!("rank {} joins, the job has {} ranks", join.rank, gang.ranks.len()))?;
        if gang.ranks[rank].address.is_some() {
            return Err(format!("rank {rank} has joined already"));
        }
        let generation = gang.generation;
        take_place(gang, &mut job.contacts[rank], rank, join.address.clone(), orders, now);
        self.seats.insert(stream, Seat::Rank { number: job.number, generation, rank });
        Ok(())
    }

    pub(super) fn learn(&mut self, happening: Happening, now: Instant) {
        let Happening { whose, what } = happening;
        let (number, generation) = match whose {
            Whose::Gang { number, generation } => (number, generation),
            Whose::Idle { id } => return self.learn_idle(id, what, now),
        };
        let Some(job) = self.jobs.iter_mut().find(|job| job.number == number) else { return };
        let Some(gang) = job.gang.as_mut().filter(|gang| gang.generation == generation) else { return };
        match what {
            What::Prepared(partitions) => {
                gang.partitions = if partitions.is_ok() { Preparation::Done } else { Preparation::Failed };
                job.partitions = partitions;
            }
            What::Launched(Ok(processes)) => {
                gang.launch = Launch::Done;
                let unborn = gang.ranks.iter_mut().enumerate().filter(|(_, state)| state.process == Process::Unborn);
                for ((rank, state), process) in unborn.zip(processes) {
                    state.pid = process.pid();
                    state.process = Process::Alive;
                    job.contacts[rank].process = Some(Arc::clone(&process));
                    watch(self.happened.clone(), whose, rank, process);
                }
            }
            What::Launched(Err(error)) => {
                gang.launch = Launch::Failed;
                job.launch_error = Some(Arc::new(error));
            }
            What::Exited { rank, exit, at } => gang.exited(rank, exit, at.min(now)),
            What::Gone { rank, stderr_tail } => gang.ranks[rank].process = Process::Gone { stderr_tail },
        }
    }
}
