//! What can go wrong with a Python task, a variant a cause.

use std::sync::Arc;

use arrow::error::ArrowError;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configured interpreter is not what a server needs.
    #[error("Python functions cannot run with {interpreter}: {detail}")]
    Interpreter { interpreter: String, detail: String },
    /// The function was pickled by a Python whose bytecode the server's cannot read.
    #[error("the client pickled its function with Python {client}, the server's workers have {worker}")]
    VersionMismatch { client: String, worker: String },
    /// All workers are busy, and stayed so.
    #[error("none of {workers_max} Python workers came free within {waited_s} s; python_workers_max bounds them")]
    Busy { workers_max: usize, waited_s: u64 },
    #[error("{needs} Python workers are needed at once, there may be {has}; python_workers_max bounds them")]
    TooMany { needs: usize, has: usize },
    /// The function raised; `traceback` is Python's.
    #[error("{traceback}")]
    Raised { traceback: String },
    /// The process ended without a word. `stderr` are its last lines.
    #[error("Python worker exited unexpectedly ({how}){}", tail(.stderr))]
    Died { how: String, stderr: Vec<String> },
    /// A task of a barrier stage failed, and with it the stage.
    #[error("task {partition} of a barrier stage failed: {source}")]
    StageFailed { partition: usize, source: Box<Error> },
    #[error("a Python worker could not be started with {interpreter}")]
    Start {
        interpreter: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the files of session {session} cannot be kept in {path}")]
    Files {
        session: String,
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{name} cannot be unpacked: {detail}")]
    Archive { name: String, detail: String },
    /// The worker said what its protocol does not have.
    #[error("a Python worker broke the protocol: {detail}")]
    Protocol { detail: String },
    #[error("the connection to a Python worker broke")]
    Io {
        #[from]
        source: std::io::Error,
    },
    #[error("{source}")]
    Arrow {
        #[from]
        source: ArrowError,
    },
    /// Nobody reads the results any more.
    #[error("nobody reads the results")]
    Abandoned,
    /// The rows that were to be sent could not be computed.
    #[error("{source}")]
    Input { source: Box<dyn std::error::Error + Send + Sync> },
    /// The slots of a barrier stage could not be had.
    #[error("{source}")]
    Slots { source: Arc<dyn std::error::Error + Send + Sync> },
}

fn tail(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!(":\n{}", lines.join("\n")) }
}
