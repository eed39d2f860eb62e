//! The inverse Hessian as L-BFGS estimates it from the last steps (Nocedal 1980; Liu and Nocedal 1989).

use std::collections::VecDeque;

use super::descent::{State, StepError, StepResult};
use super::{add_scaled, difference, dot};

/// The last steps with the change of the gradient over each, newest first.
#[derive(Debug)]
pub(super) struct Curvature {
    memory: usize,
    steps: VecDeque<(Vec<f64>, Vec<f64>)>,
}

impl Curvature {
    pub(super) fn new(memory: usize) -> Curvature {
        Curvature { memory, steps: VecDeque::new() }
    }

    pub(super) fn reset(&mut self) {
        self.steps.clear();
    }

    /// What it was learned from, oldest first.
    pub(super) fn pairs(&self) -> Vec<(Vec<f64>, Vec<f64>)> {
        self.steps.iter().rev().cloned().collect()
    }

    pub(super) fn restore(&mut self, pairs: &[(Vec<f64>, Vec<f64>)]) {
        self.steps = pairs.iter().rev().take(self.memory).cloned().collect();
    }

    pub(super) fn learn(&mut self, new: &State, old: &State) {
        self.steps.push_front((difference(&new.point, &old.point), difference(&new.gradient, &old.gradient)));
        self.steps.truncate(self.memory);
    }

    /// Minus the inverse Hessian times the gradient, by the two-loop recursion.
    pub(super) fn descent(&self, gradient: &[f64]) -> StepResult<Vec<f64>> {
        let scale = match self.steps.front() {
            Some((step, change)) => {
                let curvature = dot(step, change);
                if curvature < 0.0 || curvature.is_nan() {
                    return Err(StepError::Failed);
                }
                curvature / dot(change, change)
            }
            None => 1.0,
        };
        let mut direction = gradient.to_vec();
        let mut weights = Vec::with_capacity(self.steps.len());
        for (step, change) in &self.steps {
            let curvature = dot(step, change);
            let weight = dot(step, &direction) / curvature;
            if weight.is_nan() {
                return Err(StepError::Failed);
            }
            add_scaled(-weight, change, &mut direction);
            weights.push((weight, curvature));
        }
        direction.iter_mut().for_each(|d| *d *= scale);
        for ((step, change), (weight, curvature)) in self.steps.iter().zip(weights).rev() {
            let beta = dot(change, &direction) / curvature;
            add_scaled(weight - beta, step, &mut direction);
        }
        direction.iter_mut().for_each(|d| *d *= -1.0);
        Ok(direction)
    }
}
