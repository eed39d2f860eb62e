//! Bounds on coefficients and intercepts.

use serde::{Deserialize, Serialize};
use train::Result;
use train::batch::Problem;

use crate::linear::bits;

/// A matrix of bounds, row-major.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundMatrix {
    num_rows: usize,
    num_cols: usize,
    #[serde(with = "bits::many")]
    values: Vec<f64>,
}

impl From<(usize, usize, Vec<f64>)> for BoundMatrix {
    fn from((num_rows, num_cols, values): (usize, usize, Vec<f64>)) -> BoundMatrix {
        BoundMatrix { num_rows, num_cols, values }
    }
}

/// The bounds that are set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    pub lower_coefficients: Option<BoundMatrix>,
    pub upper_coefficients: Option<BoundMatrix>,
    #[serde(with = "bits::optional")]
    pub lower_intercepts: Option<Vec<f64>>,
    #[serde(with = "bits::optional")]
    pub upper_intercepts: Option<Vec<f64>>,
}

impl Bounds {
    pub fn is_empty(&self) -> bool {
        self.lower_coefficients.is_none()
            && self.upper_coefficients.is_none()
            && self.lower_intercepts.is_none()
            && self.upper_intercepts.is_none()
    }

    /// Whether an intercept is kept from going where it likes, which centering its features would move.
    pub fn hold_intercepts(&self) -> bool {
        self.lower_intercepts.iter().flatten().any(|v| *v != f64::NEG_INFINITY)
            || self.upper_intercepts.iter().flatten().any(|v| *v != f64::INFINITY)
    }

    /// Whether the bounds fit the shape of the coefficients, and do not cross.
    ///
    /// # Errors
    /// [`train::Error::InvalidData`]
    pub fn check(&self, num_sets: usize, num_features: usize) -> Result<()> {
        let matrices = [("Lower", &self.lower_coefficients), ("Upper", &self.upper_coefficients)];
        for (which, matrix) in matrices.iter().filter_map(|(which, matrix)| Some((which, matrix.as_ref()?))) {
            if (matrix.num_rows, matrix.num_cols) != (num_sets, num_features) {
                return Err(invalid(format!(
                    "The shape of {which}BoundsOnCoefficients must be compatible with (1, number of features) for binomial \
                     regression, or (number of classes, number of features) for multinomial regression, but found: ({}, {}).",
                    matrix.num_rows, matrix.num_cols
                )));
            }
        }
        let vectors = [("lower", &self.lower_intercepts), ("upper", &self.upper_intercepts)];
        for (which, vector) in vectors.iter().filter_map(|(which, vector)| Some((which, vector.as_ref()?))) {
            if vector.len() != num_sets {
                return Err(invalid(format!(
                    "The size of {which}BoundsOnIntercepts must be equal to 1 for binomial regression, or the number of \
                     classes for multinomial regression, but found: {}.",
                    vector.len()
                )));
            }
        }
        let coefficients = (&self.lower_coefficients, &self.upper_coefficients);
        let crossed = |low: &[f64], high: &[f64]| {
            low.iter().zip(high).any(|(low, high)| low > high || low.is_nan() || high.is_nan())
        };
        if matches!(coefficients, (Some(low), Some(high)) if crossed(&low.values, &high.values)) {
            let text = "LowerBoundsOnCoefficients should always be less than or equal to upperBoundsOnCoefficients";
            return Err(invalid(text.into()));
        }
        if matches!((&self.lower_intercepts, &self.upper_intercepts), (Some(low), Some(high)) if crossed(low, high)) {
            let text = "LowerBoundsOnIntercepts should always be less than or equal to upperBoundsOnIntercepts";
            return Err(invalid(text.into()));
        }
        Ok(())
    }

    /// The bounds of every parameter in the space of scaled features, by feature and then by row of coefficients, those
    /// of intercepts last: the lower ones and the upper ones.
    pub fn scaled(&self, std: &[f64], num_sets: usize, fits_intercept: bool) -> (Vec<f64>, Vec<f64>) {
        let num_coefficients = num_sets * std.len();
        let num_parameters = num_coefficients + if fits_intercept { num_sets } else { 0 };
        let fill = |matrix: &Option<BoundMatrix>, vector: &Option<Vec<f64>>, free: f64| {
            let mut limits = vec![free; num_parameters];
            let (coefficients, intercepts) = limits.split_at_mut(num_coefficients);
            if let Some(matrix) = matrix {
                for (i, limit) in coefficients.iter_mut().enumerate() {
                    let (set, feature) = (i % num_sets, i / num_sets);
                    *limit = matrix.values[set * matrix.num_cols + feature] * std[feature];
                    if limit.is_nan() {
                        // an infinite bound on a feature that never changes: its coefficient plays no part
                        *limit = free;
                    }
                }
            }
            if let Some(vector) = vector {
                intercepts.iter_mut().zip(vector).for_each(|(limit, v)| *limit = *v);
            }
            limits
        };
        (
            fill(&self.lower_coefficients, &self.lower_intercepts, f64::NEG_INFINITY),
            fill(&self.upper_coefficients, &self.upper_intercepts, f64::INFINITY),
        )
    }
}

fn invalid(text: String) -> train::Error {
    Problem::data(text).into_error()
}
