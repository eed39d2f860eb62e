//! Spark's random source: Marsaglia's xorshift over 64 bits, its seed hashed first.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct XorShift {
    state: i64,
    spare: Option<f64>,
}

impl XorShift {
    pub fn new(seed: i64) -> XorShift {
        XorShift { state: hashed_seed(seed), spare: None }
    }

    fn next(&mut self, bits: u32) -> i32 {
        let mut state = self.state;
        state ^= state << 21;
        state ^= ((state as u64) >> 35) as i64;
        state ^= state << 4;
        self.state = state;
        (state & ((1i64 << bits) - 1)) as i32
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn next_double(&mut self) -> f64 {
        let high = i64::from(self.next(26)) << 27;
        (high + i64::from(self.next(27))) as f64 / (1u64 << 53) as f64
    }

    /// Normal by Marsaglia's polar method, two at a time.
    pub fn next_gaussian(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.next_double() - 1.0, 2.0 * self.next_double() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }
}

/// Scala's `MurmurHash3.bytesHash` of the seed's bytes, in two halves.
fn hashed_seed(seed: i64) -> i64 {
    let bytes = seed.to_be_bytes();
    let low = bytes_hash(&bytes, 0x3c07_4a61);
    let high = bytes_hash(&bytes, low);
    (i64::from(high) << 32) | (i64::from(low) & 0xffff_ffff)
}

fn bytes_hash(bytes: &[u8], seed: i32) -> i32 {
    let mut hash = seed as u32;
    for word in bytes.chunks_exact(4) {
        let mut key = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(0xcc9e_2d51);
        key = key.rotate_left(15).wrapping_mul(0x1b87_3593);
        hash = (hash ^ key).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    hash ^= bytes.len() as u32;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    (hash ^ hash >> 16) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_spark() {
        // rand(0) and randn(0) of Spark in a first partition.
        let mut source = XorShift::new(0);
        assert_eq!(source.next_double(), 0.7604953758285915);
        assert_eq!(source.next_double(), 0.5234194256885571);
        assert_eq!(XorShift::new(0).next_gaussian(), 1.6034991609278433);
    }
}
