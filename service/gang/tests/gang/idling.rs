//! Idle workers: leased to gangs, reused after success only, replaced when they die, ended with the service.

use gang::{Error, Options, RankFailure};

use crate::cluster::{Cluster, exists, failure, logged, options, started, until, within};

async fn cluster(slots: usize, warm_workers: usize) -> Cluster {
    let cluster = Cluster::start(Options { warm_workers, ..options(slots) }).await;
    ready(&cluster, warm_workers).await;
    cluster
}

async fn ready(cluster: &Cluster, count: usize) {
    until("the idle workers are ready", || cluster.handle.num_idle_workers() == count).await;
}

async fn pid(cluster: &Cluster, ranks: &[&str]) -> u32 {
    let output = within(20.0, cluster.submit(ranks).wait()).await.unwrap();
    String::from_utf8(output.to_vec()).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_used_again_after_a_success_with_the_new_jobs_lines_and_ranks() {
    let cluster = cluster(2, 1).await;
    let first = pid(&cluster, &["pid"]).await;
    ready(&cluster, 1).await;
    let second = pid(&cluster, &["pid"]).await;
    assert_eq!(first, second);
    ready(&cluster, 1).await;
    let mut job = cluster.submit(&["wait"]);
    started(&mut job).await;
    job.cancel("enough");
    logged(&mut job, "told: cancelled: enough").await;
    assert!(matches!(failure(job).await, Error::Cancelled { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_larger_than_the_pool_is_filled_up_with_fresh_processes() {
    let cluster = cluster(4, 2).await;
    let output = within(20.0, cluster.submit(&["ok", "ok", "ok"]).wait()).await.unwrap();
    assert_eq!(output, "0/3 spec address-of-0,address-of-0,address-of-2");
    ready(&cluster, 2).await;
    cluster.all_ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_a_failed_gang_is_not_used_again() {
    let cluster = cluster(2, 2).await;
    let before = pid(&cluster, &["pid", "ok"]).await;
    ready(&cluster, 2).await;
    let error = failure(cluster.submit(&["wait", "exit 3"])).await;
    let Error::RankFailed { rank: 1, cause: RankFailure::Exited { code: 3, stderr_tail }, .. } = &error else {
        panic!("{error:?}")
    };
    assert!(stderr_tail.contains(&"about to leave".to_string()));
    ready(&cluster, 2).await;
    let after = pid(&cluster, &["pid", "ok"]).await;
    assert_ne!(before, after);
    assert!(!exists(before));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_on_idle_workers_is_cancelled_like_any_other() {
    let cluster = cluster(2, 2).await;
    let mut job = cluster.submit(&["wait", "deaf"]);
    logged(&mut job, "deaf now").await;
    let pids = cluster.pids(job.job_id());
    cluster.handle.cancel(job.job_id(), "enough");
    assert!(matches!(within(4.0, failure(job)).await, Error::Cancelled { .. }));
    assert!(pids.iter().all(|pid| !exists(*pid)));
    ready(&cluster, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_idle_worker_is_replaced() {
    let cluster = cluster(1, 1).await;
    let before = pid(&cluster, &["pid"]).await;
    ready(&cluster, 1).await;
    // SAFETY: a plain system call, on a process this test had started.
    unsafe { libc::kill(before as i32, libc::SIGKILL) };
    until("the death is seen", || cluster.handle.num_idle_workers() == 0).await;
    ready(&cluster, 1).await;
    assert_ne!(pid(&cluster, &["pid"]).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_workers_end_with_the_service() {
    let cluster = cluster(1, 1).await;
    let worker = pid(&cluster, &["pid"]).await;
    ready(&cluster, 1).await;
    within(5.0, cluster.stop()).await;
    assert!(!exists(worker));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_jobs_in_turn_outlive_their_workers() {
    let cluster = cluster(2, 2).await;
    for _ in 0..100 {
        within(20.0, cluster.submit(&["ok", "ok"]).wait()).await.unwrap();
    }
    ready(&cluster, 2).await;
}
