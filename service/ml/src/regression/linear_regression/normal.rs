//! Least squares by the normal equation, as Spark's `WeightedLeastSquares`: by Cholesky, or by a quasi-Newton method
//! over the summed products where there is an L1 penalty or the products are singular.

use train::Result;
use train::cholesky::Cholesky;
use train::gram::Gram;
use train::optim::{self, Evaluate, Observe, Options, Start};

use super::program::{Fitted, MEMORY, Spec, constant_label, invalid};
use crate::linear::objective::{dot, l1_weights};

/// Products of this many features are what a rank can hold and factor.
pub const FEATURES_MAX: usize = 4096;

/// The sums, in the space of standardised features and label.
struct System {
    num_features: usize,
    fits_intercept: bool,
    a_std: Vec<f64>,
    b_std: f64,
    a: Vec<f64>,
    b: f64,
    bb: f64,
    ab: Vec<f64>,
    /// Packed, as in [`Gram`], with the L2 penalty on its diagonal.
    aa: Vec<f64>,
}

/// Solves the summed system.
///
/// # Errors
/// A label that does not vary but is penalised; [`train::Error::LossNotFinite`].
pub fn solve(spec: &Spec, gram: &Gram, observe: &mut Observe<'_>) -> Result<Fitted> {
    let mean = |sum: f64| sum / gram.weight;
    let b_mean = mean(gram.b);
    let raw_b_std = (mean(gram.bb) - b_mean * b_mean).max(0.0).sqrt();
    if raw_b_std == 0.0 {
        if spec.fits_intercept || b_mean == 0.0 {
            return Ok(constant_label(gram.num_features, b_mean));
        }
        if spec.reg_param > 0.0 {
            let text = "The standard deviation of the label is zero. Model cannot be regularized when labels are standardized.";
            return Err(invalid(text.into()));
        }
    }
    let b_std = if raw_b_std == 0.0 { b_mean.abs() } else { raw_b_std };
    let mut system = System::new(spec, gram, b_std);
    system.penalize(spec);
    let quasi_newton_first = spec.elastic_net != 0.0 && spec.reg_param != 0.0;
    let factored = if quasi_newton_first { None } else { system.factor() };
    let (mut point, inverse_diagonal, history) = match factored {
        Some(cholesky) => (cholesky.solve(&system.right()), Some(cholesky.inverse_diagonal()), vec![0.0]),
        None => {
            let l1 = if quasi_newton_first { spec.elastic_net * spec.reg_param / b_std } else { 0.0 };
            let (point, history) = system.minimize(spec, l1, observe)?;
            (point, None, history)
        }
    };
    let intercept = if spec.fits_intercept { point.pop().unwrap_or(0.0) * b_std } else { 0.0 };
    let coefficients =
        point.iter().zip(&system.a_std).map(|(c, std)| if *std != 0.0 { c * (b_std / std) } else { 0.0 }).collect();
    let variances = inverse_diagonal.map(|diagonal| {
        let scales = system.a_std.iter().map(|std| std * std).chain([1.0]);
        diagonal.iter().zip(scales).map(|(d, scale)| d / (gram.weight * scale)).collect()
    });
    Ok(Fitted {
        coefficients,
        intercept,
        scale: 1.0,
        objective_history: history,
        inverse_diagonal: variances.unwrap_or_else(|| vec![0.0]),
    })
}

