//! A rank's rows as the inner loops read them: features row-major or compressed, labels and weights as doubles.
//!
//! Arrow buffers are kept as they came: dense vectors that stand one after the other, sparse ones and columns of doubles
//! are shared and never copied.

mod features;
mod numbers;
mod problem;

pub use features::{Features, interleave};
pub use numbers::{Numbers, numbers};
pub use problem::{Problem, agree};

/// Some rows. All parts have the same number of them.
#[derive(Debug, Clone)]
pub struct Batch {
    pub features: Features,
    /// Empty where nothing is predicted.
    pub labels: Numbers,
    /// `None`: every row weighs 1.
    pub weights: Option<Numbers>,
}

impl Batch {
    pub fn num_rows(&self) -> usize {
        self.features.num_rows()
    }

    /// The weights of some rows, if rows have weights.
    pub fn weights_of(&self, rows: std::ops::Range<usize>) -> Option<&[f64]> {
        self.weights.as_ref().map(|weights| &weights[rows])
    }
}
