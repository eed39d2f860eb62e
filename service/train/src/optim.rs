//! Deterministic minimizers of smooth objectives, over vectors of a few thousand parameters.
//!
//! Every rank of a gang runs the same minimizer on the same all-reduced values, so that only values and gradients
//! travel. The steps, the line searches and the stopping rules are those of the library Spark minimizes with (breeze
//! 2.1), so that iteration counts and objective histories are Spark's too.
//!
//! [`lbfgs`] is for objectives without constraints, [`owlqn`] adds an L1 penalty, [`lbfgsb`] keeps parameters in a box.

mod backtracking;
mod convergence;
mod curvature;
mod descent;
pub mod lbfgs;
pub mod lbfgsb;
mod lu;
pub mod owlqn;
mod snapshot;
mod wolfe;

pub use convergence::{Options, Stop};
pub use descent::{Iteration, Minimum};
pub use lbfgs::lbfgs;
pub use lbfgsb::lbfgsb;
pub use owlqn::owlqn;
pub use snapshot::{Snapshot, Start};

/// The value and the gradient at a point. An error ends the minimization, and is returned as it is.
pub type Evaluate<'a> = dyn FnMut(&[f64]) -> crate::Result<(f64, Vec<f64>)> + 'a;

/// Sees every accepted iterate, the first one included; an error ends the minimization.
pub type Observe<'a> = dyn FnMut(&Iteration<'_>) -> crate::Result<()> + 'a;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// `y += a x`
fn add_scaled(a: f64, x: &[f64], y: &mut [f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
}

#[cfg(test)]
mod tests;
