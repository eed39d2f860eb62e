//! Learning rates by step.

use serde::{Deserialize, Serialize};

use crate::bits;

/// How the learning rate changes. The rate that was asked for is the highest one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Schedule {
    Constant,
    /// Multiplied by `gamma` every so many epochs.
    Step {
        epochs: usize,
        #[serde(with = "bits")]
        gamma: f64,
    },
    /// Rises linearly over the first share of all steps, then falls to zero along half a cosine.
    Cosine {
        #[serde(with = "bits")]
        warm_up: f64,
    },
    /// Rises from a 25th along half a cosine over the first share of all steps, then falls to a 250,000th: the one-cycle
    /// policy (Smith 2018) with PyTorch's figures, for the learning rate; momentum stays.
    OneCycle {
        #[serde(with = "bits")]
        warm_up: f64,
    },
}

const ONE_CYCLE_START: f64 = 1.0 / 25.0;
const ONE_CYCLE_END: f64 = ONE_CYCLE_START / 1e4;

impl Schedule {
    /// The factor of the learning rate at a step, counted from 0.
    pub fn factor(self, step: u64, steps_per_epoch: u64, steps_max: u64) -> f64 {
        let (at, last) = (step as f64, steps_max.saturating_sub(1) as f64);
        match self {
            Schedule::Constant => 1.0,
            Schedule::Step { epochs, gamma } => {
                let epoch = step / steps_per_epoch.max(1);
                gamma.powi((epoch / epochs.max(1) as u64) as i32)
            }
            Schedule::Cosine { warm_up } => {
                let rise = (warm_up * steps_max as f64).floor();
                if at < rise {
                    return (at + 1.0) / rise;
                }
                cosine(1.0, 0.0, (at - rise) / (steps_max as f64 - rise).max(1.0))
            }
            Schedule::OneCycle { warm_up } => {
                let top = warm_up * steps_max as f64 - 1.0;
                if at <= top {
                    return cosine(ONE_CYCLE_START, 1.0, at / top.max(f64::MIN_POSITIVE));
                }
                cosine(1.0, ONE_CYCLE_END, (at - top) / (last - top).max(f64::MIN_POSITIVE))
            }
        }
    }
}

/// Half a cosine from one value to another.
fn cosine(from: f64, to: f64, share: f64) -> f64 {
    to + (from - to) / 2.0 * (1.0 + (std::f64::consts::PI * share).cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(schedule: Schedule) -> Vec<f64> {
        (0..10).map(|step| schedule.factor(step, 5, 10)).collect()
    }

    #[test]
    fn steps_multiply_by_epochs() {
        assert_eq!(factors(Schedule::Step { epochs: 1, gamma: 0.5 })[4..6], [1.0, 0.5]);
    }

    #[test]
    fn a_cosine_rises_linearly_and_falls_to_zero() {
        let factors = factors(Schedule::Cosine { warm_up: 0.2 });
        assert_eq!(factors[..3], [0.5, 1.0, 1.0]);
        assert!((factors[6] - 0.5).abs() < 1e-12 && factors[9] < 0.05);
    }

    #[test]
    fn one_cycle_is_that_of_pytorch() {
        // torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10), rounded
        let expected = [0.04, 0.52, 1.0, 0.9504846, 0.8117456, 0.6112620, 0.3887420, 0.1882584, 0.0495194, 0.000004];
        for (found, expected) in factors(Schedule::OneCycle { warm_up: 0.3 }).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
}
