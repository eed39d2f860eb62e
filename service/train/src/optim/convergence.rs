//! When to stop.

use std::collections::VecDeque;

use super::norm;

/// How long and how closely to minimize.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    pub max_iterations: usize,
    /// Relative: against the first objective for values, against the current one for gradients.
    pub tolerance: f64,
    /// How many past steps the curvature is estimated from.
    pub memory: usize,
}

/// Why a minimization ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    MaxIterations,
    FunctionValuesConverged,
    GradientConverged,
    /// No step along the descent direction was good enough, even from a fresh start of the curvature.
    SearchFailed,
    /// The step that the box leaves is too small.
    ProjectedStepConverged,
}

/// Objectives of the last steps; convergence is judged against the worst of them.
const VALUES_REMEMBERED: usize = 20;
/// No gradient norm below this is asked for, whatever the tolerance.
const GRADIENT_NORM_MIN: f64 = 1e-8;

/// The last objectives. It starts with an infinite one, so that it cannot judge before it is full.
#[derive(Debug, Clone)]
pub(super) struct ValueWindow(VecDeque<f64>);

impl ValueWindow {
    pub(super) fn new() -> ValueWindow {
        ValueWindow(VecDeque::from([f64::INFINITY]))
    }

    /// The window that holds these.
    pub(super) fn of(values: &[f64]) -> ValueWindow {
        ValueWindow(values.iter().copied().collect())
    }

    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        self.0.iter().copied()
    }

    pub(super) fn push(&mut self, value: f64) {
        self.0.push_back(value);
        while self.0.len() > VALUES_REMEMBERED {
            self.0.pop_front();
        }
    }

    fn is_flat(&self, value: f64, initial: f64, tolerance: f64) -> bool {
        let worst = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.0.len() >= 2 && (value - worst).abs() <= tolerance * initial.abs()
    }
}

/// What the stopping rules look at.
pub(super) struct Standing<'a> {
    pub(super) iteration: usize,
    pub(super) value: f64,
    pub(super) gradient: &'a [f64],
    pub(super) initial_value: f64,
    pub(super) window: &'a ValueWindow,
    pub(super) search_failed: bool,
}

impl Options {
    pub(super) fn decide_stop(&self, standing: &Standing<'_>) -> Option<Stop> {
        if standing.iteration >= self.max_iterations {
            return Some(Stop::MaxIterations);
        }
        if standing.window.is_flat(standing.value, standing.initial_value, self.tolerance) {
            return Some(Stop::FunctionValuesConverged);
        }
        if norm(standing.gradient) <= (self.tolerance * standing.value.abs()).max(GRADIENT_NORM_MIN) {
            return Some(Stop::GradientConverged);
        }
        standing.search_failed.then_some(Stop::SearchFailed)
    }
}
