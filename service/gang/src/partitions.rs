//! Where the ranks of a generation find their data.

use std::error::Error as StdError;
use std::fmt::Debug;

use bytes::Bytes;

/// Says where each rank finds its data. A partition may be readable only once, and a generation may have fewer ranks than
/// the one before, so every generation asks anew.
#[async_trait::async_trait]
pub trait Partitions: Debug + Send + Sync {
    /// Returns one entry a rank, which the coordinator passes on unread.
    ///
    /// # Errors
    /// Why the data cannot be read (again); the job fails with it.
    async fn prepare(&self, generation: u32, num_ranks: usize) -> Result<Vec<Bytes>, Box<dyn StdError + Send + Sync>>;
}

/// The same for every generation; for so many ranks, and no other number.
#[async_trait::async_trait]
impl Partitions for Vec<Bytes> {
    async fn prepare(&self, _generation: u32, _num_ranks: usize) -> Result<Vec<Bytes>, Box<dyn StdError + Send + Sync>> {
        Ok(self.clone())
    }
}
