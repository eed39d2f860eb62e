//! Layers, their weights in one vector, and the objective with its gradient.
//!
//! Weights are laid out as Spark lays them out: layer after layer, of each the matrix from `I` inputs to `O` outputs, all
//! weights of the first input first, then the `O` intercepts. So the matrix is read as `weight_IO`.
//!
//! Legend: `R` rows, `I` inputs and `O` outputs of a layer.

use tch::{Kind, Tensor};
use train::batch::Features;

use super::random::XorShift;

/// Rows of one product of matrices. Sums are made in this grain, so it decides their last bits.
const ROWS_AT_ONCE: usize = 1024;

#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    layers: Vec<usize>,
}

/// The matrix and the intercepts of one layer, as views of the vector of weights.
struct Layer {
    weight_io: Tensor,
    intercept_o: Tensor,
}

impl Network {
    /// `layers`: the inputs, the sizes of hidden layers, the classes.
    pub fn new(layers: Vec<usize>) -> Network {
        Network { layers }
    }

    pub fn layers(&self) -> &[usize] {
        &self.layers
    }

    pub fn num_features(&self) -> usize {
        self.layers.first().copied().unwrap_or(0)
    }

    pub fn num_classes(&self) -> usize {
        self.layers.last().copied().unwrap_or(0)
    }

    pub fn num_weights(&self) -> usize {
        self.layers.windows(2).map(|sizes| (sizes[0] + 1) * sizes[1]).sum()
    }

    /// The weights that Spark starts with.
    pub fn initial_weights(&self, seed: i64) -> Vec<f64> {
        let mut random = XorShift::new(seed);
        let mut weights = Vec::with_capacity(self.num_weights());
        for sizes in self.layers.windows(2) {
            let scale = (sizes[0] as f64).sqrt();
            weights.extend((0..(sizes[0] + 1) * sizes[1]).map(|_| (random.double() * 4.8 - 2.4) / scale));
        }
        weights
    }

    fn split(&self, weights: &[f64]) -> Vec<Layer> {
        let mut start = 0;
        self.layers
            .windows(2)
            .map(|sizes| {
                let (middle, end) = (start + sizes[0] * sizes[1], start + (sizes[0] + 1) * sizes[1]);
                let layer = Layer {
                    weight_io: Tensor::from_slice(&weights[start..middle]).view([sizes[0] as i64, sizes[1] as i64]),
                    intercept_o: Tensor::from_slice(&weights[middle..end]),
                };
                start = end;
                layer
            })
            .collect()
    }

    /// What every layer gives: sigmoids, and of the last one the scores. The rows themselves come first.
    fn forward(&self, layers: &[Layer], rows: Tensor) -> Vec<Tensor> {
        let mut outputs = vec![rows];
        for (index, layer) in layers.iter().enumerate() {
            let z_ro = layer.intercept_o.addmm(&outputs[index], &layer.weight_io);
            outputs.push(if index + 1 == layers.len() { z_ro } else { z_ro.sigmoid() });
        }
        outputs
    }

    /// The scores of rows, row-major.
    pub fn scores(&self, weights: &[f64], features: &Features) -> Vec<f64> {
        let _no_gradients = tch::no_grad_guard();
        let layers = self.split(weights);
        let mut scores = Vec::with_capacity(features.num_rows() * self.num_classes());
        for rows in chunks(features.num_rows()) {
            let outputs = self.forward(&layers, dense(features, rows));
            scores.extend(outputs.last().map(to_doubles).unwrap_or_default());
        }
        scores
    }

