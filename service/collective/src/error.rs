//! Why a collective failed. The first error of a group is its last word: every later call returns the same one.

use std::{io, sync::Arc};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The process of `rank` ended, or its connection broke.
    #[error("lost rank {rank}")]
    PeerLost {
        rank: usize,
        #[source]
        source: Arc<io::Error>,
    },
    /// The deadline passed; `missing` are the ranks that did not show that they were in the call.
    #[error("{collective} waited {waited_ms} ms for ranks {missing:?}")]
    Timeout { collective: &'static str, waited_ms: u64, missing: Vec<usize> },
    /// Someone called `Group::abort`, or a rank failed for a reason of its own.
    #[error("the gang was aborted: {reason}")]
    Aborted { reason: String },
    /// The ranks do not call the same thing; `rank` is the one whose call was `found`.
    #[error("rank {rank} does not match: expected {expected}, found {found}")]
    Mismatch { rank: usize, expected: String, found: String },
    /// `peer` does not know the secret of the job.
    #[error("{peer} did not prove that it knows the secret of the job")]
    Authentication { peer: String },
    #[error("the membership is invalid: {reason}")]
    InvalidMembership { reason: String },
    #[error("{text:?} is not an address of a rank: {reason}")]
    InvalidAddress { text: String, reason: String },
    #[error("root {root} is not a rank of a gang of {world_size}")]
    RootOutOfRange { root: usize, world_size: usize },
    #[error("an option is invalid: {option} = {value}, needs {needs}")]
    InvalidOption { option: &'static str, value: String, needs: &'static str },
    #[error("could not {action}")]
    Io {
        action: &'static str,
        #[source]
        source: Arc<io::Error>,
    },
}

/// Who has to act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The caller passed something wrong.
    User,
    /// A process, a machine or a network failed.
    External,
    /// The ranks' own programs disagree.
    Ours,
}

impl Error {
    pub(crate) fn io(action: &'static str, source: io::Error) -> Error {
        Error::Io { action, source: Arc::new(source) }
    }

    pub(crate) fn lost(rank: usize, source: io::Error) -> Error {
        Error::PeerLost { rank, source: Arc::new(source) }
    }

    pub fn class(&self) -> Class {
        match self {
            Error::PeerLost { .. } | Error::Timeout { .. } | Error::Aborted { .. } | Error::Io { .. } => {
                Class::External
            }
            Error::Authentication { .. }
            | Error::InvalidMembership { .. }
            | Error::InvalidAddress { .. }
            | Error::InvalidOption { .. } => Class::User,
            Error::Mismatch { .. } | Error::RootOutOfRange { .. } => Class::Ours,
        }
    }

    /// Whether the same job, started again as a new generation, may succeed.
    pub fn retryable(&self) -> bool {
        self.class() == Class::External
    }
}
