//! MurmurHash3 of 32 bits (Appleby 2011), with the seed that Spark's hashing operators have.

const SEED: u32 = 42;

/// The place of a text among so many.
pub fn index(text: &str, num_features: usize) -> usize {
    let hash = hash(text.as_bytes()) as i32;
    i64::from(hash).rem_euclid(num_features as i64) as usize
}

fn hash(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(4);
    let rest = words.remainder().iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let has_rest = bytes.len() % 4 != 0;
    let mut hash = SEED;
    for word in words {
        let word = word.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = (hash ^ scramble(word)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    if has_rest {
        hash ^= scramble(rest);
    }
    hash ^= bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

fn scramble(word: u32) -> u32 {
    word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

#[cfg(test)]
mod tests {
    use super::*;

    // what Spark 4.3 gives
    #[test]
    fn words_have_sparks_places() {
        assert_eq!(["a", "d"].map(|word| index(word, 262_144)), [107_107, 89_530]);
    }
}
