//! Spark's Murmur3 of 32 bits: whole words as usual, then every byte left over on its own, sign and all.

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;

use super::{Hashed, HashedOwned, hashed};
use crate::{Error, Result};

fn mix_key(key: i32) -> i32 {
    key.wrapping_mul(0xcc9e_2d51u32 as i32).rotate_left(15).wrapping_mul(0x1b87_3593)
}

fn mix(hash: i32, key: i32) -> i32 {
    (hash ^ mix_key(key)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64u32 as i32)
}

fn finish(hash: i32, length: i32) -> i32 {
    let mut hash = (hash ^ length) as u32;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^= hash >> 16;
    hash as i32
}

fn int(value: i32, seed: i32) -> i32 {
    finish(mix(seed, value), 4)
}

fn long(value: i64, seed: i32) -> i32 {
    finish(mix(mix(seed, value as i32), (value >> 32) as i32), 8)
}

pub fn bytes(bytes: &[u8], seed: i32) -> i32 {
    let words = bytes.chunks_exact(4);
    let rest = words.remainder();
    let mut hash = seed;
    for word in words {
        hash = mix(hash, i32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    }
    for byte in rest {
        hash = mix(hash, i32::from(*byte as i8));
    }
    finish(hash, bytes.len() as i32)
}

/// Folds a column into the hash of each row; a null leaves it as it is.
pub fn column(array: &dyn Array, hashes: &mut [i32]) -> Result<()> {
    for (row, hash) in hashes.iter_mut().enumerate() {
        *hash = value(array, row, *hash)?;
    }
    Ok(())
}

fn value(array: &dyn Array, row: usize, seed: i32) -> Result<i32> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return Ok(seed);
    }
    let plain = |value: &Hashed<'_>| match value {
        Hashed::Int(value) => int(*value, seed),
        Hashed::Long(value) => long(*value, seed),
        Hashed::Bytes(value) => bytes(value, seed),
    };
    match (hashed(array, row), array.data_type()) {
        (Some(HashedOwned::Plain(value)), _) => Ok(plain(&value)),
        (Some(HashedOwned::Owned(value)), _) => Ok(bytes(&value, seed)),
        (None, DataType::Struct(_)) => {
            array.as_struct().columns().iter().try_fold(seed, |seed, column| value(column, row, seed))
        }
        (None, DataType::List(_)) => {
            let elements = array.as_list::<i32>().value(row);
            (0..elements.len()).try_fold(seed, |seed, element| value(&elements, element, seed))
        }
        (None, other) => Err(Error::Unsupported { feature: format!("hash of {other}") }),
    }
}
