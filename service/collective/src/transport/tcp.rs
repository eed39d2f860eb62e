//! Messages over the TCP connections between the leaders of hosts. Every message starts with the signature of its call
//! and its length, and is compared with what the receiver expects before its values are used.

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    net::TcpStream,
    ops::Range,
};

use crate::{
    call::Call,
    element::{Element, as_bytes, as_bytes_mut},
    error::{Error, Result},
    signature::Signature,
    transport::poll::Interest,
};

const HEADER_BYTES: usize = Signature::BYTES + 8;

/// What one system call moves at most, so that sending and receiving take turns while both are in a near cache.
const TURN_BYTES_MAX: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Links {
    /// By rank; empty where no values pass.
    streams: Vec<Option<TcpStream>>,
}

struct Outgoing<'a> {
    peer: usize,
    stream: &'a TcpStream,
    header: [u8; HEADER_BYTES],
    body: &'a [u8],
    written: usize,
}

/// A message on its way in. Its values pass through a window, which holds all of them or a piece at a time.
struct Incoming<'a> {
    peer: usize,
    stream: &'a TcpStream,
    header: [u8; HEADER_BYTES],
    body_bytes: usize,
    read: usize,
    /// Bytes of the body that have left the window.
    taken: usize,
}

impl Links {
    pub fn new(streams: Vec<Option<TcpStream>>) -> Result<Links> {
        for stream in streams.iter().flatten() {
            stream.set_nonblocking(true).map_err(|source| Error::io("set a connection to non-blocking", source))?;
        }
        Ok(Links { streams })
    }

    pub fn none() -> Links {
        Links { streams: Vec::new() }
    }

    fn stream(&self, peer: usize) -> Result<&TcpStream> {
        self.streams.get(peer).and_then(Option::as_ref).ok_or_else(|| {
            let source = io::Error::new(io::ErrorKind::NotConnected, "no data connection to it");
            Error::lost(peer, source)
        })
    }

    pub fn send(&self, call: &Call<'_>, peer: usize, bytes: &[u8]) -> Result<()> {
        self.exchange(call, Some((peer, bytes)), None)
    }

    pub fn receive(&self, call: &Call<'_>, peer: usize, bytes: &mut [u8]) -> Result<()> {
        self.exchange(call, None, Some((peer, bytes)))
    }

    /// Sends one message and receives another at the same time, so that ranks in a circle never block each other.
    pub fn exchange(
        &self,
        call: &Call<'_>,
        send: Option<(usize, &[u8])>,
        receive: Option<(usize, &mut [u8])>,
    ) -> Result<()> {
        let outgoing = send.map(|(peer, bytes)| Outgoing::new(call, peer, self.stream(peer)?, bytes)).transpose()?;
        let (incoming, window) = match receive {
            Some((peer, body)) => (Some(Incoming::new(peer, self.stream(peer)?, body.len())), body),
            None => (None, &mut [][..]),
        };
        self.drive(call, outgoing, incoming, window, |_, _| {})
    }

    /// The same, with a receiver that takes `len` values piece by piece, as large as `window` at most, while others
    /// are on their way. `take` is told where in the message a piece stands.
    pub fn exchange_in_pieces<T: Element>(
        &self,
        call: &Call<'_>,
        (next, values): (usize, &[T]),
        (previous, len): (usize, usize),
        window: &mut [T],
        take: impl FnMut(Range<usize>, &[T]),
    ) -> Result<()> {
        // A message without values is none.
        let outgoing = (!values.is_empty()).then(|| Outgoing::new(call, next, self.stream(next)?, as_bytes(values)));
        let outgoing = outgoing.transpose()?;
        let incoming = (len > 0).then(|| Ok(Incoming::new(previous, self.stream(previous)?, len * size_of::<T>())));
        self.drive(call, outgoing, incoming.transpose()?, window, take)
    }

    fn drive<T: Element>(
        &self,
        call: &Call<'_>,
        mut outgoing: Option<Outgoing<'_>>,
        mut incoming: Option<Incoming<'_>>,
        window: &mut [T],
        mut take: impl FnMut(Range<usize>, &[T]),
    ) -> Result<()> {
        loop {
            let mut progress = false;
            if let Some(message) = &mut outgoing {
                progress |= message.advance(call)?;
                if message.is_done() {
                    outgoing = None;
                }
            }
            if let Some(message) = &mut incoming {
                progress |= message.advance(call, as_bytes_mut(window))?;
                let piece = message.piece(size_of_val(window));
                if message.read >= HEADER_BYTES + piece.end {
                    let piece = piece.start / size_of::<T>()..piece.end / size_of::<T>();
                    take(piece.clone(), &window[..piece.len()]);
                    message.taken += piece.len() * size_of::<T>();
                }
                if message.is_done() {
                    incoming = None;
                }
            }
            if outgoing.is_none() && incoming.is_none() {
                return Ok(());
            }
            if !progress {
                self.wait(call, outgoing.as_ref(), incoming.as_ref())?;
            }
        }
    }

