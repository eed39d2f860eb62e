//! Ranks without processes: each is a task of this process, and joins its gang over the real control stream.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use gang::{Assignment, Error, Exit, Failure, LaunchError, LaunchedRank, Launcher, Member, MemberOptions};
use gang::{RankLaunch, Signal};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// What a rank does that does not end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    BeforeJoining,
    AfterJoining,
}

/// The code with which a rank exits that dies.
pub const DEATH_CODE: i32 = 9;

/// What the ranks have seen, by all of them.
#[derive(Default)]
pub struct Seen {
    /// Ranks that have called join, in any generation.
    pub joins: AtomicUsize,
    /// The assignments of ranks that were told to start.
    pub assignments: Mutex<Vec<Started>>,
    /// How many ranks said what about a join that came to nothing.
    pub refusals: Mutex<HashMap<String, usize>>,
}

pub struct Started {
    pub at: Instant,
    /// How many ranks had called join by then.
    pub joins: usize,
    pub assignment: Assignment,
}

/// Starts every rank as a task. In generation 0 one of them may die.
pub struct InProcess {
    pub death: Option<(usize, Death)>,
    pub seen: Arc<Seen>,
}

struct Task {
    exit: watch::Sender<Option<Exit>>,
    abort: AbortHandle,
}

#[async_trait]
impl Launcher for InProcess {
    async fn launch(&self, ranks: Vec<RankLaunch>) -> Result<Vec<Box<dyn LaunchedRank>>, LaunchError> {
        let start = |launch: RankLaunch| {
            let death = self.death.filter(|&(rank, _)| rank == launch.rank && launch.generation == 0);
            let (exit, seen) = (watch::channel(None).0, Arc::clone(&self.seen));
            let exited = exit.clone();
            let task = tokio::spawn(async move {
                let code = live(launch, death.map(|(_, death)| death), &seen).await;
                exited.send_replace(Some(Exit::Code(code)));
            });
            Box::new(Task { exit, abort: task.abort_handle() }) as Box<dyn LaunchedRank>
        };
        Ok(ranks.into_iter().map(start).collect())
    }
}

/// A rank's life; returns its exit code.
async fn live(launch: RankLaunch, death: Option<Death>, seen: &Seen) -> i32 {
    if death == Some(Death::BeforeJoining) {
        return DEATH_CODE;
    }
    let address = address_of(launch.rank);
    let options = MemberOptions {
        coordinator: launch.coordinator,
        job_id: launch.job_id,
        generation: launch.generation,
        rank: launch.rank,
        secret: launch.secret,
        reusable: false,
    };
    seen.joins.fetch_add(1, Ordering::SeqCst);
    let (member, assignment) = match Member::join(options, address).await {
        Ok(joined) => joined,
        Err(error) => {
            let said = match error {
                Error::Cancelled { .. } => "cancelled".to_string(),
                other => other.to_string(),
            };
            *seen.refusals.lock().entry(said).or_default() += 1;
            return 1;
        }
    };
    let (rank, generation) = (assignment.rank, assignment.generation);
    let started = Started { at: Instant::now(), joins: seen.joins.load(Ordering::SeqCst), assignment };
    seen.assignments.lock().push(started);
    match death {
        // Dropping the member closes the stream, as the end of a process does.
        Some(_) => return DEATH_CODE,
        // With one rank dead no collective returns, until the gang is told to stop.
        None if generation == 0 && launch.name == MOURNED => {
            let reason = member.cancelled().await;
            let failure = Failure { message: reason, secondary: true, ..Failure::default() };
            return i32::from(member.finish(Err(failure)).await.is_err());
        }
        None => {}
    }
    let output = Bytes::from(format!("rank {rank} of generation {generation}"));
    if member.finish(Ok(output)).await.is_ok() { 0 } else { 2 }
}

/// The name of a job whose first generation ends with a death, for which its other ranks wait.
pub const MOURNED: &str = "mourned";

pub fn address_of(rank: usize) -> String {
    format!("boot/host-{}@10.{}.{}.{}:7000", rank / 8, rank / 65536, rank / 256 % 256, rank % 256)
}

#[async_trait]
impl LaunchedRank for Task {
    fn pid(&self) -> Option<u32> {
        None
    }

    async fn wait(&self) -> Exit {
        let mut exit = self.exit.subscribe();
        let exit = exit.wait_for(Option::is_some).await;
        exit.ok().and_then(|exit| *exit).unwrap_or(Exit::Code(0))
    }

    fn signal(&self, signal: Signal) {
        self.abort.abort();
        let number = if signal == Signal::Kill { libc::SIGKILL } else { libc::SIGTERM };
        // One that has exited keeps its code.
        self.exit.send_if_modified(|exit| {
            let runs = exit.is_none();
            exit.get_or_insert(Exit::Signal(number));
            runs
        });
    }

    async fn stderr_tail(&self) -> Vec<String> {
        Vec::new()
    }

    fn clear_stderr_tail(&self) {}
}

impl Drop for Task {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
    }
}