    /// Adds the cross-entropy of some rows to `loss`, each times its factor, and its gradient to `gradient`.
    pub fn add_loss(
        &self,
        weights: &[f64],
        features: &Features,
        labels: &[f64],
        factors: &[f64],
        loss: &mut f64,
        gradient: &mut [f64],
    ) {
        let _no_gradients = tch::no_grad_guard();
        let layers = self.split(weights);
        for rows in chunks(features.num_rows()) {
            let outputs = self.forward(&layers, dense(features, rows.clone()));
            let [.., scores_ro] = &outputs[..] else { continue };
            let label_r1 = Tensor::from_slice(&labels[rows.clone()]).to_kind(Kind::Int64).unsqueeze(1);
            let factor_r1 = Tensor::from_slice(&factors[rows]).unsqueeze(1);
            let logs_ro = scores_ro.log_softmax(1, Kind::Double);
            *loss -= (logs_ro.gather(1, &label_r1, false) * &factor_r1).sum(Kind::Double).double_value(&[]);
            // of the scores: probability less 1 for the label
            let mut delta_ro = (logs_ro.exp() - logs_ro.zeros_like().scatter_value(1, &label_r1, 1.0)) * factor_r1;
            let mut end = gradient.len();
            for (index, layer) in layers.iter().enumerate().rev() {
                let input_ri = &outputs[index];
                let start = end - layer.weight_io.numel() - layer.intercept_o.numel();
                add(&input_ri.tr().matmul(&delta_ro), &mut gradient[start..]);
                let intercepts = delta_ro.sum_dim_intlist([0i64].as_slice(), false, Kind::Double);
                add(&intercepts, &mut gradient[end - layer.intercept_o.numel()..]);
                end = start;
                if index > 0 {
                    delta_ro = delta_ro.matmul(&layer.weight_io.tr()) * input_ri * (1.0 - input_ri);
                }
            }
        }
    }
}

fn chunks(num_rows: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..num_rows).step_by(ROWS_AT_ONCE).map(move |start| start..num_rows.min(start + ROWS_AT_ONCE))
}

fn dense(features: &Features, rows: std::ops::Range<usize>) -> Tensor {
    let width = features.width();
    let shape = [rows.len() as i64, width as i64];
    let Some(sparse) = features.sparse_rows(rows.clone()) else {
        return Tensor::from_slice(&features.values()[rows.start * width..rows.end * width]).view(shape);
    };
    let mut values = vec![0.0; rows.len() * width];
    for row in 0..rows.len() {
        let (indices, stored) = sparse.row(row);
        for (index, value) in indices.iter().zip(stored) {
            values[row * width + *index as usize] = *value;
        }
    }
    Tensor::from_slice(&values).view(shape)
}

fn to_doubles(tensor: &Tensor) -> Vec<f64> {
    let flat = tensor.contiguous();
    let mut values = vec![0.0; flat.numel()];
    flat.copy_data(&mut values, flat.numel());
    values
}

/// Adds a tensor to the first of some values.
fn add(tensor: &Tensor, values: &mut [f64]) {
    values.iter_mut().zip(to_doubles(tensor)).for_each(|(value, more)| *value += more);
}

#[cfg(test)]
mod tests {
    use super::*;

    const XOR: [f64; 8] = [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];

    fn xor() -> Features {
        Features::Dense { width: 2, num_rows: 4, values: train::batch::Numbers::from(XOR.to_vec()) }
    }

    fn loss(network: &Network, weights: &[f64]) -> (f64, Vec<f64>) {
        let (mut loss, mut gradient) = (0.0, vec![0.0; weights.len()]);
        network.add_loss(weights, &xor(), &[0.0, 1.0, 1.0, 0.0], &[0.25; 4], &mut loss, &mut gradient);
        (loss, gradient)
    }

    #[test]
    fn weights_and_loss_start_as_in_spark() {
        // Spark 4.3, layers [2, 3, 2], seed 123, maxIter 0
        let network = Network::new(vec![2, 3, 2]);
        let weights = network.initial_weights(123);
        assert_eq!(weights.len(), 17);
        assert_eq!(weights[..2], [-1.160946702561173, 0.505000787625046]);
        assert_eq!((weights[9], weights[16]), (0.5635147284794603, -0.35496558548380963));
        assert!((loss(&network, &weights).0 - 0.861_094_863_848_800_4).abs() < 1e-15);
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let network = Network::new(vec![2, 5, 4, 3]);
        let weights = network.initial_weights(7);
        let (_, gradient) = loss(&network, &weights);
        for index in 0..weights.len() {
            let moved = |by: f64| {
                let mut weights = weights.clone();
                weights[index] += by;
                loss(&network, &weights).0
            };
            let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            assert!((slope - gradient[index]).abs() < 1e-8, "{index}: {slope} {}", gradient[index]);
        }
    }
}
