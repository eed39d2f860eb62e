//! What can be wrong with a statement, each cause with what a person needs to find it.

use crate::model::Place;

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

    /// A clause, or an option of one, that is there twice (Spark's `DUPLICATE_CLAUSES`).
    #[error("found duplicate clauses: {clause}")]
    DuplicateClause { clause: &'static str, place: Place },
    /// OR REPLACE and IF NOT EXISTS contradict each other.
    #[error("cannot train a model with both IF NOT EXISTS and REPLACE specified")]
    TrainReplaceAndIfNotExists { place: Place },
    /// A name that needs backticks (Spark's `INVALID_IDENTIFIER`).
    #[error("the unquoted identifier {name} is invalid and must be back quoted as: `{name}`")]
    InvalidIdentifier { name: String, place: Place },
    /// A literal or parameter of another type than the clause needs.
    #[error("{what} needs a constant of type {expected}, but found {found}")]
    NotAConstant { what: &'static str, expected: &'static str, found: String, place: Place },
    /// An option whose value is not known before anything runs.
    #[error("the value {expression} of option {key} is no constant")]
    OptionNotFoldable { key: String, expression: String, place: Place },
    #[error("option {key} has no value")]
    OptionWithoutValue { key: String, place: Place },
    /// A key that is there twice (Spark's `DUPLICATE_KEY`).
    #[error("found duplicate keys {key}")]
    DuplicateKey { key: String, place: Place },
    #[error("fractions must be in (0,1) and sum to 1, but got {found}")]
    SplitFractions { found: String, place: Place },
    /// SPLIT beside VALIDATE ON.
    #[error("SPLIT and VALIDATE ON both say what to validate on")]
    SplitConflict { place: Place },
    #[error("a grid cannot search the range of {key}: list its values with IN")]
    RangeInGrid { key: String, place: Place },
    #[error("{key} cannot be searched between {low} and {high}")]
    TuneRange { key: String, low: String, high: String, place: Place },
    /// An expression of TRANSFORM that needs more than its row.
    #[error("the expression {expression} cannot be replayed at prediction time")]
    TransformNotRowwise { expression: String, place: Place },

    /// A call of a model function without an argument it needs (Spark's `REQUIRED_PARAMETER_NOT_FOUND`).
    #[error("{routine} needs the parameter {parameter}")]
    RequiredParameter { routine: &'static str, parameter: &'static str, index: usize },
    /// A named argument that the function has not (Spark's `UNRECOGNIZED_PARAMETER_NAME`).
    #[error("{routine} has no parameter {parameter}")]
    UnrecognizedParameter { routine: &'static str, parameter: String, known: Vec<&'static str> },
    #[error("{routine} is given the parameter {parameter} twice")]
    ParameterTwice { routine: &'static str, parameter: String },
    /// Spark's `NOT_A_CONSTANT_STRING`.
    #[error("the expression {expression} used for {clause} must be a constant STRING which is NOT NULL")]
    NotAConstantString { expression: String, clause: &'static str },
}

impl Error {
    /// Where in the text the cause stands, where it is known.
    pub fn place(&self) -> Option<Place> {
        match self {
            Error::Syntax { line, column, near, .. } if *line > 0 => {
                let length = near.trim_matches('\'').chars().count().max(1) as u64;
                let length = if near == "end of input" { 1 } else { length };
                Some(Place { line: *line, column: *column, length })
            }
            Error::DuplicateClause { place, .. }
            | Error::TrainReplaceAndIfNotExists { place }
            | Error::InvalidIdentifier { place, .. }
            | Error::NotAConstant { place, .. }
            | Error::OptionNotFoldable { place, .. }
            | Error::OptionWithoutValue { place, .. }
            | Error::DuplicateKey { place, .. }
            | Error::SplitFractions { place, .. }
            | Error::SplitConflict { place }
            | Error::RangeInGrid { place, .. }
            | Error::TuneRange { place, .. }
            | Error::TransformNotRowwise { place, .. } => Some(*place),
            _ => None,
        }
    }
}

/// Short form for a part of a query that is not offered.
pub(crate) fn unsupported<T>(construct: impl Into<String>) -> Result<T, Error> {
    Err(Error::UnsupportedSyntax { construct: construct.into() })
}
