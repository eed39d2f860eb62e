//! Gangs that fail: the first cause is told, nobody is left, in time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gang::{Error, Event, RankFailure, RunningJob};

use crate::cluster::{Cluster, event, exists, failure, job, options, started};

/// Waits for the failure, and sees that no process of the gang is left by then.
async fn failed(cluster: &Cluster, mut job: RunningJob, seconds_max: f64) -> (usize, u32, RankFailure) {
    started(&mut job).await;
    let since = Instant::now();
    let pids = cluster.pids(job.job_id());
    assert!(!pids.is_empty());
    let error = failure(job).await;
    assert!(since.elapsed().as_secs_f64() < seconds_max, "took {:?}", since.elapsed());
    for pid in pids {
        assert!(!exists(pid), "process {pid} is left");
    }
    match error {
        Error::RankFailed { rank, generation, cause } => (rank, generation, cause),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rank_that_exits_fails_its_gang_with_code_and_last_words() {
    let cluster = Cluster::start(options(2)).await;
    let (rank, generation, cause) = failed(&cluster, cluster.submit(&["wait", "exit 3"]), 3.0).await;
    assert_eq!((rank, generation), (1, 0));
    let RankFailure::Exited { code: 3, stderr_tail } = &cause else { panic!("{cause:?}") };
    assert_eq!(stderr_tail.iter().rev().take(2).rev().collect::<Vec<_>>(), ["first line", "about to leave"]);
    assert_eq!(cause.to_string(), "exited with code 3 before it finished; its last words: about to leave");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rank_that_exits_with_0_before_it_finished_has_failed() {
    let cluster = Cluster::start(options(2)).await;
    let (rank, _, cause) = failed(&cluster, cluster.submit(&["exit 0", "sleep"]), 3.0).await;
    assert!(matches!((rank, &cause), (0, RankFailure::Exited { code: 0, .. })), "{cause:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_rank_fails_its_gang() {
    let cluster = Cluster::start(options(2)).await;
    for ranks in [["kill", "sleep"], ["deaf", "kill"], ["kill", "wait"]] {
        let (rank, _, cause) = failed(&cluster, cluster.submit(&ranks), 3.0).await;
        assert_eq!(ranks[rank], "kill");
        assert!(matches!(&cause, RankFailure::Killed { signal: 9, .. }), "{cause:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_rank_fails_its_gang() {
    let cluster = Cluster::start(options(2)).await;
    let (rank, _, cause) = failed(&cluster, cluster.submit(&["sleep", "stop"]), 10.0).await;
    assert!(matches!((rank, &cause), (1, RankFailure::Stalled { for_ms: 6000..7000 })), "{cause:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_failure_is_told_in_its_own_words() {
    let cluster = Cluster::start(options(2)).await;
    let mut patient = job(&["sleep", "fail label 7 is not binary"]);
    patient.max_restarts = 3;
    let job = cluster.handle.submit(patient).unwrap();
    let (rank, generation, cause) = failed(&cluster, job, 3.0).await;
    assert_eq!((rank, generation), (1, 0), "the user's error must not be tried again");
    let (message, class, detail) = ("label 7 is not binary".into(), "user".into(), "the whole story".into());
    assert_eq!(cause, RankFailure::Program { message, class, detail, is_echo: false });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_echo_does_not_hide_the_death_behind_it() {
    let cluster = Cluster::start(options(2)).await;
    let mut job = cluster.submit(&["echo-failure lost rank 1", "sleep"]);
    started(&mut job).await;
    let pid = cluster.pids(job.job_id())[1];
    crate::cluster::until("rank 0 has reported", || {
        cluster.handle.snapshot()[0].ranks[0].state == gang::RankState::Gone
    })
    .await;
    // SAFETY: a plain system call, on a process this test had started.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    let error = failure(job).await;
    let Error::RankFailed { rank: 1, cause: RankFailure::Killed { signal: 9, .. }, .. } = &error else {
        panic!("{error:?}")
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_echo_alone_is_told_after_a_moment() {
    let cluster = Cluster::start(options(2)).await;
    let (rank, _, cause) = failed(&cluster, cluster.submit(&["echo-failure lost", "sleep"]), 4.0).await;
    assert!(matches!((rank, &cause), (0, RankFailure::Program { message, .. }) if message == "lost"), "{cause:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rank_that_leaves_its_stream_fails_its_gang() {
    let cluster = Cluster::start(options(2)).await;
    let (rank, _, cause) = failed(&cluster, cluster.submit(&["sleep", "leave"]), 4.0).await;
    assert!(matches!((rank, &cause), (1, RankFailure::Disconnected { .. })), "{cause:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_starts_again_with_the_next_generation() {
    let cluster = Cluster::start(options(2)).await;
    let mut patient = job(&["die-in-generation-0", "die-in-generation-0"]);
    patient.max_restarts = 1;
    let mut job = cluster.handle.submit(patient).unwrap();
    started(&mut job).await;
    let generation = event(&mut job, |event| match event {
        Event::Started { generation } => Some(*generation),
        _ => None,
    });
    assert_eq!(generation.await, 1);
    assert_eq!(job.wait().await.unwrap(), "generation 1");
}

/// Every rank of every generation gets data of its own.
#[derive(Debug)]
struct Numbered;

#[async_trait::async_trait]
impl gang::Partitions for Numbered {
    async fn prepare(
        &self,
        generation: u32,
        num_ranks: usize,
    ) -> Result<Vec<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
        match generation {
            2 => (0..num_ranks).map(|_| Ok(Bytes::from_static(b"ok"))).collect(),
            _ => (0..num_ranks).map(|_| Ok(Bytes::from_static(b"kill"))).collect(),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_elastic_gang_goes_on_with_the_ranks_that_are_left() {
    let cluster = Cluster::start(options(4)).await;
    let mut elastic = job(&["", "", "", ""]);
    (elastic.min_ranks, elastic.max_restarts, elastic.partitions) = (2, 2, Arc::new(Numbered));
    let mut job = cluster.handle.submit(elastic).unwrap();
    let restarting = async |job: &mut RunningJob| {
        event(job, |event| match event {
            Event::Restarting { generation, cause } => Some((*generation, cause.to_string())),
            _ => None,
        })
        .await
    };
    for expected in 0..2 {
        let (generation, cause) = restarting(&mut job).await;
        assert_eq!(generation, expected);
        assert!(cause.contains("was killed by signal 9"), "{cause}");
    }
    let output = String::from_utf8(job.wait().await.unwrap().to_vec()).unwrap();
    assert!(output.starts_with("0/2 "), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_that_is_cancelled_in_its_pause_is_cancelled() {
    let mut options = options(1);
    options.restart_pause = Duration::from_secs(5);
    let cluster = Cluster::start(options).await;
    let mut patient = job(&["exit 5"]);
    patient.max_restarts = 2;
    let mut job = cluster.handle.submit(patient).unwrap();
    event(&mut job, |event| matches!(event, Event::Restarting { .. }).then_some(())).await;
    job.cancel("enough");
    let error = crate::cluster::within(2.0, job.wait()).await.unwrap_err();
    assert!(matches!(&error, Error::Cancelled { reason } if reason == "enough"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_whose_restarts_are_spent_fails() {
    let cluster = Cluster::start(options(1)).await;
    let mut patient = job(&["exit 5"]);
    patient.max_restarts = 2;
    let error = failure(cluster.handle.submit(patient).unwrap()).await;
    let text = "rank 0 of generation 0 exited with code 5 before it finished; its last words: about to leave; \
                started again 2 times, at last rank 0 of generation 2 exited with code 5 before it finished; \
                its last words: about to leave";
    assert_eq!(error.to_string(), text);
    assert!(error.retryable());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_that_never_join_fail_their_gang() {
    let mut options = options(2);
    options.start_timeout = Duration::from_millis(300);
    let cluster = Cluster::start_with_env(options, &[("RANK_NEVER_JOINS", "1")]).await;
    let error = failure(cluster.submit(&["ok", "ok"])).await;
    assert!(matches!(&error, Error::StartTimeout { joined: 0, num_ranks: 2, .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_cannot_be_started_fails_its_gang() {
    let cluster = Cluster::start_program(options(2), "/no/such/program".into()).await;
    let error = failure(cluster.submit(&["ok", "ok"])).await;
    assert!(matches!(&error, Error::Launch { generation: 0, .. }), "{error:?}");
    assert_eq!(cluster.handle.snapshot()[0].state, gang::JobState::Failed);
}
