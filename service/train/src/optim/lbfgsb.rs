//! L-BFGS-B: minimization within a box (Byrd, Lu, Nocedal and Zhu 1995, A Limited Memory Algorithm for Bound
//! Constrained Optimization). Equation numbers are the paper's.

use super::convergence::Stop;
use super::descent::{Cached, Method, Minimum, State, StepError, StepResult, descend};
use super::lu::Lu;
use super::wolfe::{Limits, search};
use super::{Evaluate, Observe, Options, Start, add_scaled, difference, dot, norm};
use crate::{Error, Result};

const MAX_TRIALS: usize = 64;
const MAX_ZOOMS: usize = 64;
/// Steps whose curvature is below this share of the gradient's change are not learned from.
const CURVATURE_MIN: f64 = 2.2e-16;
/// A projected gradient (its largest component) below this has converged.
const PROJECTED_GRADIENT_MIN: f64 = 1e-5;

/// Minimizes a smooth objective with `lower <= x <= upper`. Bounds may be infinite; `initial` must lie within.
///
/// # Errors
/// What `evaluate` or `observe` return; [`Error::SnapshotMismatch`]; [`Error::LossNotFinite`]; [`Error::Bug`] for an
/// infeasible start.
pub fn lbfgsb(
    options: &Options,
    lower: &[f64],
    upper: &[f64],
    start: &Start<'_>,
    evaluate: &mut Evaluate<'_>,
    observe: &mut Observe<'_>,
) -> Result<Minimum> {
    let bounds = lower.iter().zip(upper);
    let initial = start.point();
    if !initial.iter().zip(bounds).all(|(x, (low, high))| low <= x && x <= high) {
        return Err(Error::Bug {
            invariant: "the first point of a bounded minimization lies within its bounds".into(),
        });
    }
    let model = QuadraticModel::new(initial.len(), options.memory);
    let mut method = Lbfgsb { lower, upper, model };
    descend(&mut method, options, start, evaluate, observe)
}

/// The quadratic model `B = theta I - W M W^T` (3.2), from the last steps and gradient changes.
struct QuadraticModel {
    memory: usize,
    num_parameters: usize,
    /// Oldest first.
    steps: Vec<Vec<f64>>,
    changes: Vec<Vec<f64>>,
    theta: f64,
    /// Rows of W: one of `width` values a parameter.
    w: Vec<f64>,
    /// Row-major, `width` squared.
    m: Vec<f64>,
    width: usize,
}

impl QuadraticModel {
    fn new(num_parameters: usize, memory: usize) -> QuadraticModel {
        let (steps, changes) = (Vec::new(), Vec::new());
        QuadraticModel { memory, num_parameters, steps, changes, theta: 1.0, w: Vec::new(), m: Vec::new(), width: 0 }
    }

    fn w_row(&self, parameter: usize) -> &[f64] {
        &self.w[parameter * self.width..(parameter + 1) * self.width]
    }

    fn m_times(&self, x: &[f64]) -> Vec<f64> {
        if self.width == 0 {
            return Vec::new();
        }
        self.m.chunks_exact(self.width).map(|row| dot(row, x)).collect()
    }

    fn learn(&mut self, step: Vec<f64>, change: Vec<f64>) -> StepResult<()> {
        let curvature = dot(&step, &change);
        if curvature.is_nan() || curvature.abs() <= CURVATURE_MIN * norm(&change) {
            return Ok(());
        }
        if self.steps.len() == self.memory {
            self.steps.remove(0);
            self.changes.remove(0);
        }
        self.steps.push(step);
        self.changes.push(change);
        self.settle()
    }

    /// Makes theta, W and M what the pairs make them.
    fn settle(&mut self) -> StepResult<()> {
        let (Some(step), Some(change)) = (self.steps.last(), self.changes.last()) else { return Ok(()) };
        self.theta = dot(change, change) / dot(step, change);
        self.width = 2 * self.steps.len();
        self.m = self.middle_matrix().ok_or(StepError::Failed)?;
        self.w.clear();
        for i in 0..self.num_parameters {
            self.w.extend(self.changes.iter().map(|change| change[i]));
            let theta = self.theta;
            self.w.extend(self.steps.iter().map(|step| step[i] * theta));
        }
        Ok(())
    }

