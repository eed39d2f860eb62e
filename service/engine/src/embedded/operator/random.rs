//! The random numbers of Spark's samples, so that a sample of the same rows in the same partitions is the same sample.

/// Spark's `XORShiftRandom`: a 64-bit xorshift whose seed is hashed.
#[derive(Debug, Clone)]
pub struct XorShiftRandom {
    state: u64,
    /// The second half of the last pair of normal deviates.
    next_gaussian: Option<f64>,
}

impl XorShiftRandom {
    pub fn new(seed: i64) -> XorShiftRandom {
        XorShiftRandom { state: hash_seed(seed), next_gaussian: None }
    }

    fn next_bits(&mut self, bits: u32) -> u32 {
        let mut next = self.state ^ (self.state << 21);
        next ^= next >> 35;
        next ^= next << 4;
        self.state = next;
        (next & ((1 << bits) - 1)) as u32
    }

    /// A double in `[0, 1)`.
    pub fn next_double(&mut self) -> f64 {
        let high = u64::from(self.next_bits(26)) << 27;
        let low = u64::from(self.next_bits(27));
        (high + low) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A normal deviate, by the polar method of `java.util.Random`.
    pub fn next_gaussian(&mut self) -> f64 {
        if let Some(next) = self.next_gaussian.take() {
            return next;
        }
        loop {
            let x = 2.0 * self.next_double() - 1.0;
            let y = 2.0 * self.next_double() - 1.0;
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let multiplier = (-2.0 * square.ln() / square).sqrt();
                self.next_gaussian = Some(y * multiplier);
                return x * multiplier;
            }
        }
    }

    /// A Poisson deviate, by multiplication of uniforms; `mean` is a sampling fraction, so small.
    pub fn next_poisson(&mut self, mean: f64) -> usize {
        let limit = (-mean).exp();
        let mut product = self.next_double();
        let mut count = 0;
        while product > limit {
            count += 1;
            product *= self.next_double();
        }
        count
    }
}

fn hash_seed(seed: i64) -> u64 {
    let bytes = seed.to_be_bytes();
    let low = murmur3(&bytes, 0x3c07_4a61);
    let high = murmur3(&bytes, low);
    (u64::from(high) << 32) | u64::from(low)
}

/// MurmurHash3 (32 bits) of eight bytes.
fn murmur3(bytes: &[u8; 8], seed: u32) -> u32 {
    let mut hash = seed;
    for word in bytes.chunks_exact(4) {
        let mut key = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        key = key.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        hash = (hash ^ key).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    hash ^= bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_double_of_seed_42_is_what_spark_gives_in_partition_0() {
        // spark.range(1).select(rand(42)) in one partition.
        assert_eq!(XorShiftRandom::new(42).next_double(), 0.619189370225301);
    }
}
