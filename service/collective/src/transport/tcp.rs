//! Messages over the TCP connections between the leaders of hosts. Every message starts with the signature of its call
//! and its length, and is compared with what the receiver expects before its values are used.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
};

use crate::{
    call::Call,
    error::{Error, Result},
    signature::Signature,
    transport::poll::Interest,
};

const HEADER_BYTES: usize = Signature::BYTES + 8;

/// Up to this size a message is sent with its header in one piece, so that it is one packet.
const JOINED_BYTES_MAX: usize = 8 << 10;

#[derive(Debug)]
pub(crate) struct Links {
    /// By rank; empty where no values pass.
    streams: Vec<Option<TcpStream>>,
}

struct Outgoing<'a> {
    peer: usize,
    stream: &'a TcpStream,
    head: Vec<u8>,
    body: &'a [u8],
    written: usize,
}

struct Incoming<'a> {
    peer: usize,
    stream: &'a TcpStream,
    header: [u8; HEADER_BYTES],
    body: &'a mut [u8],
    read: usize,
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
        let mut outgoing = match send {
            Some((peer, bytes)) => Some(Outgoing::new(call, peer, self.stream(peer)?, bytes)),
            None => None,
        };
        let mut incoming = match receive {
            Some((peer, body)) => {
                let stream = self.stream(peer)?;
                Some(Incoming { peer, stream, header: [0; HEADER_BYTES], body, read: 0 })
            }
            None => None,
        };
        loop {
            let mut progress = false;
            if let Some(message) = &mut outgoing {
                progress |= message.advance(call)?;
                if message.is_done() {
                    outgoing = None;
                }
            }
            if let Some(message) = &mut incoming {
                progress |= message.advance(call)?;
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
        call.control.watch(&mut interest);
        // A socket that is ready ends the first wait at once, so the pulse costs nothing while values flow.
        interest.wait(call.nap()).map_err(|source| Error::io("wait for a peer", source))?;
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
    fn new(call: &Call<'_>, peer: usize, stream: &'a TcpStream, bytes: &'a [u8]) -> Outgoing<'a> {
        let mut head = Vec::with_capacity(HEADER_BYTES + if bytes.len() <= JOINED_BYTES_MAX { bytes.len() } else { 0 });
        head.extend_from_slice(&call.signature.to_bytes());
        head.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        let mut body = bytes;
        if bytes.len() <= JOINED_BYTES_MAX {
            head.extend_from_slice(bytes);
            body = &[];
        }
        Outgoing { peer, stream, head, body, written: 0 }
    }

    fn is_done(&self) -> bool {
        self.written == self.head.len() + self.body.len()
    }

    fn advance(&mut self, call: &Call<'_>) -> Result<bool> {
        let mut progress = false;
        while !self.is_done() {
            let rest = match self.head.get(self.written..) {
                Some(rest) if !rest.is_empty() => rest,
                _ => &self.body[self.written - self.head.len()..],
            };
            let mut stream = self.stream;
            match stream.write(rest) {
                Ok(written) => {
                    self.written += written;
                    progress = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(call.lost(self.peer, error)),
            }
        }
        Ok(progress)
    }
}

impl Incoming<'_> {
    fn is_done(&self) -> bool {
        self.read == HEADER_BYTES + self.body.len()
    }

    fn advance(&mut self, call: &Call<'_>) -> Result<bool> {
        let mut progress = false;
        while !self.is_done() {
            let place = if self.read < HEADER_BYTES {
                &mut self.header[self.read..]
            } else {
                &mut self.body[self.read - HEADER_BYTES..]
            };
            let mut stream = self.stream;
            match stream.read(place) {
                Ok(0) => {
                    let source = io::Error::new(io::ErrorKind::UnexpectedEof, "it closed its connection");
                    return Err(call.lost(self.peer, source));
                }
                Ok(read) => {
                    let header_was_missing = self.read < HEADER_BYTES;
                    self.read += read;
                    progress = true;
                    if header_was_missing && self.read >= HEADER_BYTES {
                        self.compare(call)?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(call.lost(self.peer, error)),
            }
        }
        Ok(progress)
    }

    fn compare(&self, call: &Call<'_>) -> Result<()> {
        let Some((signature, length)) = self.header.split_first_chunk::<{ Signature::BYTES }>() else { return Ok(()) };
        let found = Signature::from_bytes(signature);
        if found != call.signature {
            return Err(call.signature.mismatch(self.peer, &found));
        }
        let expected = (self.body.len() as u64).to_le_bytes();
        if length != expected {
            return Err(Error::Mismatch {
                rank: self.peer,
                expected: format!("a message of {} bytes", self.body.len()),
                found: format!("one of {} bytes", length.iter().rev().fold(0u64, |n, &byte| n << 8 | u64::from(byte))),
            });
        }
        Ok(())
    }
}
