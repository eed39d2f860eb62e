//! An order of all ranks' rows that depends on the rows alone.
//!
//! How a relation falls into partitions depends on the number of ranks and on the plan. So rows are put in the order of a
//! hash of their content: every row has one place among all, whichever rank holds it.

use collective::{Group, ReduceOp};

use crate::{Error, Result};

/// About how many hashes are exchanged at once, over all ranks.
const HASHES_AT_ONCE: u64 = 1 << 21;

/// The place of each of this rank's rows among the rows of all ranks, and how many those are. A collective call. Rows of
/// equal hashes, which are equal rows, take their places in rank order.
///
/// # Errors
/// Those of the collectives.
pub fn places(group: &Group, hashes: &[u64]) -> Result<(Vec<u64>, u64)> {
    let mut num_rows = [hashes.len() as i64];
    group.all_reduce(&mut num_rows, ReduceOp::Sum)?;
    let num_rows = num_rows[0] as u64;
    let mut own: Vec<(u64, usize)> = hashes.iter().copied().zip(0..).collect();
    own.sort_unstable();

    let num_chunks = num_rows.div_ceil(HASHES_AT_ONCE).max(1);
    let mut places = vec![0; hashes.len()];
    let (mut start, mut base) = (0, 0);
    for chunk in 0..num_chunks {
        // the chunk's hashes: one of `num_chunks` equal parts of all numbers
        let end = start + own[start..].partition_point(|(hash, _)| part_of(*hash, num_chunks) <= chunk);
        let rows = &own[start..end];
        start = end;
        let bytes: Vec<u8> = rows.iter().flat_map(|(hash, _)| hash.to_le_bytes()).collect();
        let gathered = group.all_gather_bytes(&bytes)?;
        for (place, (_, row)) in (base..).zip(rows) {
            places[*row] = place;
        }
        for (rank, bytes) in gathered.iter().enumerate() {
            base += bytes.len() as u64 / 8;
            if rank == group.rank() {
                continue;
            }
            // rows of the other rank that come before: smaller ones, and equal ones of a lower rank
            let mut others = bytes.chunks_exact(8).map(hash_of).peekable();
            let mut num_before = 0;
            for (hash, row) in rows {
                while let Some(other) = others.peek() {
                    let other = other.as_ref().map_err(|()| malformed())?;
                    if other < hash || (other == hash && rank < group.rank()) {
                        num_before += 1;
                        others.next();
                    } else {
                        break;
                    }
                }
                places[*row] += num_before;
            }
        }
    }
    Ok((places, num_rows))
}

fn part_of(hash: u64, num_parts: u64) -> u64 {
    ((u128::from(hash) * u128::from(num_parts)) >> 64) as u64
}

fn hash_of(bytes: &[u8]) -> std::result::Result<u64, ()> {
    bytes.try_into().map(u64::from_le_bytes).map_err(|_| ())
}

fn malformed() -> Error {
    Error::Bug { invariant: "hashes travel as eight bytes each".into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::gang;

    #[test]
    fn a_row_has_the_same_place_whoever_holds_it() {
        let hashes: Vec<u64> = (0..500u64).map(|i| (i / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let (alone, _) = places(&Group::single(), &hashes).unwrap();
        let mut sorted = alone.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..500));
        let parts = [&hashes[..7], &[], &hashes[7..]];
        let of_ranks = gang(3, |group| places(group, parts[group.rank()]).unwrap());
        assert!(of_ranks.iter().all(|(_, num_rows)| *num_rows == 500));
        let together: Vec<u64> = of_ranks.iter().flat_map(|(places, _)| places.clone()).collect();
        for (row, hash) in hashes.iter().enumerate() {
            let equals = hashes.iter().filter(|other| *other == hash).count() as u64;
            assert!(together[row].abs_diff(alone[row]) < equals, "row {row}");
        }
        let mut sorted = together;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..500));
    }
}
