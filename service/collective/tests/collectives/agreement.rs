//! Every collective against a serial reference, over element types, operations, sizes, ranks and hosts.

use collective::{Element, Group, ReduceOp, shard_range};
use half::{bf16, f16};

use crate::gang::{ALL_HOSTS, Hosts, options, run, small_options};

const OPS: [ReduceOp; 4] = [ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max, ReduceOp::Mean];
const WORLD_SIZES: [usize; 7] = [1, 2, 3, 4, 5, 7, 8];
const LENS: [usize; 10] = [0, 1, 2, 7, 64, 129, 257, 1000, 1025, 5003];

trait Sample: Element + PartialEq + std::fmt::Debug {
    fn sample(number: i64) -> Self;
    fn to_f64(self) -> f64;
    /// What the rounding of partial sums may change, relative to the sum of magnitudes.
    const TOLERANCE: f64;
}

macro_rules! sample {
    ($type:ty, $tolerance:expr, $from:expr, $to:expr) => {
        impl Sample for $type {
            fn sample(number: i64) -> $type {
                $from(number)
            }
            fn to_f64(self) -> f64 {
                $to(self)
            }
            const TOLERANCE: f64 = $tolerance;
        }
    };
}

sample!(f32, 1e-6, |n| n as f32 / 7.0, f64::from);
sample!(f64, 1e-15, |n| n as f64 / 7.0, |v| v);
sample!(bf16, 4e-3, |n| bf16::from_f64(n as f64 / 7.0), f64::from);
sample!(f16, 5e-4, |n| f16::from_f64(n as f64 / 7.0), f64::from);
sample!(i64, 0.0, |n| n, |v| v as f64);
sample!(u8, 0.0, |n: i64| (n.unsigned_abs() % 30) as u8, f64::from);

/// A different, reproducible number for every place.
fn number(rank: usize, index: usize) -> i64 {
    let mixed = (rank as u64 * 1_000_003 + index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as i64 % 2001 - 1000
}

fn values<T: Sample>(rank: usize, len: usize) -> Vec<T> {
    (0..len).map(|index| T::sample(number(rank, index))).collect()
}

/// The result and the sum of magnitudes, at one place.
fn reference<T: Sample>(world_size: usize, index: usize, op: ReduceOp) -> (f64, f64) {
    let of_ranks: Vec<f64> = (0..world_size).map(|rank| T::sample(number(rank, index)).to_f64()).collect();
    let magnitude = of_ranks.iter().map(|value| value.abs()).sum();
    let sum: f64 = of_ranks.iter().sum();
    let result = match op {
        ReduceOp::Sum => sum,
        ReduceOp::Min => of_ranks.iter().copied().fold(f64::INFINITY, f64::min),
        ReduceOp::Max => of_ranks.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ReduceOp::Mean if T::TOLERANCE == 0.0 => (sum / world_size as f64).trunc(),
        ReduceOp::Mean => sum / world_size as f64,
    };
    (result, magnitude)
}

fn check<T: Sample>(found: &[T], start: usize, world_size: usize, op: ReduceOp) {
    for (offset, &value) in found.iter().enumerate() {
        let (expected, magnitude) = reference::<T>(world_size, start + offset, op);
        let error = (value.to_f64() - expected).abs();
        assert!(
            error <= T::TOLERANCE * magnitude,
            "{op:?} of {world_size} at {}: {value:?} for {expected}",
            start + offset
        );
    }
}

/// All sizes and operations on one group. Returns the bits of every all-reduce, to be compared between ranks and runs.
fn exercise<T: Sample>(group: &Group) -> Vec<Vec<T>> {
    let (rank, world_size) = (group.rank(), group.world_size());
    let mut results = Vec::new();
    for len in LENS {
        let own = values::<T>(rank, len);
        for op in OPS {
            let mut all = own.clone();
            group.all_reduce(&mut all, op).unwrap();
            check(&all, 0, world_size, op);
            let shard = group.reduce_scatter(&own, op).unwrap();
            let range = shard_range(len, world_size, rank);
            assert_eq!(shard.len(), range.len());
            check(&shard, range.start, world_size, op);
            results.push(all);
        }
        let gathered = group.all_gather(&own).unwrap();
        assert_eq!(gathered, (0..world_size).flat_map(|rank| values::<T>(rank, len)).collect::<Vec<_>>());
        for root in [0, world_size / 2, world_size - 1] {
            let mut received = own.clone();
            group.broadcast(&mut received, root).unwrap();
            assert_eq!(received, values::<T>(root, len));
        }
        group.barrier().unwrap();
    }
    results
}

fn agree<T: Sample>() {
    for hosts in ALL_HOSTS {
        for world_size in WORLD_SIZES {
            let results = run(hosts, world_size, &small_options(), |group| exercise::<T>(&group));
            assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "ranks differ on {hosts:?} of {world_size}");
        }
    }
}

#[test]
fn f32_agrees_with_the_serial_reference() {
    agree::<f32>();
}

