//! OWL-QN: L-BFGS with an L1 penalty (Andrew and Gao 2007, Scalable Training of L1-Regularized Log-Linear Models).

use super::backtracking::search;
use super::curvature::Curvature;
use super::descent::{Cached, Method, Minimum, State, StepResult, descend};
use super::{Evaluate, Observe, Options, Start, dot, norm};
use crate::Result;

/// Minimizes a smooth objective plus `sum_i l1_i |x_i|`. `l1` has a weight (not negative) for every parameter.
///
/// # Errors
/// What `evaluate` or `observe` return; [`crate::Error::SnapshotMismatch`]; [`crate::Error::LossNotFinite`].
pub fn owlqn(
    options: &Options,
    l1: &[f64],
    start: &Start<'_>,
    evaluate: &mut Evaluate<'_>,
    observe: &mut Observe<'_>,
) -> Result<Minimum> {
    let mut method = Owlqn { curvature: Curvature::new(options.memory), l1 };
    descend(&mut method, options, start, evaluate, observe)
}

struct Owlqn<'a> {
    curvature: Curvature,
    l1: &'a [f64],
}

/// -1, 0 or 1: unlike `f64::signum`, zero has no sign.
fn sign(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        0.0
    }
}

impl Method for Owlqn<'_> {
    fn name(&self) -> &'static str {
        "owlqn"
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

    /// The descent direction, with the components dropped that the penalised gradient does not agree with.
    fn direction(&self, state: &State) -> StepResult<Vec<f64>> {
        let mut direction = self.curvature.descent(&state.adjusted_gradient)?;
        for (d, g) in direction.iter_mut().zip(&state.adjusted_gradient) {
            let product = *d * g;
            if product >= 0.0 || product.is_nan() {
                *d = 0.0;
            }
        }
        Ok(direction)
    }

    fn step_size(&self, state: &State, direction: &[f64], objective: &mut Cached<'_, '_>) -> StepResult<f64> {
        let (first_size, shrinkage) = if state.iteration < 1 { (0.5 / norm(&state.gradient), 0.1) } else { (1.0, 0.5) };
        let mut along = |size: f64| {
            let point = self.step(state, direction, size);
            let (value, gradient) = objective.evaluate(&point)?;
            let (value, gradient) = self.adjust(&point, value, gradient);
            Ok((value, dot(&gradient, direction)))
        };
        search(&mut along, first_size, state.value, shrinkage)
    }

    /// A step stays in the orthant it starts in: a parameter that would change its sign becomes zero.
    fn step(&self, state: &State, direction: &[f64], size: f64) -> Vec<f64> {
        let start = state.point.iter().zip(&state.adjusted_gradient);
        start
            .zip(direction)
            .map(|((x, g), d)| {
                let orthant = if *x != 0.0 { sign(*x) } else { sign(-g) };
                let stepped = x + d * size;
                if sign(stepped) == orthant { stepped } else { 0.0 }
            })
            .collect()
    }

    fn adjust(&self, point: &[f64], value: f64, gradient: &[f64]) -> (f64, Vec<f64>) {
        let mut penalised = value;
        let terms = point.iter().zip(gradient).zip(self.l1);
        let gradient = terms
            .map(|((x, g), l1)| {
                if *l1 == 0.0 {
                    return *g;
                }
                penalised += (l1 * x).abs();
                if *x != 0.0 {
                    g + sign(*x) * l1
                } else if g - l1 > 0.0 {
                    g - l1
                } else if g + l1 < 0.0 {
                    g + l1
                } else {
                    0.0
                }
            })
            .collect();
        (penalised, gradient)
    }

    fn learn(&mut self, new: &State, old: &State) -> StepResult<()> {
        self.curvature.learn(new, old);
        Ok(())
    }
}
