//! Connects every pair of ranks. Each connection is made by a thread of its own, so that a slow or foreign one holds up
//! no other; this thread waits for all, and ends them when the join is decided.

use std::{
    collections::HashSet,
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use super::handshake::{Channel, Identity, Patient, Refusal};
use crate::{
    call::{Call, PULSE},
    error::{Error, Result},
    membership::Membership,
    topology::Topology,
    transport::poll::Interest,
};

/// Who connects and then says nothing is let go after this time.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a rank may refuse connections until it counts as lost: it listened before its address was published.
const REFUSED_TIMEOUT: Duration = Duration::from_secs(1);
/// Connections in the middle of a handshake, beyond those of the gang.
const NUM_STRANGERS_MAX: usize = 64;

pub(super) struct Meeting<'a> {
    call: &'a Call<'a>,
    membership: &'a Membership,
    identity: Identity,
    /// Connections that are still to come.
    missing: HashSet<(usize, u8)>,
    links: Vec<Option<TcpStream>>,
    /// The last peer that failed to prove that it knows the secret.
    unproven: Option<String>,
    num_handshakes: usize,
}

enum Event<'a> {
    Accepted(usize, Channel, Patient<'a>),
    Connected(usize, Channel, TcpStream),
    NotAccepted(String, Refusal),
    NotConnected(usize, Refusal),
}