    /// M (3.4): the inverse of `[-D, L^T; L, theta S^T S]`.
    fn middle_matrix(&self) -> Option<Vec<f64>> {
        let (pairs, width) = (self.steps.len(), self.width);
        let mut inner = vec![0.0; width * width];
        for (i, step) in self.steps.iter().enumerate() {
            inner[i * width + i] = -dot(step, &self.changes[i]);
            for j in 0..i {
                let below = dot(step, &self.changes[j]);
                inner[(pairs + i) * width + j] = below;
                inner[j * width + pairs + i] = below;
            }
            for (j, other) in self.steps.iter().enumerate() {
                inner[(pairs + i) * width + pairs + j] = self.theta * dot(step, other);
            }
        }
        Some(Lu::new(width, inner)?.inverse())
    }
}

struct Lbfgsb<'a> {
    lower: &'a [f64],
    upper: &'a [f64],
    model: QuadraticModel,
}

impl Lbfgsb<'_> {
    fn clamp(&self, point: &mut [f64]) {
        for (i, x) in point.iter_mut().enumerate() {
            *x = x.min(self.upper[i]).max(self.lower[i]);
        }
    }

    /// How far along the projected gradient every parameter meets its bound, and the gradient's path there.
    fn breakpoints(&self, state: &State) -> (Vec<f64>, Vec<f64>) {
        let mut path = vec![0.0; state.point.len()];
        let mut times = vec![f64::MAX; state.point.len()];
        for (i, (x, g)) in state.point.iter().zip(&state.gradient).enumerate() {
            if *g != 0.0 {
                times[i] = if *g < 0.0 { (x - self.upper[i]) / g } else { (x - self.lower[i]) / g };
                path[i] = if times[i] == 0.0 { 0.0 } else { -g };
            }
        }
        (times, path)
    }

    /// Algorithm CP: the first minimum of the model along the projected gradient, and `c = W^T (x_cauchy - x)`.
    fn cauchy_point(&self, state: &State) -> (Vec<f64>, Vec<f64>) {
        let (model, x, g) = (&self.model, &state.point, &state.gradient);
        let theta = model.theta;
        let (times, mut path) = self.breakpoints(state);
        let mut order: Vec<usize> = (0..x.len()).collect();
        order.sort_by(|a, b| times[*a].total_cmp(&times[*b]));
        let mut cauchy = x.clone();
        let mut c = vec![0.0; model.width];
        let Some(mut next) = order.iter().position(|i| times[*i] != 0.0) else { return (cauchy, c) };
        let mut p = vec![0.0; model.width];
        for (i, d) in path.iter().enumerate() {
            add_scaled(*d, model.w_row(i), &mut p);
        }
        let mut slope = dot(g, &path);
        let mut curvature = -theta * slope - dot(&p, &model.m_times(&p));
        let mut best = -(slope / curvature);
        let mut time = 0.0;
        while next < order.len() && times[order[next]] - time <= best {
            let b = order[next];
            let elapsed = times[b] - time;
            cauchy[b] = if path[b] > 0.0 { self.upper[b] } else { self.lower[b] };
            let moved = cauchy[b] - x[b];
            add_scaled(elapsed, &p, &mut c);
            let row = model.w_row(b);
            slope += elapsed * curvature + g[b] * g[b] + theta * g[b] * moved - g[b] * dot(row, &model.m_times(&c));
            curvature += -theta * g[b] * g[b]
                - 2.0 * g[b] * dot(row, &model.m_times(&p))
                - g[b] * g[b] * dot(row, &model.m_times(row));
            add_scaled(g[b], row, &mut p);
            path[b] = 0.0;
            best = -slope / curvature;
            time = times[b];
            next += 1;
        }
        let best = best.max(0.0);
        time += best;
        for i in &order[next..] {
            cauchy[*i] = x[*i] + time * path[*i];
        }
        add_scaled(best, &p, &mut c);
        (cauchy, c)
    }

    /// The direct primal method (5.1): minimizes the model over the parameters that are not at a bound.
    fn subspace_minimum(&self, state: &State, cauchy: Vec<f64>, c: &[f64]) -> StepResult<Vec<f64>> {
        let model = &self.model;
        let inverse_theta = 1.0 / model.theta;
        let free: Vec<usize> =
            (0..cauchy.len()).filter(|i| cauchy[*i] != self.upper[*i] && cauchy[*i] != self.lower[*i]).collect();
        let mc = model.m_times(c);
        let residual: Vec<f64> = free
            .iter()
            .map(|i| state.gradient[*i] + (cauchy[*i] - state.point[*i]) * model.theta - dot(model.w_row(*i), &mc))
            .collect();
        let width = model.width;
        let mut projected = vec![0.0; width];
        let mut outer = vec![0.0; width * width];
        for (i, r) in free.iter().zip(&residual) {
            let row = model.w_row(*i);
            add_scaled(*r, row, &mut projected);
            for (j, value) in row.iter().enumerate() {
                add_scaled(*value, row, &mut outer[j * width..(j + 1) * width]);
            }
        }
        let mut inner = vec![0.0; width * width];
        for row in 0..width {
            for k in 0..width {
                let scale = -model.m[row * width + k] * inverse_theta;
                add_scaled(scale, &outer[k * width..(k + 1) * width], &mut inner[row * width..(row + 1) * width]);
            }
            inner[row * width + row] += 1.0;
        }
        let v = Lu::new(width, inner).ok_or(StepError::Failed)?.solve(&model.m_times(&projected));
        let move_of = |i: usize, r: f64| -(r * inverse_theta + dot(model.w_row(i), &v) * inverse_theta * inverse_theta);
        let moves: Vec<f64> = free.iter().zip(&residual).map(|(i, r)| move_of(*i, *r)).collect();
        let mut share = 1.0_f64;
        for (i, d) in free.iter().zip(&moves) {
            if *d > 0.0 {
                share = share.min((self.upper[*i] - cauchy[*i]) / d);
            } else if *d < 0.0 {
                share = share.min((self.lower[*i] - cauchy[*i]) / d);
            }
        }
        let mut minimum = cauchy;
        for (i, d) in free.iter().zip(&moves) {
            minimum[*i] += d * share;
        }
        Ok(minimum)
    }
}

