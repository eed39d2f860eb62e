//! Optimizers over flat parameters, as PyTorch defines them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::bits;

/// Which optimizer, and its constants. Weight decay of SGD and Adam is a term of the gradient; that of AdamW and LAMB is not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Optimizer {
    Sgd {
        #[serde(with = "bits")]
        momentum: f64,
        is_nesterov: bool,
        #[serde(with = "bits")]
        weight_decay: f64,
    },
    /// Kingma and Ba 2015.
    Adam(Moments),
    /// Loshchilov and Hutter 2019.
    AdamW(Moments),
    /// You et al. 2020: the rate of every tensor in proportion to the norm of its values.
    Lamb(Moments),
}

/// Constants of optimizers that follow the gradient's mean and square.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    #[serde(with = "bits")]
    pub beta1: f64,
    #[serde(with = "bits")]
    pub beta2: f64,
    #[serde(with = "bits")]
    pub epsilon: f64,
    #[serde(with = "bits")]
    pub weight_decay: f64,
}

/// What an optimizer remembers of the parameters in its care.
#[derive(Debug, Clone, PartialEq)]
pub struct OptimizerState {
    optimizer: Optimizer,
    /// Updates so far.
    pub steps: u64,
    /// The momentum, or the running mean of gradients.
    pub first: Vec<f32>,
    /// The running mean of their squares; empty for SGD.
    pub second: Vec<f32>,
}

impl OptimizerState {
    pub fn new(optimizer: Optimizer, num_parameters: usize) -> OptimizerState {
        let (first, second) = match optimizer {
            Optimizer::Sgd { momentum: 0.0, .. } => (0, 0),
            Optimizer::Sgd { .. } => (num_parameters, 0),
            _ => (num_parameters, num_parameters),
        };
        OptimizerState { optimizer, steps: 0, first: vec![0.0; first], second: vec![0.0; second] }
    }

    /// Updates parameters by their gradients. `tensors` are where the single tensors are among them.
    pub fn update(&mut self, parameters: &mut [f32], gradients: &[f32], learning_rate: f64, tensors: &[Range<usize>]) {
        self.steps += 1;
        match self.optimizer {
            Optimizer::Sgd { momentum, is_nesterov, weight_decay } => {
                self.sgd(
                    parameters,
                    gradients,
                    learning_rate as f32,
                    momentum as f32,
                    is_nesterov,
                    weight_decay as f32,
                );
            }
            Optimizer::Adam(moments) => self.adam(parameters, gradients, learning_rate, moments, false),
            Optimizer::AdamW(moments) => self.adam(parameters, gradients, learning_rate, moments, true),
            Optimizer::Lamb(moments) => self.lamb(parameters, gradients, learning_rate, moments, tensors),
        }
    }

    fn sgd(
        &mut self,
        parameters: &mut [f32],
        gradients: &[f32],
        rate: f32,
        momentum: f32,
        is_nesterov: bool,
        weight_decay: f32,
    ) {
        if momentum == 0.0 {
            for (p, g) in parameters.iter_mut().zip(gradients) {
                *p -= rate * (g + weight_decay * *p);
            }
            return;
        }
        for ((p, g), velocity) in parameters.iter_mut().zip(gradients).zip(&mut self.first) {
            let g = g + weight_decay * *p;
            *velocity = momentum * *velocity + g;
            *p -= rate * if is_nesterov { g + momentum * *velocity } else { *velocity };
        }
    }

    fn adam(&mut self, parameters: &mut [f32], gradients: &[f32], rate: f64, m: Moments, is_decoupled: bool) {
        let (step_size, second_scale) = self.corrections(rate, m);
        let decay = if is_decoupled { (1.0 - rate * m.weight_decay) as f32 } else { 1.0 };
        let penalty = if is_decoupled { 0.0 } else { m.weight_decay as f32 };
        let (beta1, beta2, epsilon) = (m.beta1 as f32, m.beta2 as f32, m.epsilon as f32);
        let (rest1, rest2) = ((1.0 - m.beta1) as f32, (1.0 - m.beta2) as f32);
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((p, g), (first, second)) in parameters.iter_mut().zip(gradients).zip(moments) {
            *p *= decay;
            let g = g + penalty * *p;
            *first = beta1 * *first + rest1 * g;
            *second = beta2 * *second + rest2 * g * g;
            *p -= step_size * *first / (second.sqrt() * second_scale + epsilon);
        }
    }

