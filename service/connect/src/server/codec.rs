//! Messages from the wire, refused when they nest deeper than a thread's stack carries.
//!
//! Decoding, walking and dropping a message recurse with its nesting. A plan of thousands of chained operations is
//! legal; what nests beyond [`DEPTH_MAX`] is answered with an error, never with an overflow.

use std::marker::PhantomData;

use bytes::Buf;
use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::ProstCodec;

/// Nested messages at most. An operation of a plan is two: a relation and its kind.
pub const DEPTH_MAX: usize = 24_000;

/// Protobuf with bounded nesting: `T` goes out, `U` comes in.
pub struct BoundedCodec<T, U> {
    messages: PhantomData<(T, U)>,
}

impl<T, U> Default for BoundedCodec<T, U> {
    fn default() -> BoundedCodec<T, U> {
        BoundedCodec { messages: PhantomData }
    }
}

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::default().encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder { message: PhantomData }
    }
}

pub struct BoundedDecoder<U> {
    message: PhantomData<U>,
}

impl<U: Message + Default> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let content = source.copy_to_bytes(source.remaining());
        if is_too_deep(&content) {
            let message = format!("the message nests deeper than {DEPTH_MAX} messages");
            return Err(Status::invalid_argument(message));
        }
        let decoded = U::decode(content).map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(Some(decoded))
    }
}

/// Whether encoded messages may nest deeper than [`DEPTH_MAX`]. Reads each byte at most once: a length-delimited field
/// counts as a message while it reads as one, and as a leaf from where it does not.
pub fn is_too_deep(content: &[u8]) -> bool {
    let mut position = 0;
    let mut ends = vec![content.len()];
    while let Some(end) = ends.last().copied() {
        if position == end {
            ends.pop();
            continue;
        }
        match field(&content[position..end]) {
            Some(Field::Scalar { size }) => position += size,
            Some(Field::Delimited { header, size }) => {
                position += header;
                ends.push(position + size);
                if ends.len() > DEPTH_MAX {
                    return true;
                }
            }
            None => {
                position = end;
                ends.pop();
            }
        }
    }
    false
}

enum Field {
    /// A whole field of this many bytes.
    Scalar { size: usize },
    /// A field whose content, of `size` bytes, begins after `header` bytes.
    Delimited { header: usize, size: usize },
}

/// The first field of a message; `None` when these bytes are no message.
fn field(content: &[u8]) -> Option<Field> {
    let (tag, tag_size) = varint(content)?;
    if tag >> 3 == 0 {
        return None;
    }
    let rest = &content[tag_size..];
    let size = match tag & 7 {
        0 => varint(rest)?.1,
        1 => 8,
        5 => 4,
        2 => {
            let (size, size_size) = varint(rest)?;
            let (header, size) = (tag_size + size_size, usize::try_from(size).ok()?);
            return (content.len() - header >= size).then_some(Field::Delimited { header, size });
        }
        _ => return None,
    };
    (rest.len() >= size).then_some(Field::Scalar { size: tag_size + size })
}

fn varint(content: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (index, byte) in content.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index).min(63);
        if byte & 0x80 == 0 {
            return Some((value, index + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> Vec<u8> {
        let mut reversed = Vec::new();
        for _ in 0..depth {
            let mut size = reversed.len();
            let mut header = vec![0x0a];
            loop {
                let byte = (size & 0x7f) as u8;
                size >>= 7;
                header.push(if size > 0 { byte | 0x80 } else { byte });
                if size == 0 {
                    break;
                }
            }
            reversed.extend(header.iter().rev());
        }
        reversed.reverse();
        reversed
    }

    #[test]
    fn depth_is_counted_to_its_limit() {
        assert!(!is_too_deep(&nested(1000)));
        assert!(!is_too_deep(&nested(DEPTH_MAX - 2)));
        assert!(is_too_deep(&nested(DEPTH_MAX + 1)));
    }

    #[test]
    fn bytes_that_are_no_message_are_leaves() {
        assert!(!is_too_deep(&[]));
        assert!(!is_too_deep(&[0xff; 64]));
        let mut content = vec![0x0a, 0x02, 0xff, 0xff];
        content.extend(nested(10));
        assert!(!is_too_deep(&content));
    }
}
