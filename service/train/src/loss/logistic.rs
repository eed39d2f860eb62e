//! The logistic loss, `ln(1 + e^-m)` for a row of label 1 and `ln(1 + e^m)` for one of label 0.

use super::{RowLoss, sum};
use crate::kernel::elementary::{exp_nonpositive, ln_1p_unit};
use crate::kernel::{Kernel, run};

#[derive(Debug, Default)]
pub struct Logistic {
    loss: f64,
    /// The gradient of a constant feature, which the intercept and the centering of features need.
    multipliers: f64,
    losses: Vec<f64>,
}

impl RowLoss for Logistic {
    fn differentiate(&mut self, labels: &[f64], weights: Option<&[f64]>, margins: &mut [f64]) {
        self.losses.resize(margins.len(), 0.0);
        run(Rows { labels, weights, margins, losses: &mut self.losses });
        self.loss += sum(&self.losses);
        self.multipliers += sum(margins);
    }

    /// The loss and the sum of the multipliers.
    fn sums(&self) -> Vec<f64> {
        vec![self.loss, self.multipliers]
    }
}

struct Rows<'a> {
    labels: &'a [f64],
    weights: Option<&'a [f64]>,
    margins: &'a mut [f64],
    losses: &'a mut [f64],
}

impl Kernel for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        // indexed over slices of one length, which is what the compiler turns into vector code; closures are not
        let num_rows = self.margins.len();
        let (margins, losses) = (&mut self.margins[..num_rows], &mut self.losses[..num_rows]);
        let labels = &self.labels[..num_rows];
        let Some(weights) = self.weights else {
            for i in 0..num_rows {
                let (multiplier, loss) = row::<FMA>(margins[i], labels[i]);
                margins[i] = multiplier;
                losses[i] = loss;
            }
            return;
        };
        let weights = &weights[..num_rows];
        for i in 0..num_rows {
            let (multiplier, loss) = row::<FMA>(margins[i], labels[i]);
            let counts = weights[i] > 0.0;
            margins[i] = if counts { weights[i] * multiplier } else { 0.0 };
            losses[i] = if counts { weights[i] * loss } else { 0.0 };
        }
    }
}

/// A row's multiplier and loss.
#[inline(always)]
fn row<const FMA: bool>(margin: f64, label: f64) -> (f64, f64) {
    let decay = exp_nonpositive::<FMA>(-margin.abs());
    let against = if label > 0.0 { -margin } else { margin };
    let loss = (if against > 0.0 { against } else { 0.0 }) + ln_1p_unit::<FMA>(decay);
    let numerator = if margin >= 0.0 { 1.0 } else { decay };
    // a margin that is no number must not pass for a finite loss
    let loss = if margin.is_nan() { margin } else { loss };
    (numerator / (1.0 + decay) - label, loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_and_multiplier_are_those_of_the_formula() {
        for margin in [-800.0, -30.0, -1.5, -1e-9, 0.0, 1e-9, 0.3, 2.0, 40.0, 800.0_f64] {
            for label in [0.0, 1.0] {
                let mut logistic = Logistic::default();
                let mut margins = [margin; 6];
                logistic.differentiate(&[label; 6], Some(&[1.0, 0.0, 2.0, 1.0, 1.0, 1.0]), &mut margins);
                let against = if label > 0.0 { -margin } else { margin };
                let loss = against.max(0.0) + (-margin.abs()).exp().ln_1p();
                let multiplier = 1.0 / (1.0 + (-margin).exp()) - label;
                let sums = logistic.sums();
                assert!((sums[0] - 6.0 * loss).abs() <= 1e-14 * loss.max(1.0), "{margin} {label}: {sums:?}");
                assert!((margins[0] - multiplier).abs() <= 1e-15, "{margin} {label}: {margins:?}");
                assert_eq!(margins[1], 0.0);
                assert_eq!(margins[2], 2.0 * margins[0]);
            }
        }
    }
}
