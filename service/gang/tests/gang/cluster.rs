//! A coordinator on an ephemeral port, and worker processes that are this very test binary.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gang::{BarrierJob, Error, Event, Handle, JobState, Options, ProcessLauncher, Progress, RunningJob, Service};
use gang::{Failure, Launcher, Member, MemberOptions};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;

/// The test that is no test: the body of a rank's process.
pub const RANK_ENTRY: &str = "rank_process";

pub struct Cluster {
    pub handle: Handle,
    pub coordinator: String,
    shutdown: Option<oneshot::Sender<()>>,
    service: JoinHandle<()>,
    server: JoinHandle<()>,
}

pub fn options(slots: usize) -> Options {
    Options { slots, ..Options::default() }
}

impl Cluster {
    pub async fn start(options: Options) -> Cluster {
        Cluster::launch(options, std::env::current_exe().unwrap(), &[]).await
    }

    pub async fn start_with_env(options: Options, env: &[(&str, &str)]) -> Cluster {
        Cluster::launch(options, std::env::current_exe().unwrap(), env).await
    }

    pub async fn start_program(options: Options, program: PathBuf) -> Cluster {
        Cluster::launch(options, program, &[]).await
    }

    async fn launch(options: Options, program: PathBuf, env: &[(&str, &str)]) -> Cluster {
        let args = [RANK_ENTRY, "--exact", "--nocapture", "--test-threads=1"].map(String::from).to_vec();
        let env = env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Cluster::start_with(options, Arc::new(ProcessLauncher::new(program, args, env).unwrap())).await
    }

    pub async fn start_with(mut options: Options, launcher: Arc<dyn Launcher>) -> Cluster {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let coordinator = format!("http://{}", listener.local_addr().unwrap());
        options.coordinator = coordinator.clone();
        let service = Service::new(options, launcher);
        let handle = service.handle();
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let router = tonic::transport::Server::builder().add_service(service.grpc());
        let server = tokio::spawn(async move {
            router.serve_with_incoming(incoming).await.unwrap();
        });
        let (shutdown, shut) = oneshot::channel();
        let service = tokio::spawn(service.run(shut));
        Cluster { handle, coordinator, shutdown: Some(shutdown), service, server }
    }

    /// Submits a job whose ranks each do what their partition says.
    pub fn submit(&self, ranks: &[&str]) -> RunningJob {
        self.handle.submit(job(ranks)).unwrap()
    }

    pub fn pids(&self, job_id: &str) -> Vec<u32> {
        let views = self.handle.snapshot();
        let view = views.iter().find(|view| view.job_id == job_id).unwrap();
        view.ranks.iter().filter_map(|rank| rank.pid).collect()
    }

    pub async fn all_ended(&self) {
        until("all jobs have ended", || self.handle.snapshot().iter().all(|view| view.state.is_ended())).await;
    }

    pub fn state(&self, job_id: &str) -> (JobState, String) {
        let views = self.handle.snapshot();
        let view = views.iter().find(|view| view.job_id == job_id).unwrap();
        (view.state, view.reason.clone())
    }

    pub async fn stop(mut self) {
        self.shutdown.take().unwrap().send(()).unwrap();
        (&mut self.service).await.unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.service.abort();
        self.server.abort();
    }
}

pub fn job(ranks: &[&str]) -> BarrierJob {
    static JOBS: AtomicUsize = AtomicUsize::new(0);
    BarrierJob {
        job_id: format!("job-{}", JOBS.fetch_add(1, Ordering::Relaxed)),
        name: "a test's job".into(),
        pool: "default".into(),
        num_ranks: ranks.len(),
        min_ranks: ranks.len(),
        program: "script".into(),
        spec: Bytes::from_static(b"spec"),
        partitions: Arc::new(ranks.iter().map(|line| Bytes::copy_from_slice(line.as_bytes())).collect::<Vec<_>>()),
        queue_deadline: None,
        max_restarts: 0,
    }
}

/// Waits for the first event `wanted` takes, and returns what it makes of it.
pub async fn event<T>(job: &mut RunningJob, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
    let find = async {
        loop {
            let event = job.next_event().await.expect("the job ended before the event");
            if let Some(found) = wanted(&event) {
                return found;
            }
            if let Event::Failed(error) = event {
                panic!("the job failed: {error:?}");
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), find).await.expect("no such event within 30 s")
}

pub async fn started(job: &mut RunningJob) {
    event(job, |event| matches!(event, Event::Started { .. }).then_some(())).await;
}

pub async fn logged(job: &mut RunningJob, text: &str) {
    event(job, |event| matches!(event, Event::Log { line, .. } if line.contains(text)).then_some(())).await;
}

pub async fn failure(job: RunningJob) -> Error {
    within(20.0, job.wait()).await.expect_err("the job succeeded")
}

pub async fn within<T>(seconds: f64, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs_f64(seconds), work)
        .await
        .unwrap_or_else(|_| panic!("not done within {seconds} s"))
}

