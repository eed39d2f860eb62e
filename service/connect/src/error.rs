//! What can go wrong behind a call, and the one table from our errors to Spark's.
//!
//! [`Error`] has a variant a cause, or wraps the error of the crate that found it. [`report::Report`] is the same error
//! in Spark's terms (error class, SQLSTATE, message, parameters, exception classes), which is what clients branch on.

mod condition;
mod engine;
mod exception;
mod gang;
mod ml;
mod model;
mod report;
mod service;
mod sql;

pub use report::Report;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Engine(#[from] ::engine::Error),
    #[error(transparent)]
    Ml(#[from] ::ml::Error),
    #[error(transparent)]
    Gang(#[from] ::gang::Error),
    #[error(transparent)]
    Sql(#[from] ::sql::Error),
    #[error(transparent)]
    Train(#[from] ::train::Error),
    #[error(transparent)]
    Model(#[from] crate::model::Refusal),
    #[error(transparent)]
    Registry(#[from] ::registry::Error),
    /// An error of a statement whose text shows where its cause stands.
    #[error("{source}")]
    InText { text: String, place: ::sql::model::Place, source: Box<Error> },

    /// A session or operation id that is no UUID.
    #[error("handle {handle} is no UUID")]
    MalformedHandle { handle: String },
    #[error("operation {id} does not exist")]
    OperationNotFound { id: String },
    #[error("operation {id} was dropped because nobody read its results")]
    OperationAbandoned { id: String },
    #[error("operation {id} already exists")]
    OperationExists { id: String },
    #[error("session {id} does not exist")]
    SessionNotFound { id: String },
    #[error("session {id} was closed")]
    SessionClosed { id: String },
    /// The client remembers a session of this id that another process of this server held.
    #[error("session {id} belongs to an earlier run of the server")]
    SessionChanged { id: String },
    #[error("a newer stream took over operation {id}")]
    CursorDisconnected { id: String },
    #[error("operation {id} cannot be reattached to")]
    NotReattachable { id: String },
    #[error("response {response_id} at {index} is no longer kept")]
    CursorNotAvailable { response_id: String, index: u64 },
    #[error("response {response_id} does not exist")]
    CursorNotFound { response_id: String },
    #[error("cancelled")]
    Cancelled,

    /// A message lacks a part: `field` of `message`, by their protobuf names.
    #[error("{field} of {message} is not set")]
    NotSet { message: &'static str, field: &'static str },
    #[error("{number} is no value of {enumeration}")]
    UnknownEnumValue { enumeration: &'static str, number: i32 },
    #[error("only relations can be analyzed")]
    NotARelation,
    #[error("a SQL command needs SQL text, with or without relations it refers to")]
    NotSqlText,
    #[error("compressed plan: {detail}")]
    UnreadablePlan { detail: String },
    #[error("the plan has more than {bytes_max} bytes")]
    PlanTooLarge { bytes: usize, bytes_max: usize },
    #[error("tag {tag:?} is empty or has a comma")]
    InvalidTag { tag: String },
    #[error("an interrupt by tag needs a tag")]
    InterruptWithoutTag,
    #[error("an interrupt by operation id needs an id")]
    InterruptWithoutOperation,
    #[error("no plugin handles {type_url}")]
    NoHandlerForExtension { type_url: String },
    #[error("configuration key {key} has no value")]
    ConfNotFound { key: String },

    #[error("clone target {id} is no UUID")]
    CloneTargetMalformed { id: String },
    #[error("clone target {id} was closed")]
    CloneTargetClosed { id: String },
    #[error("clone target {id} exists")]
    CloneTargetExists { id: String },

    #[error("artifact name {name:?} is no path below its kind")]
    InvalidArtifactName { name: String },
    #[error("artifact {name}: {detail}")]
    InvalidArtifactStream { name: String, detail: String },
    #[error("the artifacts of a session may hold {bytes_max} bytes")]
    ArtifactsTooLarge { bytes_max: usize },
    #[error("local file system destinations are switched off")]
    LocalDestinationOff,
    #[error("{path}: {source}")]
    Io {
        path: String,
        #[source]
        source: std::io::Error,
    },

    /// A model, estimator or summary of this id is not in the session's cache.
    #[error("{id} is not in the session's cache")]
    ObjectNotFound { id: String },
    /// The model was evicted from memory, and its training summary with it; clients then make a new summary.
    #[error("the summary of model {id} is lost")]
    SummaryLost { id: String },

    #[error("serve: {source}")]
    Serve { source: tonic::transport::Error },
    /// What Spark Connect has and this server does not.
    #[error("{feature} is not supported")]
    Unsupported { feature: String },
    /// A configuration key of ours has a value that it cannot have.
    #[error("configuration key {key} cannot be {value}, expected {expected}")]
    InvalidConf { key: &'static str, value: String, expected: &'static str },
    /// A message to a rank could not be written.
    #[error("encode: {source}")]
    Encode { source: serde_json::Error },
    /// A task of an operation did not come back: it panicked.
    #[error("task: {source}")]
    Task { source: tokio::task::JoinError },
    #[error("record batches: {source}")]
    Arrow {
        #[from]
        source: arrow::error::ArrowError,
    },
    /// The task of an operation panicked: our own bug, caught at the task's boundary.
    #[error("panicked: {message}")]
    Panicked { message: String },
    /// An invariant of this crate does not hold: our own bug.
    #[error("broken invariant: {invariant}")]
    Bug { invariant: &'static str },
}

impl Error {
    /// The error as a gRPC status; its details are lost, so only for errors that no session can keep.
    pub fn status(&self) -> tonic::Status {
        Report::from(self).status()
    }

    /// For errors that cross the engine, as those of a model's column function do; the table unwraps them again.
    pub fn into_engine(self) -> ::engine::Error {
        match self {
            Error::Engine(error) => error,
            error => ::engine::Error::Extension { source: Box::new(error) },
        }
    }

    /// The error with the place of its cause in a statement's text, where it has one.
    pub fn in_text(self, text: &str) -> Error {
        let place = match &self {
            Error::Model(refusal) => refusal.place(),
            Error::Sql(error) => error.place(),
            _ => None,
        };
        match place {
            Some(place) if place.line > 0 => Error::InText { text: text.to_string(), place, source: Box::new(self) },
            _ => self,
        }
    }

    /// What a task that did not come back ended with.
    pub fn from_join(error: tokio::task::JoinError) -> Error {
        match error.try_into_panic() {
            Ok(payload) => Error::Panicked { message: panic_message(payload.as_ref()) },
            Err(_) => Error::Cancelled,
        }
    }
}

fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    if let Some(message) = payload.downcast_ref::<&str>() {
        (*message).to_string()
    } else if let Some(message) = payload.downcast_ref::<String>() {
        message.clone()
    } else {
        "no message".to_string()
    }
}

#[cfg(test)]
mod tests;