#[test]
fn f64_agrees_with_the_serial_reference() {
    agree::<f64>();
}

#[test]
fn bf16_agrees_with_the_serial_reference() {
    agree::<bf16>();
}

#[test]
fn f16_agrees_with_the_serial_reference() {
    agree::<f16>();
}

#[test]
fn i64_agrees_with_the_serial_reference() {
    agree::<i64>();
}

#[test]
fn u8_agrees_with_the_serial_reference() {
    // The samples of eight ranks add up to less than 256.
    agree::<u8>();
}

#[test]
fn two_runs_give_the_same_bits() {
    for hosts in ALL_HOSTS {
        let once = || run(hosts, 5, &small_options(), |group| exercise::<f32>(&group));
        let bits = |results: Vec<Vec<Vec<f32>>>| -> Vec<u32> {
            results.concat().concat().iter().map(|value| value.to_bits()).collect()
        };
        assert_eq!(bits(once()), bits(once()));
    }
}

#[test]
fn nan_and_infinities_come_through_the_same_on_all_ranks() {
    for hosts in ALL_HOSTS {
        for op in OPS {
            let results = run(hosts, 4, &small_options(), |group| {
                let mut values = vec![1.0_f32, -0.0, f32::INFINITY, 5.0];
                match group.rank() {
                    1 => values[0] = f32::NAN,
                    2 => values[1] = 0.0,
                    3 => values[2] = f32::NEG_INFINITY,
                    _ => {}
                }
                group.all_reduce(&mut values, op).unwrap();
                values.iter().map(|value| value.to_bits()).collect::<Vec<_>>()
            });
            assert!(f32::from_bits(results[0][0]).is_nan());
            assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }
}

#[test]
fn bf16_is_summed_in_f32() {
    for hosts in ALL_HOSTS {
        // In bf16 256 + 1 is 256: eight ranks would never get above it.
        let results = run(hosts, 8, &small_options(), |group| {
            let mut values = vec![if group.rank() == 0 { bf16::from_f32(256.0) } else { bf16::ONE }; 3000];
            group.all_reduce(&mut values, ReduceOp::Sum).unwrap();
            values
        });
        assert!(results.concat().iter().all(|value| value.to_f32() == 264.0), "{hosts:?}");
    }
}

#[test]
fn gathered_lengths_may_differ() {
    for hosts in ALL_HOSTS {
        run(hosts, 6, &small_options(), |group| {
            let len = |rank: usize| [3000, 0, 1, 17, 0, 900][rank];
            let gathered = group.all_gather(&values::<f64>(group.rank(), len(group.rank()))).unwrap();
            assert_eq!(gathered, (0..6).flat_map(|rank| values::<f64>(rank, len(rank))).collect::<Vec<_>>());

            let bytes = vec![group.rank() as u8; len(group.rank())];
            let gathered = group.all_gather_bytes(&bytes).unwrap();
            assert_eq!(gathered, (0..6).map(|rank| vec![rank as u8; len(rank)]).collect::<Vec<_>>());
        });
    }
}

#[test]
fn broadcast_bytes_bring_their_length() {
    for hosts in ALL_HOSTS {
        run(hosts, 5, &small_options(), |group| {
            for (root, len) in [(0, 0), (1, 1), (4, 100_000), (3, 4096)] {
                let own = vec![9; group.rank() * 10];
                let own = if group.rank() == root { vec![root as u8; len] } else { own };
                assert_eq!(group.broadcast_bytes(own, root).unwrap(), vec![root as u8; len]);
            }
        });
    }
}

#[test]
fn large_values_go_through_the_default_options() {
    for (hosts, world_size) in [(Hosts::One, 2), (Hosts::One, 3), (Hosts::Each, 3), (Hosts::Pairs, 4)] {
        run(hosts, world_size, &options(), |group| {
            let len = 3_000_017;
            let mut all = values::<f32>(group.rank(), len);
            let shard = group.reduce_scatter(&all, ReduceOp::Mean).unwrap();
            group.all_reduce(&mut all, ReduceOp::Mean).unwrap();
            check(&all, 0, world_size, ReduceOp::Mean);
            check(&shard, shard_range(len, world_size, group.rank()).start, world_size, ReduceOp::Mean);
        });
    }
}

#[test]
fn a_single_rank_gets_back_what_it_gave() {
    let group = Group::single();
    exercise::<f32>(&group);
    exercise::<bf16>(&group);
    assert_eq!(group.broadcast_bytes(vec![1, 2], 0).unwrap(), [1, 2]);
    assert_eq!(group.all_gather_bytes(&[3]).unwrap(), [[3]]);
}

#[test]
fn a_group_may_be_called_from_several_threads() {
    run(Hosts::One, 2, &small_options(), |group| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let mut one = [1_i64];
                        group.all_reduce(&mut one, ReduceOp::Sum).unwrap();
                        assert_eq!(one, [2]);
                    }
                });
            }
        });
    });
}
