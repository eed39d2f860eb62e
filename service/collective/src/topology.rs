//! Which ranks share a host, how values are cut among ranks, and which algorithm a call takes. Everything here follows
//! from the membership, the options and the size alone, so that all ranks decide alike and every run alike.

use std::ops::Range;

use crate::{membership::Address, options::Options};

/// The ranks of each host. A host is what shares memory: with shared memory off, every rank is a host of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topology {
    /// In the order of their leaders; the ranks of a host ascend, and the first is its leader.
    pub hosts: Vec<Vec<usize>>,
    /// By rank: the host.
    host_of: Vec<usize>,
    /// This rank's place.
    pub host: usize,
    pub local_rank: usize,
}

/// What moves within a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithinHost {
    /// Every rank reads the values of all.
    Direct,
    /// Every rank reduces its shard, then reads the shards of the others.
    Sharded,
}

/// What moves between the leaders of the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BetweenHosts {
    /// Recursive doubling, binomial trees: few steps.
    Tree,
    /// Rings and chains: every link busy with its share.
    Ring,
}

impl Topology {
    pub fn new(addresses: &[Address], rank: usize, shared_memory: bool) -> Topology {
        let mut hosts: Vec<Vec<usize>> = Vec::new();
        let mut host_of = Vec::with_capacity(addresses.len());
        for (peer, address) in addresses.iter().enumerate() {
            let known = hosts.iter().position(|ranks| addresses[ranks[0]].host_id == address.host_id);
            let host = match known {
                Some(host) if shared_memory => host,
                _ => {
                    hosts.push(Vec::new());
                    hosts.len() - 1
                }
            };
            hosts[host].push(peer);
            host_of.push(host);
        }
        let host = host_of[rank];
        let local_rank = hosts[host].iter().position(|&peer| peer == rank).unwrap_or(0);
        Topology { hosts, host_of, host, local_rank }
    }

    pub fn alone() -> Topology {
        Topology { hosts: vec![vec![0]], host_of: vec![0], host: 0, local_rank: 0 }
    }

    pub fn local_ranks(&self) -> &[usize] {
        &self.hosts[self.host]
    }

    pub fn leaders(&self) -> Vec<usize> {
        self.hosts.iter().map(|ranks| ranks[0]).collect()
    }

    pub fn is_leader(&self) -> bool {
        self.local_rank == 0
    }

    pub fn host_of(&self, rank: usize) -> usize {
        self.host_of[rank]
    }

    /// All ranks, host after host: in this order what belongs to one host is one block.
    pub fn ranks_by_host(&self) -> Vec<usize> {
        self.hosts.concat()
    }

    pub fn within_host(&self, bytes: usize, options: &Options) -> WithinHost {
        // Two ranks read as much either way, and direct takes one step instead of two.
        if self.local_ranks().len() <= 2 || bytes <= options.direct_bytes_max {
            WithinHost::Direct
        } else {
            WithinHost::Sharded
        }
    }

    pub fn between_hosts(&self, bytes: usize, options: &Options) -> BetweenHosts {
        if bytes <= options.tree_bytes_max { BetweenHosts::Tree } else { BetweenHosts::Ring }
    }
}

/// The shard of `rank` when `len` values are cut among `world_size` ranks: every shard has `len / world_size` values,
/// and the first `len % world_size` have one more. Shards are contiguous and in rank order. A rank outside of the
/// world has the empty shard at the end.
pub fn shard_range(len: usize, world_size: usize, rank: usize) -> Range<usize> {
    if rank >= world_size {
        return len..len;
    }
    let (even, longer) = (len / world_size, len % world_size);
    let start = rank * even + rank.min(longer);
    start..start + even + usize::from(rank < longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(host_ids: &[&str], rank: usize, shared_memory: bool) -> Topology {
        let addresses: Vec<Address> =
            host_ids.iter().map(|host| format!("{host}@127.0.0.1:1").parse().unwrap()).collect();
        Topology::new(&addresses, rank, shared_memory)
    }

    #[test]
    fn shards_cover_the_values_in_order_and_differ_by_one_at_most() {
        for len in [0, 1, 2, 7, 8, 9, 1000] {
            for world_size in 1..9 {
                let shards: Vec<_> = (0..world_size).map(|rank| shard_range(len, world_size, rank)).collect();
                assert_eq!(shards[0].start, 0);
                assert_eq!(shards[world_size - 1].end, len);
                assert!(shards.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].len() >= pair[1].len()));
                assert!(shards[0].len() - shards[world_size - 1].len() <= 1);
            }
        }
        assert_eq!(shard_range(5, 0, 0), 5..5);
        assert_eq!(shard_range(5, 2, 2), 5..5);
    }

    #[test]
    fn ranks_of_one_host_are_found_wherever_they_stand() {
        let topology = topology(&["a", "b", "a", "c", "b"], 4, true);
        assert_eq!(topology.hosts, vec![vec![0, 2], vec![1, 4], vec![3]]);
        assert_eq!((topology.host, topology.local_rank, topology.is_leader()), (1, 1, false));
        assert_eq!(topology.leaders(), vec![0, 1, 3]);
        assert_eq!(topology.ranks_by_host(), vec![0, 2, 1, 4, 3]);
    }

    #[test]
    fn without_shared_memory_every_rank_is_a_host() {
        assert_eq!(topology(&["a", "a"], 1, false).hosts, vec![vec![0], vec![1]]);
    }
}
