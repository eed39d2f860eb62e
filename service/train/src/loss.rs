//! Losses of linear models: what a row's margins cost, and how that changes with them.

mod huber;
mod logistic;
mod softmax;
mod squared;

pub use huber::Huber;
pub use logistic::Logistic;
pub use softmax::Softmax;
pub use squared::Squared;

/// A loss of one margin a row, which adds itself up over the rows it is shown.
pub trait RowLoss {
    /// Adds the rows' losses, and turns every margin into its multiplier: weight times the loss's derivative by the margin.
    /// Rows of weight 0 count for nothing, whatever their margin.
    fn differentiate(&mut self, labels: &[f64], weights: Option<&[f64]>, margins: &mut [f64]);

    /// What is added up over rows beside the gradient: the loss first.
    fn sums(&self) -> Vec<f64>;
}

/// The sum of a slice, in a fixed order of four partial sums.
fn sum(values: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let chunks = values.chunks_exact(4);
    let rest: f64 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for (sum, v) in sums.iter_mut().zip(chunk) {
            *sum += v;
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3]) + rest
}