impl System {
    fn new(spec: &Spec, gram: &Gram, b_std: f64) -> System {
        let k = gram.num_features;
        let mean = |sum: &f64| sum / gram.weight;
        let a_std: Vec<f64> = (0..k)
            .map(|j| {
                let a = mean(&gram.a[j]);
                (mean(&gram.aa[j * (j + 1) / 2 + j]) - a * a).max(0.0).sqrt()
            })
            .collect();
        let scaled = |value: f64, scale: f64| if scale == 0.0 { 0.0 } else { value / scale };
        let per_feature = |sums: &[f64], of_label: f64| -> Vec<f64> {
            sums.iter().zip(&a_std).map(|(sum, std)| scaled(mean(sum), std * of_label)).collect()
        };
        let (a, ab) = (per_feature(&gram.a, 1.0), per_feature(&gram.ab, b_std));
        let pairs = (0..k).flat_map(|j| (0..=j).map(move |i| (i, j)));
        let aa = gram.aa.iter().zip(pairs).map(|(sum, (i, j))| scaled(mean(sum), a_std[i] * a_std[j])).collect();
        System {
            num_features: k,
            fits_intercept: spec.fits_intercept,
            a,
            b: mean(&gram.b) / b_std,
            bb: mean(&gram.bb) / (b_std * b_std),
            ab,
            aa,
            a_std,
            b_std,
        }
    }

    fn penalize(&mut self, spec: &Spec) {
        let strength = (1.0 - spec.elastic_net) * (spec.reg_param / self.b_std);
        for (j, std) in self.a_std.iter().enumerate() {
            let lambda = match *std {
                _ if spec.is_standardized => strength,
                0.0 => 0.0,
                std => strength / (std * std),
            };
            self.aa[j * (j + 1) / 2 + j] += lambda;
        }
    }

    /// `A^T A`, with the column of the intercept where there is one.
    fn left(&self) -> Vec<f64> {
        let mut left = self.aa.clone();
        if self.fits_intercept {
            left.extend_from_slice(&self.a);
            left.push(1.0);
        }
        left
    }

    /// `A^T b`
    fn right(&self) -> Vec<f64> {
        let mut right = self.ab.clone();
        if self.fits_intercept {
            right.push(self.b);
        }
        right
    }

    fn factor(&self) -> Option<Cholesky> {
        Cholesky::new(self.num_features + usize::from(self.fits_intercept), &self.left())
    }

    /// Minimizes `1/2 |b|^2 - x^T A^T b + 1/2 x^T A^T A x`. The intercept is at its best for the other parameters at every
    /// evaluation, whatever the minimizer would have it.
    fn minimize(&self, spec: &Spec, l1: f64, observe: &mut Observe<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let k = self.num_features;
        let (left, right) = (self.left(), self.right());
        let mut initial = vec![0.0; right.len()];
        if self.fits_intercept {
            initial[k] = self.b;
        }
        let evaluate: &mut Evaluate<'_> = &mut |point: &[f64]| {
            let mut x = point.to_vec();
            self.settle_intercept(&mut x);
            let mut gradient = symmetric_product(&left, &x);
            let value = 0.5 * self.bb - dot(&right, &x) + 0.5 * dot(&x, &gradient);
            gradient.iter_mut().zip(&right).for_each(|(g, ab)| *g -= ab);
            Ok((value, gradient))
        };
        let options = Options { max_iterations: spec.max_iterations, tolerance: spec.tolerance, memory: MEMORY };
        let mut minimum = if l1 == 0.0 {
            optim::lbfgs(&options, &Start::At(&initial), evaluate, observe)?
        } else {
            let mut weights = l1_weights(l1, 0..k, &self.a_std, spec.is_standardized);
            weights.resize(right.len(), 0.0);
            optim::owlqn(&options, &weights, &Start::At(&initial), evaluate, observe)?
        };
        self.settle_intercept(&mut minimum.point);
        Ok((minimum.point, minimum.history))
    }

    fn settle_intercept(&self, x: &mut [f64]) {
        if self.fits_intercept {
            x[self.num_features] = self.b - dot(&x[..self.num_features], &self.a);
        }
    }
}

/// A packed symmetric matrix times a vector.
fn symmetric_product(packed: &[f64], x: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; x.len()];
    let mut start = 0;
    for j in 0..x.len() {
        let column = &packed[start..start + j + 1];
        for i in 0..j {
            product[i] += column[i] * x[j];
            product[j] += column[i] * x[i];
        }
        product[j] += column[j] * x[j];
        start += j + 1;
    }
    product
}
