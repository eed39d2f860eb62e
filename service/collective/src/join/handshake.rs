//! How two ranks prove to each other that they belong together, on a connection that anyone may have opened.
//!
//! The connecting rank says who it is and sends a nonce; the accepting one answers with the same and an HMAC of both
//! under the secret of the job; then the connecting one sends its HMAC. Each side compares what the other said only after
//! the proof, and tells its verdict, so that both ends know what was wrong.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::{
    error::{Error, Result},
    membership::Membership,
    options::Options,
};

const MAGIC: &[u8; 8] = b"phalanx1";
const DIGEST_BYTES: usize = 32;
const HELLO_BYTES: usize = 8 + 5 * 8 + 3 * DIGEST_BYTES;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Control = 1,
    Data = 2,
}

/// What all ranks of a gang have in common, and which of them this one is.
#[derive(Clone)]
pub(super) struct Identity {
    job: [u8; DIGEST_BYTES],
    generation: u64,
    rank: usize,
    world_size: usize,
    /// Of the options and the hosts, which decide which messages a call exchanges.
    settings: [u8; DIGEST_BYTES],
    secret: [u8; 32],
}

/// Why a connection came to nothing.
pub(super) enum Refusal {
    /// The peer is of the gang and was told otherwise than this rank, or this rank is not of the peer's gang.
    Fatal(Error),
    /// It ended before it proved anything, or the proof was wrong: whoever it is, the gang goes on without.
    Stranger,
    /// The connection broke or took too long.
    Broken(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Broken(error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hello {
    job: [u8; DIGEST_BYTES],
    generation: u64,
    rank: u64,
    peer: u64,
    world_size: u64,
    channel: u64,
    settings: [u8; DIGEST_BYTES],
    nonce: [u8; DIGEST_BYTES],
}

impl Hello {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HELLO_BYTES);
        bytes.extend_from_slice(MAGIC);
        for number in [self.generation, self.rank, self.peer, self.world_size, self.channel] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for digest in [self.job, self.settings, self.nonce] {
            bytes.extend_from_slice(&digest);
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Hello> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut number = || {
            let (number, after) = rest.split_first_chunk::<8>()?;
            rest = after;
            Some(u64::from_le_bytes(*number))
        };
        let (generation, rank, peer, world_size, channel) = (number()?, number()?, number()?, number()?, number()?);
        let ([job, settings, nonce], _) = rest.as_chunks::<DIGEST_BYTES>() else { return None };
        Some(Hello { generation, rank, peer, world_size, channel, job: *job, settings: *settings, nonce: *nonce })
    }
}

/// A connection whose reads and writes give up at a deadline, or when the join is over.
pub(super) struct Patient<'a> {
    pub stream: TcpStream,
    pub deadline: Instant,
    pub is_over: &'a AtomicBool,
}

impl Patient<'_> {
    const SLICE: Duration = Duration::from_millis(50);

