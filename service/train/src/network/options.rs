//! How a network is trained.

use serde::{Deserialize, Serialize};

use super::{Optimizer, Schedule};
use crate::bits;

/// What all ranks are told. Doubles travel by their bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Options {
    pub loss: LossKind,
    pub optimizer: Optimizer,
    #[serde(with = "bits")]
    pub learning_rate: f64,
    pub schedule: Schedule,
    /// Rows of a step over all ranks: the number does not change with the number of ranks.
    pub batch_rows: usize,
    pub epochs: usize,
    /// Backward passes that a rank takes its part of a step in. Gradients are reduced once a step.
    pub accumulation: usize,
    /// Gradients of a greater norm, over all parameters, are scaled down to this one.
    #[serde(with = "bits::maybe")]
    pub gradient_norm_max: Option<f64>,
    /// Gradients are reduced in buckets of about so many bytes.
    pub bucket_bytes: usize,
    pub wire: Wire,
    pub precision: Precision,
    pub sharding: Sharding,
    pub seed: i64,
    pub early_stopping: Option<EarlyStopping>,
}

/// The mean over rows of...
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum LossKind {
    /// ...the cross-entropy of scores, of a class each row.
    CrossEntropy,
    /// ...the negative of the label's log-probability.
    NegativeLogLikelihood,
    /// ...the cross-entropy of a score (a logit) and a probability.
    BinaryCrossEntropy,
    MeanSquared,
    MeanAbsolute,
    Huber {
        #[serde(with = "bits")]
        delta: f64,
    },
    /// ...what a TorchScript module says of output and label.
    Scripted,
}

impl LossKind {
    /// Whether labels are classes: integers from 0.
    pub fn takes_classes(self) -> bool {
        matches!(self, LossKind::CrossEntropy | LossKind::NegativeLogLikelihood)
    }
}

/// In which type gradients travel between ranks. Sums are made in f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wire {
    F32,
    Bf16,
    F16,
}

/// In which type forward and backward passes compute. Parameters, gradients and updates are f32 always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Precision {
    F32,
    /// bf16 where libtorch's autocast takes it.
    Bf16,
}

/// What each rank keeps a shard of, instead of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sharding {
    None,
    /// The optimizer's state, as in stage 1 of ZeRO (Rajbhandari et al. 2020).
    OptimizerState,
}

/// Ends a training that no longer gets better on rows that it does not train on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EarlyStopping {
    /// The share of all rows that are kept for it.
    #[serde(with = "bits")]
    pub validation_fraction: f64,
    /// Epochs without improvement after which training ends.
    pub patience: usize,
    /// An improvement is one by more than this.
    #[serde(with = "bits")]
    pub min_delta: f64,
}
