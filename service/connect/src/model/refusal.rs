//! What is wrong with a statement about models, or with its data: a variant a cause, with what a person needs to mend it.

use sql::model::Place;

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("the estimator {name} cannot be found")]
    EstimatorNotFound { name: String, known: Vec<String>, place: Place },
    #[error("{estimator} needs a label: add LABEL, or name a column `label`")]
    LabelMissing { estimator: String, columns: Vec<String> },
    #[error("column {name} cannot be resolved")]
    ColumnNotFound { name: String, columns: Vec<String>, place: Option<Place> },
    #[error("the query has no column that could be a feature")]
    NoFeatures { columns: Vec<String> },
    #[error("label {label} is {found}, but {estimator} needs {expected}")]
    LabelType { label: String, found: String, estimator: String, expected: &'static str, place: Option<Place> },
    #[error("feature {column} is {found}, which is no feature")]
    FeatureType { column: String, found: String },
    #[error("weight {column} is {found}, which is no number")]
    WeightType { column: String, found: String },
    #[error("column {column} is {found}, but model {model} version {version} was trained on {expected}")]
    InputType { model: String, version: u32, column: String, found: String, expected: String },
    #[error("model {model} version {version} requires {missing:?}")]
    FeatureNotFound { model: String, version: u32, missing: Vec<String>, columns: Vec<String> },

    #[error("option {option} is not an option of {estimator}")]
    OptionUnknown { option: String, estimator: String, known: Vec<String>, place: Place },
    #[error("option {option} of {estimator} requires {expected}, but got {found}")]
    OptionType { option: String, estimator: String, expected: String, found: String, place: Place },
    #[error("option {option} of {estimator} cannot be {value}{detail}")]
    OptionRange { option: String, estimator: String, value: String, detail: String, place: Place },
    #[error("{estimator} requires option {option}")]
    OptionRequired { option: String, estimator: String },
    #[error("option {option} says the same as {clause}")]
    OptionBesideClause { option: String, clause: &'static str, place: Place },

    #[error("label {label} is NULL or NaN in {rows} of {total} rows")]
    NullLabel { label: String, rows: u64, total: u64 },
    #[error("features are NULL or NaN")]
    NullFeature { columns: Vec<(String, u64)>, total: u64 },
    #[error("column {column} is infinite in {rows} of {total} rows")]
    Infinite { column: String, rows: u64, total: u64 },
    #[error("feature {column} has {found} categories, more than {max}")]
    TooManyCategories { column: String, found: u64, max: u64 },
    #[error("feature {column} has vectors of {first} and of {second} elements")]
    UnevenVectors { column: String, first: usize, second: usize },
    #[error("label {label} has {found} classes, more than {max}")]
    TooManyClasses { label: String, found: usize, max: usize },
    #[error("label {label} has one class {classes:?}; at least 2 are required")]
    SingleClass { label: String, classes: Vec<String> },
    #[error("{class} is no class of label {label}")]
    UnknownClass { label: String, class: String, classes: Vec<String> },
    #[error("weight {column} is negative or missing in {rows} of {total} rows")]
    InvalidWeight { column: String, rows: u64, total: u64 },
    #[error("{rows} rows cannot be split into {train}, {validation} and {test}")]
    SplitTooSmall { rows: usize, train: usize, validation: usize, test: usize },
    #[error("split column {column} is {found}")]
    SplitValue { column: String, found: String, place: Place },

    #[error("the stage {stage} cannot be found")]
    UnknownStage { stage: String, place: Place },
    #[error("the argument {argument} of {item} is not valid")]
    StageArgument { argument: String, item: String, place: Place },
    #[error("TRANSFORM reads the label {label}")]
    UsesLabel { label: String, place: Place },

    #[error("option {option} is fixed in OPTIONS and searched in TUNE")]
    FixedAndTuned { option: String, place: Place },
    #[error("the metric {metric} is not available for {estimator}")]
    MetricUnknown { metric: String, estimator: String, known: Vec<String>, place: Place },
    #[error("{metric} cannot be searched in that direction")]
    MetricDirection { metric: String, is_maximized: bool, place: Place },
    #[error("{what} is not valid: {detail}")]
    InvalidTuning { what: &'static str, detail: String, place: Place },
    #[error("EARLY STOP needs an estimator with iterations, which {estimator} is not")]
    NotIterative { estimator: String, place: Place },
    #[error("{found} trials are more than {max}")]
    TooManyTrials { found: u64, max: u64, place: Place },
    #[error("all {trials} trials failed")]
    AllTrialsFailed { trials: usize, first: String },

    #[error("requested {requested} workers but at most {available} are available")]
    TooFewWorkers { requested: i64, available: usize },
    #[error("model {model} version {version} cannot start {estimator}")]
    InvalidWarmStart { model: String, version: u32, detail: String, estimator: String, place: Place },
    #[error("{what} is not supported")]
    UnsupportedOperation { what: String },
    #[error("model {model} cannot be written as {format}")]
    UnsupportedFormat { model: String, format: String, supported: Vec<&'static str> },
    #[error("model {model} is {found}, not named by one or two names")]
    InvalidName { model: String, found: String },
    #[error("no authorizer is configured")]
    NoAuthorizer,
    /// A training that another statement cancelled.
    #[error("training {id} cannot be found")]
    TrainingNotFound { id: String },
}

impl Refusal {
    /// Where in the statement the cause stands, where one place is to blame.
    pub fn place(&self) -> Option<Place> {
        match self {
            Refusal::ColumnNotFound { place, .. } | Refusal::LabelType { place, .. } => *place,
            Refusal::EstimatorNotFound { place, .. }
            | Refusal::OptionUnknown { place, .. }
            | Refusal::OptionType { place, .. }
            | Refusal::OptionRange { place, .. }
            | Refusal::OptionBesideClause { place, .. }
            | Refusal::SplitValue { place, .. }
            | Refusal::UnknownStage { place, .. }
            | Refusal::StageArgument { place, .. }
            | Refusal::UsesLabel { place, .. }
            | Refusal::FixedAndTuned { place, .. }
            | Refusal::MetricUnknown { place, .. }
            | Refusal::MetricDirection { place, .. }
            | Refusal::InvalidTuning { place, .. }
            | Refusal::NotIterative { place, .. }
            | Refusal::TooManyTrials { place, .. }
            | Refusal::InvalidWarmStart { place, .. } => Some(*place),
            _ => None,
        }
    }
}
