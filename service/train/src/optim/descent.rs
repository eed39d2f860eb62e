//! The loop that all minimizers share: a direction, a step along it, and whether to go on.

use super::convergence::{Options, Standing, Stop, ValueWindow};
use super::{Evaluate, Observe};
use crate::{Error, Result};

/// An accepted iterate, as it is shown to an observer.
#[derive(Debug)]
pub struct Iteration<'a> {
    pub iteration: usize,
    pub point: &'a [f64],
    /// The objective with the penalty of the minimizer (L1), if it has one.
    pub value: f64,
}

/// Where a minimization ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Minimum {
    pub point: Vec<f64>,
    /// The objective (penalty included) of the first point and of every one after. A step that was tried again from a
    /// fresh curvature repeats its value, as it does in Spark.
    pub history: Vec<f64>,
    pub stop: Stop,
}

/// Why a step could not be made.
#[derive(Debug)]
pub(super) enum StepError {
    /// The line search or the curvature broke down; a fresh curvature may help.
    Failed,
    /// The objective itself failed.
    Fatal(Error),
}

impl From<Error> for StepError {
    fn from(error: Error) -> StepError {
        StepError::Fatal(error)
    }
}

pub(super) type StepResult<T> = std::result::Result<T, StepError>;

/// The objective, remembering its last point: a line search ends where the next step starts.
pub(super) struct Cached<'a, 'b> {
    evaluate: &'a mut Evaluate<'b>,
    last: Option<(Vec<f64>, f64, Vec<f64>)>,
}

impl Cached<'_, '_> {
    pub(super) fn evaluate(&mut self, point: &[f64]) -> Result<(f64, &[f64])> {
        let is_known = self.last.as_ref().is_some_and(|(last, ..)| last == point);
        if !is_known {
            let (value, gradient) = (self.evaluate)(point)?;
            self.last = Some((point.to_vec(), value, gradient));
        }
        match &self.last {
            Some((_, value, gradient)) => Ok((*value, gradient)),
            None => Err(Error::Bug { invariant: "an evaluated point is remembered".into() }),
        }
    }
}

/// An iterate. `value` and `gradient` are the objective's, the `adjusted` ones include the minimizer's own penalty.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) point: Vec<f64>,
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    pub(super) adjusted_value: f64,
    pub(super) adjusted_gradient: Vec<f64>,
    pub(super) iteration: usize,
}

/// What differs between the minimizers.
pub(super) trait Method {
    /// Forgets the curvature.
    fn reset(&mut self);
    fn direction(&self, state: &State) -> StepResult<Vec<f64>>;
    fn step_size(&self, state: &State, direction: &[f64], objective: &mut Cached<'_, '_>) -> StepResult<f64>;
    fn step(&self, state: &State, direction: &[f64], size: f64) -> Vec<f64>;
    /// Adds the method's own penalty to a value and a gradient.
    fn adjust(&self, _point: &[f64], value: f64, gradient: &[f64]) -> (f64, Vec<f64>) {
        (value, gradient.to_vec())
    }
    fn learn(&mut self, new: &State, old: &State) -> StepResult<()>;
    /// A stopping rule of the method's own, asked before the common ones.
    fn decide_stop(&self, _state: &State) -> Option<Stop> {
        None
    }
}

/// Runs the method until a stopping rule holds.
///
/// # Errors
/// What the objective or the observer returns, and [`Error::LossNotFinite`] for an iterate whose objective is no number.
pub(super) fn descend(
    method: &mut dyn Method,
    options: &Options,
    initial: &[f64],
    evaluate: &mut Evaluate<'_>,
    observe: &mut Observe<'_>,
) -> Result<Minimum> {
    let mut objective = Cached { evaluate, last: None };
    let mut state = state_at(method, initial.to_vec(), 0, &mut objective)?;
    let initial_value = state.adjusted_value;
    let mut window = ValueWindow::new();
    let mut history = Vec::new();
    let mut search_failed = false;
    let mut failed_once = false;
    loop {
        if !state.adjusted_value.is_finite() {
            return Err(Error::LossNotFinite { step: state.iteration as u64, loss: state.adjusted_value });
        }
        history.push(state.adjusted_value);
        observe(&Iteration { iteration: state.iteration, point: &state.point, value: state.adjusted_value })?;
        let standing = Standing {
            iteration: state.iteration,
            value: state.adjusted_value,
            gradient: &state.adjusted_gradient,
            initial_value,
            window: &window,
            search_failed,
        };
        if let Some(stop) = method.decide_stop(&state).or_else(|| options.decide_stop(&standing)) {
            return Ok(Minimum { point: state.point, history, stop });
        }
        match take_step(method, &state, &mut objective) {
            Ok(next) => {
                window.push(next.adjusted_value);
                state = next;
                failed_once = false;
            }
            Err(StepError::Failed) if !failed_once => {
                failed_once = true;
                method.reset();
            }
            Err(StepError::Failed) => search_failed = true,
            Err(StepError::Fatal(error)) => return Err(error),
        }
    }
}

fn take_step(method: &mut dyn Method, state: &State, objective: &mut Cached<'_, '_>) -> StepResult<State> {
    let direction = method.direction(state)?;
    let size = method.step_size(state, &direction, objective)?;
    let next = state_at(method, method.step(state, &direction, size), state.iteration + 1, objective)?;
    method.learn(&next, state)?;
    Ok(next)
}

fn state_at(method: &dyn Method, point: Vec<f64>, iteration: usize, objective: &mut Cached<'_, '_>) -> Result<State> {
    let (value, gradient) = objective.evaluate(&point)?;
    let gradient = gradient.to_vec();
    let (adjusted_value, adjusted_gradient) = method.adjust(&point, value, &gradient);
    Ok(State { point, value, gradient, adjusted_value, adjusted_gradient, iteration })
}