    fn go_on(&self) -> io::Result<()> {
        if self.is_over.load(Ordering::Relaxed) || Instant::now() >= self.deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.stream.set_read_timeout(Some(Self::SLICE))?;
        let mut filled = 0;
        while filled < bytes.len() {
            self.go_on()?;
            match self.stream.read(&mut bytes[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => filled += read,
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Handshakes are far smaller than a socket's buffer, so writing does not block.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.go_on()?;
        self.stream.set_write_timeout(Some(Self::SLICE))?;
        self.stream.write_all(bytes)
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

const ACCEPTED: u8 = 1;
const REFUSED: u8 = 2;

impl Identity {
    pub fn new(membership: &Membership, options: &Options) -> Identity {
        let mut settings = Sha256::new();
        let sizes = [options.chunk_bytes, options.direct_bytes_max, options.tree_bytes_max];
        sizes.iter().for_each(|&size| settings.update((size as u64).to_le_bytes()));
        settings.update([u8::from(options.shared_memory)]);
        for address in &membership.addresses {
            settings.update((address.host_id.len() as u64).to_le_bytes());
            settings.update(&address.host_id);
        }
        Identity {
            job: Sha256::digest(&membership.job_id).into(),
            generation: membership.generation,
            rank: membership.rank,
            world_size: membership.world_size,
            settings: settings.finalize().into(),
            secret: membership.secret,
        }
    }

    fn hello(&self, peer: usize, channel: Channel) -> io::Result<Hello> {
        let mut nonce = [0; DIGEST_BYTES];
        getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Hello {
            job: self.job,
            generation: self.generation,
            rank: self.rank as u64,
            peer: peer as u64,
            world_size: self.world_size as u64,
            channel: channel as u64,
            settings: self.settings,
            nonce,
        })
    }

    fn proof(&self, role: &[u8], transcript: &[&[u8]]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        mac.update(role);
        transcript.iter().for_each(|part| mac.update(part));
        Some(mac)
    }

    /// The connecting side. `peer` listens at the other end.
    pub fn connect(&self, link: &mut Patient<'_>, peer: usize, channel: Channel) -> std::result::Result<(), Refusal> {
        let own = self.hello(peer, channel)?;
        let own_bytes = own.to_bytes();
        link.write(&own_bytes)?;

        let (mut peer_bytes, mut peer_proof) = ([0; HELLO_BYTES], [0; DIGEST_BYTES]);
        link.read(&mut peer_bytes)?;
        link.read(&mut peer_proof)?;
        let transcript = [own_bytes.as_slice(), &peer_bytes];
        let mac = self.proof(b"accept", &transcript).ok_or(Refusal::Stranger)?;
        mac.verify_slice(&peer_proof).map_err(|_| Refusal::Stranger)?;
        let theirs = Hello::from_bytes(&peer_bytes).ok_or(Refusal::Stranger)?;
        let verdict = self.compare(&theirs, peer, channel);

        let mac = self.proof(b"connect", &transcript).ok_or(Refusal::Stranger)?;
        link.write(&mac.finalize().into_bytes())?;
        link.write(&[if verdict.is_ok() { ACCEPTED } else { REFUSED }])?;
        verdict.map_err(Refusal::Fatal)?;
        let mut their_verdict = [0];
        link.read(&mut their_verdict)?;
        if their_verdict != [ACCEPTED] {
            let found = "it refused the connection, as if this rank were connected already".to_string();
            return Err(Refusal::Fatal(Error::Mismatch { rank: peer, expected: "one connection".into(), found }));
        }
        Ok(())
    }

    /// The accepting side, up to the verdict. Returns who is at the other end, and for what.
    pub fn accept(&self, link: &mut Patient<'_>) -> std::result::Result<(usize, Channel), Refusal> {
        let mut peer_bytes = [0; HELLO_BYTES];
        link.read(&mut peer_bytes)?;
        let theirs = Hello::from_bytes(&peer_bytes).ok_or(Refusal::Stranger)?;
        let peer = usize::try_from(theirs.rank).map_err(|_| Refusal::Stranger)?;
        let channel = if theirs.channel == Channel::Data as u64 { Channel::Data } else { Channel::Control };

        let own_bytes = self.hello(peer, channel)?.to_bytes();
        let transcript = [peer_bytes.as_slice(), &own_bytes];
        let mac = self.proof(b"accept", &transcript).ok_or(Refusal::Stranger)?;
        link.write(&own_bytes)?;
        link.write(&mac.finalize().into_bytes())?;

        let mut answer = [0; DIGEST_BYTES + 1];
        // One that does not like this rank's proof goes away here.
        link.read(&mut answer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Refusal::Stranger,
            _ => Refusal::Broken(error),
        })?;
        let mac = self.proof(b"connect", &transcript).ok_or(Refusal::Stranger)?;
        mac.verify_slice(&answer[..DIGEST_BYTES]).map_err(|_| Refusal::Stranger)?;
        let same_gang = theirs.job == self.job && theirs.generation == self.generation;
        match self.compare(&theirs, peer, channel) {
            Ok(()) if answer[DIGEST_BYTES] == ACCEPTED && (self.rank + 1..self.world_size).contains(&peer) => {
                Ok((peer, channel))
            }
            // A member of this very gang that was told otherwise: the gang cannot work.
            Err(error) if same_gang => Err(Refusal::Fatal(error)),
            // A rank of another attempt that does not know yet that it is over.
            _ => Err(Refusal::Stranger),
        }
    }

    /// Ends the accepting side.
    pub fn admit(&self, link: &mut Patient<'_>) -> io::Result<()> {
        link.write(&[ACCEPTED])
    }

    fn compare(&self, theirs: &Hello, peer: usize, channel: Channel) -> Result<()> {
        let number = |what, ours: u64, theirs: u64| (what, ours == theirs, ours.to_string(), theirs.to_string());
        let checks = [
            ("job", theirs.job == self.job, "this job".into(), "another job".into()),
            number("generation", self.generation, theirs.generation),
            number("world size", self.world_size as u64, theirs.world_size),
            number("rank", peer as u64, theirs.rank),
            number("rank of this side", self.rank as u64, theirs.peer),
            number("channel", channel as u64, theirs.channel),
            ("options and hosts", theirs.settings == self.settings, "the same".into(), "others".into()),
        ];
        for (what, equal, expected, found) in checks {
            if !equal {
                let (expected, found) = (format!("{what}: {expected}"), format!("{what}: {found}"));
                return Err(Error::Mismatch { rank: peer, expected, found });
            }
        }
        Ok(())
    }
}
