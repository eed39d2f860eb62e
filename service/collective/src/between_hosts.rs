//! The part of every collective that the leaders of the hosts do over TCP: recursive doubling and trees for short
//! messages, rings and chains for long ones.

use std::ops::Range;

use crate::{
    call::Call,
    element::{Element, as_bytes, as_bytes_mut},
    error::Result,
    reduce_op::ReduceOp,
    topology::{BetweenHosts, shard_range},
    transport::tcp::Links,
    within_host::chunks,
};

/// How much of a message is reduced at a time.
const PIECE_BYTES: usize = 128 << 10;

pub(crate) struct Leaders<'g> {
    pub links: &'g Links,
    /// By host.
    pub ranks: Vec<usize>,
    /// This leader's host.
    pub host: usize,
    pub chunk_bytes: usize,
}

impl Leaders<'_> {
    fn chunk_len<T>(&self) -> usize {
        (self.chunk_bytes / size_of::<T>()).max(1)
    }

    /// The shards of `len` values, one a host.
    pub fn shards(&self, len: usize) -> Vec<Range<usize>> {
        (0..self.ranks.len()).map(|host| shard_range(len, self.ranks.len(), host)).collect()
    }

    /// Recursive doubling among a power of two of hosts; of the hosts beyond it, each first hands its values to its
    /// neighbour and gets the result from it at the end. The lower host's values stand first in every pair, so that all
    /// get the same bits.
    pub fn all_reduce<A: Element<Accumulator = A>>(
        &self,
        call: &Call<'_>,
        values: &mut [A],
        op: ReduceOp,
    ) -> Result<()> {
        let num_hosts = self.ranks.len();
        let doubling = 1 << num_hosts.ilog2();
        let num_paired = 2 * (num_hosts - doubling);
        let mut received = vec![A::default(); values.len()];

        if self.host < num_paired && self.host % 2 == 1 {
            let partner = self.ranks[self.host - 1];
            self.links.send(call, partner, as_bytes(values))?;
            return self.links.receive(call, partner, as_bytes_mut(values));
        }
        if self.host < num_paired {
            self.links.receive(call, self.ranks[self.host + 1], as_bytes_mut(&mut received))?;
            op.fold_into_lower(values, &received);
        }
        let place = if self.host < num_paired { self.host / 2 } else { self.host - num_paired / 2 };
        let host_at = |place: usize| if place < num_paired / 2 { place * 2 } else { place + num_paired / 2 };
        let mut distance = 1;
        while distance < doubling {
            let other = place ^ distance;
            let partner = self.ranks[host_at(other)];
            let (send, receive) = ((partner, as_bytes(values)), (partner, as_bytes_mut(&mut received)));
            self.links.exchange(call, Some(send), Some(receive))?;
            if place < other {
                op.fold_into_lower(values, &received);
            } else {
                op.fold_into_upper(&received, values);
            }
            distance *= 2;
        }
        if self.host < num_paired {
            self.links.send(call, self.ranks[self.host + 1], as_bytes(values))?;
        }
        Ok(())
    }

    /// Around the ring every block gathers the values of one host after the other, and ends, reduced but not finished,
    /// at the host whose block it is.
    pub fn ring_reduce_scatter<A: Element<Accumulator = A>>(
        &self,
        call: &Call<'_>,
        values: &mut [A],
        blocks: &[Range<usize>],
        op: ReduceOp,
    ) -> Result<()> {
        let num_hosts = self.ranks.len();
        let (next, previous) = self.neighbours();
        let longest = blocks.iter().map(Range::len).max().unwrap_or(0);
        // Small enough to be reduced from a near cache, while the next values are on their way.
        let mut window = vec![A::default(); (PIECE_BYTES / size_of::<A>()).min(longest)];
        for step in 0..num_hosts - 1 {
            let outgoing = blocks[(self.host + 2 * num_hosts - step - 1) % num_hosts].clone();
            let incoming = blocks[(self.host + 2 * num_hosts - step - 2) % num_hosts].clone();
            let (out, into) = apart(values, outgoing, incoming);
            let receive = (previous, into.len());
            self.links.exchange_in_pieces(call, (next, out), receive, &mut window, |piece, received| {
                op.fold_into_upper(received, &mut into[piece]);
            })?;
        }
        Ok(())
    }

    /// Every host starts with its own block and ends with all.
    pub fn ring_all_gather<T: Element>(
        &self,
        call: &Call<'_>,
        values: &mut [T],
        blocks: &[Range<usize>],
    ) -> Result<()> {
        let num_hosts = self.ranks.len();
        let (next, previous) = self.neighbours();
        for step in 0..num_hosts - 1 {
            let outgoing = blocks[(self.host + num_hosts - step) % num_hosts].clone();
            let incoming = blocks[(self.host + 2 * num_hosts - step - 1) % num_hosts].clone();
            self.pass_on(call, values, (next, outgoing), (previous, incoming))?;
        }
        Ok(())
    }

    pub fn broadcast<T: Element>(
        &self,
        call: &Call<'_>,
        values: &mut [T],
        root_host: usize,
        algorithm: BetweenHosts,
    ) -> Result<()> {
        let num_hosts = self.ranks.len();
        // Places count from the root.
        let place = (self.host + num_hosts - root_host) % num_hosts;
        let rank_at = |place: usize| self.ranks[(place + root_host) % num_hosts];
        match algorithm {
            BetweenHosts::Tree => {
                let mut distance = 1;
                while distance < num_hosts && place & distance == 0 {
                    distance *= 2;
                }
                if place != 0 {
                    self.links.receive(call, rank_at(place - distance), as_bytes_mut(values))?;
                }
                while distance > 1 {
                    distance /= 2;
                    if place + distance < num_hosts {
                        self.links.send(call, rank_at(place + distance), as_bytes(values))?;
                    }
                }
                Ok(())
            }
            BetweenHosts::Ring => {
                let (previous, next) = (rank_at(place + num_hosts - 1), rank_at(place + 1));
                let is_last = place == num_hosts - 1;
                let mut held = 0..0;
                for chunk in chunks(values.len(), self.chunk_len::<T>()) {
                    let into = if place == 0 { 0..0 } else { chunk.clone() };
                    let out = if place == 0 { chunk.clone() } else { held };
                    let out = if is_last { 0..0 } else { out };
                    self.pass_on(call, values, (next, out), (previous, into))?;
                    held = chunk;
                }
                if place != 0 && !is_last {
                    self.links.send(call, next, as_bytes(&values[held]))?;
                }
                Ok(())
            }
        }
    }

    fn neighbours(&self) -> (usize, usize) {
        let num_hosts = self.ranks.len();
        (self.ranks[(self.host + 1) % num_hosts], self.ranks[(self.host + num_hosts - 1) % num_hosts])
    }

    /// Sends one part of `values` and receives another; a part without values is no message.
    fn pass_on<T: Element>(
        &self,
        call: &Call<'_>,
        values: &mut [T],
        (next, out): (usize, Range<usize>),
        (previous, into): (usize, Range<usize>),
    ) -> Result<()> {
        let (out_values, into_values) = apart(values, out, into);
        let send = (!out_values.is_empty()).then(|| (next, as_bytes(out_values)));
        let receive = (!into_values.is_empty()).then(|| (previous, as_bytes_mut(into_values)));
        if send.is_none() && receive.is_none() {
            return Ok(());
        }
        self.links.exchange(call, send, receive)
    }
}

/// Two parts of `values`, one to read and one to write. One ends before the other starts, or is empty.
fn apart<T>(values: &mut [T], out: Range<usize>, into: Range<usize>) -> (&[T], &mut [T]) {
    if out.is_empty() || out.start >= into.end {
        let (lower, upper) = values.split_at_mut(into.end.max(into.start));
        let offset = lower.len();
        let out_values = if out.is_empty() { &[][..] } else { &upper[out.start - offset..out.end - offset] };
        (out_values, &mut lower[into])
    } else {
        let (lower, upper) = values.split_at_mut(out.end);
        let offset = lower.len();
        let into_values =
            if into.is_empty() { &mut [][..] } else { &mut upper[into.start - offset..into.end - offset] };
        (&lower[out], into_values)
    }
}
