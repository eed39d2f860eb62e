//! A line search for the strong Wolfe conditions (Nocedal and Wright, Numerical Optimization, 3.5), which may go beyond
//! its first step and interpolates with cubics.

use super::descent::{StepError, StepResult};

const SUFFICIENT_DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
const GROWTH: f64 = 1.5;

/// A step, and the objective's value and slope there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    pub(super) size: f64,
    pub(super) value: f64,
    pub(super) slope: f64,
}

/// Value and slope at a step along the search direction.
pub(super) type Along<'a> = dyn FnMut(f64) -> StepResult<(f64, f64)> + 'a;

/// The search's limits.
pub(super) struct Limits {
    pub(super) max_trials: usize,
    pub(super) max_zooms: usize,
    /// No step is longer.
    pub(super) size_max: f64,
}

pub(super) fn search(along: &mut Along<'_>, first_size: f64, limits: &Limits) -> StepResult<f64> {
    let origin = trial(along, 0.0)?;
    if origin.slope > 0.0 {
        return Err(StepError::Failed);
    }
    let mut low = origin;
    let mut size = first_size.min(limits.size_max);
    for round in 0..limits.max_trials {
        let here = trial(along, size)?;
        if !here.value.is_finite() {
            size /= 2.0;
            continue;
        }
        let too_high = here.value > origin.value + SUFFICIENT_DECREASE * size * origin.slope;
        if too_high || (here.value >= low.value && round > 0) {
            return zoom(along, &origin, low, here, limits.max_zooms);
        }
        if here.slope.abs() <= CURVATURE * origin.slope.abs() {
            return Ok(here.size);
        }
        if here.slope >= 0.0 {
            return zoom(along, &origin, here, low, limits.max_zooms);
        }
        low = here;
        if size == limits.size_max {
            return Ok(size);
        }
        size = (size * GROWTH).min(limits.size_max);
    }
    Err(StepError::Failed)
}

fn trial(along: &mut Along<'_>, size: f64) -> StepResult<Trial> {
    let (value, slope) = along(size)?;
    Ok(Trial { size, value, slope })
}

/// Narrows an interval that holds a good step. `low` is the better end; `high` may lie on either side of it.
fn zoom(along: &mut Along<'_>, origin: &Trial, low: Trial, high: Trial, max_zooms: usize) -> StepResult<f64> {
    let (mut low, mut high) = (low, high);
    for _ in 0..max_zooms {
        let size = if low.size > high.size { interpolate(&high, &low) } else { interpolate(&low, &high) };
        if size.is_nan() {
            return Err(StepError::Failed);
        }
        let here = trial(along, size)?;
        let too_high = here.value > origin.value + SUFFICIENT_DECREASE * here.size * origin.slope;
        if too_high || here.value >= low.value {
            high = here;
            continue;
        }
        if here.slope.abs() <= CURVATURE * origin.slope.abs() {
            return Ok(here.size);
        }
        if here.slope * (high.size - low.size) >= 0.0 {
            high = low;
        }
        low = here;
    }
    Err(StepError::Failed)
}

/// The minimum of the cubic through both ends, kept away from them.
fn interpolate(left: &Trial, right: &Trial) -> f64 {
    let d1 = left.slope + right.slope - 3.0 * (left.value - right.value) / (left.size - right.size);
    let d2 = (d1 * d1 - left.slope * right.slope).sqrt();
    let width = right.size - left.size;
    let size = right.size - width * (right.slope + d2 - d1) / (right.slope - left.slope + 2.0 * d2);
    let (nearest, farthest) = (left.size + 0.1 * width, left.size + 0.9 * width);
    if size < nearest {
        nearest
    } else if size > farthest {
        farthest
    } else {
        size
    }
}
