//! Made-up times and made-up gangs.

use std::time::{Duration, Instant};

use super::*;
use crate::launcher::Exit;

const START: Duration = Duration::from_secs(1000);

/// A gang of `num_ranks` that started at 1000 s, every rank launched, joined and seen at `seen_s` after that.
fn running(base: Instant, num_ranks: usize, seen_s: f64) -> Gang {
    let mut gang = Gang::new(0, num_ranks, base + START);
    gang.launch = Launch::Done;
    gang.partitions = Preparation::Done;
    gang.started = true;
    for (index, rank) in gang.ranks.iter_mut().enumerate() {
        rank.process = Process::Alive;
        rank.pid = Some(100 + index as u32);
        rank.address = Some(format!("address-{index}"));
        rank.last_seen = base + START + Duration::from_secs_f64(seen_s);
    }
    gang
}

fn after(base: Instant, seconds: f64) -> Instant {
    base + START + Duration::from_secs_f64(seconds)
}

fn secondary(gang: &mut Gang, rank: usize, at: Instant) {
    gang.ranks[rank].reported = true;
    let cause = RankFailure::Program {
        message: "peer lost".into(),
        class: "external".into(),
        detail: String::new(),
        is_echo: true,
    };
    gang.observations.push(Observation { rank, at, cause, weight: Weight::Secondary });
}

fn ended(actions: Vec<Action>) -> Verdict {
    match actions.as_slice() {
        [Action::End { verdict }] => verdict.clone(),
        other => panic!("expected an end, found {other:?}"),
    }
}

#[test]
fn a_gang_begins_only_when_all_ranks_have_joined() {
    let base = Instant::now();
    let mut gang = running(base, 2, 0.0);
    gang.started = false;
    gang.ranks[1].address = None;
    assert_eq!(decide(after(base, 1.0), &gang, &Options::default()), []);
    gang.ranks[1].address = Some("there".into());
    gang.launch = Launch::Pending;
    assert_eq!(decide(after(base, 1.0), &gang, &Options::default()), []);
    gang.launch = Launch::Done;
    assert_eq!(decide(after(base, 1.0), &gang, &Options::default()), [Action::Begin]);
}

#[test]
fn a_rank_that_does_not_join_in_time_ends_the_gang() {
    let base = Instant::now();
    let mut gang = running(base, 3, 29.9);
    gang.started = false;
    gang.ranks[1].address = None;
    assert_eq!(decide(after(base, 29.9), &gang, &Options::default()), []);
    let verdict = ended(decide(after(base, 30.0), &gang, &Options::default()));
    assert_eq!(verdict, Verdict::StartTimeout { joined: 2, missing: 1, after: Duration::from_secs(30) });
}

#[test]
fn a_silent_rank_is_stalled_and_a_finished_one_is_not() {
    let base = Instant::now();
    let mut gang = running(base, 2, 10.0);
    gang.ranks[0].last_seen = after(base, 0.0);
    gang.ranks[0].reported = true;
    gang.ranks[0].finished = true;
    assert_eq!(decide(after(base, 15.9), &gang, &Options::default()), []);
    let verdict = ended(decide(after(base, 16.0), &gang, &Options::default()));
    assert_eq!(verdict, Verdict::RankFailed { rank: 1, cause: RankFailure::Stalled { for_ms: 6000 } });
}

#[test]
fn a_silence_in_which_nobody_listened_is_forgiven() {
    let base = Instant::now();
    let mut gang = running(base, 2, 0.0);
    forgive(&mut gang, Duration::from_secs(7), after(base, 8.0));
    assert_eq!(decide(after(base, 12.9), &gang, &Options::default()), []);
    let verdict = ended(decide(after(base, 13.0), &gang, &Options::default()));
    assert!(matches!(verdict, Verdict::RankFailed { cause: RankFailure::Stalled { for_ms: 6000 }, .. }));
}

#[test]
fn the_earliest_primary_cause_wins_whatever_the_order_it_is_heard_in() {
    let base = Instant::now();
    let mut gang = running(base, 3, 1.0);
    gang.exited(2, Exit::Code(1), after(base, 1.2));
    gang.exited(0, Exit::Signal(9), after(base, 1.1));
    let verdict = ended(decide(after(base, 1.3), &gang, &Options::default()));
    let cause = RankFailure::Killed { signal: 9, stderr_tail: Vec::new() };
    assert_eq!(verdict, Verdict::RankFailed { rank: 0, cause });
}

#[test]
fn an_echo_waits_for_its_cause() {
    let base = Instant::now();
    let mut gang = running(base, 2, 1.0);
    secondary(&mut gang, 0, after(base, 1.0));
    assert_eq!(decide(after(base, 1.5), &gang, &Options::default()), []);
    gang.exited(1, Exit::Code(3), after(base, 1.6));
    let verdict = ended(decide(after(base, 1.6), &gang, &Options::default()));
    assert_eq!(
        verdict,
        Verdict::RankFailed { rank: 1, cause: RankFailure::Exited { code: 3, stderr_tail: Vec::new() } }
    );
}

#[test]
fn an_echo_without_a_cause_is_the_cause() {
    let base = Instant::now();
    let mut gang = running(base, 2, 2.0);
    secondary(&mut gang, 0, after(base, 1.0));
    let verdict = ended(decide(after(base, 2.0), &gang, &Options::default()));
    assert!(matches!(verdict, Verdict::RankFailed { rank: 0, cause: RankFailure::Program { .. } }));
}

