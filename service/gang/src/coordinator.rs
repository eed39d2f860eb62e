//! The service: owns the jobs, hears of everything that happens to them, decides with `admission` and `liveness`, acts.
//!
//! One loop owns all state. What happens reaches it over bounded channels; between two things that happen it asks the
//! pure functions what to do, and does it. It never waits for a rank, a process or a caller: what takes time is spawned
//! and comes back as one more thing that happened.

mod act;
mod handle;
mod hear;
mod idle;
mod restart;
mod shared;
mod view;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::GangServer;
use crate::admission;
use crate::attempt::Gang;
use crate::error::Error;
use crate::event::{Event, Feed};
use crate::job::{BarrierJob, JobState};
use crate::launcher::{Exit, LaunchError, LaunchedRank, Launcher};
use crate::liveness;
use crate::options::Options;
use crate::rendezvous::{GangService, Instruction, Saying, StreamId};
use crate::secret::Secret;
use crate::wire;
pub use handle::Handle;
use idle::Pool;
use restart::Restarts;
use shared::Shared;

/// Things said by ranks that wait for the loop; beyond it the ranks' streams wait.
const SAYINGS_MAX: usize = 1024;
/// Things that happened to processes and wait for the loop.
const HAPPENINGS_MAX: usize = 256;
const BATCH_MAX: usize = 256;
/// How often deadlines are looked at while there are jobs.
const TICK: Duration = Duration::from_millis(50);
/// From here on, the time between two turns of the loop counts as time in which it did not listen.
const AWAY_MIN: Duration = Duration::from_millis(500);
/// Beyond the time the ranks are given, how long a shutdown waits for them.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(2);

/// The control plane of barrier jobs. [`Service::run`] must run for anything to happen.
pub struct Service {
    options: Arc<Options>,
    launcher: Arc<dyn Launcher>,
    shared: Arc<Shared>,
    grpc: GangService,
    sayings: mpsc::Receiver<Saying>,
    happenings: mpsc::Receiver<Happening>,
    /// Handed to whatever is spawned, to tell what came of it.
    happened: mpsc::Sender<Happening>,
    jobs: Vec<Job>,
    seats: HashMap<StreamId, Seat>,
    pool: Pool,
}

/// A job that has not ended, and its gang if there is one.
struct Job {
    job: Arc<BarrierJob>,
    /// Tells apart jobs that used the same id one after the other.
    number: u64,
    feed: Arc<Feed>,
    /// Only its slots are wanted: it has no gang.
    is_reservation: bool,
    submitted: Instant,
    state: JobState,
    reason: String,
    secret: Secret,
    gang: Option<Gang>,
    /// What the gang's facts stand for, one a rank.
    contacts: Vec<Contact>,
    verdict: Option<liveness::Verdict>,
    launch_error: Option<Arc<LaunchError>>,
    /// Of this generation; fewer than the job asked for once it has shrunk.
    num_ranks: usize,
    /// Where each rank of this generation finds its data.
    partitions: Result<Vec<Bytes>, Error>,
    restarts: Restarts,
    output: Option<Bytes>,
    /// Events that the caller gets once the snapshot shows the same.
    announced: Vec<Event>,
    /// The caller has its last event.
    reported: bool,
}

#[derive(Default)]
struct Contact {
    process: Option<Arc<dyn LaunchedRank>>,
    orders: Option<mpsc::Sender<Instruction>>,
}

/// Whom a stream speaks for.
#[derive(Clone, Copy)]
enum Seat {
    Rank { number: u64, generation: u32, rank: usize },
    Idle { id: u64 },
}

/// What happened to processes.
struct Happening {
    whose: Whose,
    what: What,
}

/// Who launched a process.
#[derive(Clone, Copy)]
enum Whose {
    Gang { number: u64, generation: u32 },
    Idle { id: u64 },
}

enum What {
    Prepared(Result<Vec<Bytes>, Error>),
    Launched(Result<Vec<Arc<dyn LaunchedRank>>, LaunchError>),
    Exited { rank: usize, exit: Exit, at: Instant },
    Gone { rank: usize, stderr_tail: Vec<String> },
}

