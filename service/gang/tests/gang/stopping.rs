//! Gangs that are no longer wanted: cancelled, dropped, shut down, or without a coordinator.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use gang::{Error, Event, JobState};

use crate::cluster::{Cluster, event, exists, failure, logged, options, runs, started, until, within};

const COORDINATOR_VARIABLE: &str = "RUN_AS_COORDINATOR";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_job_is_cancelled_and_its_ranks_hear_why() {
    let cluster = Cluster::start(options(2)).await;
    let mut job = cluster.submit(&["wait", "deaf"]);
    logged(&mut job, "deaf now").await;
    let pids = cluster.pids(job.job_id());
    assert_eq!(pids.len(), 2);
    let job_id = job.job_id().to_string();
    assert!(cluster.handle.cancel(&job_id, "enough"));
    logged(&mut job, "told: cancelled: enough").await;
    let error = within(4.0, failure(job)).await;
    assert!(matches!(&error, Error::Cancelled { reason } if reason == "enough"), "{error:?}");
    assert!(pids.iter().all(|pid| !exists(*pid)));
    assert_eq!(cluster.state(&job_id).0, JobState::Cancelled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_job_ends_its_processes_and_theirs() {
    let cluster = Cluster::start(options(2)).await;
    let mut job = cluster.submit(&["deaf", "child"]);
    let child = event(&mut job, |event| match event {
        Event::Log { line, .. } => line.strip_prefix("child ").map(|pid| pid.parse::<u32>().unwrap()),
        _ => None,
    })
    .await;
    let pids = cluster.pids(job.job_id());
    assert!(runs(child));
    drop(job);
    within(5.0, until("all processes are gone", || !runs(child) && pids.iter().all(|pid| !exists(*pid)))).await;
    cluster.all_ended().await;
    within(20.0, cluster.submit(&["ok", "ok"]).wait()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_dropped_at_once_leaves_nothing() {
    let cluster = Cluster::start(options(2)).await;
    for _ in 0..10 {
        drop(cluster.submit(&["sleep", "sleep"]));
    }
    within(10.0, cluster.all_ended()).await;
    assert!(cluster.handle.snapshot().iter().all(|view| view.state == JobState::Cancelled));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_ends_all_jobs_and_refuses_new_ones() {
    let cluster = Cluster::start(options(2)).await;
    let mut running = cluster.submit(&["deaf", "sleep"]);
    logged(&mut running, "deaf now").await;
    let pids = cluster.pids(running.job_id());
    let waiting = cluster.submit(&["ok"]);
    let handle = cluster.handle.clone();
    within(5.0, cluster.stop()).await;
    assert!(pids.iter().all(|pid| !exists(*pid)));
    assert!(matches!(failure(running).await, Error::Cancelled { .. }));
    assert!(matches!(failure(waiting).await, Error::ShuttingDown));
    let refused = handle.submit(crate::cluster::job(&["ok"])).err().unwrap();
    assert!(matches!(refused, Error::ShuttingDown), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_dropped_kills_its_ranks_and_wakes_its_callers() {
    let cluster = Cluster::start(options(2)).await;
    let mut job = cluster.submit(&["deaf", "sleep"]);
    logged(&mut job, "deaf now").await;
    let pids = cluster.pids(job.job_id());
    drop(cluster);
    assert!(matches!(within(5.0, failure(job)).await, Error::ShuttingDown));
    within(5.0, until("all processes are gone", || pids.iter().all(|pid| !exists(*pid)))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_do_not_outlive_a_killed_coordinator() {
    let mut coordinator = Command::new(std::env::current_exe().unwrap())
        .args(["coordinator_process", "--exact", "--nocapture", "--test-threads=1"])
        .env(COORDINATOR_VARIABLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(coordinator.stdout.take().unwrap()).lines();
    let pids = lines.map(Result::unwrap).find_map(|line| line.split_once("pids: ").map(|(_, pids)| pids.to_string()));
    let pids: Vec<u32> = pids.unwrap().split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| runs(*pid)));
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    within(5.0, until("no rank is left", || pids.iter().all(|pid| !runs(*pid)))).await;
}

/// The body of the process that the test above kills.
pub fn run_coordinator_if_asked() {
    if std::env::var(COORDINATOR_VARIABLE).is_err() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let cluster = Cluster::start(options(2)).await;
        let mut job = cluster.submit(&["deaf", "sleep"]);
        started(&mut job).await;
        let pids: Vec<String> = cluster.pids(job.job_id()).iter().map(u32::to_string).collect();
        println!("pids: {}", pids.join(" "));
        std::io::stdout().flush().unwrap();
        std::future::pending::<()>().await;
    });
}
