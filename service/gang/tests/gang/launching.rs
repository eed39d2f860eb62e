//! A launcher that starts nothing: the test plays the ranks itself, and so can do what no honest rank does.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use gang::{Assignment, Error, Exit, LaunchError, LaunchedRank, Launcher, Member, MemberOptions, RankFailure};
use gang::{RankLaunch, Signal};
use tokio::sync::{mpsc, watch};

use crate::cluster::{Cluster, event, failure, job, options, started, within};

/// Hands every gang over to the test.
struct Handover {
    gangs: mpsc::UnboundedSender<Vec<Played>>,
    /// Ranks it says it started, if not as many as it was asked for.
    count: Option<usize>,
}

/// A rank's process as the test plays it.
#[derive(Clone)]
struct Played {
    launch: RankLaunch,
    exit: watch::Sender<Option<Exit>>,
}

#[async_trait]
impl Launcher for Handover {
    async fn launch(&self, ranks: Vec<RankLaunch>) -> Result<Vec<Box<dyn LaunchedRank>>, LaunchError> {
        let mut gang: Vec<Played> =
            ranks.into_iter().map(|launch| Played { launch, exit: watch::channel(None).0 }).collect();
        gang.truncate(self.count.unwrap_or(usize::MAX));
        self.gangs.send(gang.clone()).unwrap();
        Ok(gang.into_iter().map(|rank| Box::new(rank) as Box<dyn LaunchedRank>).collect())
    }
}

#[async_trait]
impl LaunchedRank for Played {
    fn pid(&self) -> Option<u32> {
        None
    }

    async fn wait(&self) -> Exit {
        self.exit.subscribe().wait_for(Option::is_some).await.unwrap().unwrap()
    }

    fn signal(&self, signal: Signal) {
        if signal == Signal::Kill {
            self.exit.send_replace(Some(Exit::Signal(9)));
        }
    }

    fn clear_stderr_tail(&self) {}

    async fn stderr_tail(&self) -> Vec<String> {
        vec![format!("rank {} says goodbye", self.launch.rank)]
    }
}

impl Played {
    fn exit(&self, code: i32) {
        self.exit.send_replace(Some(Exit::Code(code)));
    }

    fn options(&self) -> MemberOptions {
        MemberOptions {
            coordinator: self.launch.coordinator.clone(),
            job_id: self.launch.job_id.clone(),
            generation: self.launch.generation,
            rank: self.launch.rank,
            secret: self.launch.secret,
            reusable: false,
        }
    }

    async fn join(&self) -> Result<(Member, Assignment), Error> {
        within(10.0, Member::join(self.options(), format!("played-{}", self.launch.rank))).await
    }
}

async fn cluster(slots: usize, count: Option<usize>) -> (Cluster, mpsc::UnboundedReceiver<Vec<Played>>) {
    let (gangs, launched) = mpsc::unbounded_channel();
    let mut options = options(slots);
    options.start_timeout = Duration::from_secs(5);
    (Cluster::start_with(options, Arc::new(Handover { gangs, count })).await, launched)
}

fn refusal(joined: Result<(Member, Assignment), Error>) -> String {
    match joined {
        Err(Error::Refused { reason }) => reason,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it joined"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_of_an_older_generation_is_refused() {
    let (cluster, mut launched) = cluster(1, None).await;
    let mut patient = job(&["data"]);
    patient.max_restarts = 1;
    let mut job = cluster.handle.submit(patient).unwrap();
    let old = launched.recv().await.unwrap().remove(0);
    old.exit(4);
    let new = launched.recv().await.unwrap().remove(0);
    assert_eq!(new.launch.generation, 1);
    assert_eq!(refusal(old.join().await), "generation 0 joins, the job is at generation 1");
    let (member, assignment) = new.join().await.unwrap();
    started(&mut job).await;
    assert_eq!((assignment.generation, assignment.partition), (1, Bytes::from_static(b"data")));
    member.finish(Ok(Bytes::from_static(b"done"))).await.unwrap();
    new.exit(0);
    assert_eq!(within(5.0, job.wait()).await.unwrap(), "done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rank_that_joins_twice_or_does_not_exist_is_refused() {
    let (cluster, mut launched) = cluster(2, None).await;
    let mut job = cluster.submit(&["a", "b"]);
    let ranks = launched.recv().await.unwrap();
    let (first, second) = tokio::join!(ranks[0].join(), ranks[1].join());
    let members = (first.unwrap(), second.unwrap());
    started(&mut job).await;
    assert_eq!(refusal(ranks[0].join().await), "rank 0 has joined already");
    let nobody = MemberOptions { rank: 7, ..ranks[0].options() };
    assert_eq!(refusal(Member::join(nobody, "played-7".into()).await), "rank 7 joins, the job has 2 ranks");
    // a member whose gang ends under it would end this process
    drop(members);
    ranks.iter().for_each(|rank| rank.exit(0));
    failure(job).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_assigned_before_all_have_joined() {
    let (cluster, mut launched) = cluster(2, None).await;
    let mut job = cluster.submit(&["a", "b"]);
    let ranks = launched.recv().await.unwrap();
    let early = tokio::spawn({
        let rank = ranks[0].clone();
        async move { rank.join().await.map(|(member, assignment)| (member, assignment.addresses)) }
    });
    crate::cluster::until("rank 0 is seen", || cluster.handle.snapshot()[0].ranks[0].address.is_some()).await;
    assert!(!early.is_finished());
    let (_second, assignment) = ranks[1].join().await.unwrap();
    let (_first, addresses) = within(5.0, early).await.unwrap().unwrap();
    assert_eq!(addresses, ["played-0", "played-1"]);
    assert_eq!(addresses, assignment.addresses);
    started(&mut job).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_stay_taken_until_the_processes_are_gone() {
    let (cluster, mut launched) = cluster(1, None).await;
    let job = cluster.submit(&["a"]);
    let rank = launched.recv().await.unwrap().remove(0);
    let (member, _) = rank.join().await.unwrap();
    member.finish(Ok(Bytes::new())).await.unwrap();
    within(5.0, job.wait()).await.unwrap();
    let mut next = cluster.submit(&["b"]);
    event(&mut next, |event| matches!(event, gang::Event::Queued { .. }).then_some(())).await;
    assert!(launched.try_recv().is_err());
    rank.exit(0);
    within(5.0, launched.recv()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launcher_that_starts_too_few_fails_the_gang() {
    let (cluster, mut launched) = cluster(2, Some(1)).await;
    let error = failure(cluster.submit(&["a", "b"])).await;
    launched.recv().await.unwrap();
    let Error::Launch { source, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(**source, LaunchError::WrongCount { started: 1, expected: 2 }), "{source:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_before_joining_is_told_with_last_words() {
    let (cluster, mut launched) = cluster(2, None).await;
    let job = cluster.submit(&["a", "b"]);
    launched.recv().await.unwrap()[1].exit(127);
    let error = failure(job).await;
    let Error::RankFailed { rank: 1, cause: RankFailure::Exited { code: 127, stderr_tail }, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(stderr_tail, &["rank 1 says goodbye"]);
}
