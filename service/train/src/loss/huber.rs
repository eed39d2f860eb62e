//! Huber's loss with a scale that is learned with the rest (Owen 2007, A robust hybrid of lasso and ridge regression):
//! squared within `epsilon` scales of the label, linear beyond.

use super::RowLoss;

#[derive(Debug)]
pub struct Huber {
    epsilon: f64,
    scale: f64,
    loss: f64,
    multipliers: f64,
    scale_gradient: f64,
}

impl Huber {
    pub fn new(epsilon: f64, scale: f64) -> Huber {
        Huber { epsilon, scale, loss: 0.0, multipliers: 0.0, scale_gradient: 0.0 }
    }
}

impl RowLoss for Huber {
    fn differentiate(&mut self, labels: &[f64], weights: Option<&[f64]>, margins: &mut [f64]) {
        let (epsilon, scale) = (self.epsilon, self.scale);
        for (row, (margin, label)) in margins.iter_mut().zip(labels).enumerate() {
            let weight = weights.map_or(1.0, |weights| weights[row]);
            if weight <= 0.0 {
                *margin = 0.0;
                continue;
            }
            let residual = label - *margin;
            if residual.abs() <= scale * epsilon {
                let scaled = residual / scale;
                self.loss += 0.5 * weight * (scale + residual * residual / scale);
                self.scale_gradient += 0.5 * weight * (1.0 - scaled * scaled);
                *margin = -weight * scaled;
            } else {
                let linear = scale + 2.0 * epsilon * residual.abs() - scale * epsilon * epsilon;
                self.loss += 0.5 * weight * linear;
                self.scale_gradient += 0.5 * weight * (1.0 - epsilon * epsilon);
                *margin = if residual >= 0.0 { -weight * epsilon } else { weight * epsilon };
            }
            self.multipliers += *margin;
        }
    }

    /// The loss, the sum of the multipliers, and the loss's derivative by the scale.
    fn sums(&self) -> Vec<f64> {
        vec![self.loss, self.multipliers, self.scale_gradient]
    }
}
