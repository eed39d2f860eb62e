//! Why a rank program failed.

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data cannot be trained on: what a user must mend. `class` is Spark's error class or our own of its kind.
    #[error("{message}")]
    InvalidData { class: &'static str, message: String },
    /// The loss is no number: at which step.
    #[error("the loss became {loss} at step {step}")]
    LossNotFinite { step: u64, loss: f64 },
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
            Error::Cancelled { .. } => "OPERATION_CANCELED",
            _ => "INTERNAL_ERROR",
        }
    }
}