impl Service {
    pub fn new(options: Options, launcher: Arc<dyn Launcher>) -> Service {
        let options = Arc::new(options);
        let (say, sayings) = mpsc::channel(SAYINGS_MAX);
        let (happened, happenings) = mpsc::channel(HAPPENINGS_MAX);
        Service {
            launcher,
            shared: Arc::new(Shared::new(Arc::clone(&options))),
            grpc: GangService::new(say, Arc::clone(&options)),
            options,
            sayings,
            happenings,
            happened,
            jobs: Vec::new(),
            seats: HashMap::new(),
            pool: Pool::default(),
        }
    }

    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.shared))
    }

    /// Returns the gRPC service the ranks join at; it belongs on the server behind [`Options::coordinator`]. Control
    /// messages are small: a listener without `TCP_NODELAY` makes every start of a gang tens of milliseconds slower.
    pub fn grpc(&self) -> GangServer {
        GangServer::new(self.grpc.clone())
            .max_decoding_message_size(wire::MESSAGE_BYTES_MAX)
            .max_encoding_message_size(wire::MESSAGE_BYTES_MAX)
    }

    /// Runs until `shutdown`, then cancels all jobs and returns when their processes are gone. Dropping it kills them.
    pub async fn run(mut self, shutdown: impl Future) {
        let mut sayings = Vec::new();
        let mut happenings = Vec::new();
        let wake = self.shared.wake();
        let mut stopping: Option<Instant> = None;
        let mut last_turn = Instant::now();
        tokio::pin!(shutdown);
        loop {
            let busy = !self.jobs.is_empty() || self.options.warm_workers > 0;
            tokio::select! {
                _ = self.sayings.recv_many(&mut sayings, BATCH_MAX) => {}
                _ = self.happenings.recv_many(&mut happenings, BATCH_MAX) => {}
                () = wake.notified() => {}
                () = tokio::time::sleep(TICK), if busy => {}
                _ = &mut shutdown, if stopping.is_none() => {
                    self.shared.close();
                    stopping = Some(Instant::now());
                }
            }
            let now = Instant::now();
            self.forgive(now.saturating_duration_since(last_turn), now);
            last_turn = now;
            // what a rank said goes before its death, which is a failure only if it had not said how it ended
            while happenings.len() < 2 * HAPPENINGS_MAX
                && let Ok(happening) = self.happenings.try_recv()
            {
                happenings.push(happening);
            }
            while sayings.len() < 2 * SAYINGS_MAX
                && let Ok(saying) = self.sayings.try_recv()
            {
                sayings.push(saying);
            }
            for saying in sayings.drain(..) {
                self.hear(saying, now);
            }
            for happening in happenings.drain(..) {
                self.learn(happening, now);
            }
            self.take_submissions(now);
            self.take_cancellations(stopping.is_some(), now);
            self.decide(Instant::now());
            self.decide_pool(now, stopping.is_some());
            for job in &mut self.jobs {
                self.shared.publish(job.number, view::view(job, now));
                job.flush();
            }
            if let Some(since) = stopping
                && (self.jobs.is_empty() && self.pool.is_empty()
                    || now.saturating_duration_since(since) > self.shutdown_timeout())
            {
                break;
            }
        }
    }

    /// A loop that could not run, on a machine that was suspended or a runtime that was starved, heard no heartbeat.
    fn forgive(&mut self, away: Duration, now: Instant) {
        if away >= AWAY_MIN {
            self.jobs.iter_mut().filter_map(|job| job.gang.as_mut()).for_each(|it| liveness::forgive(it, away, now));
            self.pool.forgive(away, now);
        }
    }

    fn shutdown_timeout(&self) -> Duration {
        self.options.cancel_grace + self.options.grace + SHUTDOWN_MARGIN
    }

    fn decide(&mut self, now: Instant) {
        for index in 0..self.jobs.len() {
            let Some(gang) = &self.jobs[index].gang else { continue };
            for action in liveness::decide(now, gang, &self.options) {
                self.act_on_gang(index, action, now);
            }
        }
        self.jobs.retain(|job| !job.state.is_ended());
        let state = self.admission_state();
        for action in admission::decide(now, &state, &self.options) {
            self.act_on_queue(action, now);
        }
        self.jobs.retain(|job| !job.state.is_ended());
    }

    fn admission_state(&self) -> admission::State {
        let taken: usize =
            self.jobs.iter().filter(|job| job.state != JobState::Queued).map(|job| job.num_ranks).sum();
        let waiting = self.jobs.iter().filter(|job| job.state == JobState::Queued).map(|job| admission::Waiting {
            job_id: job.job.job_id.clone(),
            pool: job.job.pool.clone(),
            num_ranks: job.job.num_ranks,
            since: job.submitted,
            deadline: job.job.queue_deadline,
        });
        admission::State { slots_free: self.options.slots.saturating_sub(taken), waiting: waiting.collect() }
    }
}

/// Waits for a process, and tells the loop.
fn watch(happened: mpsc::Sender<Happening>, whose: Whose, rank: usize, process: Arc<dyn LaunchedRank>) {
    tokio::spawn(async move {
        let exit = tokio::select! {
            exit = process.wait() => exit,
            // the loop is gone, and with it whoever would kill the process
            () = happened.closed() => return,
        };
        let tell = async |what| happened.send(Happening { whose, what }).await;
        if tell(What::Exited { rank, exit, at: Instant::now() }).await.is_ok() {
            let stderr_tail = process.stderr_tail().await;
            // nothing is left to do without the loop
            let _ = tell(What::Gone { rank, stderr_tail }).await;
        }
    });
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.close();
        for submission in self.shared.take_submissions() {
            submission.feed.end(Event::Failed(Error::ShuttingDown));
        }
        for job in &self.jobs {
            if !job.reported {
                job.feed.end(Event::Failed(Error::ShuttingDown));
            }
        }
    }
}
