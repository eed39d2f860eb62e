//! Gangs that succeed.

use bytes::Bytes;
use gang::{Error, Event, Member, MemberOptions, Secret};

use crate::cluster::{Cluster, event, job, options, started, within};

#[tokio::test]
async fn ranks_learn_of_each_other_and_rank_0s_output_is_the_result() {
    for num_ranks in [1, 2, 4] {
        let cluster = Cluster::start(options(4)).await;
        let output = within(20.0, cluster.submit(&vec!["ok"; num_ranks]).wait()).await.unwrap();
        let addresses: Vec<String> = (0..num_ranks).map(|rank| format!("address-of-{rank}")).collect();
        assert_eq!(output, format!("0/{num_ranks} spec {}", addresses.join(",")));
        cluster.all_ended().await;
    }
}

#[tokio::test]
async fn events_come_in_the_order_of_a_jobs_life() {
    let cluster = Cluster::start(options(2)).await;
    let mut job = cluster.submit(&["report", "ok"]);
    let mut seen = Vec::new();
    while let Some(event) = within(20.0, job.next_event()).await {
        match event {
            Event::Starting { generation } => seen.push(format!("starting {generation}")),
            Event::Started { generation } => seen.push(format!("started {generation}")),
            Event::Progress { rank, progress } => {
                assert!(progress.loss.is_nan());
                assert_eq!(progress.metrics, [("auc".to_string(), 0.5)]);
                seen.push(format!("rank {rank} step {} of {}", progress.step, progress.steps_max));
            }
            Event::Finished { output } => seen.push(String::from_utf8(output.to_vec()).unwrap()),
            Event::Log { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    let expected =
        ["starting 0", "started 0", "rank 0 step 1 of 3", "rank 0 step 2 of 3", "rank 0 step 3 of 3", "reported"];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn printed_and_logged_lines_arrive_tagged_by_rank() {
    let cluster = Cluster::start(options(2)).await;
    let mut job = cluster.submit(&["sleep", "print 3"]);
    let mut wanted = vec!["out 0", "out 1", "out 2", "err last", "logged"];
    event(&mut job, |event| {
        if let Event::Log { rank: 1, line } = event {
            // the test harness that this worker runs in leaves its first line open
            wanted.retain(|text| !line.ends_with(text));
        }
        wanted.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn large_specs_and_outputs_pass_in_chunks() {
    let cluster = Cluster::start(options(2)).await;
    let mut large = job(&["spec-size", "ok"]);
    large.spec = Bytes::from(vec![1u8; 20_000_001]);
    let output = within(20.0, cluster.handle.submit(large).unwrap().wait()).await.unwrap();
    assert_eq!(output, "20000001");
    let output = within(20.0, cluster.submit(&["large 50000003", "large 5"]).wait()).await.unwrap();
    assert_eq!(output.len(), 50_000_003);
    assert!(output.iter().all(|byte| *byte == 7));
}

#[tokio::test]
async fn a_rank_that_never_yields_keeps_its_heartbeat() {
    let mut options = options(1);
    options.heartbeat_interval = std::time::Duration::from_millis(50);
    options.stall_timeout = std::time::Duration::from_millis(1000);
    let cluster = Cluster::start(options).await;
    let output = within(20.0, cluster.submit(&["busy 2500"]).wait()).await.unwrap();
    assert_eq!(output, "busy");
}

#[tokio::test]
async fn a_coordinator_that_was_away_blames_no_rank() {
    let mut options = options(2);
    options.stall_timeout = std::time::Duration::from_millis(600);
    options.heartbeat_interval = std::time::Duration::from_millis(100);
    let cluster = Cluster::start(options).await;
    let mut job = cluster.submit(&["busy 3000", "busy 3000"]);
    started(&mut job).await;
    // service, server and test share this one thread: none of them runs meanwhile
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(within(20.0, job.wait()).await.unwrap(), "busy");
}

#[tokio::test]
async fn each_job_has_a_secret_of_its_own() {
    let cluster = Cluster::start(options(1)).await;
    let first = within(20.0, cluster.submit(&["secret"]).wait()).await.unwrap();
    let second = within(20.0, cluster.submit(&["secret"]).wait()).await.unwrap();
    assert_eq!(first.len(), 64);
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_stranger_is_refused_and_the_gang_goes_on() {
    let cluster = Cluster::start(options(1)).await;
    let mut job = cluster.submit(&["wait"]);
    started(&mut job).await;
    let stranger = MemberOptions {
        coordinator: cluster.coordinator.clone(),
        job_id: job.job_id().to_string(),
        generation: 0,
        rank: 0,
        secret: Secret::from_bytes([0; 32]),
        reusable: false,
    };
    let unknown = MemberOptions { job_id: "no such job".into(), ..stranger.clone() };
    let mut reasons = Vec::new();
    for options in [stranger, unknown] {
        match within(10.0, Member::join(options, "elsewhere".into())).await {
            Err(Error::Refused { reason }) => reasons.push(reason),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("a stranger joined"),
        }
    }
    assert_eq!(reasons[0], reasons[1]);
    let views = cluster.handle.snapshot();
    assert_eq!(views[0].ranks[0].address.as_deref(), Some("address-of-0"));
}
