//! Starts gangs of threads.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use collective::{Address, Error, Group, Listener, Membership, Options};

pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub const SECRET: [u8; 32] = [7; 32];

/// Which ranks are on which host, as the gangs of the tests have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    One,
    /// Every rank has a host of its own.
    Each,
    /// Two ranks a host, side by side.
    Pairs,
    /// Even ranks on one host and odd ones on another.
    Interleaved,
}

pub const ALL_HOSTS: [Hosts; 4] = [Hosts::One, Hosts::Each, Hosts::Pairs, Hosts::Interleaved];

impl Hosts {
    pub fn of(self, rank: usize) -> usize {
        match self {
            Hosts::One => 0,
            Hosts::Each => rank,
            Hosts::Pairs => rank / 2,
            Hosts::Interleaved => rank % 2,
        }
    }
}

pub fn options() -> Options {
    Options { timeout: Duration::from_secs(20), connect_timeout: Duration::from_secs(20), ..Options::default() }
}

/// Small enough that messages of a few hundred values take the paths of long ones.
pub fn small_options() -> Options {
    Options { chunk_bytes: 4096, direct_bytes_max: 512, tree_bytes_max: 1024, ..options() }
}

/// A job id that no other test uses.
pub fn job_id() -> String {
    static NUM_JOBS: AtomicU64 = AtomicU64::new(0);
    format!("test-{}-{}", std::process::id(), NUM_JOBS.fetch_add(1, Ordering::Relaxed))
}

pub fn memberships(hosts: Hosts, world_size: usize) -> Vec<(Listener, Membership)> {
    let listeners: Vec<Listener> = (0..world_size).map(|_| Listener::bind(LOOPBACK).unwrap()).collect();
    let address = |(rank, listener): (usize, &Listener)| Address {
        host_id: format!("host-{}", hosts.of(rank)),
        socket: listener.address().socket,
    };
    let addresses: Vec<Address> = listeners.iter().enumerate().map(address).collect();
    let job_id = job_id();
    let membership = |rank| Membership {
        job_id: job_id.clone(),
        generation: 1,
        rank,
        world_size,
        secret: SECRET,
        addresses: addresses.clone(),
    };
    listeners.into_iter().enumerate().map(|(rank, listener)| (listener, membership(rank))).collect()
}

/// Joins a thread a rank and runs `program` on each. Returns what they return, by rank.
pub fn run<R: Send>(hosts: Hosts, world_size: usize, options: &Options, program: impl Fn(Group) -> R + Sync) -> Vec<R> {
    try_join(memberships(hosts, world_size), |_| options.clone(), |group| program(group.unwrap()))
}

/// As `run`, for gangs that fail at once: a rank that is late may learn of it while it joins.
pub fn run_to_failure(
    hosts: Hosts,
    world_size: usize,
    options: &Options,
    program: impl Fn(Group) -> Error + Sync,
) -> Vec<Error> {
    try_join(memberships(hosts, world_size), |_| options.clone(), |group| group.map_or_else(|error| error, &program))
}

pub fn try_join<R: Send>(
    memberships: Vec<(Listener, Membership)>,
    options: impl Fn(usize) -> Options + Sync,
    program: impl Fn(Result<Group, Error>) -> R + Sync,
) -> Vec<R> {
    std::thread::scope(|scope| {
        let (program, options) = (&program, &options);
        let ranks: Vec<_> = memberships
            .into_iter()
            .map(|(listener, membership)| {
                scope.spawn(move || program(listener.join(&options(membership.rank), membership)))
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}
