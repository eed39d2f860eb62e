//! What can go wrong between a relation and its rows, a variant a cause.
//!
//! `connect` maps each variant to Spark's error class, SQLSTATE and message; here are only the facts.

use datafusion::error::DataFusionError;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// UNRESOLVED_COLUMN.WITH_SUGGESTION / .WITHOUT_SUGGESTION. `name` and suggestions are not quoted here.
    #[error("column {name} cannot be resolved among {suggestions:?}")]
    UnresolvedColumn { name: String, suggestions: Vec<String> },
    /// AMBIGUOUS_REFERENCE.
    #[error("reference {name} is ambiguous, could be {candidates:?}")]
    AmbiguousReference { name: String, candidates: Vec<String> },
    /// CANNOT_RESOLVE_DATAFRAME_COLUMN.
    #[error("column {name} does not belong to any DataFrame of the query")]
    ForeignColumn { name: String },
    /// FIELD_NOT_FOUND: a struct has no such field.
    #[error("no such struct field {name} in {fields:?}")]
    FieldNotFound { name: String, fields: Vec<String> },
    /// UNRESOLVED_ROUTINE.
    #[error("function {name} cannot be resolved")]
    UnresolvedRoutine { name: String },
    /// WRONG_NUM_ARGS.WITHOUT_SUGGESTION. `expected` in words, such as `1` or `[1, 2]`.
    #[error("function {name} requires {expected} arguments, found {found}")]
    WrongNumArgs { name: String, expected: String, found: usize },
    /// DATATYPE_MISMATCH.<kind>: `expression` is Spark's SQL text of it.
    #[error("cannot resolve {expression}: {detail}")]
    DatatypeMismatch { kind: &'static str, expression: String, detail: String },
    /// TABLE_OR_VIEW_NOT_FOUND.
    #[error("table or view {name} cannot be found")]
    TableOrViewNotFound { name: String },
    /// TABLE_OR_VIEW_ALREADY_EXISTS.
    #[error("table or view {name} already exists")]
    TableOrViewAlreadyExists { name: String },
    /// SCHEMA_NOT_FOUND.
    #[error("schema {name} cannot be found")]
    SchemaNotFound { name: String },
    /// SCHEMA_ALREADY_EXISTS.
    #[error("schema {name} already exists")]
    SchemaAlreadyExists { name: String },
    /// SCHEMA_NOT_EMPTY.
    #[error("schema {name} has tables in it")]
    SchemaNotEmpty { name: String },
    /// TEMP_TABLE_OR_VIEW_ALREADY_EXISTS.
    #[error("temporary view {name} already exists")]
    TempViewAlreadyExists { name: String },
    /// COLUMN_ALREADY_EXISTS.
    #[error("column {name} already exists")]
    ColumnAlreadyExists { name: String },
    /// PATH_NOT_FOUND.
    #[error("path does not exist: {path}")]
    PathNotFound { path: String },
    /// PATH_ALREADY_EXISTS.
    #[error("path already exists: {path}")]
    PathAlreadyExists { path: String },
    /// UNABLE_TO_INFER_SCHEMA.
    #[error("unable to infer schema for {format}")]
    UnableToInferSchema { format: String },
    /// DATA_SOURCE_NOT_FOUND.
    #[error("data source {name} cannot be found")]
    DataSourceNotFound { name: String },
    /// PARSE_SYNTAX_ERROR and its kin; positions are 1-based.
    #[error("syntax error at or near {near} (line {line}, position {position}): {message}")]
    Syntax { near: String, line: u64, position: u64, message: String },
    /// UNBOUND_SQL_PARAMETER.
    #[error("unbound parameter {name}")]
    UnboundParameter { name: String },
    /// PARSE_DATATYPE / INVALID_SCHEMA: DDL text or JSON that is no type.
    #[error("cannot parse data type {text}: {message}")]
    InvalidDataType { text: String, message: String },
    /// NUM_COLUMNS_MISMATCH and INCOMPATIBLE_COLUMN_TYPE of set operations.
    #[error("{operator} can only be performed on inputs with the same number of columns, found {left} and {right}")]
    NumColumnsMismatch { operator: String, left: usize, right: usize },
    #[error("{operator} needs compatible column types, column {column} has {left} and {right}")]
    IncompatibleColumnType { operator: String, column: usize, left: String, right: String },
    /// MISSING_AGGREGATION.
    #[error("column {expression} is neither grouped nor aggregated")]
    MissingAggregation { expression: String },
    /// USER_RAISED_EXCEPTION: `raise_error` was evaluated.
    #[error("{message}")]
    UserRaised { message: String },
    /// CAST_INVALID_INPUT, DIVIDE_BY_ZERO, ARITHMETIC_OVERFLOW and other errors that a row's value causes; `class` is
    /// Spark's.
    #[error("{message}")]
    Row { class: &'static str, message: String, parameters: Vec<(&'static str, String)> },
    /// A request that contradicts itself or lacks a part: INVALID_PLAN_INPUT or CONNECT_INVALID_PLAN.*
    #[error("invalid plan: {detail}")]
    InvalidPlan { detail: String },
    /// CANNOT_MODIFY_STATIC_CONFIG / CANNOT_MODIFY_CONFIG.
    #[error("configuration key {key} belongs to the server and cannot be modified")]
    CannotModifyConf { key: String },
    /// INVALID_CONF_VALUE.
    #[error("configuration key {key} cannot be {value}: {detail}")]
    InvalidConfValue { key: String, value: String, detail: String },
    /// An option of a source or sink has a value it cannot have.
    #[error("option {option} of {format} cannot be {value}: {detail}")]
    InvalidOption { format: String, option: String, value: String, detail: String },
    /// What Spark has and this engine does not: UNSUPPORTED_FEATURE.
    #[error("{feature} is not supported")]
    Unsupported { feature: String },
    /// A plan has Python functions, and the server was started without Python.
    #[error("Python functions are not supported: the server was started without Python, see `python` of its configuration")]
    PythonOff,
    /// A Python function failed, or could not be run.
    #[error("{source}")]
    Python { #[source] source: python::Error },
    /// INVALID_PANDAS_UDF_PLACEMENT: aggregate Python functions beside others.
    #[error("the aggregate Python functions {functions:?} cannot stand beside other aggregate functions")]
    AggregatePlacement { functions: Vec<String> },
    /// ARROW_TYPE_MISMATCH: a Python function gives other columns than it declares.
    #[error("{operation} gives {found}, declared is {expected}")]
    ArrowTypeMismatch { operation: String, expected: String, found: String },
    /// An error of the crate that supplied the extension; it carries its own Spark class.
    #[error("{source}")]
    Extension { source: Box<dyn std::error::Error + Send + Sync> },
    /// DataFusion refused the plan or failed to run it.
    #[error("{source}")]
    DataFusion { #[source] source: DataFusionError },
    #[error("{source}")]
    Arrow { #[source] source: arrow::error::ArrowError },
    #[error("{path}: {source}")]
    Io { path: String, #[source] source: std::io::Error },
    #[error("{source}")]
    ObjectStore { #[source] source: object_store::Error },
    /// A partition could not be read from the server that holds it.
    #[error("read partition from {uri}")]
    Flight { uri: String, #[source] source: Box<arrow_flight::error::FlightError> },
    /// SQL text that is wrong in another way than its syntax.
    #[error("{source}")]
    Sql { #[source] source: sql::Error },
    /// The operation was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// An invariant of this crate does not hold: our own bug.
    #[error("broken invariant: {invariant}")]
    Bug { invariant: String },
}

impl From<DataFusionError> for Error {
    /// Recovers an error of ours that crossed DataFusion (a column function's, say); wraps any other.
    fn from(source: DataFusionError) -> Error {
        match source {
            DataFusionError::External(external) => match external.downcast::<Error>() {
                Ok(ours) => *ours,
                Err(external) => Error::DataFusion { source: DataFusionError::External(external) },
            },
            DataFusionError::ArrowError(source, None) => Error::from(*source),
            DataFusionError::Context(context, source) => match Error::from(*source) {
                Error::DataFusion { source } => Error::DataFusion { source: source.context(context) },
                ours => ours,
            },
            source => Error::DataFusion { source },
        }
    }
}

impl From<python::Error> for Error {
    /// Recovers an error of ours that a worker's input had.
    fn from(source: python::Error) -> Error {
        match source {
            python::Error::Input { source } => match source.downcast::<Error>() {
                Ok(ours) => *ours,
                Err(source) => Error::Python { source: python::Error::Input { source } },
            },
            source => Error::Python { source },
        }
    }
}

impl From<sql::Error> for Error {
    fn from(source: sql::Error) -> Error {
        match source {
            sql::Error::Syntax { near, line, column, message } => {
                Error::Syntax { near, line, position: column, message }
            }
            sql::Error::UnboundParameter { name } => Error::UnboundParameter { name },
            sql::Error::Unsupported { statement } => Error::Unsupported { feature: statement },
            sql::Error::UnsupportedSyntax { construct } => Error::Unsupported { feature: construct },
            source => Error::Sql { source },
        }
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(source: arrow::error::ArrowError) -> Error {
        match source {
            arrow::error::ArrowError::ExternalError(external) => match external.downcast::<Error>() {
                Ok(ours) => *ours,
                Err(external) => match external.downcast::<DataFusionError>() {
                    Ok(source) => Error::from(*source),
                    Err(external) => Error::Arrow { source: arrow::error::ArrowError::ExternalError(external) },
                },
            },
            source => Error::Arrow { source },
        }
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> DataFusionError {
        match error {
            Error::DataFusion { source } => source,
            error => DataFusionError::External(Box::new(error)),
        }
    }
}
