//! Who gets which worker: no more are busy than the bound, and none runs code of two sessions.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tracing::{info, warn};

use crate::archive;
use crate::interpreter::Interpreter;
use crate::options::Options;
use crate::process::{Process, Spawner};
use crate::{Error, Result};

/// How often idle workers are looked at.
const SWEEP: Duration = Duration::from_secs(5);

/// The Python workers of a server. Dropping the last handle kills them all.
#[derive(Debug, Clone)]
pub struct Workers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    spawner: Spawner,
    interpreter: OnceCell<Interpreter>,
    permits: Arc<Semaphore>,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// Ready, and nobody's yet.
    spare: Vec<Worker>,
    spares_starting: usize,
    /// With the code of a session loaded, longest idle first.
    of_session: HashMap<String, Vec<(Worker, Instant)>>,
}

/// A worker that waits for a task, or is at one.
#[derive(Debug)]
pub struct Worker {
    pub process: Process,
    pub socket: UnixStream,
}

/// A worker on loan. Dropping it kills the worker; [`Lease::give_back`] keeps it for the session.
#[derive(Debug)]
pub struct Lease {
    worker: Option<Worker>,
    session: String,
    shared: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
}

impl Workers {
    /// Must be called inside a runtime.
    ///
    /// # Errors
    /// The thread that starts processes cannot be started.
    pub fn new(options: Options) -> io::Result<Workers> {
        let permits = Arc::new(Semaphore::new(options.workers_max));
        let shared = Arc::new(Shared {
            spawner: Spawner::start()?,
            interpreter: OnceCell::new(),
            permits,
            idle: Mutex::default(),
            options,
        });
        let swept = Arc::downgrade(&shared);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(shared) = swept.upgrade() else { return };
                shared.sweep(Instant::now());
            }
        });
        Ok(Workers { shared })
    }

    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// What the configured Python is. Asked of it the first time.
    ///
    /// # Errors
    /// Those of [`Interpreter::probe`]; the next call asks again.
    pub async fn interpreter(&self) -> Result<&Interpreter> {
        let probe = async {
            let found = Interpreter::probe(&self.shared.options.interpreter).await?;
            info!(python = found.python, pyspark = found.pyspark, "Python functions can run");
            Ok(found)
        };
        self.shared.interpreter.get_or_try_init(|| probe).await
    }

    /// Unpacks an archive of Python's kinds (zip, tar and compressed tar, jar), told by its name, into a folder.
    ///
    /// # Errors
    /// [`Error::Archive`] where it is none of them, or a member would leave the folder.
    pub async fn unpack(&self, archive: &Path, name: &str, folder: &Path) -> Result<()> {
        archive::unpack(&self.shared.options.interpreter, archive, name, folder).await
    }

    /// Ends the session's idle workers: its code is not needed any more. Its files are removed.
    pub fn end_session(&self, session: &str) {
        self.shared.idle.lock().of_session.remove(session);
    }

    /// How many workers are at a task.
    pub fn num_busy(&self) -> usize {
        self.shared.options.workers_max - self.shared.permits.available_permits()
    }

    pub(crate) async fn lease(&self, session: &str) -> Result<Lease> {
        let permit = self.permits(1).await?;
        self.lease_with(session, permit).await
    }

    /// So many workers, all of them at once.
    pub(crate) async fn lease_together(&self, session: &str, count: usize) -> Result<Vec<Lease>> {
        let options = &self.shared.options;
        if count > options.workers_max {
            return Err(Error::TooMany { needs: count, has: options.workers_max });
        }
        let mut permits = self.permits(count).await?;
        let leases = (0..count).filter_map(|_| permits.split(1)).map(|permit| self.lease_with(session, permit));
        futures::future::try_join_all(leases.collect::<Vec<_>>()).await
    }

    async fn permits(&self, count: usize) -> Result<OwnedSemaphorePermit> {
        let options = &self.shared.options;
        let permits = Arc::clone(&self.shared.permits).acquire_many_owned(count as u32);
        match tokio::time::timeout(options.wait_timeout, permits).await {
            Ok(Ok(permits)) => Ok(permits),
            _ => {
                let waited_s = options.wait_timeout.as_secs();
                Err(Error::Busy { workers_max: options.workers_max, waited_s })
            }
        }
    }

    async fn lease_with(&self, session: &str, permit: OwnedSemaphorePermit) -> Result<Lease> {
        let worker = match self.shared.take_idle(session) {
            Some(worker) => worker,
            None => self.shared.start().await?,
        };
        self.shared.refill();
        Ok(Lease {
            worker: Some(worker),
            session: session.to_owned(),
            shared: Arc::clone(&self.shared),
            _permit: permit,
        })
    }
}