    fn wait(&self, call: &Call<'_>, outgoing: Option<&Outgoing<'_>>, incoming: Option<&Incoming<'_>>) -> Result<()> {
        let mut interest = Interest::default();
        if let Some(message) = outgoing {
            interest.writable(message.stream);
        }
        if let Some(message) = incoming {
            interest.readable(message.stream);
        }
        let num_data = usize::from(outgoing.is_some()) + usize::from(incoming.is_some());
        call.control.watch(&mut interest);
        interest.wait(call.nap()).map_err(|source| Error::io("wait for a peer", source))?;
        // While values flow in good time there is nothing else to look at, and a look at every peer costs.
        if interest.only_first_are_ready(num_data) && !call.is_late() {
            return Ok(());
        }
        let stuck_on = || {
            let peers = [outgoing.map(|message| message.peer), incoming.map(|message| message.peer)];
            let mut peers: Vec<usize> = peers.into_iter().flatten().collect();
            peers.dedup();
            peers
        };
        call.pulse(stuck_on)?;
        self.look_for_strangers(call, incoming.map(|message| message.peer))
    }

    /// A rank that made another call may send to this one while this one waits for somebody else.
    fn look_for_strangers(&self, call: &Call<'_>, expected: Option<usize>) -> Result<()> {
        for (peer, stream) in self.streams.iter().enumerate() {
            let (Some(stream), true) = (stream, Some(peer) != expected) else { continue };
            let mut header = [0; Signature::BYTES];
            if !matches!(stream.peek(&mut header), Ok(Signature::BYTES)) {
                continue;
            }
            let found = Signature::from_bytes(&header);
            if found.sequence == call.signature.sequence && found != call.signature {
                return Err(call.signature.mismatch(peer, &found));
            }
        }
        Ok(())
    }
}

impl<'a> Outgoing<'a> {
    fn new(call: &Call<'_>, peer: usize, stream: &'a TcpStream, body: &'a [u8]) -> Result<Outgoing<'a>> {
        let mut header = [0; HEADER_BYTES];
        header[..Signature::BYTES].copy_from_slice(&call.signature.to_bytes());
        header[Signature::BYTES..].copy_from_slice(&(body.len() as u64).to_le_bytes());
        Ok(Outgoing { peer, stream, header, body, written: 0 })
    }

    fn is_done(&self) -> bool {
        self.written == HEADER_BYTES + self.body.len()
    }

    /// Writes once; returns whether anything was taken.
    fn advance(&mut self, call: &Call<'_>) -> Result<bool> {
        let start = self.written.saturating_sub(HEADER_BYTES);
        let end = self.body.len().min(start + TURN_BYTES_MAX);
        let body = &self.body[start..end];
        let mut stream = self.stream;
        // The header goes with the first values, so that a short message is one packet.
        let outcome = match self.header.get(self.written..) {
            Some(header) if !header.is_empty() => stream.write_vectored(&[IoSlice::new(header), IoSlice::new(body)]),
            _ => stream.write(body),
        };
        match outcome {
            Ok(written) => {
                self.written += written;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(call.lost(self.peer, error)),
        }
    }
}

impl<'a> Incoming<'a> {
    fn new(peer: usize, stream: &'a TcpStream, body_bytes: usize) -> Incoming<'a> {
        Incoming { peer, stream, header: [0; HEADER_BYTES], body_bytes, read: 0, taken: 0 }
    }

    fn is_done(&self) -> bool {
        self.read == HEADER_BYTES + self.body_bytes
    }

    /// The bytes of the body that a window of this size holds now.
    fn piece(&self, window_bytes: usize) -> Range<usize> {
        self.taken..self.body_bytes.min(self.taken + window_bytes)
    }

    /// Reads once; returns whether anything was there.
    fn advance(&mut self, call: &Call<'_>, window: &mut [u8]) -> Result<bool> {
        let start = self.read.saturating_sub(HEADER_BYTES) - self.taken;
        let end = self.piece(window.len()).len().min(start + TURN_BYTES_MAX);
        let body = &mut window[start..end];
        let mut stream = self.stream;
        let outcome = match self.header.get_mut(self.read..) {
            Some(header) if !header.is_empty() => {
                stream.read_vectored(&mut [IoSliceMut::new(header), IoSliceMut::new(body)])
            }
            _ => stream.read(body),
        };
        match outcome {
            Ok(0) => {
                let source = io::Error::new(io::ErrorKind::UnexpectedEof, "it closed its connection");
                Err(call.lost(self.peer, source))
            }
            Ok(read) => {
                let header_was_missing = self.read < HEADER_BYTES;
                self.read += read;
                if header_was_missing && self.read >= HEADER_BYTES {
                    self.compare(call)?;
                }
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(call.lost(self.peer, error)),
        }
    }

    fn compare(&self, call: &Call<'_>) -> Result<()> {
        let Some((signature, length)) = self.header.split_first_chunk::<{ Signature::BYTES }>() else { return Ok(()) };
        let found = Signature::from_bytes(signature);
        if found != call.signature {
            return Err(call.signature.mismatch(self.peer, &found));
        }
        let expected = (self.body_bytes as u64).to_le_bytes();
        if length != expected {
            return Err(Error::Mismatch {
                rank: self.peer,
                expected: format!("a message of {} bytes", self.body_bytes),
                found: format!("one of {} bytes", length.iter().rev().fold(0u64, |n, &byte| n << 8 | u64::from(byte))),
            });
        }
        Ok(())
    }
}
