//! Nothing is left behind by jobs. In a binary of its own: it counts what the whole process holds.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../gang/cluster.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use all of it")]
mod cluster;

use std::collections::HashSet;

use cluster::{Cluster, failure, options, started, until, within};

#[test]
fn rank_process() {
    cluster::run_rank_if_launched();
}

/// All children of this process, zombies included.
fn children() -> HashSet<u32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()).collect()
}

fn num_fds() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_jobs_leave_no_child_no_zombie_and_no_file_open() {
    let cluster = Cluster::start(options(2)).await;
    let round = async |round: usize| match round % 3 {
        0 => assert!(within(20.0, cluster.submit(&["ok", "ok"]).wait()).await.is_ok()),
        1 => drop(failure(cluster.submit(&["wait", "exit 1"])).await),
        _ => {
            let mut job = cluster.submit(&["wait", "sleep"]);
            started(&mut job).await;
            drop(job);
        }
    };
    for warm_up in 0..3 {
        round(warm_up).await;
    }
    cluster.all_ended().await;
    until("no child is left", || children().is_empty()).await;
    let before = num_fds();
    for number in 0..30 {
        round(number).await;
    }
    cluster.all_ended().await;
    assert_eq!(children(), HashSet::new());
    until("the files open are as before", || num_fds() <= before).await;
}
