//! What can be wrong with a statement, each cause with what a person needs to find it.

/// Why a text did not become a statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not Spark SQL (Spark's `PARSE_SYNTAX_ERROR`).
    #[error("syntax error at or near {near}: {message} (line {line}, column {column})")]
    Syntax {
        /// The token where parsing stopped, quoted, or `end of input`.
        near: String,
        /// From 1; 0 where unknown.
        line: u64,
        /// From 1; 0 where unknown.
        column: u64,
        message: String,
    },
    /// The text is empty or holds only comments.
    #[error("the statement is empty")]
    Empty,
    /// A whole statement that is valid in Spark and not offered here.
    #[error("the statement {statement} is not supported")]
    Unsupported {
        /// Its first words, in capitals.
        statement: String,
    },
    /// A part of a query that is valid in Spark and not offered here.
    #[error("{construct} is not supported")]
    UnsupportedSyntax { construct: String },
    /// A parameter marker without a value (Spark's `UNBOUND_SQL_PARAMETER`).
    #[error("no value was given for the parameter {name}")]
    UnboundParameter {
        /// The name without its colon, or the position from 0 of a `?`.
        name: String,
    },
    /// A literal outside its type (Spark's `INVALID_TYPED_LITERAL`, `INVALID_NUMERIC_LITERAL_RANGE`).
    #[error("{literal} is not a valid {type_name} literal: {reason}")]
    InvalidLiteral { literal: String, type_name: &'static str, reason: String },
    /// An ordinal in GROUP BY or ORDER BY that names no column.
    #[error("{clause} position {position} is not in the select list of {columns} columns")]
    PositionOutOfRange { clause: &'static str, position: i64, columns: usize },
    /// An aggregate function in GROUP BY.
    #[error("aggregate functions are not allowed in GROUP BY, but found {expression}")]
    AggregateInGroupBy { expression: String },
    /// A named window that the query does not define.
    #[error("the window {name} is not defined")]
    UnknownWindow { name: String },
    /// LIMIT, OFFSET or TABLESAMPLE with something else than a constant in range.
    #[error("{clause} needs a constant from 0 to {max}, but found {found}")]
    InvalidLimit { clause: &'static str, max: i64, found: String },
    /// Alias lists or rows whose lengths differ.
    #[error("{what} has {found} columns, but {expected} were expected")]
    ColumnCount { what: String, found: usize, expected: usize },
    /// The machine gave no thread to parse on.
    #[error("the parsing thread could not be started: {reason}")]
    NoThread { reason: String },
    /// Nesting beyond what the server processes.
    #[error("the statement is nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    /// A plan that grew beyond what the server processes, as chains of CTEs used twice do.
    #[error("the statement grows to more than {limit} relations")]
    TooLarge { limit: usize },
}

/// Short form for a part of a query that is not offered.
pub(crate) fn unsupported<T>(construct: impl Into<String>) -> Result<T, Error> {
    Err(Error::UnsupportedSyntax { construct: construct.into() })
}
