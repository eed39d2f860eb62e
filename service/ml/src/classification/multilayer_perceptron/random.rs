//! Spark's random source, for weights that start as Spark's do: Marsaglia's xorshift, its seed hashed first.

use std::num::Wrapping;

pub struct XorShift(i64);

impl XorShift {
    pub fn new(seed: i64) -> XorShift {
        let bytes = seed.to_be_bytes();
        let low = hash(bytes, 0x3c07_4a61);
        let high = hash(bytes, low);
        XorShift((i64::from(high) << 32) | (i64::from(low) & 0xffff_ffff))
    }

    fn bits(&mut self, count: u32) -> i64 {
        self.0 ^= self.0 << 21;
        self.0 ^= ((self.0 as u64) >> 35) as i64;
        self.0 ^= self.0 << 4;
        self.0 & ((1 << count) - 1)
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn double(&mut self) -> f64 {
        let high = self.bits(26) << 27;
        (high + self.bits(27)) as f64 / (1u64 << 53) as f64
    }
}

/// MurmurHash3 of eight bytes, read as two little-endian words.
fn hash(bytes: [u8; 8], seed: i32) -> i32 {
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let mut hash = Wrapping(seed as u32);
    for key in [word(0), word(4)] {
        let key = Wrapping((Wrapping(key) * Wrapping(0xcc9e_2d51)).0.rotate_left(15)) * Wrapping(0x1b87_3593);
        hash = Wrapping((hash ^ key).0.rotate_left(13)) * Wrapping(5) + Wrapping(0xe654_6b64);
    }
    hash ^= Wrapping(8);
    hash = (hash ^ (hash >> 16)) * Wrapping(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)) * Wrapping(0xc2b2_ae35);
    (hash ^ (hash >> 16)).0 as i32
}
