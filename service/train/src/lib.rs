//! What every training has in common: a rank's data as tensor batches, the rank program, optimizers, losses.
//!
//! A *rank program* is a function that every rank of a gang runs, given its own partition of the data, the gang's
//! collectives and the params; rank 0 returns the model. One rank is world size 1, never a path of its own.
//!
//! Knows: Arrow arrays, tensors, collectives. Must not know: gRPC, gangs and processes, Spark's plans, files of models.

pub mod batch;
pub mod bits;
pub mod checkpoint;
pub mod cholesky;
pub mod error;
pub mod gram;
pub mod kernel;
pub mod loss;
pub mod moments;
pub mod network;
pub mod optim;
pub mod progress;
pub mod rank_program;
pub mod sweep;

pub use error::{Error, Result};
pub use progress::{Progress, Step};
pub use rank_program::{Partition, RankContext, RankProgram};
