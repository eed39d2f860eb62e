//! The shape of every fit: what a rank is given, and what it gives back.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use collective::Group;

use crate::checkpoint::Checkpointer;
use crate::{Error, Progress, Result};

/// A rank's share of the data, read once, in order. A rank may have no rows at all, but always has the schema.
pub struct Partition<'a> {
    pub schema: SchemaRef,
    pub record_batches: &'a mut dyn Iterator<Item = Result<RecordBatch>>,
}

/// What a rank program is given.
pub struct RankContext<'a> {
    /// The collectives; also says which rank this is, of how many.
    pub group: &'a Group,
    /// This rank's own rows.
    pub partition: Partition<'a>,
    /// Where steps are reported, and where a cancel is seen.
    pub progress: &'a dyn Progress,
    /// Where the state between steps is kept for another generation, and found.
    pub checkpoints: &'a dyn Checkpointer,
}

impl RankContext<'_> {
    pub fn rank(&self) -> usize {
        self.group.rank()
    }

    pub fn world_size(&self) -> usize {
        self.group.world_size()
    }

    /// Ends the program when its job was cancelled; to be called once a step.
    pub fn check_cancelled(&self) -> Result<()> {
        match self.progress.cancelled() {
            Some(reason) => Err(Error::Cancelled { reason }),
            None => Ok(()),
        }
    }
}

/// A function that all ranks of a gang run together. It is found by name, since a gang carries names and bytes.
#[derive(Clone, Copy)]
pub struct RankProgram {
    pub name: &'static str,
    /// `spec` is what the estimator planned (JSON). Every rank must make the same collective calls in the same order,
    /// whatever its rows are. Rank 0's bytes are the fitted model; other ranks return an empty vector.
    pub run: fn(spec: &[u8], ctx: &mut RankContext<'_>) -> Result<Vec<u8>>,
}
