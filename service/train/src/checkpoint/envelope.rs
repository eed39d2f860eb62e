//! A checkpoint's file: a mark and a version, a checksum, what it is of, and the state.

use super::bytes::{Reader, Writer};
use super::{Identity, Saved};

const MARK: &[u8; 8] = b"phalanxC";
/// Changes whenever older files could be read wrongly.
const VERSION: u64 = 1;
/// Mark, version and checksum.
const HEAD_BYTES: usize = 24;

pub fn wrap(identity: &Identity, step: u64, state: &[u8]) -> Vec<u8> {
    let mut body = Writer::default();
    body.text(identity.program);
    body.bytes(&identity.fingerprint);
    body.number(step);
    body.bytes(state);
    let body = body.finish();
    let mut file = MARK.to_vec();
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&u64::from(crc32fast::hash(&body)).to_le_bytes());
    file.extend_from_slice(&body);
    file
}

/// Why a file is not resumed from, in words that go after "it".
pub type Refusal = String;

pub fn unwrap(identity: &Identity, file: &[u8]) -> Result<Saved, Refusal> {
    let (head, body) = file.split_at_checked(HEAD_BYTES).ok_or("is cut off")?;
    let mut head = Reader::new(head);
    if head.number() != Some(u64::from_le_bytes(*MARK)) {
        return Err("is no checkpoint of Phalanx".into());
    }
    match head.number() {
        Some(VERSION) => {}
        version => {
            return Err(format!("has version {} of the format, expected {VERSION}", version.unwrap_or_default()));
        }
    }
    if head.number() != Some(u64::from(crc32fast::hash(body))) {
        return Err("is cut off or damaged: its checksum does not match".into());
    }
    let mut body = Reader::new(body);
    let (Some(program), Some(fingerprint), Some(step), Some(state)) =
        (body.text(), body.bytes(), body.number(), body.bytes())
    else {
        return Err("is malformed".into());
    };
    if program != identity.program {
        return Err(format!("is of program {program}, expected {}", identity.program));
    }
    if fingerprint != identity.fingerprint {
        let shown = String::from_utf8_lossy(fingerprint);
        let expected = String::from_utf8_lossy(&identity.fingerprint);
        return Err(format!("is of another fit: {shown}, expected {expected}"));
    }
    Ok(Saved { step, state: state.to_vec() })
}
