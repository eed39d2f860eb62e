//! How bytes move between two ranks: through memory they share, or through a TCP connection.

pub(crate) mod poll;
pub(crate) mod shared_memory;
pub(crate) mod tcp;