/// Polls: for what no event tells.
pub async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process runs; a zombie does not.
pub fn runs(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with('Z'))
}

/// Whether a process exists, if only as a zombie.
pub fn exists(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// What `rank_process` does when this process was launched as a rank.
pub fn run_rank_if_launched() {
    let Ok(options) = MemberOptions::from_env() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let code = runtime.block_on(async move {
        if std::env::var("RANK_NEVER_JOINS").is_ok() {
            std::future::pending::<()>().await;
        }
        loop {
            let code = match Member::join(options.clone(), format!("address-of-{}", options.rank)).await {
                Ok((member, assignment)) => run_script(member, assignment).await,
                Err(error) => {
                    eprintln!("not joined: {error}");
                    71
                }
            };
            if code != 0 || !options.reusable {
                return code;
            }
        }
    });
    std::process::exit(code);
}

async fn run_script(member: Member, assignment: gang::Assignment) -> i32 {
    let line = String::from_utf8(assignment.partition.to_vec()).unwrap();
    let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
    let fail = |secondary| {
        Err(Failure { message: rest.into(), class: "user".into(), detail: "the whole story".into(), secondary })
    };
    let result = match verb {
        "ok" => {
            let spec = String::from_utf8_lossy(&assignment.spec).to_string();
            Ok(format!("{}/{} {spec} {}", assignment.rank, assignment.world_size, assignment.addresses.join(",")))
        }
        "secret" => Ok(assignment.secret.iter().map(|byte| format!("{byte:02x}")).collect()),
        "pid" => Ok(std::process::id().to_string()),
        "fail" => fail(false),
        "echo-failure" => fail(true),
        "exit" => {
            eprintln!("first line");
            eprintln!("about to leave");
            std::process::exit(rest.parse().unwrap());
        }
        "kill" => signal_self(libc::SIGKILL),
        "stop" => signal_self(libc::SIGSTOP),
        "leave" => {
            drop(member);
            return std::future::pending().await;
        }
        "sleep" => std::future::pending().await,
        "deaf" => {
            // SAFETY: sets a disposition.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
            member.log("deaf now");
            std::future::pending().await
        }
        "child" => {
            #[expect(clippy::zombie_processes, reason = "that the launcher ends it is what is tested")]
            let child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
            member.log(format!("child {}", child.id()));
            std::future::pending().await
        }
        "wait" => {
            let reason = member.cancelled().await;
            println!("told: {reason}");
            Err(Failure { message: reason, secondary: true, ..Failure::default() })
        }
        "busy" => {
            // nothing yields: the heartbeats must not depend on this runtime
            let since = Instant::now();
            while since.elapsed() < Duration::from_millis(rest.parse().unwrap()) {
                std::hint::spin_loop();
            }
            Ok("busy".into())
        }
        "print" => {
            for i in 0..rest.parse::<usize>().unwrap() {
                println!("out {i}");
            }
            eprintln!("err last");
            member.log("logged");
            Ok("printed".into())
        }
        "report" => {
            for step in 1..=3 {
                let metrics = vec![("auc".to_string(), 0.5)];
                member.report(Progress { step, steps_max: 3, rows: 10 * step, loss: f64::NAN, metrics });
            }
            Ok("reported".into())
        }
        "large" => {
            let bytes = vec![7u8; rest.parse().unwrap()];
            member.finish(Ok(bytes.into())).await.unwrap();
            return 0;
        }
        "spec-size" => Ok(assignment.spec.len().to_string()),
        "die-in-generation-0" if assignment.generation == 0 => std::process::exit(9),
        "die-in-generation-0" => Ok(format!("generation {}", assignment.generation)),
        other => panic!("no such verb: {other}"),
    };
    match member.finish(result.map(Bytes::from)).await {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            72
        }
    }
}

fn signal_self(signal: i32) -> ! {
    // SAFETY: a plain system call.
    unsafe { libc::kill(libc::getpid(), signal) };
    // another thread may take the signal, and this one run on for a moment
    loop {
        std::thread::park();
    }
}
