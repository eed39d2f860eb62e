//! What can be set on a group. All ranks must use the same values, `timeout` and `connect_timeout` excepted:
//! the handshake compares them, because they decide which messages a call exchanges.

use std::time::Duration;

use crate::error::{Error, Result};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Deadline of every call.
    pub timeout: Duration,
    /// Deadline of `Listener::join`: all ranks are connected by then, or it fails.
    pub connect_timeout: Duration,
    /// Whether ranks of one host exchange values through shared memory; when false they use TCP as if on two hosts.
    pub shared_memory: bool,
    /// Size of one slot of shared memory, of which a rank owns two, and of one message of a chain of broadcasts.
    pub chunk_bytes: usize,
    /// Up to this size (of the values, or of a chunk of them) every rank of a host reduces everything by itself;
    /// above, each reduces its shard and takes the rest from the others.
    pub direct_bytes_max: usize,
    /// Up to this size hosts use recursive doubling and trees; above, rings.
    pub tree_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(30),
            shared_memory: true,
            chunk_bytes: 512 << 10,
            direct_bytes_max: 16 << 10,
            tree_bytes_max: 32 << 10,
        }
    }
}

impl Options {
    pub(crate) const CHUNK_BYTES_MIN: usize = 4096;
    const CHUNK_BYTES_MAX: usize = 64 << 20;

    pub(crate) fn validate(&self) -> Result<()> {
        let chunk_is_valid = self.chunk_bytes.is_multiple_of(Self::CHUNK_BYTES_MIN)
            && (Self::CHUNK_BYTES_MIN..=Self::CHUNK_BYTES_MAX).contains(&self.chunk_bytes);
        if !chunk_is_valid {
            return Err(Error::InvalidOption {
                option: "chunk_bytes",
                value: self.chunk_bytes.to_string(),
                needs: "a multiple of 4096 up to 64 MiB",
            });
        }
        for (option, timeout) in [("timeout", self.timeout), ("connect_timeout", self.connect_timeout)] {
            // A year: added to a point in time it cannot overflow.
            if timeout.is_zero() || timeout > Duration::from_secs(365 * 24 * 3600) {
                return Err(Error::InvalidOption {
                    option,
                    value: format!("{timeout:?}"),
                    needs: "more than zero and at most a year",
                });
            }
        }
        Ok(())
    }
}
