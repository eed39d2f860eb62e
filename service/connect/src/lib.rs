//! The Spark Connect service: what a stock client talks to.
//!
//! Layout, in the order a request meets it: `server` (dispatch) -> `rpc` (one file a method) -> `session`, `operation`
//! (who runs what) -> `command` (what a plan does) -> `ml` (training and models), `model` (models by name, for SQL) -> `response` (the buffered stream back)
//! -> `error` (the one table from our errors to Spark's).
//!
//! Knows: Spark Connect's messages and gRPC, sessions and operations. Must not know: how a relation is run, what an
//! algorithm computes, the sockets and processes of ranks.

mod artifact;
mod command;
mod error;
mod job_record;
mod metrics;
mod ml;
mod model;
mod operation;
mod options;
mod plan;
mod response;
mod rpc;
mod server;
mod services;
mod session;

pub use error::{Error, Result};
pub use job_record::JobsFolder;
pub use metrics::Metrics;
pub use ml::PartitionAddress;
pub use model::{ModelStore, Refusal};
pub use operation::Operation;
pub use options::Options;
pub use server::serve;
pub use services::Services;
pub use session::Session;
