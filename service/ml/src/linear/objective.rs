//! The objective of a linear model in the space of standardised features, summed over all ranks.
//!
//! Rows are never scaled or copied: their scale goes into the coefficients on the way in and into the gradient on the way
//! out. An evaluation is one sweep over a rank's rows and one all-reduce of the sums.

use std::cell::Cell;

use collective::{Group, ReduceOp};
use train::batch::Batch;
use train::loss::{RowLoss, Softmax};
use train::moments::Moments;
use train::optim::Iteration;
use train::sweep::{sweep, sweep_classes};
use train::{Error, Progress, Result, Step};

/// All ranks' rows, seen as if every feature had a standard deviation of 1 (or of 0: such a feature counts for nothing).
pub struct Standardized<'a> {
    group: &'a Group,
    batches: &'a [Batch],
    num_rows: u64,
    /// How many rows the sweeps so far have used.
    rows_used: Cell<u64>,
    /// Whether this rank's own part of the last evaluation was a number.
    is_own_finite: Cell<bool>,
    weight_sum: f64,
    pub std: Vec<f64>,
    pub inverse_std: Vec<f64>,
    pub mean: Vec<f64>,
    /// The means of the scaled features.
    pub scaled_mean: Vec<f64>,
}

/// Sums over all rows, divided by the sum of weights.
pub struct Means {
    /// What the loss adds up beside the gradient; the loss first.
    pub sums: Vec<f64>,
    /// By scaled feature; with classes, class after class.
    pub gradient: Vec<f64>,
}

impl<'a> Standardized<'a> {
    pub fn new(group: &'a Group, batches: &'a [Batch], moments: &Moments) -> Standardized<'a> {
        let (mean, std) = (moments.mean(), moments.standard_deviation());
        let inverse_std: Vec<f64> = std.iter().map(|std| if *std != 0.0 { 1.0 / std } else { 0.0 }).collect();
        let scaled_mean = mean.iter().zip(&inverse_std).map(|(mean, inverse)| mean * inverse).collect();
        let num_rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        Standardized {
            group,
            batches,
            num_rows,
            rows_used: Cell::new(0),
            is_own_finite: Cell::new(true),
            weight_sum: moments.weight_sum,
            std,
            inverse_std,
            mean,
            scaled_mean,
        }
    }

    /// Rows of this rank that evaluations have used so far, each as often as it was.
    pub fn rows_used(&self) -> u64 {
        self.rows_used.get()
    }

    /// Adds to the error of a loss that is no number which ranks it came from. Every rank must call it with the outcome
    /// of the same minimization.
    pub fn find_culprits(&self, error: Error) -> Error {
        let Error::LossNotFinite { step, loss, .. } = error else { return error };
        match self.group.all_gather(&[u8::from(self.is_own_finite.get())]) {
            Ok(finite) => {
                let ranks = finite.iter().enumerate().filter(|(_, is_finite)| **is_finite == 0).map(|(rank, _)| rank);
                Error::LossNotFinite { step, loss, ranks: ranks.collect() }
            }
            Err(error) => error.into(),
        }
    }

    /// The loss at margins `offset + x . coefficients`.
    ///
    /// # Errors
    /// What the collective fails with, here and below.
    pub fn rows(&self, coefficients: &[f64], offset: f64, loss: &mut dyn RowLoss) -> Result<Means> {
        let scaled: Vec<f64> = coefficients.iter().zip(&self.inverse_std).map(|(c, inverse)| c * inverse).collect();
        let gradient = sweep(self.batches, &scaled, offset, loss);
        self.reduce(loss.sums(), gradient)
    }

    /// The softmax loss; `coefficients` stand class after class.
    pub fn classes(&self, coefficients: &[f64], offsets: &[f64]) -> Result<Means> {
        let scaled: Vec<f64> =
            coefficients.iter().zip(self.inverse_std.iter().cycle()).map(|(c, inverse)| c * inverse).collect();
        let mut softmax = Softmax::new(offsets.len());
        let gradient = sweep_classes(self.batches, &scaled, offsets, &mut softmax);
        self.reduce(softmax.sums(), gradient)
    }

    fn reduce(&self, sums: Vec<f64>, gradient: Vec<f64>) -> Result<Means> {
        let num_sums = sums.len();
        self.rows_used.set(self.rows_used.get() + self.num_rows);
        self.is_own_finite.set(sums.iter().chain(&gradient).all(|value| value.is_finite()));
        let mut packed = sums;
        packed.extend(gradient);
        self.group.all_reduce(&mut packed, ReduceOp::Sum)?;
        packed.iter_mut().for_each(|v| *v /= self.weight_sum);
        let mut gradient = packed.split_off(num_sums);
        gradient.iter_mut().zip(self.inverse_std.iter().cycle()).for_each(|(g, inverse)| *g *= inverse);
        Ok(Means { sums: packed, gradient })
    }
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The penalty `strength / 2 sum_j (c_j / s_j)^2`, where `s_j` is 1 for standardised features and else undoes the scaling.
pub struct L2 {
    strength: f64,
    /// By parameter; 0 where there is no penalty.
    factors: Vec<f64>,
}

impl L2 {
    /// `features`: for every penalised parameter, in order, its feature. Parameters beyond are free.
    pub fn new(strength: f64, features: impl Iterator<Item = usize>, std: &[f64], is_standardized: bool) -> L2 {
        let factor = |feature: usize| match std[feature] {
            _ if is_standardized => 1.0,
            0.0 => 0.0,
            std => 1.0 / (std * std),
        };
        L2 { strength, factors: features.map(factor).collect() }
    }

    /// Adds the penalty to a value and its gradient.
    pub fn add(&self, point: &[f64], value: &mut f64, gradient: &mut [f64]) {
        if self.strength == 0.0 {
            return;
        }
        let mut sum = 0.0;
        for ((c, factor), g) in point.iter().zip(&self.factors).zip(gradient) {
            let scaled = c * factor;
            sum += c * scaled;
            *g += self.strength * scaled;
        }
        *value += 0.5 * sum * self.strength;
    }
}

/// L1 weights of parameters: of an unscaled feature, the weight is divided by the feature's deviation.
pub fn l1_weights(
    strength: f64,
    features: impl Iterator<Item = usize>,
    std: &[f64],
    is_standardized: bool,
) -> Vec<f64> {
    let weight = |feature: usize| match std[feature] {
        _ if is_standardized => strength,
        0.0 => 0.0,
        std => strength / std,
    };
    features.map(weight).collect()
}

/// Tells people about an iterate, and ends the fit once its job was cancelled.
///
/// # Errors
/// [`Error::Cancelled`]
pub fn observe(progress: &dyn Progress, iteration: &Iteration<'_>, max_iterations: usize, rows_used: u64) -> Result<()> {
    if let Some(reason) = progress.cancelled() {
        return Err(Error::Cancelled { reason });
    }
    progress.report(Step {
        step: iteration.iteration as u64,
        steps_max: max_iterations as u64,
        rows: rows_used,
        loss: Some(iteration.value),
        metrics: Vec::new(),
    });
    Ok(())
}
