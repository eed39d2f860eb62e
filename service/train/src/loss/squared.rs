//! Half the squared difference of a margin and the scaled label.

use super::{RowLoss, sum};
use crate::kernel::{Kernel, run};

#[derive(Debug)]
pub struct Squared {
    /// Labels are multiplied by it before they are compared.
    label_scale: f64,
    loss: f64,
    losses: Vec<f64>,
}

impl Squared {
    pub fn new(label_scale: f64) -> Squared {
        Squared { label_scale, loss: 0.0, losses: Vec::new() }
    }
}

impl RowLoss for Squared {
    fn differentiate(&mut self, labels: &[f64], weights: Option<&[f64]>, margins: &mut [f64]) {
        self.losses.resize(margins.len(), 0.0);
        run(Rows { label_scale: self.label_scale, labels, weights, margins, losses: &mut self.losses });
        self.loss += sum(&self.losses);
    }

    /// The loss.
    fn sums(&self) -> Vec<f64> {
        vec![self.loss]
    }
}

struct Rows<'a> {
    label_scale: f64,
    labels: &'a [f64],
    weights: Option<&'a [f64]>,
    margins: &'a mut [f64],
    losses: &'a mut [f64],
}

impl Kernel for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Rows { label_scale, labels, weights, margins, losses } = self;
        let rows = margins.iter_mut().zip(losses).zip(labels);
        match weights {
            None => rows.for_each(|((margin, loss), label)| {
                let difference = *margin - label * label_scale;
                *margin = difference;
                *loss = difference * difference / 2.0;
            }),
            Some(weights) => rows.zip(weights).for_each(|(((margin, loss), label), weight)| {
                let difference = *margin - label * label_scale;
                *margin = weight * difference;
                *loss = weight * difference * difference / 2.0;
            }),
        }
    }
}
