//! All-reduce: every rank gets the values of all, combined element by element.

use crate::{
    call::Call,
    element::Element,
    error::Result,
    group::Group,
    reduce_op::ReduceOp,
    signature::{Collective, Signature},
    topology::BetweenHosts,
    within_host,
};

impl Group {
    /// Replaces `values` by the combination over all ranks. The length must be the same on all ranks.
    ///
    /// The result has the same bits on all ranks and in every run of the same world size, topology and options.
    ///
    /// # Errors
    /// See `Error`; `values` are unspecified then.
    pub fn all_reduce<T: Element>(&self, values: &mut [T], op: ReduceOp) -> Result<()> {
        let signature = Signature::new(Collective::AllReduce, T::TYPE, values.len()).with_op(op);
        self.run(signature, |call| {
            call.bytes.set(size_of_val(values));
            self.reduce_all(call, values, op)
        })
    }

    /// Adds up `numbers` over all ranks, as the first part of a collective that is not a reduction: nobody goes on before
    /// all are in the same call, and each rank has told what the others need to know.
    pub(crate) fn agree(&self, call: &Call<'_>, numbers: &mut [i64]) -> Result<()> {
        self.reduce_all(call, numbers, ReduceOp::Sum)
    }

    fn reduce_all<T: Element>(&self, call: &Call<'_>, values: &mut [T], op: ReduceOp) -> Result<()> {
        let within = self.topology.within_host(size_of_val(values), &self.options);
        let Some(leaders) = self.leaders() else {
            return match &self.segment {
                Some(segment) => within_host::all_reduce(segment, call, values, op, within),
                None => Ok(()),
            };
        };
        let is_leader = self.topology.is_leader();
        let bytes = values.len() * size_of::<T::Accumulator>();
        match self.topology.between_hosts(bytes, &self.options) {
            BetweenHosts::Tree => {
                T::reduce_in_place(values, |accumulators| {
                    self.reduce_host(call, accumulators, op)?;
                    if is_leader {
                        leaders.all_reduce(call, accumulators, op)?;
                        op.finish(accumulators, self.world_size());
                    }
                    Ok(0..accumulators.len())
                })?;
            }
            BetweenHosts::Ring => {
                let shards = leaders.shards(values.len());
                T::reduce_in_place(values, |accumulators| {
                    self.reduce_host(call, accumulators, op)?;
                    if !is_leader {
                        return Ok(0..0);
                    }
                    leaders.ring_reduce_scatter(call, accumulators, &shards, op)?;
                    let own = shards[self.topology.host].clone();
                    op.finish(&mut accumulators[own.clone()], self.world_size());
                    Ok(own)
                })?;
                if is_leader {
                    leaders.ring_all_gather(call, values, &shards)?;
                }
            }
        }
        self.broadcast_host(call, values, 0)
    }

    /// Combines `accumulators` within the host, at its leader.
    pub(crate) fn reduce_host<A: Element>(&self, call: &Call<'_>, accumulators: &mut [A], op: ReduceOp) -> Result<()> {
        let Some(segment) = &self.segment else { return Ok(()) };
        let within = self.topology.within_host(size_of_val(accumulators), &self.options);
        within_host::reduce_to_leader(segment, call, accumulators, op, within)
    }

    pub(crate) fn broadcast_host<T: Element>(
        &self,
        call: &Call<'_>,
        values: &mut [T],
        local_root: usize,
    ) -> Result<()> {
        let Some(segment) = &self.segment else { return Ok(()) };
        within_host::broadcast(segment, call, values, local_root)
    }

    pub(crate) fn narrow<T: Element>(accumulators: &[T::Accumulator]) -> Vec<T> {
        accumulators.iter().map(|&accumulator| T::narrow(accumulator)).collect()
    }
}
