//! Literals of messages as values with types, and back.

mod from_proto;
mod to_proto;

pub use from_proto::scalar_from_literal;
pub use to_proto::literal_from_scalar;

#[cfg(test)]
mod tests;
