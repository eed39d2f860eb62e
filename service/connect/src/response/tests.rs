use spark_connect_proto::execute_plan_response::{ArrowBatch, ExecutionProgress};

use super::*;

fn batch(bytes: usize) -> ExecutePlanResponse {
    let batch = ArrowBatch { data: vec![7; bytes].into(), ..ArrowBatch::default() };
    ExecutePlanResponse { response_type: Some(ResponseType::ArrowBatch(batch)), ..ExecutePlanResponse::default() }
}

fn progress(num_inflight_tasks: i64) -> ExecutePlanResponse {
    let progress = ExecutionProgress { stages: vec![], num_inflight_tasks };
    ExecutePlanResponse { response_type: Some(ResponseType::ExecutionProgress(progress)), ..Default::default() }
}

async fn read(log: &ResponseLog, cursor: &mut Cursor) -> ExecutePlanResponse {
    match log.next(cursor, Some(Instant::now() + Duration::from_secs(5))).await {
        Next::Response(response, _) => *response,
        _ => panic!("no response"),
    }
}

#[tokio::test]
async fn a_stream_goes_on_after_the_response_it_names() {
    let log = ResponseLog::new(1 << 20, 1 << 20);
    for bytes in [1, 2, 3] {
        log.push(batch(bytes)).await.unwrap();
    }
    let mut cursor = log.attach(None).unwrap();
    let first = read(&log, &mut cursor).await;
    let second = read(&log, &mut cursor).await;
    assert_ne!(first.response_id, second.response_id);

    let mut again = log.attach(Some(&first.response_id)).unwrap();
    assert_eq!(read(&log, &mut again).await, second);
    assert!(matches!(log.next(&mut cursor, None).await, Next::Disconnected));
}

#[tokio::test]
async fn responses_that_were_released_are_not_available() {
    let log = ResponseLog::new(1 << 20, 1 << 20);
    for bytes in [1, 2, 3] {
        log.push(batch(bytes)).await.unwrap();
    }
    let mut cursor = log.attach(None).unwrap();
    let first = read(&log, &mut cursor).await;
    let second = read(&log, &mut cursor).await;
    log.release_until(&second.response_id);
    assert!(matches!(log.attach(None), Err(Error::CursorNotAvailable { index: 1, .. })));
    assert!(matches!(log.attach(Some(&first.response_id)), Err(Error::CursorNotAvailable { index: 2, .. })));
    assert!(matches!(log.attach(Some("nope")), Err(Error::CursorNotFound { .. })));
    let mut cursor = log.attach(Some(&second.response_id)).unwrap();
    read(&log, &mut cursor).await;
}

#[tokio::test]
async fn a_release_of_what_was_not_sent_releases_only_what_was() {
    let log = ResponseLog::new(1 << 20, 1 << 20);
    log.push(batch(1)).await.unwrap();
    log.push(batch(2)).await.unwrap();
    let mut cursor = log.attach(None).unwrap();
    read(&log, &mut cursor).await;
    log.release_until(&log.response_id(2));
    read(&log, &mut cursor).await;
}

#[tokio::test]
async fn a_producer_waits_for_a_slow_client() {
    let log = Arc::new(ResponseLog::new(1000, 1 << 20));
    log.push(batch(1500)).await.unwrap();
    let producer = tokio::spawn({
        let log = Arc::clone(&log);
        async move { log.push(batch(10)).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(log.state.lock().entries.len(), 1);
    let mut cursor = log.attach(None).unwrap();
    read(&log, &mut cursor).await;
    producer.await.unwrap().unwrap();
    assert_eq!(log.state.lock().entries.len(), 2);
}

#[tokio::test]
async fn a_waiting_producer_ends_when_all_is_released() {
    let log = Arc::new(ResponseLog::new(1, 1));
    log.push(batch(1500)).await.unwrap();
    let producer = tokio::spawn({
        let log = Arc::clone(&log);
        async move { log.push(batch(10)).await }
    });
    tokio::task::yield_now().await;
    log.release_all();
    assert!(matches!(producer.await.unwrap(), Err(Error::Cancelled)));
}

#[tokio::test]
async fn what_was_sent_is_kept_up_to_a_limit() {
    let log = ResponseLog::new(1 << 20, 3000);
    let mut cursor = log.attach(None).unwrap();
    for _ in 0..10 {
        log.push(batch(1000)).await.unwrap();
        read(&log, &mut cursor).await;
    }
    let state = log.state.lock();
    assert!(state.sent_bytes <= 3000 && state.entries.len() == 2, "{} of {}", state.entries.len(), state.sent_bytes);
}

#[tokio::test]
async fn progress_reports_do_not_pile_up() {
    let log = ResponseLog::new(1 << 20, 1 << 20);
    for number in 0..100 {
        log.push_progress(progress(number));
    }
    let mut cursor = log.attach(None).unwrap();
    let last = read(&log, &mut cursor).await;
    assert_eq!(last.response_type, progress(99).response_type);
    log.push_progress(progress(100));
    assert_ne!(read(&log, &mut cursor).await.response_id, last.response_id);
}

#[tokio::test]
async fn the_end_comes_after_the_last_response_and_only_the_first_end_counts() {
    let log = ResponseLog::new(1 << 20, 1 << 20);
    log.push(batch(1)).await.unwrap();
    let report = Arc::new(Report::from(&Error::Cancelled));
    log.finish(End::Failed(report), None);
    log.finish(End::Completed, Some(batch(2)));
    assert!(log.push(batch(3)).await.is_err());
    let mut cursor = log.attach(None).unwrap();
    read(&log, &mut cursor).await;
    assert!(matches!(log.next(&mut cursor, None).await, Next::End(End::Failed(_))));
    assert!(matches!(log.next(&mut cursor, None).await, Next::End(End::Failed(_))));
}

#[tokio::test]
async fn a_wait_ends_at_its_deadline() {
    let log = ResponseLog::new(1, 1);
    let mut cursor = log.attach(None).unwrap();
    let deadline = Some(Instant::now() + Duration::from_millis(20));
    assert!(matches!(log.next(&mut cursor, deadline).await, Next::TimedOut));
    assert!(log.detached_for(Instant::now()).is_none());
    assert!(log.detach(&cursor));
    assert!(log.detached_for(Instant::now()).is_some());
}
