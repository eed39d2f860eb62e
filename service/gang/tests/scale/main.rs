//! The control plane with a thousand ranks: the rendezvous, the barrier that it is, the end, and a death before and after.
//!
//! The ranks train nothing and are tasks of this process, but each has its own control stream over loopback and all that
//! goes over it. In a binary of its own: it opens thousands of files and threads. Seconds are printed; what is asserted is a
//! bound far above them, so that a busy machine fails nothing.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod in_process;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gang::{BarrierJob, Error, Event, Options, RankFailure, RunningJob, Service};
use in_process::{DEATH_CODE, Death, InProcess, MOURNED, Seen, address_of};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;
use tonic::transport::server::TcpIncoming;

const NUM_RANKS: usize = 1000;
const SECONDS_MAX: f64 = 60.0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_ranks_meet_all_learn_the_same_addresses_and_finish() {
    let ran = run("whole", None).await;
    assert_eq!(ran.outcome.unwrap(), "rank 0 of generation 0");
    everybody_started(&ran.seen, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rank_that_dies_before_joining_is_named_and_the_next_generation_of_a_thousand_succeeds() {
    let ran = run("one dies before joining", Some((617, Death::BeforeJoining))).await;
    assert_eq!(ran.outcome.unwrap(), "rank 0 of generation 1");
    // Nobody was let go before all had joined, so nobody of generation 0 was.
    everybody_started(&ran.seen, 1);
    let alone = run_once("one dies before joining, no restart", Some((617, Death::BeforeJoining))).await;
    names_the_dead(alone, 617);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rank_that_dies_after_joining_is_named_and_the_next_generation_of_a_thousand_succeeds() {
    let ran = run(MOURNED, Some((303, Death::AfterJoining))).await;
    assert_eq!(ran.outcome.unwrap(), "rank 0 of generation 1");
    everybody_started(&ran.seen, 1);
    let alone = run_once(MOURNED, Some((303, Death::AfterJoining))).await;
    names_the_dead(alone, 303);
}

struct Ran {
    outcome: Result<Bytes, Error>,
    seen: Arc<Seen>,
}

async fn run(name: &str, death: Option<(usize, Death)>) -> Ran {
    drive(name, death, u32::from(death.is_some())).await
}

async fn run_once(name: &str, death: Option<(usize, Death)>) -> Ran {
    drive(name, death, 0).await
}

/// Runs one job of a thousand ranks and prints when it reached what.
async fn drive(name: &str, death: Option<(usize, Death)>, max_restarts: u32) -> Ran {
    // One after the other: together they would measure each other.
    static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = TURN.lock().await;
    let listener = listen();
    let options = Options {
        coordinator: format!("http://{}", listener.local_addr().unwrap()),
        slots: NUM_RANKS,
        start_timeout: Duration::from_secs_f64(SECONDS_MAX),
        stall_timeout: Duration::from_secs(20),
        ..Options::default()
    };
    let seen = Arc::new(Seen::default());
    let service = Service::new(options, Arc::new(InProcess { death, seen: Arc::clone(&seen) }));
    let handle = service.handle();
    let router = tonic::transport::Server::builder().add_service(service.grpc());
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let server = tokio::spawn(router.serve_with_incoming(incoming));
    let (shutdown, shut) = oneshot::channel();
    let service = tokio::spawn(service.run(shut));

    let job = BarrierJob {
        job_id: "scale".into(),
        name: name.into(),
        pool: "default".into(),
        num_ranks: NUM_RANKS,
        min_ranks: NUM_RANKS,
        program: "none".into(),
        spec: Bytes::from_static(b"spec"),
        partitions: Arc::new((0..NUM_RANKS).map(|rank| Bytes::from(format!("partition {rank}"))).collect::<Vec<_>>()),
        queue_deadline: None,
        max_restarts,
    };
    let since = Instant::now();
    let job = handle.submit(job).unwrap();
    let outcome = tokio::time::timeout(Duration::from_secs_f64(SECONDS_MAX), follow(name, since, job));
    let outcome = outcome.await.expect("a job of a thousand ranks takes seconds");
    if let Some(last) = seen.assignments.lock().iter().map(|started| started.at).max() {
        println!("{name}: {:.2} s until the last rank had all addresses", (last - since).as_secs_f64());
    }
    for (said, count) in seen.refusals.lock().iter() {
        println!("{name}: {count} ranks could not join: {said}");
    }
    shutdown.send(()).unwrap();
    service.await.unwrap();
    server.abort();
    Ran { outcome, seen }
}

/// The queue of connections that wait to be accepted holds all ranks: where it overflows the kernel drops some, which then
/// try again a second later, or are reset.
fn listen() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen(2 * NUM_RANKS as u32).unwrap()
}

async fn follow(name: &str, since: Instant, mut job: RunningJob) -> Result<Bytes, Error> {
    while let Some(event) = job.next_event().await {
        let seconds = since.elapsed().as_secs_f64();
        match event {
            Event::Starting { generation } => println!("{name}: {seconds:.2} s until generation {generation} starts"),
            Event::Started { generation } => println!("{name}: {seconds:.2} s until all of {generation} have joined"),
            Event::Finished { output } => {
                println!("{name}: {seconds:.2} s until the end");
                return Ok(output);
            }
            Event::Failed(error) => {
                println!("{name}: {seconds:.2} s until the end: {error}");
                return Err(error);
            }
            _ => {}
        }
    }
    panic!("the job ended without an event");
}

fn everybody_started(seen: &Seen, generation: u32) {
    let assignments = seen.assignments.lock();
    let of_it: Vec<_> = assignments.iter().filter(|started| started.assignment.generation == generation).collect();
    let ranks: HashSet<usize> = of_it.iter().map(|started| started.assignment.rank).collect();
    assert_eq!((of_it.len(), ranks.len()), (NUM_RANKS, NUM_RANKS), "not every rank was started once");
    let addresses: Vec<String> = (0..NUM_RANKS).map(address_of).collect();
    for started in of_it {
        let assignment = &started.assignment;
        assert!(started.joins >= NUM_RANKS, "rank {} went on before all had joined", assignment.rank);
        assert_eq!(assignment.world_size, NUM_RANKS);
        assert!(assignment.addresses == addresses, "rank {} got other addresses", assignment.rank);
        assert_eq!(assignment.partition, format!("partition {}", assignment.rank));
        assert_eq!(assignment.secret, assignments[0].assignment.secret);
    }
}

fn names_the_dead(ran: Ran, dead: usize) {
    match ran.outcome {
        Err(Error::RankFailed { rank, generation: 0, cause }) => {
            assert_eq!(rank, dead);
            assert!(matches!(cause, RankFailure::Exited { code: DEATH_CODE, .. } | RankFailure::Disconnected { .. }));
        }
        other => panic!("{other:?}"),
    }
}
