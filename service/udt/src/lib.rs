//! Spark's user-defined types and column metadata, as Arrow holds them.
//!
//! A Spark column is more than an Arrow type: it may be a vector or a matrix (a user-defined type over a struct), and it
//! carries a JSON object of metadata in which Spark ML keeps class counts, level names and feature names. Both travel in
//! the metadata of the Arrow field, under the keys of [`field`], through every plan and file.
//!
//! Knows: Arrow, the shape of Spark's vectors and matrices. Must not know: plans, messages, algorithms, tensors.

pub mod field;
pub mod matrix;
pub mod vector;
mod vector_array;

pub use matrix::Matrix;
pub use vector::Vector;
pub use vector_array::{VectorArray, VectorBuilder, VectorRow};

/// Why an Arrow array could not be read as a Spark vector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("expected a vector column, found {found}")]
    NotAVector { found: String },
    #[error("row {row} is null where a vector is required")]
    NullVector { row: usize },
    #[error("row {row} has vector type {found}, expected 0 (sparse) or 1 (dense)")]
    UnknownStorage { row: usize, found: i8 },
    #[error("row {row} holds a sparse vector with {indices} indices and {values} values of size {size}")]
    MalformedSparse { row: usize, indices: usize, values: usize, size: i64 },
}

pub type Result<T> = std::result::Result<T, Error>;
