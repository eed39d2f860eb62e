//! The embedded engine: relations resolved to DataFusion plans and run in this process.

pub mod context;
pub mod engine;
pub mod expression;
pub mod extension;
pub mod frame;
pub mod functions;
pub mod operator;
pub mod partitions;
pub mod relation;
pub mod session;

pub use context::ResolveContext;
pub use engine::{Engine, Options};
pub use extension::{ColumnFunction, Extensions, TransformStep};
pub use frame::{Column, Frame};
pub use relation::{children, matching};
pub use session::{Session, SqlOutcome};
