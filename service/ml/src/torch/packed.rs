//! Several runs of bytes as one, each after its length.

pub fn pack(parts: &[&[u8]]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        packed.extend_from_slice(&(part.len() as u64).to_le_bytes());
        packed.extend_from_slice(part);
    }
    packed
}

/// `None` for bytes that [`pack`] did not make.
pub fn unpack(mut packed: &[u8]) -> Option<Vec<&[u8]>> {
    let mut parts = Vec::new();
    while !packed.is_empty() {
        let (length, rest) = packed.split_at_checked(8)?;
        let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
        let (part, rest) = rest.split_at_checked(length)?;
        parts.push(part);
        packed = rest;
    }
    Some(parts)
}
