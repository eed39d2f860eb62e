//! A line search that shrinks or grows its step until the Wolfe conditions hold, or its rounds are used up.

use super::descent::{StepError, StepResult};
use super::wolfe::Along;

const SUFFICIENT_DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
const GROWTH: f64 = 2.1;
const MAX_ROUNDS: usize = 20;
const SIZE_MIN: f64 = 1e-10;
const SIZE_MAX: f64 = 1e10;

/// Searches from `first_size`. `first_value` stands in for the value there: Spark's minimizer gives the objective without
/// its L1 penalty at the search's origin.
pub(super) fn search(along: &mut Along<'_>, first_size: f64, first_value: f64, shrinkage: f64) -> StepResult<f64> {
    let (origin_value, origin_slope) = along(0.0)?;
    let (mut size, mut value) = (first_size, first_value);
    let mut slope = along(first_size)?.1;
    for round in 1..=MAX_ROUNDS {
        let factor = if value > origin_value + size * origin_slope * SUFFICIENT_DECREASE {
            shrinkage
        } else if slope < CURVATURE * origin_slope {
            GROWTH
        } else if slope > -CURVATURE * origin_slope {
            shrinkage
        } else {
            return Ok(size);
        };
        let next = size * factor;
        if !(SIZE_MIN..=SIZE_MAX).contains(&next) {
            return Err(StepError::Failed);
        }
        if round == MAX_ROUNDS {
            break;
        }
        size = next;
        (value, slope) = along(size)?;
    }
    Ok(size)
}
