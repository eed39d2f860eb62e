//! What ranks tell each other on their control connections, and its bytes: a length, a kind, fields.

use std::{io, sync::Arc};

use crate::{error::Error, signature::Collective};

#[derive(Debug)]
pub(crate) enum Notice {
    Failed(Error),
    /// The sender has waited for half of its deadline in this call: it is alive, the missing rank is another.
    Waiting {
        call: u64,
    },
    /// The sender drops its group in good order.
    Leaving {
        calls: u64,
    },
    /// The leader of a host is about to create this file of shared memory.
    Segment {
        name: String,
    },
    /// The sender has all it needs for the first call.
    Ready,
}

const WAITING: u8 = 1;
const LEAVING: u8 = 2;
const SEGMENT: u8 = 3;
const READY: u8 = 4;
const LOST: u8 = 5;
const TIMEOUT: u8 = 6;
const MISMATCH: u8 = 7;
const ABORTED: u8 = 8;

const TEXT_BYTES_MAX: usize = 1000;
const NOTICE_BYTES_MAX: usize = 64 << 10;

impl Notice {
    pub fn to_bytes(&self, sender: usize) -> Vec<u8> {
        let mut out = Writer(vec![0; 4]);
        match self {
            Notice::Waiting { call } => out.kind(WAITING).number(*call),
            Notice::Leaving { calls } => out.kind(LEAVING).number(*calls),
            Notice::Segment { name } => out.kind(SEGMENT).text(name),
            Notice::Ready => out.kind(READY),
            Notice::Failed(Error::PeerLost { rank, source }) => {
                out.kind(LOST).number(*rank as u64).text(&source.to_string())
            }
            Notice::Failed(Error::Timeout { collective, waited_ms, missing }) => {
                out.kind(TIMEOUT).number(Collective::code(collective).into()).number(*waited_ms);
                out.number(missing.len() as u64);
                missing.iter().fold(&mut out, |out, &rank| out.number(rank as u64))
            }
            Notice::Failed(Error::Mismatch { rank, expected, found }) => {
                out.kind(MISMATCH).number(*rank as u64).text(expected).text(found)
            }
            Notice::Failed(Error::Aborted { reason }) => out.kind(ABORTED).text(reason),
            // The rest happens to one rank alone: to the others it is a reason to stop.
            Notice::Failed(error) => out.kind(ABORTED).text(&format!("rank {sender}: {error}")),
        };
        let length = (out.0.len() - 4) as u32;
        out.0[..4].copy_from_slice(&length.to_le_bytes());
        out.0
    }

    /// The first notice in `bytes` and how many bytes it takes; `None` when it has not arrived as a whole.
    pub fn from_bytes(bytes: &[u8], sender: usize) -> io::Result<Option<(Notice, usize)>> {
        let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > NOTICE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it sent a notice of {length} bytes")));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        match Notice::read(body, sender) {
            Some(notice) => Ok(Some((notice, 4 + length))),
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "it sent a notice that cannot be read")),
        }
    }

    fn read(body: &[u8], sender: usize) -> Option<Notice> {
        let (&kind, fields) = body.split_first()?;
        let mut fields = Reader(fields);
        Some(match kind {
            WAITING => Notice::Waiting { call: fields.number()? },
            LEAVING => Notice::Leaving { calls: fields.number()? },
            SEGMENT => Notice::Segment { name: fields.text()? },
            READY => Notice::Ready,
            LOST => {
                let rank = fields.number()? as usize;
                let text = fields.text()?;
                // Ranks pass on what they were told; who saw it first is enough.
                let text = if text.contains(" reports: ") { text } else { format!("rank {sender} reports: {text}") };
                let source = Arc::new(io::Error::new(io::ErrorKind::ConnectionAborted, text));
                Notice::Failed(Error::PeerLost { rank, source })
            }
            TIMEOUT => {
                let collective = Collective::name(u8::try_from(fields.number()?).ok()?);
                let waited_ms = fields.number()?;
                let num_missing = fields.number()?;
                let missing = (0..num_missing).map_while(|_| fields.number()).map(|rank| rank as usize).collect();
                Notice::Failed(Error::Timeout { collective, waited_ms, missing })
            }
            MISMATCH => {
                let rank = fields.number()? as usize;
                Notice::Failed(Error::Mismatch { rank, expected: fields.text()?, found: fields.text()? })
            }
            ABORTED => Notice::Failed(Error::Aborted { reason: fields.text()? }),
            _ => return None,
        })
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn kind(&mut self, kind: u8) -> &mut Writer {
        self.0.push(kind);
        self
    }

    fn number(&mut self, number: u64) -> &mut Writer {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn text(&mut self, text: &str) -> &mut Writer {
        let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_its_way_to_a_peer() {
        let lost = Error::lost(3, io::Error::other("gone"));
        let timeout = Error::Timeout { collective: "barrier", waited_ms: 5, missing: vec![1, 2] };
        let mismatch = Error::Mismatch { rank: 1, expected: "a".into(), found: "b".into() };
        let text_of = |error: &Error| format!("{error}");
        for error in [lost, timeout, mismatch, Error::Aborted { reason: "é".repeat(2000) }] {
            let bytes = Notice::Failed(error.clone()).to_bytes(0);
            assert!(Notice::from_bytes(&bytes[..bytes.len() - 1], 0).unwrap().is_none());
            let (notice, used) = Notice::from_bytes(&bytes, 0).unwrap().unwrap();
            assert_eq!(used, bytes.len());
            let Notice::Failed(found) = notice else { panic!("not a failure") };
            assert!(text_of(&error).starts_with(&text_of(&found)), "{error} became {found}");
        }
    }

    #[test]
    fn bytes_that_are_no_notice_are_an_error() {
        for body in [&[][..], &[99], &[WAITING, 1], &[SEGMENT, 255, 255, 255, 255, 255, 255, 255, 255]] {
            let bytes = [&(body.len() as u32).to_le_bytes(), body].concat();
            assert!(Notice::from_bytes(&bytes, 0).is_err(), "{body:?}");
        }
        assert!(Notice::from_bytes(&u32::MAX.to_le_bytes(), 0).is_err());
    }
}
