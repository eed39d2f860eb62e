//! L-BFGS with a strong Wolfe line search.

use super::curvature::Curvature;
use super::descent::{Cached, Method, Minimum, State, StepError, StepResult, descend};
use super::wolfe::{Limits, search};
use super::{Evaluate, Observe, Options, Start, dot, norm};
use crate::Result;

const LIMITS: Limits = Limits { max_trials: 10, max_zooms: 10, size_max: f64::INFINITY };
/// A step that changes the point by less than this has failed.
const PROGRESS_MIN: f64 = 1e-10;

/// Minimizes a smooth objective.
///
/// # Errors
/// What `evaluate` or `observe` return; [`crate::Error::SnapshotMismatch`]; [`crate::Error::LossNotFinite`].
pub fn lbfgs(
    options: &Options,
    start: &Start<'_>,
    evaluate: &mut Evaluate<'_>,
    observe: &mut Observe<'_>,
) -> Result<Minimum> {
    let mut method = Lbfgs { curvature: Curvature::new(options.memory) };
    descend(&mut method, options, start, evaluate, observe)
}

struct Lbfgs {
    curvature: Curvature,
}

impl Method for Lbfgs {
    fn name(&self) -> &'static str {
        "lbfgs"
    }

    fn pairs(&self) -> Vec<(Vec<f64>, Vec<f64>)> {
        self.curvature.pairs()
    }

    fn restore(&mut self, pairs: &[(Vec<f64>, Vec<f64>)]) {
        self.curvature.restore(pairs);
    }

    fn reset(&mut self) {
        self.curvature.reset();
    }

    fn direction(&self, state: &State) -> StepResult<Vec<f64>> {
        self.curvature.descent(&state.gradient)
    }

    fn step_size(&self, state: &State, direction: &[f64], objective: &mut Cached<'_, '_>) -> StepResult<f64> {
        let first_size = if state.iteration == 0 { 1.0 / norm(direction) } else { 1.0 };
        let mut along = |size: f64| {
            let (value, gradient) = objective.evaluate(&self.step(state, direction, size))?;
            Ok((value, dot(gradient, direction)))
        };
        let size = search(&mut along, first_size, &LIMITS)?;
        if size * norm(&state.gradient) < PROGRESS_MIN {
            return Err(StepError::Failed);
        }
        Ok(size)
    }

    fn step(&self, state: &State, direction: &[f64], size: f64) -> Vec<f64> {
        state.point.iter().zip(direction).map(|(x, d)| d * size + x).collect()
    }

    fn learn(&mut self, new: &State, old: &State) -> StepResult<()> {
        self.curvature.learn(new, old);
        Ok(())
    }
}
