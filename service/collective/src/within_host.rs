//! The part of every collective that the ranks of one host do through shared memory. Values are reduced in the order of
//! the ranks, one after the other, whichever rank does it.

use std::ops::Range;

use crate::{
    call::Call,
    element::Element,
    error::Result,
    reduce_op::ReduceOp,
    topology::{WithinHost, shard_range},
    transport::shared_memory::Segment,
};

/// Cuts `0..len` into ranges of `size`, and gives one empty range for nothing: every call makes a step.
pub(crate) fn chunks(len: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    let num_chunks = len.div_ceil(size.max(1)).max(1);
    (0..num_chunks).map(move |i| i * size..((i + 1) * size).min(len))
}

/// Reduces `values`, this rank's own, with those that the others have at `start` of their slots. `finish` is the number
/// of ranks if nothing follows.
fn fold<T: Element>(segment: &Segment, op: ReduceOp, start: usize, values: &mut [T], finish: Option<usize>) {
    // Small enough to stay in the nearest cache.
    const BLOCK: usize = 1024;
    let mut accumulators = [T::Accumulator::default(); BLOCK];
    let num_ranks = segment.num_ranks();
    let mut place = start;
    for block in values.chunks_mut(BLOCK) {
        let accumulators = &mut accumulators[..block.len()];
        let range = place..place + block.len();
        place = range.end;
        let of_rank = |local_rank| {
            if local_rank == segment.local_rank() { &*block } else { segment.read(local_rank, range.clone()) }
        };
        op.fold_pair(accumulators, of_rank(0), of_rank(1));
        for local_rank in 2..num_ranks {
            op.fold_into_lower(accumulators, of_rank(local_rank));
        }
        if let Some(world_size) = finish {
            op.finish(accumulators, world_size);
        }
        block.iter_mut().zip(accumulators).for_each(|(value, accumulator)| *value = T::narrow(*accumulator));
    }
}

pub(crate) fn all_reduce<T: Element>(
    segment: &Segment,
    call: &Call<'_>,
    values: &mut [T],
    op: ReduceOp,
    algorithm: WithinHost,
) -> Result<()> {
    let num_ranks = segment.num_ranks();
    for range in chunks(values.len(), segment.slot_len::<T>()) {
        let chunk = &mut values[range];
        segment.start_round();
        segment.write(0, chunk);
        segment.step(call)?;
        if algorithm == WithinHost::Direct {
            fold(segment, op, 0, chunk, Some(num_ranks));
            continue;
        }
        let shard = shard_range(chunk.len(), num_ranks, segment.local_rank());
        fold(segment, op, shard.start, &mut chunk[shard.clone()], Some(num_ranks));
        // Of this rank's slot the others have read, or read now, their own shards only.
        segment.write(shard.start, &chunk[shard]);
        segment.step(call)?;
        take_shards(segment, chunk);
    }
    Ok(())
}

/// Leaves the values of the host, reduced but not finished, with its leader; those of the others are used up.
pub(crate) fn reduce_to_leader<T: Element>(
    segment: &Segment,
    call: &Call<'_>,
    values: &mut [T],
    op: ReduceOp,
    algorithm: WithinHost,
) -> Result<()> {
    let is_leader = segment.local_rank() == 0;
    for range in chunks(values.len(), segment.slot_len::<T>()) {
        let chunk = &mut values[range];
        segment.start_round();
        segment.write(0, chunk);
        segment.step(call)?;
        if algorithm == WithinHost::Direct {
            if is_leader {
                fold(segment, op, 0, chunk, None);
            }
            continue;
        }
        let shard = shard_range(chunk.len(), segment.num_ranks(), segment.local_rank());
        fold(segment, op, shard.start, &mut chunk[shard.clone()], None);
        segment.write(shard.start, &chunk[shard]);
        segment.step(call)?;
        if is_leader {
            take_shards(segment, chunk);
        }
    }
    Ok(())
}

fn take_shards<T: Element>(segment: &Segment, chunk: &mut [T]) {
    let (len, num_ranks) = (chunk.len(), segment.num_ranks());
    for local_rank in (0..num_ranks).filter(|&local_rank| local_rank != segment.local_rank()) {
        let shard = shard_range(len, num_ranks, local_rank);
        chunk[shard.clone()].copy_from_slice(segment.read(local_rank, shard));
    }
}

/// Returns this rank's shard, finished.
pub(crate) fn reduce_scatter<T: Element>(
    segment: &Segment,
    call: &Call<'_>,
    values: &[T],
    op: ReduceOp,
) -> Result<Vec<T>> {
    let (num_ranks, own) = (segment.num_ranks(), segment.local_rank());
    let shard = |local_rank| shard_range(values.len(), num_ranks, local_rank);
    let mut result = values[shard(own)].to_vec();
    // A slot holds a piece of every shard; the first shard is the longest.
    let piece = segment.slot_len::<T>() / num_ranks;
    for range in chunks(shard(0).len(), piece) {
        segment.start_round();
        for local_rank in (0..num_ranks).filter(|&local_rank| local_rank != own) {
            let shard = &values[shard(local_rank)];
            segment.write(local_rank * piece, &shard[clip(&range, shard.len())]);
        }
        segment.step(call)?;
        let range = clip(&range, result.len());
        fold(segment, op, own * piece, &mut result[range], Some(num_ranks));
    }
    Ok(result)
}

fn clip(range: &Range<usize>, len: usize) -> Range<usize> {
    range.start.min(len)..range.end.min(len)
}

/// `blocks[local_rank]` is where in `values` the rank's part goes; this rank's own is there already.
pub(crate) fn all_gather<T: Element>(
    segment: &Segment,
    call: &Call<'_>,
    values: &mut [T],
    blocks: &[Range<usize>],
) -> Result<()> {
    let own = segment.local_rank();
    let len_max = blocks.iter().map(Range::len).max().unwrap_or(0);
    for range in chunks(len_max, segment.slot_len::<T>()) {
        segment.start_round();
        segment.write(0, &values[blocks[own].clone()][clip(&range, blocks[own].len())]);
        segment.step(call)?;
        for (local_rank, block) in blocks.iter().enumerate().filter(|&(local_rank, _)| local_rank != own) {
            let part = clip(&range, block.len());
            let written = segment.read(local_rank, 0..part.len());
            values[block.clone()][part].copy_from_slice(written);
        }
    }
    Ok(())
}

pub(crate) fn broadcast<T: Element>(
    segment: &Segment,
    call: &Call<'_>,
    values: &mut [T],
    local_root: usize,
) -> Result<()> {
    for range in chunks(values.len(), segment.slot_len::<T>()) {
        let chunk = &mut values[range];
        segment.start_round();
        if segment.local_rank() == local_root {
            segment.write(0, chunk);
        }
        segment.step(call)?;
        if segment.local_rank() != local_root {
            chunk.copy_from_slice(segment.read(local_root, 0..chunk.len()));
        }
    }
    Ok(())
}
