//! What a call is, as every message tells it: ranks whose signatures differ are not in the same call.

use crate::{element::ElementType, error::Error, reduce_op::ReduceOp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Collective {
    AllReduce = 1,
    ReduceScatter = 2,
    AllGather = 3,
    Broadcast = 4,
    Barrier = 5,
    Join = 6,
}

impl Collective {
    const NAMES: [&str; 7] = ["?", "all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier", "join"];

    pub fn name(code: u8) -> &'static str {
        Self::NAMES.get(usize::from(code)).copied().unwrap_or("?")
    }

    pub fn code(name: &str) -> u8 {
        Self::NAMES.iter().position(|known| *known == name).unwrap_or(0) as u8
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signature {
    generation: u64,
    /// Counts the calls of the group from 1.
    pub sequence: u64,
    collective: u8,
    element_type: u8,
    op: u8,
    root: u32,
    /// In elements. 0 where ranks may differ.
    length: u64,
}

impl Signature {
    pub const WORDS: usize = 4;
    pub const BYTES: usize = 8 * Self::WORDS;

    pub fn new(collective: Collective, element_type: ElementType, length: usize) -> Signature {
        Signature {
            generation: 0,
            sequence: 0,
            collective: collective as u8,
            element_type: element_type as u8,
            op: 0,
            root: 0,
            length: length as u64,
        }
    }

    pub fn with_op(self, op: ReduceOp) -> Signature {
        Signature { op: op as u8, ..self }
    }

    pub fn with_root(self, root: usize) -> Signature {
        Signature { root: root as u32, ..self }
    }

    pub fn as_call(self, sequence: u64, generation: u64) -> Signature {
        Signature { generation, sequence, ..self }
    }

    pub fn collective(&self) -> &'static str {
        Collective::name(self.collective)
    }

    pub fn to_words(self) -> [u64; Self::WORDS] {
        let [r0, r1, r2, r3] = self.root.to_le_bytes();
        let packed = [self.collective, self.element_type, self.op, 0, r0, r1, r2, r3];
        [self.generation, self.sequence, u64::from_le_bytes(packed), self.length]
    }

    pub fn from_words([generation, sequence, packed, length]: [u64; Self::WORDS]) -> Signature {
        let [collective, element_type, op, _, r0, r1, r2, r3] = packed.to_le_bytes();
        let root = u32::from_le_bytes([r0, r1, r2, r3]);
        Signature { generation, sequence, collective, element_type, op, root, length }
    }

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.to_words()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Signature {
        let mut words = [0; Self::WORDS];
        for (word, place) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*place);
        }
        Signature::from_words(words)
    }

    pub fn mismatch(&self, rank: usize, found: &Signature) -> Error {
        Error::Mismatch { rank, expected: self.describe(), found: found.describe() }
    }

    fn describe(&self) -> String {
        format!(
            "{} of {} {} ({}, root {}) as call {} of generation {}",
            self.collective(),
            self.length,
            ElementType::name(self.element_type),
            ReduceOp::name(self.op),
            self.root,
            self.sequence,
            self.generation
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_survives_its_bytes() {
        let signature = Signature {
            generation: 7,
            sequence: u64::MAX,
            ..Signature::new(Collective::Broadcast, ElementType::BF16, 99).with_root(70_000).with_op(ReduceOp::Max)
        };
        assert_eq!(Signature::from_bytes(&signature.to_bytes()), signature);
        assert_eq!(
            signature.describe(),
            "broadcast of 99 bf16 (max, root 70000) as call 18446744073709551615 of generation 7"
        );
    }
}
