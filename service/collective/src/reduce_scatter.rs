//! Reduce-scatter: every rank gets its shard of the values of all, combined element by element.

use std::ops::Range;

use crate::{
    call::Call,
    element::Element,
    error::Result,
    group::Group,
    reduce_op::ReduceOp,
    signature::{Collective, Signature},
    topology::{BetweenHosts, shard_range},
    within_host,
};

impl Group {
    /// Combines `values`, as long on all ranks, and returns `shard_range(values.len(), world_size, rank)` of the result.
    pub fn reduce_scatter<T: Element>(&self, values: &[T], op: ReduceOp) -> Result<Vec<T>> {
        let signature = Signature::new(Collective::ReduceScatter, T::TYPE, values.len()).with_op(op);
        self.run(signature, |call| {
            call.bytes.set(size_of_val(values));
            if self.leaders().is_some() {
                return self.reduce_scatter_between_hosts(call, values, op);
            }
            match &self.segment {
                Some(segment) => within_host::reduce_scatter(segment, call, values, op),
                None => Ok(values.to_vec()),
            }
        })
    }

    fn reduce_scatter_between_hosts<T: Element>(&self, call: &Call<'_>, values: &[T], op: ReduceOp) -> Result<Vec<T>> {
        let Some(leaders) = self.leaders() else { return Ok(values.to_vec()) };
        let shard = |rank: usize| shard_range(values.len(), self.world_size(), rank);
        // Host after host, what the ranks of one host get is one block.
        let order = self.topology.ranks_by_host();
        let mut accumulators: Vec<T::Accumulator> = Vec::with_capacity(values.len());
        for &rank in &order {
            accumulators.extend(values[shard(rank)].iter().map(|&value| value.widen()));
        }
        let blocks = self.blocks_by_host(|rank| shard(rank).len());
        let own_block = blocks[self.topology.host].clone();

        self.reduce_host(call, &mut accumulators, op)?;
        if self.topology.is_leader() {
            match self.topology.between_hosts(size_of_val(accumulators.as_slice()), &self.options) {
                BetweenHosts::Tree => leaders.all_reduce(call, &mut accumulators, op)?,
                BetweenHosts::Ring => leaders.ring_reduce_scatter(call, &mut accumulators, &blocks, op)?,
            }
            op.finish(&mut accumulators[own_block.clone()], self.world_size());
        }
        let mut block: Vec<T> = Group::narrow(&accumulators[own_block]);
        self.broadcast_host(call, &mut block, 0)?;

        let before: usize =
            self.topology.local_ranks()[..self.topology.local_rank].iter().map(|&r| shard(r).len()).sum();
        Ok(block[before..before + shard(self.rank()).len()].to_vec())
    }

    /// The block of every host in values that stand in the order `ranks_by_host`, `len_of` a rank's part of them.
    pub(crate) fn blocks_by_host(&self, len_of: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
        let mut start = 0;
        let host_block = |ranks: &Vec<usize>| {
            let len: usize = ranks.iter().map(|&rank| len_of(rank)).sum();
            start += len;
            start - len..start
        };
        self.topology.hosts.iter().map(host_block).collect()
    }
}
