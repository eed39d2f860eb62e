//! One gang: the attempt of a job's generation, as facts and times, without sockets or processes.

use std::time::Instant;

use crate::error::RankFailure;
use crate::event::Progress;
use crate::launcher::Exit;

#[derive(Debug)]
pub struct Gang {
    pub generation: u32,
    /// When its slots were taken.
    pub since: Instant,
    pub launch: Launch,
    pub partitions: Preparation,
    pub ranks: Vec<Rank>,
    /// What went wrong so far, in the order it became known.
    pub observations: Vec<Observation>,
    pub cancel: Option<String>,
    pub started: bool,
    pub ending: Option<Ending>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launch {
    Pending,
    Done,
    Failed,
}

/// Where every rank finds its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparation {
    Pending,
    Done,
    Failed,
}

#[derive(Debug, Clone)]
pub struct Rank {
    pub pid: Option<u32>,
    pub process: Process,
    /// Its collective address, once it has joined.
    pub address: Option<String>,
    /// When it last gave a sign of life; counts from joining.
    pub last_seen: Instant,
    /// Reported its outcome, good or bad.
    pub reported: bool,
    /// Finished well.
    pub finished: bool,
    pub told: Told,
    pub progress: Option<Progress>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Process {
    Unborn,
    Alive,
    /// Dead; its last words are being read.
    Exited(Exit),
    /// Dead and done with.
    Gone {
        stderr_tail: Vec<String>,
    },
}

/// The strongest thing a process was told so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Told {
    Nothing,
    Terminate,
    Kill,
}

#[derive(Debug, Clone)]
pub struct Observation {
    pub rank: usize,
    pub at: Instant,
    pub cause: RankFailure,
    pub weight: Weight,
}

/// How much an observation says about the first cause, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The rank itself says that it only saw another one go.
    Secondary,
    /// The stream broke: a death that is about to be known, most of the time.
    Disconnected,
    Primary,
}

#[derive(Debug, Clone)]
pub struct Ending {
    pub since: Instant,
    /// Not an end that was caused by a failure or a cancellation: ranks leave by themselves.
    pub peaceful: bool,
    /// The rank that needs no grace, since it cannot answer.
    pub stalled: Option<usize>,
}

impl Gang {
    pub fn new(generation: u32, num_ranks: usize, now: Instant) -> Gang {
        let rank = Rank {
            pid: None,
            process: Process::Unborn,
            address: None,
            last_seen: now,
            reported: false,
            finished: false,
            told: Told::Nothing,
            progress: None,
        };
        Gang {
            generation,
            since: now,
            launch: Launch::Pending,
            partitions: Preparation::Pending,
            ranks: vec![rank; num_ranks],
            observations: Vec::new(),
            cancel: None,
            started: false,
            ending: None,
        }
    }

    pub fn num_joined(&self) -> usize {
        self.ranks.iter().filter(|rank| rank.address.is_some()).count()
    }

    /// The furthest step that a rank has told of.
    pub fn step(&self) -> u64 {
        self.ranks.iter().filter_map(|rank| rank.progress.as_ref()).map(|progress| progress.step).max().unwrap_or(0)
    }

    /// Whether no process of it exists or will come to exist.
    pub fn is_gone(&self) -> bool {
        match self.launch {
            Launch::Pending => false,
            Launch::Done | Launch::Failed => {
                self.ranks.iter().all(|rank| matches!(rank.process, Process::Unborn | Process::Gone { .. }))
            }
        }
    }

    /// Notes a death. It is a failure unless the rank had reported its outcome.
    pub fn exited(&mut self, rank: usize, exit: Exit, at: Instant) {
        let Some(state) = self.ranks.get_mut(rank) else { return };
        state.process = Process::Exited(exit);
        if !state.reported {
            let cause = match exit {
                Exit::Code(code) => RankFailure::Exited { code, stderr_tail: Vec::new() },
                Exit::Signal(signal) => RankFailure::Killed { signal, stderr_tail: Vec::new() },
            };
            self.observations.push(Observation { rank, at, cause, weight: Weight::Primary });
        }
    }

    pub fn disconnected(&mut self, rank: usize, at: Instant) {
        if self.ranks.get(rank).is_some_and(|state| !state.reported) {
            let cause = RankFailure::Disconnected { stderr_tail: Vec::new() };
            self.observations.push(Observation { rank, at, cause, weight: Weight::Disconnected });
        }
    }
}