impl Method for Lbfgsb<'_> {
    fn name(&self) -> &'static str {
        "lbfgsb"
    }

    fn pairs(&self) -> Vec<(Vec<f64>, Vec<f64>)> {
        self.model.steps.iter().cloned().zip(self.model.changes.iter().cloned()).collect()
    }

    fn restore(&mut self, pairs: &[(Vec<f64>, Vec<f64>)]) {
        self.reset();
        (self.model.steps, self.model.changes) = pairs.iter().cloned().unzip();
        // fails only where it had failed when the pairs were learned, after which a minimization ends
        let _ = self.model.settle();
    }

    fn reset(&mut self) {
        self.model = QuadraticModel::new(self.model.num_parameters, self.model.memory);
    }

    fn direction(&self, state: &State) -> StepResult<Vec<f64>> {
        let (mut target, c) = self.cauchy_point(state);
        self.clamp(&mut target);
        if state.iteration > 0 {
            target = self.subspace_minimum(state, target, &c)?;
            self.clamp(&mut target);
        }
        Ok(difference(&target, &state.point))
    }

    fn step_size(&self, state: &State, direction: &[f64], objective: &mut Cached<'_, '_>) -> StepResult<f64> {
        let mut size_max = f64::INFINITY;
        for (i, d) in direction.iter().enumerate() {
            if *d != 0.0 {
                let bound = if *d < 0.0 { self.lower[i] } else { self.upper[i] };
                size_max = f64::min(size_max, (bound - state.point[i]) / d);
            }
        }
        if size_max.is_nan() || size_max <= 0.0 {
            return Err(StepError::Failed);
        }
        let mut along = |size: f64| {
            let (value, gradient) = objective.evaluate(&self.step(state, direction, size))?;
            Ok((value, dot(gradient, direction)))
        };
        search(&mut along, 1.0, &Limits { max_trials: MAX_TRIALS, max_zooms: MAX_ZOOMS, size_max })
    }

    fn step(&self, state: &State, direction: &[f64], size: f64) -> Vec<f64> {
        let mut point: Vec<f64> = state.point.iter().zip(direction).map(|(x, d)| x + d * size).collect();
        self.clamp(&mut point);
        point
    }

    fn learn(&mut self, new: &State, old: &State) -> StepResult<()> {
        self.model.learn(difference(&new.point, &old.point), difference(&new.gradient, &old.gradient))
    }

    fn decide_stop(&self, state: &State) -> Option<Stop> {
        let projected = state.point.iter().zip(&state.gradient).enumerate().map(|(i, (x, g))| {
            let stepped = x - g;
            if stepped <= self.lower[i] {
                self.lower[i] - x
            } else if self.upper[i] <= stepped {
                self.upper[i] - x
            } else {
                stepped - x
            }
        });
        let largest = projected.fold(0.0_f64, |largest, p| largest.max(p.abs()));
        (largest < PROJECTED_GRADIENT_MIN).then_some(Stop::ProjectedStepConverged)
    }
}
