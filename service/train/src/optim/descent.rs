//! The loop that all minimizers share: a direction, a step along it, and whether to go on.

use super::convergence::{Options, Standing, Stop, ValueWindow};
use super::snapshot::{Snapshot, Start};
use super::{Evaluate, Observe};
use crate::{Error, Result};

/// An accepted iterate, as it is shown to an observer.
pub struct Iteration<'a> {
    pub iteration: usize,
    pub point: &'a [f64],
    /// The objective with the penalty of the minimizer (L1), if it has one.
    pub value: f64,
    /// Why the minimization ends here, if it does.
    pub stop: Option<Stop>,
    descent: &'a Descent,
    method: &'a dyn Method,
}

impl Iteration<'_> {
    /// Everything that the iterations to come depend on.
    pub fn snapshot(&self) -> Snapshot {
        let descent = self.descent;
        Snapshot {
            method: self.method.name().into(),
            iteration: descent.state.iteration as u64,
            point: descent.state.point.clone(),
            value: descent.state.value,
            gradient: descent.state.gradient.clone(),
            initial_value: descent.initial_value,
            window: descent.window.values().collect(),
            history: descent.history.clone(),
            search_failed: descent.search_failed,
            failed_once: descent.failed_once,
            pairs: self.method.pairs(),
        }
    }
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
    /// Which one it is, in snapshots.
    fn name(&self) -> &'static str;
    /// The steps that the curvature is estimated from, with the change of the gradient over each, oldest first.
    fn pairs(&self) -> Vec<(Vec<f64>, Vec<f64>)>;
    /// Takes the curvature to where it was when it had these pairs.
    fn restore(&mut self, pairs: &[(Vec<f64>, Vec<f64>)]);
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

/// A minimization between two steps.
struct Descent {
    state: State,
    initial_value: f64,
    window: ValueWindow,
    history: Vec<f64>,
    search_failed: bool,
    failed_once: bool,
}

/// Runs the method until a stopping rule holds.
///
/// # Errors
/// What the objective or the observer returns; [`Error::LossNotFinite`] for an iterate whose objective is no number;
/// [`Error::SnapshotMismatch`].
pub(super) fn descend(
    method: &mut dyn Method,
    options: &Options,
    start: &Start<'_>,
    evaluate: &mut Evaluate<'_>,
    observe: &mut Observe<'_>,
) -> Result<Minimum> {
    let mut objective = Cached { evaluate, last: None };
    let mut descent = match start {
        Start::At(point) => Descent::at(method, point, &mut objective)?,
        Start::From(snapshot) => Descent::resumed(method, snapshot, &mut objective)?,
    };
    // an iterate is seen by the run that came to it
    let mut is_seen = matches!(start, Start::From(_));
    loop {
        if !is_seen {
            descent.history.push(descent.state.adjusted_value);
        }
        let stop = descent.decide_stop(method, options);
        if !is_seen {
            let iteration = Iteration {
                iteration: descent.state.iteration,
                point: &descent.state.point,
                value: descent.state.adjusted_value,
                stop,
                descent: &descent,
                method,
            };
            observe(&iteration)?;
        }
        is_seen = false;
        if let Some(stop) = stop {
            return Ok(Minimum { point: descent.state.point, history: descent.history, stop });
        }
        match take_step(method, &descent.state, &mut objective) {
            Ok(next) => descent.accept(next)?,
            Err(StepError::Failed) if !descent.failed_once => {
                descent.failed_once = true;
                method.reset();
            }
            Err(StepError::Failed) => descent.search_failed = true,
            Err(StepError::Fatal(error)) => return Err(error),
        }
    }
}

impl Descent {
    fn at(method: &dyn Method, point: &[f64], objective: &mut Cached<'_, '_>) -> Result<Descent> {
        let state = state_at(method, point.to_vec(), 0, objective)?;
        check_finite(&state)?;
        Ok(Descent {
            initial_value: state.adjusted_value,
            state,
            window: ValueWindow::new(),
            history: Vec::new(),
            search_failed: false,
            failed_once: false,
        })
    }

    /// The point was evaluated in the run before, and is not evaluated again.
    fn resumed(method: &mut dyn Method, snapshot: &Snapshot, objective: &mut Cached<'_, '_>) -> Result<Descent> {
        snapshot.check(method.name())?;
        method.restore(&snapshot.pairs);
        objective.last = Some((snapshot.point.clone(), snapshot.value, snapshot.gradient.clone()));
        Ok(Descent {
            state: state_at(method, snapshot.point.clone(), snapshot.iteration as usize, objective)?,
            initial_value: snapshot.initial_value,
            window: ValueWindow::of(&snapshot.window),
            history: snapshot.history.clone(),
            search_failed: snapshot.search_failed,
            failed_once: snapshot.failed_once,
        })
    }

    fn accept(&mut self, next: State) -> Result<()> {
        check_finite(&next)?;
        self.window.push(next.adjusted_value);
        self.state = next;
        self.failed_once = false;
        Ok(())
    }

    fn decide_stop(&self, method: &dyn Method, options: &Options) -> Option<Stop> {
        let standing = Standing {
            iteration: self.state.iteration,
            value: self.state.adjusted_value,
            gradient: &self.state.adjusted_gradient,
            initial_value: self.initial_value,
            window: &self.window,
            search_failed: self.search_failed,
        };
        method.decide_stop(&self.state).or_else(|| options.decide_stop(&standing))
    }
}

fn check_finite(state: &State) -> Result<()> {
    match state.adjusted_value.is_finite() {
        true => Ok(()),
        false => Err(Error::LossNotFinite { step: state.iteration as u64, loss: state.adjusted_value, ranks: Vec::new() }),
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
