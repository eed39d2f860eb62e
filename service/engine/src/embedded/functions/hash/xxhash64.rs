//! XXH64 with Spark's way of hashing a row.

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;

use super::{Hashed, HashedOwned, hashed};
use crate::{Error, Result};

const PRIMES: [u64; 5] =
    [0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x85EB_CA77_C2B2_AE63, 0x27D4_EB2F_1656_67C5];

fn avalanche(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(PRIMES[1]);
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(PRIMES[2]);
    hash ^ hash >> 32
}

fn fold_word(hash: u64, word: u32) -> u64 {
    let hash = hash ^ u64::from(word).wrapping_mul(PRIMES[0]);
    hash.rotate_left(23).wrapping_mul(PRIMES[1]).wrapping_add(PRIMES[2])
}

fn round(accumulator: u64, lane: u64) -> u64 {
    accumulator.wrapping_add(lane.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

fn fold_long(hash: u64, long: u64) -> u64 {
    (hash ^ round(0, long)).rotate_left(27).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3])
}

fn int(value: i32, seed: u64) -> u64 {
    avalanche(fold_word(seed.wrapping_add(PRIMES[4]).wrapping_add(4), value as u32))
}

fn long(value: i64, seed: u64) -> u64 {
    avalanche(fold_long(seed.wrapping_add(PRIMES[4]).wrapping_add(8), value as u64))
}

fn lane(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

pub fn bytes(bytes: &[u8], seed: u64) -> u64 {
    let mut rest = bytes;
    let mut hash = if bytes.len() >= 32 {
        let mut lanes = [
            seed.wrapping_add(PRIMES[0]).wrapping_add(PRIMES[1]),
            seed.wrapping_add(PRIMES[1]),
            seed,
            seed.wrapping_sub(PRIMES[0]),
        ];
        while rest.len() >= 32 {
            for (position, accumulator) in lanes.iter_mut().enumerate() {
                *accumulator = round(*accumulator, lane(&rest[position * 8..position * 8 + 8]));
            }
            rest = &rest[32..];
        }
        let turns = [1, 7, 12, 18];
        let mut hash =
            lanes.iter().zip(turns).fold(0u64, |hash, (lane, turn)| hash.wrapping_add(lane.rotate_left(turn)));
        for accumulator in lanes {
            hash = (hash ^ round(0, accumulator)).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]);
        }
        hash
    } else {
        seed.wrapping_add(PRIMES[4])
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    while rest.len() >= 8 {
        hash = fold_long(hash, lane(&rest[..8]));
        rest = &rest[8..];
    }
    if rest.len() >= 4 {
        hash = fold_word(hash, lane(&rest[..4]) as u32);
        rest = &rest[4..];
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(PRIMES[4])).rotate_left(11).wrapping_mul(PRIMES[0]);
    }
    avalanche(hash)
}

/// Folds a column into the hash of each row; a null leaves it as it is.
pub fn column(array: &dyn Array, hashes: &mut [i64]) -> Result<()> {
    for (row, hash) in hashes.iter_mut().enumerate() {
        *hash = value(array, row, *hash as u64)? as i64;
    }
    Ok(())
}

fn value(array: &dyn Array, row: usize, seed: u64) -> Result<u64> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return Ok(seed);
    }
    match (hashed(array, row), array.data_type()) {
        (Some(HashedOwned::Plain(Hashed::Int(value))), _) => Ok(int(value, seed)),
        (Some(HashedOwned::Plain(Hashed::Long(value))), _) => Ok(long(value, seed)),
        (Some(HashedOwned::Plain(Hashed::Bytes(value))), _) => Ok(bytes(value, seed)),
        (Some(HashedOwned::Owned(value)), _) => Ok(bytes(&value, seed)),
        (None, DataType::Struct(_)) => {
            array.as_struct().columns().iter().try_fold(seed, |seed, column| value(column, row, seed))
        }
        (None, DataType::List(_)) => {
            let elements = array.as_list::<i32>().value(row);
            (0..elements.len()).try_fold(seed, |seed, element| value(&elements, element, seed))
        }
        (None, other) => Err(Error::Unsupported { feature: format!("xxhash64 of {other}") }),
    }
}
