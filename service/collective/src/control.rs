//! The connection that every pair of ranks keeps beside the data: how a rank tells why it failed, says that it leaves,
//! and how its death is seen.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    control::notice::Notice,
    error::{Error, Result},
    transport::poll::Interest,
};

pub(crate) mod notice;

#[derive(Debug)]
pub(crate) struct Control {
    rank: usize,
    /// By rank; this rank's own place stays empty.
    peers: Vec<OnceLock<Peer>>,
    /// The first cause; once it is there it stays.
    failure: Mutex<Option<Error>>,
    failed: AtomicBool,
}

#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    /// Bytes of a notice that has not arrived as a whole. Also keeps notices read by one thread at a time.
    inbox: Mutex<Inbox>,
    outbox: Mutex<()>,
    /// The last call in which the peer said it was waiting for others.
    waiting_in_call: AtomicU64,
}

#[derive(Debug, Default)]
struct Inbox {
    bytes: Vec<u8>,
    /// After how many calls the peer left in good order.
    left_after: Option<u64>,
    segment_name: Option<String>,
    ready: bool,
    /// Kept, because a waiting rank may find that it has what it waited for and go on.
    failure: Option<Error>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these mutexes guard is whole after every statement, so a panic elsewhere spoils nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Control {
    pub fn new(rank: usize, world_size: usize) -> Control {
        Control {
            rank,
            peers: (0..world_size).map(|_| OnceLock::new()).collect(),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
        }
    }

    pub fn connect(&self, rank: usize, stream: TcpStream) -> Result<()> {
        stream.set_nonblocking(true).map_err(|source| Error::io("set a connection to non-blocking", source))?;
        let peer = Peer { stream, inbox: Mutex::default(), outbox: Mutex::new(()), waiting_in_call: AtomicU64::new(0) };
        // The join takes one control connection from each rank.
        let taken = self.peers[rank].set(peer);
        debug_assert!(taken.is_ok(), "a second control connection of one rank");
        Ok(())
    }

    fn peers(&self) -> impl Iterator<Item = (usize, &Peer)> {
        self.peers.iter().enumerate().filter_map(|(rank, peer)| Some((rank, peer.get()?)))
    }

    /// Lets a `poll` also wake for what peers tell. Those that have left would wake it for ever.
    pub fn watch(&self, interest: &mut Interest) {
        for (_, peer) in self.peers().filter(|(_, peer)| lock(&peer.inbox).left_after.is_none()) {
            interest.readable(&peer.stream);
        }
    }

    pub fn failure(&self) -> Option<Error> {
        if self.failed.load(Ordering::Acquire) { lock(&self.failure).clone() } else { None }
    }

    /// Keeps `error` if it is the first, tells it to all peers, and returns the first one.
    pub fn fail(&self, error: Error) -> Error {
        let first = {
            let mut failure = lock(&self.failure);
            if let Some(first) = &*failure {
                return first.clone();
            }
            *failure = Some(error.clone());
            self.failed.store(true, Ordering::Release);
            error
        };
        self.tell_all(&Notice::Failed(first.clone()));
        first
    }

    pub fn tell_all(&self, notice: &Notice) {
        for (rank, _) in self.peers() {
            self.tell(rank, notice);
        }
    }

    /// Best effort: a peer that does not take it is dead or will see this rank's connection close.
    pub fn tell(&self, rank: usize, notice: &Notice) {
        let Some(peer) = self.peers.get(rank).and_then(OnceLock::get) else { return };
        let _turn = lock(&peer.outbox);
        let bytes = notice.to_bytes(self.rank);
        let mut rest = bytes.as_slice();
        let give_up = Instant::now() + Duration::from_millis(100);
        while !rest.is_empty() && Instant::now() < give_up {
            match (&peer.stream).write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Takes in what peers have told.
    ///
    /// # Errors
    /// This group's first failure; a failure a peer tells of; a peer that is gone, or that left before call `sequence`.
    /// What a peer tells goes before what a closed connection shows, as it says why.
    pub fn check(&self, sequence: u64) -> Result<()> {
        if let Some(error) = self.failure() {
            return Err(error);
        }
        let mut gone = None;
        for (rank, peer) in self.peers() {
            let mut inbox = lock(&peer.inbox);
            let outcome = peer.read(rank, &mut inbox);
            if let Some(failure) = &inbox.failure {
                return Err(failure.clone());
            }
            let source = match (outcome, inbox.left_after) {
                (_, Some(calls)) if calls < sequence => {
                    io::Error::new(io::ErrorKind::NotConnected, format!("it left after {calls} calls"))
                }
                (Err(source), None) => source,
                _ => continue,
            };
            gone.get_or_insert(Error::lost(rank, source));
        }
        gone.map_or(Ok(()), Err)
    }

    /// The reason why the data connection to `rank` broke: that the peer gave, or else that it is lost.
    pub fn why_lost(&self, rank: usize, sequence: u64, source: io::Error) -> Error {
        let give_up = Instant::now() + Duration::from_millis(200);
        while Instant::now() < give_up {
            if let Err(error) = self.check(sequence) {
                return error;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Error::lost(rank, source)
    }

    /// The peers that have not said that they are waiting in call `sequence`.
    pub fn silent_ranks(&self, sequence: u64) -> Vec<usize> {
        self.peers()
            .filter(|(_, peer)| {
                let left_in_time = lock(&peer.inbox).left_after.is_some_and(|calls| calls >= sequence);
                peer.waiting_in_call.load(Ordering::Relaxed) < sequence && !left_in_time
            })
            .map(|(rank, _)| rank)
            .collect()
    }

    pub fn segment_name(&self, leader: usize) -> Option<String> {
        lock(&self.peers.get(leader)?.get()?.inbox).segment_name.clone()
    }

    pub fn is_ready(&self, rank: usize) -> bool {
        rank == self.rank || self.peers[rank].get().is_some_and(|peer| lock(&peer.inbox).ready)
    }
}

impl Peer {
    /// Reads what is there. An error means that the connection is gone.
    fn read(&self, rank: usize, inbox: &mut Inbox) -> io::Result<()> {
        let mut piece = [0; 1024];
        let mut end = None;
        loop {
            match (&self.stream).read(&mut piece) {
                Ok(0) => end = Some(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed its connection")),
                Ok(read) => inbox.bytes.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => end = Some(error),
            }
            while let Some((notice, used)) = Notice::from_bytes(&inbox.bytes, rank)? {
                inbox.bytes.drain(..used);
                match notice {
                    Notice::Failed(error) => inbox.failure = Some(error),
                    Notice::Waiting { call } => self.waiting_in_call.store(call, Ordering::Relaxed),
                    Notice::Leaving { calls } => inbox.left_after = Some(calls),
                    Notice::Segment { name } => inbox.segment_name = Some(name),
                    Notice::Ready => inbox.ready = true,
                }
            }
            if let Some(error) = end {
                return Err(error);
            }
        }
        Ok(())
    }
}
