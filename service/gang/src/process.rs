//! Ranks as worker processes of this machine.

mod output;
mod spawner;
mod waiter;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;

use crate::launcher::{Exit, LaunchError, LaunchedRank, Launcher, RankLaunch, Signal};
use output::Output;
use spawner::Spawner;
use waiter::Waiter;

/// Starts each rank as `program args..`, with `env` and what the rank needs to join in its environment.
///
/// Every rank leads a session and process group of its own, so that its children end with it, and is killed by the
/// kernel when this process dies.
pub struct ProcessLauncher {
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    spawner: Arc<Spawner>,
}

impl ProcessLauncher {
    /// # Errors
    /// The thread that starts processes could not be started.
    pub fn new(
        program: PathBuf,
        args: Vec<String>,
        env: Vec<(String, String)>,
    ) -> Result<ProcessLauncher, LaunchError> {
        let spawner = Arc::new(Spawner::start().map_err(|source| LaunchError::Thread { source })?);
        Ok(ProcessLauncher { program, args, env, spawner })
    }

    /// Ranks run this very executable as `<executable> worker`.
    ///
    /// # Errors
    /// The thread that starts processes could not be started, or the executable cannot be found.
    pub fn this_executable(env: Vec<(String, String)>) -> Result<ProcessLauncher, LaunchError> {
        let program = std::env::current_exe().map_err(|source| LaunchError::Thread { source })?;
        ProcessLauncher::new(program, vec!["worker".to_string()], env)
    }

    async fn launch_rank(&self, launch: &RankLaunch) -> Result<RankProcess, LaunchError> {
        let spawn_error =
            |source| LaunchError::Spawn { rank: launch.rank, program: self.program.display().to_string(), source };
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .envs(launch.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.spawner.spawn(command).await?.map_err(spawn_error)?;
        let pipes = (child.stdout.take(), child.stderr.take());
        let waiter = Waiter::start(child, launch.rank).map_err(spawn_error)?;
        let output = Output::capture(pipes.0, pipes.1, launch.log.clone()).map_err(|source| {
            waiter.signal(Signal::Kill);
            spawn_error(source)
        })?;
        Ok(RankProcess { waiter, output, _spawner: Arc::clone(&self.spawner) })
    }
}

#[async_trait]
impl Launcher for ProcessLauncher {
    async fn launch(&self, ranks: Vec<RankLaunch>) -> Result<Vec<Box<dyn LaunchedRank>>, LaunchError> {
        let mut processes: Vec<RankProcess> = Vec::with_capacity(ranks.len());
        for launch in &ranks {
            match self.launch_rank(launch).await {
                Ok(process) => processes.push(process),
                Err(error) => {
                    for process in &processes {
                        process.signal(Signal::Kill);
                    }
                    for process in &processes {
                        process.wait().await;
                    }
                    return Err(error);
                }
            }
        }
        Ok(processes.into_iter().map(|process| Box::new(process) as Box<dyn LaunchedRank>).collect())
    }
}

struct RankProcess {
    waiter: Waiter,
    output: Output,
    /// The kernel kills the process when the thread that started it ends, so that thread must stay.
    _spawner: Arc<Spawner>,
}

#[async_trait]
impl LaunchedRank for RankProcess {
    fn pid(&self) -> Option<u32> {
        Some(self.waiter.pid())
    }

    async fn wait(&self) -> Exit {
        self.waiter.wait().await
    }

    fn signal(&self, signal: Signal) {
        self.waiter.signal(signal);
    }

    async fn stderr_tail(&self) -> Vec<String> {
        self.output.stderr_tail().await
    }

    fn clear_stderr_tail(&self) {
        self.output.clear_stderr_tail();
    }
}

impl Drop for RankProcess {
    fn drop(&mut self) {
        self.waiter.signal(Signal::Kill);
    }
}
