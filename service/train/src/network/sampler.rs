//! Which rows make a step: every row once an epoch, in an order that the seed gives.

use std::ops::Range;

/// All ranks' rows, seen from one of them.
pub struct Sampler {
    seed: u64,
    batch_rows: u64,
    /// Training rows of all ranks.
    num_rows: u64,
    /// This rank's training rows, each with its number among all.
    rows: Vec<(u64, u32)>,
    /// This rank's rows that are kept for validation.
    pub validation_rows: Vec<u32>,
}

/// Not a number of an epoch: the order that validation rows are the first of.
const SPLIT: u64 = u64::MAX;

impl Sampler {
    /// `places` are those of this rank's rows among all `num_rows`.
    pub fn new(places: &[u64], num_rows: u64, num_validation: u64, batch_rows: usize, seed: i64) -> Sampler {
        let seed = seed as u64;
        let split = Permutation::new(num_rows, seed, SPLIT);
        let (mut rows, mut validation_rows) = (Vec::new(), Vec::new());
        for (row, place) in (0..).zip(places) {
            match split.of(*place).checked_sub(num_validation) {
                Some(number) => rows.push((number, row)),
                None => validation_rows.push(row),
            }
        }
        let num_rows = num_rows - num_validation;
        Sampler { seed, batch_rows: batch_rows.max(1) as u64, num_rows, rows, validation_rows }
    }

    pub fn num_rows(&self) -> u64 {
        self.num_rows
    }

    pub fn steps_per_epoch(&self) -> u64 {
        self.num_rows.div_ceil(self.batch_rows)
    }

    /// Rows of all ranks that step `step` of an epoch has.
    pub fn global_rows(&self, step: u64) -> u64 {
        self.batch_rows.min(self.num_rows - step * self.batch_rows)
    }

    /// This rank's rows in the order of an epoch.
    pub fn epoch(&self, epoch: u64) -> Epoch {
        let permutation = Permutation::new(self.num_rows, self.seed, epoch);
        let mut order: Vec<(u64, u32)> =
            self.rows.iter().map(|(number, row)| (permutation.of(*number), *row)).collect();
        order.sort_unstable();
        let (positions, rows) = order.into_iter().unzip();
        Epoch { batch_rows: self.batch_rows, positions, rows }
    }
}

/// One pass over this rank's rows.
pub struct Epoch {
    batch_rows: u64,
    positions: Vec<u64>,
    rows: Vec<u32>,
}

impl Epoch {
    /// This rank's rows of a step: some, or none.
    pub fn step(&self, step: u64) -> &[u32] {
        let at = |position: u64| self.positions.partition_point(|p| *p < position);
        let range: Range<usize> = at(step * self.batch_rows)..at((step + 1) * self.batch_rows);
        &self.rows[range]
    }
}

/// A pseudo-random permutation of the numbers below `size`, one number at a time: a Feistel network over the next power
/// of four, walked until it falls below `size` (Black and Rogaway 2002).
struct Permutation {
    size: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

const ROUNDS: usize = 6;

impl Permutation {
    fn new(size: u64, seed: u64, stream: u64) -> Permutation {
        let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
        let mut key = mix(seed ^ mix(stream));
        let keys = std::array::from_fn(|_| {
            key = mix(key);
            key
        });
        Permutation { size, half_bits: bits.div_ceil(2).max(1), keys }
    }

    fn of(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let mut walked = number;
        loop {
            let (mut left, mut right) = (walked >> self.half_bits, walked & mask);
            for key in self.keys {
                (left, right) = (right, left ^ (mix(right ^ key) & mask));
            }
            walked = left << self.half_bits | right;
            if walked < self.size || self.size == 0 {
                return walked;
            }
        }
    }
}

/// The finalizer of SplitMix64 (Steele et al. 2014).
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_takes_every_number_once() {
        for size in [1, 2, 3, 4, 5, 100, 4097] {
            let permutation = Permutation::new(size, 7, 3);
            let mut all: Vec<u64> = (0..size).map(|number| permutation.of(number)).collect();
            assert!(size < 50 || !all.is_sorted());
            all.sort_unstable();
            assert!(all.into_iter().eq(0..size), "{size}");
        }
    }

    #[test]
    fn two_ranks_make_the_batches_of_one() {
        let places: Vec<u64> = (0..103).collect();
        let alone = Sampler::new(&places, 103, 10, 8, 5);
        let parts = [Sampler::new(&places[..20], 103, 10, 8, 5), Sampler::new(&places[20..], 103, 10, 8, 5)];
        assert_eq!(alone.validation_rows.len(), 10);
        assert_eq!((alone.steps_per_epoch(), alone.global_rows(0), alone.global_rows(11)), (12, 8, 5));
        let mut seen = Vec::new();
        for epoch in 0..2 {
            let all = alone.epoch(epoch);
            let of_ranks = parts.each_ref().map(|part| part.epoch(epoch));
            for step in 0..12 {
                let mut rows = of_ranks[0].step(step).to_vec();
                rows.extend(of_ranks[1].step(step).iter().map(|row| row + 20));
                rows.sort_unstable();
                let mut expected = all.step(step).to_vec();
                expected.sort_unstable();
                assert_eq!(rows, expected);
                assert_eq!(rows.len() as u64, alone.global_rows(step));
                seen.extend(rows);
            }
        }
        seen.extend(&alone.validation_rows);
        seen.extend(&alone.validation_rows);
        seen.sort_unstable();
        assert!(seen.chunks(2).map(|pair| pair[0]).eq(0..103) && seen.chunks(2).all(|pair| pair[0] == pair[1]));
    }
}
