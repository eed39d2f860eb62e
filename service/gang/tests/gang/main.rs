//! Real gangs of real processes, on ephemeral ports.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod cluster;
mod failing;
mod idling;
mod launching;
mod queueing;
mod running;
mod stopping;

#[test]
fn rank_process() {
    cluster::run_rank_if_launched();
}

#[test]
fn coordinator_process() {
    stopping::run_coordinator_if_asked();
}
