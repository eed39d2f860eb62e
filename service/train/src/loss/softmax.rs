//! The multinomial logistic loss: minus the log-probability of a row's class.

use super::sum;
use crate::kernel::elementary::exp_nonpositive;
use crate::kernel::{Kernel, run};

/// Adds itself up over the rows it is shown.
#[derive(Debug)]
pub struct Softmax {
    loss: f64,
    /// For every class, the sum of its multipliers.
    multipliers: Vec<f64>,
    largest: Vec<f64>,
    totals: Vec<f64>,
}

impl Softmax {
    pub fn new(num_classes: usize) -> Softmax {
        Softmax { loss: 0.0, multipliers: vec![0.0; num_classes], largest: Vec::new(), totals: Vec::new() }
    }

    /// As [`super::RowLoss::differentiate`], with a margin for every class: class after class, `labels.len()` rows each.
    pub fn differentiate(&mut self, labels: &[f64], weights: Option<&[f64]>, margins: &mut [f64]) {
        let num_rows = labels.len();
        self.largest.clear();
        self.largest.resize(num_rows, f64::NEG_INFINITY);
        self.totals.clear();
        self.totals.resize(num_rows, 0.0);
        // the margin of the row's own class is lost when margins become exponentials, so its part of the loss comes first
        for (row, label) in labels.iter().enumerate() {
            let weight = weights.map_or(1.0, |weights| weights[row]);
            if weight > 0.0 {
                self.loss -= weight * margins[*label as usize * num_rows + row];
            }
        }
        run(Exponentials { margins, largest: &mut self.largest, totals: &mut self.totals });
        for row in 0..num_rows {
            let weight = weights.map_or(1.0, |weights| weights[row]);
            if weight > 0.0 {
                self.loss += weight * (self.largest[row] + self.totals[row].ln());
                self.totals[row] = weight / self.totals[row];
            } else {
                self.totals[row] = 0.0;
            }
        }
        for class in margins.chunks_exact_mut(num_rows) {
            for (margin, total) in class.iter_mut().zip(&self.totals) {
                *margin = if *total > 0.0 { *margin * total } else { 0.0 };
            }
        }
        for (row, label) in labels.iter().enumerate() {
            let weight = weights.map_or(1.0, |weights| weights[row]);
            margins[*label as usize * num_rows + row] -= weight;
        }
        for (total, class) in self.multipliers.iter_mut().zip(margins.chunks_exact(num_rows)) {
            *total += sum(class);
        }
    }

    /// The loss, and for every class the sum of its multipliers.
    pub fn sums(&self) -> Vec<f64> {
        let mut sums = vec![self.loss];
        sums.extend_from_slice(&self.multipliers);
        sums
    }
}

/// Turns margins into `e^(margin - largest)` and adds them up over classes.
struct Exponentials<'a> {
    margins: &'a mut [f64],
    largest: &'a mut [f64],
    totals: &'a mut [f64],
}

impl Kernel for Exponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Exponentials { margins, largest, totals } = self;
        let num_rows = totals.len();
        for class in margins.chunks_exact(num_rows) {
            for (largest, margin) in largest.iter_mut().zip(class) {
                *largest = if *margin > *largest { *margin } else { *largest };
            }
        }
        for class in margins.chunks_exact_mut(num_rows) {
            for ((margin, largest), total) in class.iter_mut().zip(&*largest).zip(&mut *totals) {
                *margin = exp_nonpositive::<FMA>(*margin - largest);
                *total += *margin;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multipliers_are_probabilities_less_the_label() {
        let margins = [[1.0, -2.0, 0.5], [300.0, 0.0, -300.0], [0.0, 0.0, 0.0_f64]];
        let labels = [2.0, 1.0, 0.0];
        let weights = [1.0, 0.5, 0.0];
        let mut by_class: Vec<f64> = (0..3).flat_map(|class| margins.iter().map(move |row| row[class])).collect();
        let mut softmax = Softmax::new(3);
        softmax.differentiate(&labels, Some(&weights), &mut by_class);
        let total: f64 = margins[0].iter().map(|m| m.exp()).sum();
        let expected = (total.ln() - 0.5) + 0.5 * 300.0;
        assert!((softmax.sums()[0] - expected).abs() < 1e-12, "{:?}", softmax.sums());
        assert!((by_class[6] - (0.5f64.exp() / total - 1.0)).abs() < 1e-15);
        assert!((by_class[0] - 1f64.exp() / total).abs() < 1e-15);
        assert_eq!([by_class[2], by_class[5], by_class[8]], [0.0; 3]);
    }
}
