//! The one thread that starts processes.
//!
//! A parent death signal is tied to the thread that forked, not to its process: were a thread of a pool to fork, the
//! rank would be killed when the pool retires that thread. So one thread forks all ranks and lives as long as any.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use crate::launcher::LaunchError;

/// Requests that may wait for the thread; each is a rank of a gang being launched, which awaits it.
const REQUESTS_MAX: usize = 1024;

pub struct Spawner {
    requests: mpsc::SyncSender<Request>,
}

struct Request {
    command: Command,
    reply: oneshot::Sender<io::Result<Child>>,
}

impl Spawner {
    pub fn start() -> io::Result<Spawner> {
        let (requests, inbox) = mpsc::sync_channel::<Request>(REQUESTS_MAX);
        thread::Builder::new().name("gang-spawner".to_string()).spawn(move || {
            for mut request in inbox {
                let child = spawn_leader(&mut request.command);
                if let Err(Ok(child)) = request.reply.send(child) {
                    abandon(child);
                }
            }
        })?;
        Ok(Spawner { requests })
    }

    pub async fn spawn(&self, command: Command) -> Result<io::Result<Child>, LaunchError> {
        let (reply, answer) = oneshot::channel();
        self.requests.try_send(Request { command, reply }).map_err(|_| LaunchError::Stopped)?;
        answer.await.map_err(|_| LaunchError::Stopped)
    }
}

fn spawn_leader(command: &mut Command) -> io::Result<Child> {
    let parent = std::process::id();
    // SAFETY: between fork and exec the closure makes system calls only, all of them async-signal-safe.
    unsafe {
        command.pre_exec(move || lead_and_die_with(parent));
    }
    command.spawn()
}

/// Makes the calling process the leader of its own session and group, to be killed when its parent dies.
fn lead_and_die_with(parent: u32) -> io::Result<()> {
    // SAFETY: plain system calls without pointers.
    unsafe {
        if libc::setsid() == -1 {
            return Err(io::Error::last_os_error());
        }
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
            return Err(io::Error::last_os_error());
        }
        // the parent may have died before the line above
        if libc::getppid() as u32 != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
    }
    Ok(())
}

/// Ends a process whose launch was given up while it was being started.
fn abandon(mut child: Child) {
    if child.kill().is_ok() {
        // a killed process is gone at once
        let _ = child.wait();
    }
}