#[test]
fn an_echo_blames_a_rank_that_is_suspiciously_silent() {
    let base = Instant::now();
    let mut gang = running(base, 2, 1.0);
    secondary(&mut gang, 0, after(base, 3.0));
    let verdict = ended(decide(after(base, 4.0), &gang, &Options::default()));
    assert_eq!(verdict, Verdict::RankFailed { rank: 1, cause: RankFailure::Stalled { for_ms: 3000 } });
}

#[test]
fn a_broken_stream_says_more_than_an_echo() {
    let base = Instant::now();
    let mut gang = running(base, 3, 2.0);
    secondary(&mut gang, 0, after(base, 1.0));
    gang.disconnected(2, after(base, 1.1));
    let verdict = ended(decide(after(base, 2.0), &gang, &Options::default()));
    let cause = RankFailure::Disconnected { stderr_tail: Vec::new() };
    assert_eq!(verdict, Verdict::RankFailed { rank: 2, cause });
}

#[test]
fn an_exit_after_the_outcome_is_no_failure() {
    let base = Instant::now();
    let mut gang = running(base, 2, 1.0);
    gang.ranks[1].reported = true;
    gang.ranks[1].finished = true;
    gang.exited(1, Exit::Code(1), after(base, 1.0));
    gang.disconnected(1, after(base, 1.0));
    assert_eq!(decide(after(base, 3.0), &gang, &Options::default()), []);
}

#[test]
fn all_finished_is_finished_and_a_cancellation_goes_before() {
    let base = Instant::now();
    let mut gang = running(base, 2, 1.0);
    for rank in &mut gang.ranks {
        rank.reported = true;
        rank.finished = true;
    }
    assert_eq!(ended(decide(after(base, 1.0), &gang, &Options::default())), Verdict::Finished);
    gang.cancel = Some("enough".into());
    let verdict = ended(decide(after(base, 1.0), &gang, &Options::default()));
    assert_eq!(verdict, Verdict::Cancelled { reason: "enough".into() });
}

#[test]
fn ranks_are_told_to_cancel_then_terminated_then_killed() {
    let base = Instant::now();
    let options = Options::default();
    let mut gang = running(base, 2, 1.0);
    gang.ending = Some(Ending { since: after(base, 1.0), peaceful: false, stalled: None });
    assert_eq!(decide(after(base, 1.1), &gang, &options), []);
    let both = |action: fn(usize) -> Action| [action(0), action(1)];
    assert_eq!(decide(after(base, 1.2), &gang, &options), both(|rank| Action::Terminate { rank }));
    gang.ranks.iter_mut().for_each(|rank| rank.told = Told::Terminate);
    assert_eq!(decide(after(base, 1.5), &gang, &options), []);
    assert_eq!(decide(after(base, 2.2), &gang, &options), both(|rank| Action::Kill { rank }));
    gang.ranks.iter_mut().for_each(|rank| rank.told = Told::Kill);
    assert_eq!(decide(after(base, 2.3), &gang, &options), []);
    let given_up = decide(after(base, 7.2), &gang, &options);
    let reason = "still there after SIGKILL: rank 0 (process 100), rank 1 (process 101)".to_string();
    assert_eq!(given_up, [Action::GiveUp { reason }]);
}

#[test]
fn a_stalled_rank_is_killed_at_once() {
    let base = Instant::now();
    let mut gang = running(base, 2, 1.0);
    gang.ending = Some(Ending { since: after(base, 7.0), peaceful: false, stalled: Some(1) });
    assert_eq!(decide(after(base, 7.0), &gang, &Options::default()), [Action::Kill { rank: 1 }]);
}

#[test]
fn slots_are_released_when_every_process_is_gone_and_not_before() {
    let base = Instant::now();
    let options = Options::default();
    let mut gang = running(base, 2, 1.0);
    gang.ending = Some(Ending { since: after(base, 1.0), peaceful: true, stalled: None });
    gang.ranks[0].process = Process::Gone { stderr_tail: Vec::new() };
    gang.ranks[1].process = Process::Exited(Exit::Code(0));
    assert_eq!(decide(after(base, 1.0), &gang, &options), []);
    gang.ranks[1].process = Process::Gone { stderr_tail: Vec::new() };
    assert_eq!(decide(after(base, 1.0), &gang, &options), [Action::Release]);
}

#[test]
fn a_gang_that_is_still_being_launched_is_not_released() {
    let base = Instant::now();
    let options = Options::default();
    let mut gang = Gang::new(0, 2, after(base, 0.0));
    gang.ending = Some(Ending { since: after(base, 1.0), peaceful: false, stalled: None });
    assert_eq!(decide(after(base, 9.0), &gang, &options), []);
    gang.launch = Launch::Failed;
    assert_eq!(decide(after(base, 9.0), &gang, &options), [Action::Release]);
}

#[test]
fn a_failed_launch_ends_the_gang() {
    let base = Instant::now();
    let mut gang = Gang::new(0, 2, after(base, 0.0));
    gang.launch = Launch::Failed;
    assert_eq!(ended(decide(after(base, 0.1), &gang, &Options::default())), Verdict::LaunchFailed);
}
