//! Why a rank program failed.

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data cannot be trained on: what a user must mend. `class` is Spark's error class or our own of its kind.
    #[error("{message}")]
    InvalidData { class: &'static str, message: String },
    /// The loss is no number: at which step, and which ranks' own parts of it are none.
    #[error("the loss became {loss} at step {step}, {}", where_from(ranks))]
    LossNotFinite { step: u64, loss: f64, ranks: Vec<usize> },
    /// A module of the user's own cannot be used: what is wrong with it, and the reason.
    #[error("the TorchScript module {what}: {reason}")]
    ModuleFailed { what: String, reason: String },
    #[error("cancelled: {reason}")]
    Cancelled { reason: String },
    /// A collective failed, most often because another rank did.
    #[error("collective: {source}")]
    Collective {
        #[from]
        source: collective::Error,
    },
    #[error("partition: {source}")]
    Partition { source: Box<dyn std::error::Error + Send + Sync> },
    #[error("arrow: {source}")]
    Arrow {
        #[from]
        source: arrow::error::ArrowError,
    },
    /// A checkpoint that another fit has written, or one that is no checkpoint: what a user must mend.
    #[error("cannot resume from {place}: {reason}")]
    CheckpointNotUsable { place: String, reason: String },
    /// A minimizer's state that another minimizer, or one of another problem, has written.
    #[error("a minimization cannot go on from this state: {reason}")]
    SnapshotMismatch { reason: String },
    #[error("spec of program {program}: {source}")]
    Spec { program: &'static str, source: serde_json::Error },
    #[error("tensor: {message}")]
    Tensor { message: String },
    #[error("broken invariant: {invariant}")]
    Bug { invariant: String },
}

impl Error {
    /// Whether another rank's failure is the likely cause, so that this one should not be reported as the first.
    pub fn is_secondary(&self) -> bool {
        matches!(self, Error::Collective { .. } | Error::Cancelled { .. })
    }

    /// The error class a client is shown.
    pub fn class(&self) -> &'static str {
        match self {
            Error::InvalidData { class, .. } => class,
            Error::LossNotFinite { .. } => "TRAINING_LOSS_NOT_FINITE",
            Error::ModuleFailed { .. } => "TORCH_MODULE_FAILED",
            Error::Cancelled { .. } => "OPERATION_CANCELED",
            Error::CheckpointNotUsable { .. } | Error::SnapshotMismatch { .. } => "CHECKPOINT_NOT_USABLE",
            _ => "INTERNAL_ERROR",
        }
    }
}

/// On which ranks a loss that is no number came up.
fn where_from(ranks: &[usize]) -> String {
    match ranks {
        [] => "though every rank's own part of it is a number".to_string(),
        [rank] => format!("on rank {rank}"),
        ranks => format!("on ranks {}", ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