impl Shared {
    async fn start(&self) -> Result<Worker> {
        let failed = |source| Error::Start { interpreter: self.options.interpreter.display().to_string(), source };
        let (process, mut socket) = Process::start(&self.spawner, &self.options).await.map_err(failed)?;
        let mut first_word = [0_u8; 4];
        match tokio::time::timeout(self.options.start_timeout, socket.read_exact(&mut first_word)).await {
            Ok(Ok(_)) => Ok(Worker { process, socket }),
            Ok(Err(_)) => {
                let (how, stderr) = process.post_mortem().await;
                Err(Error::Died { how, stderr })
            }
            Err(_) => Err(failed(io::Error::from(io::ErrorKind::TimedOut))),
        }
    }

    fn take_idle(&self, session: &str) -> Option<Worker> {
        let mut idle = self.idle.lock();
        loop {
            let of_session = idle.of_session.get_mut(session).and_then(Vec::pop).map(|(worker, _)| worker);
            let worker = of_session.or_else(|| idle.spare.pop())?;
            // One that was killed meanwhile has hung up.
            let mut byte = [0_u8; 1];
            match worker.socket.try_read(&mut byte) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(worker),
                _ => drop(worker),
            }
        }
    }

    /// Starts spare workers, in the background.
    fn refill(self: &Arc<Self>) {
        let mut idle = self.idle.lock();
        while idle.spare.len() + idle.spares_starting < self.options.spare_workers {
            idle.spares_starting += 1;
            let weak = Arc::downgrade(self);
            tokio::spawn(async move {
                let Some(shared) = weak.upgrade() else { return };
                let started = shared.start().await;
                let mut idle = shared.idle.lock();
                idle.spares_starting -= 1;
                match started {
                    Ok(worker) => idle.spare.push(worker),
                    Err(error) => warn!(%error, "a spare Python worker could not be started"),
                }
            });
        }
    }

    fn sweep(&self, now: Instant) {
        let mut idle = self.idle.lock();
        for workers in idle.of_session.values_mut() {
            workers.retain(|(_, since)| now.saturating_duration_since(*since) < self.options.idle_timeout);
        }
        idle.of_session.retain(|_, workers| !workers.is_empty());
    }

    /// Keeps a worker for its session; not more than may be busy, or else the longest idle one goes.
    fn keep(&self, session: String, worker: Worker) {
        worker.process.clear_last_words();
        let mut idle = self.idle.lock();
        if idle.of_session.values().map(Vec::len).sum::<usize>() >= self.options.workers_max {
            let oldest = idle.of_session.values_mut().min_by_key(|workers| workers.first().map(|(_, since)| *since));
            if let Some(workers) = oldest.filter(|workers| !workers.is_empty()) {
                workers.remove(0);
            }
        }
        idle.of_session.entry(session).or_default().push((worker, Instant::now()));
    }
}

impl Lease {
    pub fn socket(&mut self) -> Result<&mut UnixStream> {
        match &mut self.worker {
            Some(worker) => Ok(&mut worker.socket),
            None => Err(Error::Protocol { detail: "the worker was given back".to_owned() }),
        }
    }

    /// Keeps the worker for the next task of its session.
    pub fn give_back(mut self) {
        if let Some(worker) = self.worker.take() {
            self.shared.keep(std::mem::take(&mut self.session), worker);
        }
    }

    /// Why the worker hung up.
    pub async fn post_mortem(mut self) -> Error {
        match self.worker.take() {
            Some(worker) => {
                let (how, stderr) = worker.process.post_mortem().await;
                Error::Died { how, stderr }
            }
            None => Error::Died { how: "unknown".to_owned(), stderr: Vec::new() },
        }
    }
}