impl<'a> Meeting<'a> {
    pub fn new(call: &'a Call<'a>, membership: &'a Membership, topology: &Topology, identity: Identity) -> Meeting<'a> {
        let leads = |rank: usize| topology.hosts[topology.host_of(rank)][0] == rank;
        let mut missing = HashSet::new();
        for peer in (0..membership.world_size).filter(|&peer| peer != membership.rank) {
            missing.insert((peer, Channel::Control as u8));
            if leads(peer) && leads(membership.rank) {
                missing.insert((peer, Channel::Data as u8));
            }
        }
        let links = (0..membership.world_size).map(|_| None).collect();
        Meeting { call, membership, identity, missing, links, unproven: None, num_handshakes: 0 }
    }

    /// Returns the data connections, by rank; the control connections are with `call.control`.
    pub fn run(mut self, listener: &TcpListener) -> Result<Vec<Option<TcpStream>>> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let (sender, events) = channel();
            for (peer, kind) in self.missing.clone() {
                if peer < self.membership.rank {
                    let kind = if kind == Channel::Data as u8 { Channel::Data } else { Channel::Control };
                    let (address, identity) = (self.membership.addresses[peer].socket, self.identity.clone());
                    let (sender, is_over) = (sender.clone(), &is_over);
                    let deadline = self.call.deadline();
                    scope.spawn(move || connect(&identity, peer, kind, address, deadline, is_over, &sender));
                }
            }
            let outcome = self.gather(scope, listener, &is_over, &sender, &events);
            is_over.store(true, Ordering::Relaxed);
            outcome
        })?;
        Ok(self.links)
    }

    fn gather<'scope, 'env>(
        &mut self,
        scope: &'scope thread::Scope<'scope, 'env>,
        listener: &TcpListener,
        is_over: &'env AtomicBool,
        sender: &Sender<Event<'env>>,
        events: &Receiver<Event<'env>>,
    ) -> Result<()> {
        loop {
            match events.try_recv() {
                Ok(event) => {
                    self.take(event)?;
                    continue;
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
            }
            if self.missing.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.call.pulse(|| self.missing_ranks()) {
                return Err(self.explain(error));
            }
            match listener.accept() {
                Ok((stream, address)) => {
                    if self.num_handshakes < self.membership.world_size * 2 + NUM_STRANGERS_MAX {
                        self.num_handshakes += 1;
                        let (identity, sender) = (self.identity.clone(), sender.clone());
                        let deadline = self.call.deadline().min(Instant::now() + HANDSHAKE_TIMEOUT);
                        scope.spawn(move || accept(&identity, stream, address, deadline, is_over, &sender));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut interest = Interest::default();
                    interest.acceptable(listener);
                    // Short: what the threads report does not wake this.
                    interest.wait(PULSE / 10).map_err(|source| Error::io("accept the other ranks", source))?;
                }
                // The connection that was to be accepted is gone; the next may be there.
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn take(&mut self, event: Event<'_>) -> Result<()> {
        match event {
            Event::Accepted(peer, channel, mut link) => {
                self.num_handshakes -= 1;
                // A second connection of the same rank is dropped, which tells the other end.
                if self.missing.contains(&(peer, channel as u8)) && self.identity.admit(&mut link).is_ok() {
                    self.keep(peer, channel, link.stream)?;
                }
            }
            Event::Connected(peer, channel, stream) => self.keep(peer, channel, stream)?,
            Event::NotAccepted(peer, refusal) => {
                self.num_handshakes -= 1;
                match refusal {
                    Refusal::Fatal(error) => return Err(error),
                    Refusal::Stranger => self.unproven = Some(peer),
                    Refusal::Broken(_) => {}
                }
            }
            Event::NotConnected(peer, refusal) => {
                return Err(match refusal {
                    Refusal::Fatal(error) => error,
                    Refusal::Stranger => Error::Authentication { peer: format!("rank {peer}") },
                    Refusal::Broken(source) if source.kind() == io::ErrorKind::TimedOut => self.timeout(),
                    Refusal::Broken(source) => self.call.lost(peer, source),
                });
            }
        }
        Ok(())
    }

    fn keep(&mut self, peer: usize, channel: Channel, stream: TcpStream) -> Result<()> {
        let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(None));
        set.and_then(|()| stream.set_write_timeout(None)).map_err(|source| Error::io("set up a connection", source))?;
        self.missing.remove(&(peer, channel as u8));
        match channel {
            Channel::Control => self.call.control.connect(peer, stream)?,
            Channel::Data => self.links[peer] = Some(stream),
        }
        Ok(())
    }

    fn missing_ranks(&self) -> Vec<usize> {
        let mut ranks: Vec<usize> = self.missing.iter().map(|&(peer, _)| peer).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    fn timeout(&self) -> Error {
        let error = Error::Timeout {
            collective: self.call.signature.collective(),
            waited_ms: self.call.waited().as_millis() as u64,
            missing: self.missing_ranks(),
        };
        self.explain(error)
    }

    /// A rank that is missing while somebody failed to prove himself has most likely another secret.
    fn explain(&self, error: Error) -> Error {
        match (error, &self.unproven) {
            (Error::Timeout { .. }, Some(peer)) => Error::Authentication { peer: peer.clone() },
            (Error::Timeout { collective, waited_ms, .. }, None) => {
                Error::Timeout { collective, waited_ms, missing: self.missing_ranks() }
            }
            (error, _) => error,
        }
    }
}

fn accept<'a>(
    identity: &Identity,
    stream: TcpStream,
    address: SocketAddr,
    deadline: Instant,
    is_over: &'a AtomicBool,
    sender: &Sender<Event<'a>>,
) {
    let blocking = stream.set_nonblocking(false);
    let mut link = Patient { stream, deadline, is_over };
    let outcome = blocking.map_err(Refusal::from).and_then(|()| identity.accept(&mut link));
    // Nobody listens any more when the join is over; the connection closes with the event.
    let _ = sender.send(match outcome {
        Ok((peer, channel)) => Event::Accepted(peer, channel, link),
        Err(refusal) => Event::NotAccepted(address.to_string(), refusal),
    });
}

fn connect<'a>(
    identity: &Identity,
    peer: usize,
    channel: Channel,
    address: SocketAddr,
    deadline: Instant,
    is_over: &'a AtomicBool,
    sender: &Sender<Event<'a>>,
) {
    let outcome = open(address, deadline, is_over).map_err(Refusal::from).and_then(|stream| {
        let mut link = Patient { stream, deadline, is_over };
        identity.connect(&mut link, peer, channel).map(|()| link.stream)
    });
    let _ = sender.send(match outcome {
        Ok(stream) => Event::Connected(peer, channel, stream),
        Err(refusal) => Event::NotConnected(peer, refusal),
    });
}

/// Connects, trying again while the host does not answer and, for a short time, while it refuses.
fn open(address: SocketAddr, deadline: Instant, is_over: &AtomicBool) -> io::Result<TcpStream> {
    let refused_deadline = deadline.min(Instant::now() + REFUSED_TIMEOUT);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || is_over.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left.min(Duration::from_secs(1))) {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
            Err(error) if Instant::now() >= refused_deadline => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}
