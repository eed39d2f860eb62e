//! One worker process: started on the thread that starts them all, its output read, killed with all that it started.
//!
//! A parent death signal is tied to the thread that forked: were a thread of the runtime's pool to fork, the worker would
//! be killed when that thread is retired. So one thread forks all workers and lives as long as the server.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc as std_mpsc;
use std::thread;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use crate::options::Options;

mod kin;
mod last_words;

use last_words::LastWords;

/// Every process that a worker starts inherits this variable, and is found by it.
const MARK: &str = "PHALANX_PYTHON_WORKER";
const SCRIPT: &str = include_str!("worker.py");
/// Requests that wait for the thread.
const REQUESTS_MAX: usize = 1024;
/// How long what is left in the pipes of a dead process is awaited.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(300);

/// The one thread that starts processes.
#[derive(Debug, Clone)]
pub struct Spawner {
    requests: std_mpsc::SyncSender<Request>,
}

#[derive(Debug)]
struct Request {
    command: Command,
    reply: oneshot::Sender<io::Result<Child>>,
}

impl Spawner {
    /// Must be called inside a runtime, which reaps the processes.
    pub fn start() -> io::Result<Spawner> {
        let (requests, inbox) = std_mpsc::sync_channel::<Request>(REQUESTS_MAX);
        let runtime = tokio::runtime::Handle::current();
        thread::Builder::new().name("python-spawner".to_owned()).spawn(move || {
            let _runtime = runtime.enter();
            for mut request in inbox {
                // A caller that is gone drops the child, which kills it.
                let _ = request.reply.send(request.command.spawn());
            }
        })?;
        Ok(Spawner { requests })
    }

    async fn spawn(&self, command: Command) -> io::Result<Child> {
        let stopped = || io::Error::other("the thread that starts workers has ended");
        let (reply, answer) = oneshot::channel();
        self.requests.try_send(Request { command, reply }).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

/// A running worker. Dropping it kills its process, the group of it, and whatever else it started.
#[derive(Debug)]
pub struct Process {
    child: Option<Child>,
    pid: u32,
    mark: String,
    last_words: LastWords,
}

impl Process {
    /// Starts a worker and gives the socket on which it takes tasks.
    pub async fn start(spawner: &Spawner, options: &Options) -> io::Result<(Process, UnixStream)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mark = uuid::Uuid::new_v4().to_string();
        let mut command = Command::new(&options.interpreter);
        command
            .arg("-c")
            .arg(SCRIPT)
            .env(MARK, &mark)
            .env("PYTHONUNBUFFERED", "YES")
            .env("SPARK_REUSE_WORKER", "1")
            // tracebacks without pyspark's own frames, as Spark has them by default
            .env("SPARK_SIMPLIFIED_TRACEBACK", "1")
            .env("SPARK_PYTHON_RUNTIME", "PYTHON_WORKER")
            .env_remove("SPARK_SKIP_CONNECT_COMPAT_TESTS")
            .env_remove("SPARK_REMOTE")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folders) = library_folders() {
            command.env("LD_LIBRARY_PATH", folders);
        }
        let (parent, memory_bytes_max) = (std::process::id(), options.memory_bytes_max);
        // SAFETY: between fork and exec the closure makes system calls only, all of them async-signal-safe.
        unsafe {
            command.pre_exec(move || lead_and_die_with(parent, memory_bytes_max));
        }
        let mut child = spawner.spawn(command).await?;
        let pid = child.id().ok_or_else(|| io::Error::other("the worker ended at once"))?;
        let last_words = LastWords::capture(child.stdout.take(), child.stderr.take());
        let process = Process { child: Some(child), pid, mark, last_words };
        Ok((process, UnixStream::from_std(ours)?))
    }

    /// Ends what is left of the worker, and tells how it ended and its last lines.
    pub async fn post_mortem(mut self) -> (String, Vec<String>) {
        let Some(mut child) = self.child.take() else { return ("unknown".to_owned(), Vec::new()) };
        // A process that closed its socket is about to end; its own code says more than a kill.
        let ended = tokio::time::timeout(DRAIN_TIMEOUT, exited(self.pid)).await;
        kin::kill_group(self.pid);
        let status = child.wait().await;
        kin::kill_marked(MARK, &self.mark);
        let how = match (ended, status) {
            (Ok(()), Ok(status)) => describe(status),
            _ => "it hung up and was killed".to_owned(),
        };
        (how, self.last_words.tail(DRAIN_TIMEOUT).await)
    }

    /// Forgets what was printed: what follows belongs to another task.
    pub fn clear_last_words(&self) {
        self.last_words.clear();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // The child is not reaped yet, so its number, and its group's, are nobody else's.
        kin::kill_group(self.pid);
        let mark = std::mem::take(&mut self.mark);
        let reap = async move {
            let _ = child.wait().await;
            let _ = tokio::task::spawn_blocking(move || kin::kill_marked(MARK, &mark)).await;
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(reap)),
            Err(_) => kin::kill_marked(MARK, &self.mark),
        }
    }
}

/// The folders of libraries that this process was given, without those of its own libtorch: Python's torch brings its own.
fn library_folders() -> Option<OsString> {
    let folders = std::env::var_os("LD_LIBRARY_PATH")?;
    let kept = std::env::split_paths(&folders).filter(|folder| !folder.join("libtorch_cpu.so").exists());
    std::env::join_paths(kept).ok()
}

/// Waits until a child of ours has ended, without reaping it.
async fn exited(pid: u32) {
    while !kin::is_zombie_or_gone(pid) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(libc::SIGKILL)) => "killed, perhaps for its memory".to_owned(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "crashed".to_owned(),
    }
}

/// Makes the calling process the leader of its own session and group, to be killed when its parent dies, the first to go
/// when memory runs short, and bounded.
fn lead_and_die_with(parent: u32, memory_bytes_max: Option<u64>) -> io::Result<()> {
    let check = |result: libc::c_int| if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: plain system calls; the pointers are to locals and to a literal that ends in a nul.
    unsafe {
        check(libc::setsid())?;
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        // the parent may have died before the line above
        if libc::getppid() as u32 != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        let score = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY);
        if score >= 0 {
            libc::write(score, b"1000".as_ptr().cast(), 4);
            libc::close(score);
        }
        if let Some(bytes) = memory_bytes_max {
            let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
            check(libc::setrlimit(libc::RLIMIT_DATA, &limit))?;
        }
    }
    Ok(())
}
