//! Networks trained across ranks: TorchScript modules, data parallel, each rank on its own rows.
//!
//! Parameters and gradients are one flat buffer each. A backward pass adds to the buffer directly, and each bucket of it
//! is reduced as soon as all ranks have it, on a thread of its own while the pass goes on. The step then updates the flat
//! parameters in one sweep, alike on every rank.
//!
//! Which rows make a step depends on the rows and the seed only, not on which rank holds them ([`sampler`]). So N ranks
//! train as one would, a partition may be short or empty, and a fit can go on with another number of ranks.

mod columns;
mod flat;
mod loss;
mod native;
mod optimizer;
mod options;
mod order;
mod reducer;
mod sampler;
mod schedule;
mod state;
mod trainer;
mod validation;

pub use columns::{Column, ColumnKind, Columns};
pub use loss::Loss;
pub use native::ScriptModule;
pub use optimizer::{Moments, Optimizer};
pub use options::{EarlyStopping, LossKind, Options, Precision, Sharding, Wire};
pub use schedule::Schedule;
pub use trainer::{Trained, train};

#[cfg(test)]
mod tests;
