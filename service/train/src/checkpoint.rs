//! A rank program's state, kept outside of it, so that another generation, or another job, goes on from there.
//!
//! All ranks hold the same state after a step, so rank 0 alone writes and reads it, and tells the others on the way in.
//! A state that was written by three ranks can thus be read by two.

mod bytes;
mod envelope;
mod store;

use collective::Group;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

pub(crate) use bytes::{Reader, Writer};
pub use store::Store;

/// Where a job's checkpoints are, and how many: what its ranks are told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Where this job writes: a folder of its own, which may not exist yet, as a path or a URL.
    pub folder: String,
    /// What it starts from while it has written nothing itself: a checkpoint, or a folder, whose newest whole one counts.
    pub resume_from: Option<String>,
    /// Steps from one checkpoint to the next.
    pub interval: u64,
    /// How many of the newest are kept.
    pub keep: usize,
}

/// What a checkpoint is of. One that was written for something else is not resumed from.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    pub program: &'static str,
    /// What the state's meaning depends on, such as the params and the number of rows.
    pub fingerprint: Vec<u8>,
}

impl Identity {
    /// Of a program with these params, as bytes, over so many rows of all ranks, of so many features. Params that say
    /// only how long to go on are better left out.
    pub fn new(program: &'static str, params: &[u8], num_rows: u64, num_features: usize) -> Identity {
        let params = crc32fast::hash(params);
        let text = format!("{num_rows} rows of {num_features} features with params {params:08x}");
        Identity { program, fingerprint: text.into_bytes() }
    }
}

/// A state that was loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    pub step: u64,
    pub state: Vec<u8>,
}

pub trait Checkpointer: Sync {
    /// Steps from one checkpoint to the next; `None`: nobody wants any.
    fn interval(&self) -> Option<u64>;

    /// Takes a state to be written. Never waits: what is not yet written when a newer state comes is skipped for it.
    fn save(&self, identity: &Identity, step: u64, state: Vec<u8>);

    /// Returns the newest state to go on from, if there is any. Ones that are not whole are passed over.
    ///
    /// # Errors
    /// [`Error::CheckpointNotUsable`]: the state that the user named is of something else, is not whole, or not there.
    fn load(&self, identity: &Identity) -> Result<Option<Saved>>;
}

/// Keeps nothing.
pub struct Never;

impl Checkpointer for Never {
    fn interval(&self) -> Option<u64> {
        None
    }

    fn save(&self, _: &Identity, _: u64, _: Vec<u8>) {}

    fn load(&self, _: &Identity) -> Result<Option<Saved>> {
        Ok(None)
    }
}

/// Loads on rank 0, and tells all ranks. A collective call.
///
/// # Errors
/// Rank 0's, on every rank; those of the collective.
pub fn load_on_all_ranks(group: &Group, checkpoints: &dyn Checkpointer, identity: &Identity) -> Result<Option<Saved>> {
    let loaded = if group.rank() == 0 { checkpoints.load(identity) } else { Ok(None) };
    let told = group.broadcast_bytes(Told::of(&loaded), 0)?;
    // rank 0 keeps its own error, with its source
    if group.rank() == 0 {
        return loaded;
    }
    Told::read(&told)
}

/// What rank 0 tells the others, as bytes.
struct Told;

impl Told {
    const NOTHING: u64 = 0;
    const STATE: u64 = 1;
    const NOT_USABLE: u64 = 2;

    fn of(loaded: &Result<Option<Saved>>) -> Vec<u8> {
        let mut bytes = Writer::default();
        match loaded {
            Ok(None) => bytes.number(Told::NOTHING),
            Ok(Some(saved)) => {
                bytes.number(Told::STATE);
                bytes.number(saved.step);
                bytes.bytes(&saved.state);
            }
            Err(error) => {
                let (place, reason) = match error {
                    Error::CheckpointNotUsable { place, reason } => (place.clone(), reason.clone()),
                    other => (String::from("rank 0"), other.to_string()),
                };
                bytes.number(Told::NOT_USABLE);
                bytes.text(&place);
                bytes.text(&reason);
            }
        }
        bytes.finish()
    }

    fn read(told: &[u8]) -> Result<Option<Saved>> {
        let malformed = || Error::Bug { invariant: "what rank 0 tells of a checkpoint can be read".into() };
        let mut bytes = Reader::new(told);
        match bytes.number().ok_or_else(malformed)? {
            Told::NOTHING => Ok(None),
            Told::STATE => {
                let step = bytes.number().ok_or_else(malformed)?;
                Ok(Some(Saved { step, state: bytes.bytes().ok_or_else(malformed)?.to_vec() }))
            }
            _ => {
                let place = bytes.text().ok_or_else(malformed)?;
                Err(Error::CheckpointNotUsable { place, reason: bytes.text().ok_or_else(malformed)? })
            }
        }
    }
}
