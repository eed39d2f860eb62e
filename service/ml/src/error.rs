//! Why an operator refused, a variant a cause; `connect` maps them to Spark's classes.

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// UNSUPPORTED: Spark has the operator, this server does not; or nobody has it.
    #[error("operator {class} is not supported")]
    OperatorNotSupported { class: String },
    /// CONNECT_ML.ATTRIBUTE_NOT_ALLOWED
    #[error("{method} in {class} is not allowed to be accessed")]
    AttributeNotAllowed { class: String, method: String },
    #[error("param {param} does not exist in {operator}")]
    UnknownParam { operator: String, param: String, known: Vec<String> },
    #[error("{operator} parameter {param} given invalid value {value}{detail}")]
    InvalidParam { operator: String, param: String, value: String, detail: String },
    #[error("param {param} of {operator} is not set and has no default")]
    ParamNotSet { operator: String, param: String },
    /// UNRESOLVED_COLUMN.WITH_SUGGESTION
    #[error("column {name} does not exist, available: {available:?}")]
    ColumnNotFound { name: String, available: Vec<String> },
    /// A column of a type the operator cannot take: Spark's IllegalArgumentException.
    #[error("requirement failed: Column {column} must be of type {expected} but was actually {found}.")]
    ColumnType { column: String, expected: String, found: String },
    #[error("requirement failed: Output column {name} already exists.")]
    OutputColumnExists { name: String },
    /// A row's value that the operator refuses: names the column and the value.
    #[error("{message}")]
    InvalidRow { message: String },
    /// The data cannot be trained on or evaluated: names column, value, count.
    #[error("{message}")]
    InvalidData { class: String, message: String },
    #[error("{feature} is not supported")]
    Unsupported { feature: String },
    /// A saved operator that cannot be read: which file, and why.
    #[error("{path}: {detail}")]
    Corrupted { path: String, detail: String },
    #[error("path already exists: {path}")]
    PathExists { path: String },
    #[error("path does not exist: {path}")]
    PathNotFound { path: String },
    #[error("vector: {source}")]
    Vector {
        #[from]
        source: udt::Error,
    },
    #[error("train: {source}")]
    Train {
        #[from]
        source: train::Error,
    },
    #[error("arrow: {source}")]
    Arrow {
        #[from]
        source: arrow::error::ArrowError,
    },
    #[error("parquet: {source}")]
    Parquet {
        #[from]
        source: parquet::errors::ParquetError,
    },
    #[error("store: {source}")]
    Store {
        #[from]
        source: object_store::Error,
    },
    #[error("broken invariant: {invariant}")]
    Bug { invariant: String },
}
