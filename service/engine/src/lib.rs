//! Runs relations and SQL, and gives their partitions.
//!
//! A relation is Spark Connect's own message: it is the unresolved plan, the same for a client's DataFrame and for SQL text
//! (crate `sql` turns text into it). The embedded engine resolves it, with Spark's rules for names and types, into a
//! DataFusion plan over which everything is lazy.
//!
//! Knows: Spark's plan messages, DataFusion, files. Must not know: gRPC sessions and operations, gangs, models and
//! algorithms (a model's transform comes in as column functions through [`embedded::Extensions`]).

pub mod conf;
pub mod data_type;
pub mod embedded;
pub mod error;
pub mod flight;
pub mod literal;
pub mod registered;
pub mod show;
pub mod source;

pub use conf::Conf;
pub use error::{Error, Result};
pub use python::Error as PythonError;
