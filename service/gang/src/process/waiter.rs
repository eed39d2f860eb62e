//! Waits for one process, ends what is left of its group, reaps it, and sends signals without ever hitting a stranger.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::launcher::{Exit, Signal};

const STACK_BYTES: usize = 128 << 10;

pub struct Waiter {
    pid: u32,
    exit: watch::Receiver<Option<Exit>>,
    /// Whether the number may belong to another process by now. Held while a signal is sent and while it is reaped.
    reaped: Arc<Mutex<bool>>,
}

impl Waiter {
    /// Waits on a thread of its own: a wait that blocks is the one way to learn of an exit at once that needs neither a
    /// signal handler nor a poll, and a rank is rare and heavy beside a thread.
    pub fn start(child: Child, rank: usize) -> io::Result<Waiter> {
        let pid = child.id();
        let reaped = Arc::new(Mutex::new(false));
        let (sender, exit) = watch::channel(None);
        let waiter = Waiter { pid, exit, reaped: Arc::clone(&reaped) };
        let spawned =
            thread::Builder::new().name(format!("gang-wait-{rank}")).stack_size(STACK_BYTES).spawn(move || {
                sender.send_replace(Some(wait_and_reap(child, &reaped)));
            });
        match spawned {
            Ok(_) => Ok(waiter),
            Err(error) => {
                // nobody reaps it: it stays a zombie until this process ends, which beats a running orphan
                waiter.signal(Signal::Kill);
                Err(error)
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub async fn wait(&self) -> Exit {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::Signal(libc::SIGKILL)),
            // the thread panicked, and with it went the knowledge of how the process ended
            Err(_) => Exit::Signal(libc::SIGKILL),
        }
    }

    pub fn signal(&self, signal: Signal) {
        let reaped = self.reaped.lock();
        if !*reaped {
            let number = match signal {
                Signal::Terminate => libc::SIGTERM,
                Signal::Kill => libc::SIGKILL,
            };
            kill_group(self.pid, number);
        }
    }
}

fn wait_and_reap(mut child: Child, reaped: &Mutex<bool>) -> Exit {
    let pid = child.id();
    wait_without_reaping(pid);
    let mut reaped = reaped.lock();
    // the dead leader still holds its number, so the group cannot be anybody else's
    kill_group(pid, libc::SIGKILL);
    let status = child.wait();
    *reaped = true;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Signal(0),
        },
        Err(error) => {
            tracing::error!(pid, %error, "the status of a process could not be read");
            Exit::Signal(0)
        }
    }
}

fn wait_without_reaping(pid: u32) {
    loop {
        // SAFETY: siginfo_t is plain data for which all zeros is valid; the kernel writes into it, and nobody reads it.
        let result = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, pid, &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        if result == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

fn kill_group(leader: u32, signal: i32) {
    // SAFETY: a plain system call. A group that has no member left is an error that changes nothing.
    unsafe {
        libc::kill(-(leader as i32), signal);
    }
}
