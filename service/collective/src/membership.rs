//! Who is in a gang: the answer of the rendezvous, the same on all ranks but for `rank`.

use std::{fmt, fs, net::SocketAddr, str::FromStr};

use crate::error::{Error, Result};

#[derive(Clone, PartialEq, Eq)]
pub struct Membership {
    pub job_id: String,
    /// The attempt of the gang: ranks of another one are turned away.
    pub generation: u64,
    pub rank: usize,
    pub world_size: usize,
    /// Shared by the ranks of the job and by nobody else.
    pub secret: [u8; 32],
    /// By rank.
    pub addresses: Vec<Address>,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership")
            .field("job_id", &self.job_id)
            .field("generation", &self.generation)
            .field("rank", &self.rank)
            .field("world_size", &self.world_size)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

impl Membership {
    pub(crate) const WORLD_SIZE_MAX: usize = 4096;

    pub(crate) fn validate(&self) -> Result<()> {
        // A slot of shared memory holds at least one value for every rank of the host.
        const LOCAL_RANKS_MAX: usize = 256;
        let invalid = |reason: String| Err(Error::InvalidMembership { reason });
        if self.world_size == 0 || self.world_size > Self::WORLD_SIZE_MAX {
            return invalid(format!("world size {} is not within 1..={}", self.world_size, Self::WORLD_SIZE_MAX));
        }
        if self.rank >= self.world_size {
            return invalid(format!("rank {} is not within a world of {}", self.rank, self.world_size));
        }
        if self.addresses.len() != self.world_size {
            return invalid(format!("{} addresses for a world of {}", self.addresses.len(), self.world_size));
        }
        let own_host = &self.addresses[self.rank].host_id;
        let num_local = self.addresses.iter().filter(|address| address.host_id == *own_host).count();
        if num_local > LOCAL_RANKS_MAX {
            return invalid(format!("{num_local} ranks on one host, at most {LOCAL_RANKS_MAX} are supported"));
        }
        Ok(())
    }
}

/// Where a rank listens and on which host it is. The text form, `host_id@ip:port`, goes through the rendezvous.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// Boot id and host name: ranks with the same one can share memory.
    pub host_id: String,
    pub socket: SocketAddr,
}

impl Address {
    /// The identity of the host this process runs on.
    pub(crate) fn this_host() -> Result<String> {
        let read =
            |path: &str| fs::read_to_string(path).map_err(|source| Error::io("read the identity of this host", source));
        let boot_id = read("/proc/sys/kernel/random/boot_id")?;
        let host_name = read("/proc/sys/kernel/hostname")?;
        Ok(format!("{}/{}", boot_id.trim(), host_name.trim()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.host_id, self.socket)
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address> {
        let invalid =
            |reason: &str| Error::InvalidAddress { text: text.chars().take(200).collect(), reason: reason.to_string() };
        let (host_id, socket) = text.rsplit_once('@').ok_or_else(|| invalid("no '@' in it"))?;
        if host_id.is_empty() {
            return Err(invalid("no host before the '@'"));
        }
        let socket = socket.parse().map_err(|_| invalid("no ip:port after the '@'"))?;
        Ok(Address { host_id: host_id.to_string(), socket })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_its_text_form() {
        for text in ["boot-id/host@127.0.0.1:80", "a@b@[::1]:65535"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_text_that_is_no_address_is_refused() {
        for text in ["", "@", "host", "host@", "@127.0.0.1:80", "host@127.0.0.1", "host@127.0.0.1:70000"] {
            assert!(matches!(text.parse::<Address>(), Err(Error::InvalidAddress { .. })), "{text}");
        }
    }

    #[test]
    fn the_secret_is_not_printed() {
        let addresses = vec!["h@127.0.0.1:1".parse().unwrap()];
        let membership =
            Membership { job_id: "j".into(), generation: 1, rank: 0, world_size: 1, secret: [201; 32], addresses };
        assert!(!format!("{membership:?}").contains("201"));
    }
}
