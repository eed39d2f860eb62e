//! Plan operators that Spark has and DataFusion lacks.
//!
//! All of them depend on which rows a partition holds and in which order, so no filter, limit or sort may move through
//! them: each is a node of its own that the optimizer sees nothing in but its columns.

mod cache;
mod fence;
mod ordered_coalesce;
mod partition_exec;
mod partition_node;
mod random;
mod sampler;

pub use cache::CacheNode;
pub use fence::FenceNode;
pub use ordered_coalesce::{InTurnRule, OrderedCoalesceExec, OrderedCoalesceRule, in_order};
pub use partition_node::{PartitionNode, PartitionOperation, SparkQueryPlanner, is_position_dependent};
pub use partition_exec::slices;
pub use random::XorShiftRandom;