    /// What undoes that the running means start at zero: of the step, and of the root of the squares.
    fn corrections(&self, rate: f64, m: Moments) -> (f32, f32) {
        let steps = self.steps.min(i32::MAX as u64) as i32;
        let (first, second) = (1.0 - m.beta1.powi(steps), 1.0 - m.beta2.powi(steps));
        ((rate / first) as f32, (1.0 / second.sqrt()) as f32)
    }

    fn lamb(&mut self, parameters: &mut [f32], gradients: &[f32], rate: f64, m: Moments, tensors: &[Range<usize>]) {
        let (first_scale, second_scale) = self.corrections(1.0, m);
        let (beta1, beta2, epsilon) = (m.beta1 as f32, m.beta2 as f32, m.epsilon as f32);
        let (rest1, rest2) = ((1.0 - m.beta1) as f32, (1.0 - m.beta2) as f32);
        for tensor in tensors {
            let (parameters, gradients) = (&mut parameters[tensor.clone()], &gradients[tensor.clone()]);
            let (first, second) = (&mut self.first[tensor.clone()], &mut self.second[tensor.clone()]);
            let mut direction = Vec::with_capacity(parameters.len());
            for ((p, g), (first, second)) in parameters.iter().zip(gradients).zip(first.iter_mut().zip(second)) {
                *first = beta1 * *first + rest1 * g;
                *second = beta2 * *second + rest2 * g * g;
                let adapted = first_scale * *first / (second.sqrt() * second_scale + epsilon);
                direction.push(adapted + m.weight_decay as f32 * p);
            }
            let (values, length) = (norm(parameters), norm(&direction));
            let trust = if values > 0.0 && length > 0.0 { values / length } else { 1.0 };
            let step_size = (rate * trust) as f32;
            parameters.iter_mut().zip(&direction).for_each(|(p, d)| *p -= step_size * d);
        }
    }
}

/// The Euclidean norm, summed in doubles.
pub fn norm(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENTS: Moments = Moments { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.1 };

    /// Three steps with gradients of `2 p` from (1, -2, 0.5).
    fn steps(optimizer: Optimizer) -> Vec<f32> {
        let mut state = OptimizerState::new(optimizer, 3);
        let mut parameters = vec![1.0, -2.0, 0.5];
        for _ in 0..3 {
            let gradients: Vec<f32> = parameters.iter().map(|p| 2.0 * p).collect();
            state.update(&mut parameters, &gradients, 0.1, &[0..2, 2..3]);
        }
        parameters
    }

    fn assert_close(found: &[f32], expected: [f32; 3]) {
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 2e-6), "{found:?}");
    }

    #[test]
    fn sgd_is_that_of_pytorch() {
        let sgd = |momentum, is_nesterov| Optimizer::Sgd { momentum, is_nesterov, weight_decay: 0.1 };
        assert_close(&steps(sgd(0.0, false)), SGD);
        assert_close(&steps(sgd(0.9, false)), MOMENTUM);
        assert_close(&steps(sgd(0.9, true)), NESTEROV);
    }

    #[test]
    fn adam_and_adamw_are_those_of_pytorch() {
        assert_close(&steps(Optimizer::Adam(MOMENTS)), ADAM);
        assert_close(&steps(Optimizer::AdamW(MOMENTS)), ADAM_W);
    }

    #[test]
    fn lamb_moves_every_tensor_by_a_share_of_its_norm() {
        let mut state = OptimizerState::new(Optimizer::Lamb(MOMENTS), 2);
        let mut parameters = vec![3.0f32, 4.0];
        state.update(&mut parameters, &[1.0, 1.0], 0.1, std::slice::from_ref(&(0..2)));
        let moved = norm(&[3.0 - parameters[0], 4.0 - parameters[1]]);
        assert!((moved - 0.5).abs() < 1e-6, "{moved}");
    }

    // torch 2.13, weight_decay=0.1, lr=0.1
    const SGD: [f32; 3] = [0.493_039, -0.986_078, 0.246_519_5];
    const MOMENTUM: [f32; 3] = [0.024_319_04, -0.048_638_08, 0.012_159_52];
    const NESTEROV: [f32; 3] = [-0.140_468_37, 0.280_936_75, -0.070_234_19];
    const ADAM: [f32; 3] = [0.701_586_3, -1.700_623_4, 0.204_871_27];
    const ADAM_W: [f32; 3] = [0.675_101_3, -1.644_368_6, 0.193_415_61];
}
