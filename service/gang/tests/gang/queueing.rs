//! Slots: all or nothing, first come first served.

use std::time::Duration;

use gang::{Error, Event, JobState, SlotRequest};

use crate::cluster::{Cluster, event, failure, job, options, started, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_that_can_never_fit_is_refused_at_once() {
    let cluster = Cluster::start(options(2)).await;
    let refused = cluster.handle.submit(job(&["ok", "ok", "ok"])).err().unwrap();
    assert!(matches!(refused, Error::NotEnoughSlots { needs: 3, has: 2 }), "{refused:?}");
    assert!(cluster.handle.snapshot().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_jobs_are_refused_at_once() {
    let cluster = Cluster::start(options(2)).await;
    let refused = cluster.handle.submit(job(&[])).err().unwrap();
    assert!(matches!(refused, Error::NoRanks), "{refused:?}");
    let mut greedy = job(&["ok", "ok"]);
    greedy.min_ranks = 3;
    let refused = cluster.handle.submit(greedy).err().unwrap();
    assert!(matches!(refused, Error::MinRanksOutOfRange { num_ranks: 2, min_ranks: 3 }), "{refused:?}");
    let mut lopsided = job(&["ok", "ok"]);
    lopsided.partitions = std::sync::Arc::new(vec![bytes::Bytes::from_static(b"ok")]);
    let refused = crate::cluster::failure(cluster.handle.submit(lopsided).unwrap()).await;
    assert!(matches!(refused, Error::PartitionsMismatch { num_ranks: 2, partitions: 1 }), "{refused:?}");
    let twice = job(&["sleep"]);
    let _first = cluster.handle.submit(twice.clone()).unwrap();
    let refused = cluster.handle.submit(twice).err().unwrap();
    assert!(matches!(refused, Error::DuplicateJob { .. }), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_refuses() {
    let mut options = options(1);
    options.queue_jobs_max = 1;
    let cluster = Cluster::start(options).await;
    let mut running = cluster.submit(&["sleep"]);
    started(&mut running).await;
    let _waiting = cluster.submit(&["ok"]);
    let refused = cluster.handle.submit(job(&["ok"])).err().unwrap();
    assert!(matches!(refused, Error::QueueFull { waiting: 1, max: 1 }), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_job_says_why_and_holds_nothing() {
    let cluster = Cluster::start(options(2)).await;
    let mut running = cluster.submit(&["sleep"]);
    started(&mut running).await;
    let mut first = cluster.submit(&["ok", "ok"]);
    let mut second = cluster.submit(&["ok", "ok"]);
    let reason = |event: &Event| match event {
        Event::Queued { reason } => Some(reason.clone()),
        _ => None,
    };
    assert_eq!(event(&mut first, reason).await, "needs 2 slots, 1 of 2 free");
    assert_eq!(event(&mut second, reason).await, "needs 2 slots, 1 of 2 free; 1 job ahead");
    let (state, reason) = cluster.state(second.job_id());
    assert_eq!((state, reason.as_str()), (JobState::Queued, "needs 2 slots, 1 of 2 free; 1 job ahead"));
    assert!(cluster.pids(first.job_id()).is_empty());
    drop(running);
    within(20.0, first.wait()).await.unwrap();
    within(20.0, second.wait()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_waits_past_its_deadline_fails() {
    let cluster = Cluster::start(options(1)).await;
    let mut running = cluster.submit(&["sleep"]);
    started(&mut running).await;
    let mut hasty = job(&["ok"]);
    hasty.queue_deadline = Some(Duration::from_millis(100));
    let error = failure(cluster.handle.submit(hasty).unwrap()).await;
    assert!(matches!(&error, Error::QueueTimeout { waited_ms: 100.., .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queued_job_is_cancelled_without_having_started() {
    let cluster = Cluster::start(options(1)).await;
    let mut running = cluster.submit(&["sleep"]);
    started(&mut running).await;
    let waiting = cluster.submit(&["ok"]);
    assert!(cluster.handle.cancel(waiting.job_id(), "not needed"));
    let job_id = waiting.job_id().to_string();
    let error = failure(waiting).await;
    assert!(matches!(&error, Error::Cancelled { reason } if reason == "not needed"), "{error:?}");
    assert_eq!(cluster.state(&job_id).0, JobState::Cancelled);
    assert!(!cluster.handle.cancel(&job_id, "again"));
    assert!(!cluster.handle.cancel("no such job", "why not"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gangs_that_need_all_slots_take_turns_without_deadlock() {
    let cluster = Cluster::start(options(2)).await;
    for round in 0..100 {
        let jobs = [cluster.submit(&["ok", "ok"]), cluster.submit(&["ok", "ok"])];
        for job in jobs {
            let result = within(20.0, job.wait()).await;
            assert!(result.is_ok(), "round {round}: {result:?}");
        }
    }
    cluster.all_ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_waits_for_gangs_and_gangs_for_it() {
    let cluster = Cluster::start(options(2)).await;
    let request = |job_id: &str, num_slots| SlotRequest {
        job_id: job_id.to_string(),
        name: "slots".to_string(),
        pool: "a pool of its own".to_string(),
        num_slots,
        queue_deadline: None,
    };
    let refused = cluster.handle.reserve(request("greedy", 3)).err().unwrap();
    assert!(matches!(refused, Error::NotEnoughSlots { needs: 3, has: 2 }), "{refused:?}");

    let mut gang = cluster.submit(&["sleep"]);
    started(&mut gang).await;
    let mut reservation = cluster.handle.reserve(request("slots", 2)).unwrap();
    let too_early = tokio::time::timeout(Duration::from_millis(300), reservation.granted()).await;
    assert!(too_early.is_err());
    drop(gang);
    within(5.0, reservation.granted()).await.unwrap();

    let mut waiting = cluster.submit(&["ok"]);
    let reason = |event: &Event| match event {
        Event::Queued { reason } => Some(reason.clone()),
        _ => None,
    };
    assert_eq!(event(&mut waiting, reason).await, "needs 1 slot, 0 of 2 free");
    drop(reservation);
    started(&mut waiting).await;
}
