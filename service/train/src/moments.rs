//! Weighted means and variances of features, as Spark's `Summarizer` defines them.

use collective::Group;

use crate::batch::{Batch, Features};
use crate::{Error, Result};

/// Sums over rows of positive weight. Entries that sparse rows leave out count when mean and variance are asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moments {
    /// Rows of positive weight.
    pub count: u64,
    pub weight_sum: f64,
    weight_square_sum: f64,
    /// By feature: the weight of the entries seen, their mean, and their weighted squared distance from it.
    seen: Vec<f64>,
    mean: Vec<f64>,
    distance: Vec<f64>,
}

/// Rows whose deviations from the first of them are summed before they are merged with the rest.
const ROWS_AT_ONCE: usize = 1024;

impl Moments {
    pub fn new(num_features: usize) -> Moments {
        let zeros = vec![0.0; num_features];
        Moments { seen: zeros.clone(), mean: zeros.clone(), distance: zeros, ..Moments::default() }
    }

    /// The moments of the features.
    pub fn of_features(batches: &[Batch], num_features: usize) -> Moments {
        let mut moments = Moments::new(num_features);
        for batch in batches {
            moments.add(&batch.features, batch.weights.as_deref());
        }
        moments
    }

    /// The moments of the labels, as one feature.
    pub fn of_labels(batches: &[Batch]) -> Moments {
        let mut moments = Moments::new(1);
        for batch in batches {
            let labels = Features::Dense { width: 1, num_rows: batch.num_rows(), values: batch.labels.clone() };
            moments.add(&labels, batch.weights.as_deref());
        }
        moments
    }

    fn add(&mut self, features: &Features, weights: Option<&[f64]>) {
        let num_rows = features.num_rows();
        match features {
            Features::Dense { width, values, .. } => {
                for start in (0..num_rows).step_by(ROWS_AT_ONCE) {
                    let end = num_rows.min(start + ROWS_AT_ONCE);
                    let rows = &values[start * width..end * width];
                    let weights = weights.map(|weights| &weights[start..end]);
                    self.merge(&Moments::of_dense(*width, rows, end - start, weights));
                }
            }
            Features::Sparse { .. } => {
                let Some(rows) = features.sparse_rows(0..num_rows) else { return };
                for row in 0..num_rows {
                    let weight = weights.map_or(1.0, |weights| weights[row]);
                    if weight > 0.0 {
                        let (indices, values) = rows.row(row);
                        self.add_sparse(indices, values, weight);
                    }
                }
            }
        }
    }

    /// Sums deviations from the first row, which is exact for a feature that does not change: its variance must be zero,
    /// not nearly so, since models treat constant features apart.
    fn of_dense(width: usize, rows: &[f64], num_rows: usize, weights: Option<&[f64]>) -> Moments {
        let mut block = Moments::new(width);
        let weight_of = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let Some(first) = (0..num_rows).find(|row| weight_of(*row) > 0.0) else { return block };
        let origin = &rows[first * width..(first + 1) * width];
        for row in first..num_rows {
            let weight = weight_of(row);
            if weight > 0.0 {
                block.count += 1;
                block.weight_sum += weight;
                block.weight_square_sum += weight * weight;
                let sums = block.mean.iter_mut().zip(&mut block.distance);
                let row = &rows[row * width..(row + 1) * width];
                for (((sum, square), x), origin) in sums.zip(row).zip(origin) {
                    let deviation = x - origin;
                    *sum += weight * deviation;
                    *square += weight * deviation * deviation;
                }
            }
        }
        block.seen.fill(block.weight_sum);
        for ((mean, distance), origin) in block.mean.iter_mut().zip(&mut block.distance).zip(origin) {
            *distance = (*distance - *mean * *mean / block.weight_sum).max(0.0);
            *mean = origin + *mean / block.weight_sum;
        }
        block
    }

    fn add_sparse(&mut self, indices: &[i32], values: &[f64], weight: f64) {
        self.count += 1;
        self.weight_sum += weight;
        self.weight_square_sum += weight * weight;
        for (i, x) in indices.iter().zip(values).filter(|(_, x)| **x != 0.0) {
            let i = *i as usize;
            let deviation = x - self.mean[i];
            self.seen[i] += weight;
            self.mean[i] += weight * deviation / self.seen[i];
            self.distance[i] += weight * (x - self.mean[i]) * deviation;
        }
    }

    /// Adds the rows of another (Chan, Golub and LeVeque 1979).
    pub fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.weight_sum += other.weight_sum;
        self.weight_square_sum += other.weight_square_sum;
        for i in 0..self.mean.len().min(other.mean.len()) {
            let both = self.seen[i] + other.seen[i];
            if both > 0.0 {
                let shift = other.mean[i] - self.mean[i];
                self.distance[i] += other.distance[i] + shift * shift * self.seen[i] * other.seen[i] / both;
                self.mean[i] += shift * other.seen[i] / both;
            }
            self.seen[i] = both;
        }
    }

    /// The moments over all ranks, merged in their order.
    ///
    /// # Errors
    /// What the collective fails with.
    pub fn over_ranks(&self, group: &Group) -> Result<Moments> {
        let mut all = Moments::new(self.mean.len());
        for bytes in group.all_gather_bytes(&self.to_bytes())? {
            all.merge(&Moments::from_bytes(&bytes, self.mean.len())?);
        }
        Ok(all)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let head = [self.count as f64, self.weight_sum, self.weight_square_sum];
        let parts = [&head[..], &self.seen, &self.mean, &self.distance];
        parts.into_iter().flatten().flat_map(|v| v.to_le_bytes()).collect()
    }

    fn from_bytes(bytes: &[u8], num_features: usize) -> Result<Moments> {
        let values: Vec<f64> = bytes
            .chunks_exact(8)
            .map(|chunk| chunk.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte)))
            .map(f64::from_bits)
            .collect();
        if values.len() != 3 + 3 * num_features {
            return Err(Error::Bug { invariant: "ranks agree on the number of features".into() });
        }
        let part = |k: usize| values[3 + k * num_features..3 + (k + 1) * num_features].to_vec();
        Ok(Moments {
            count: values[0] as u64,
            weight_sum: values[1],
            weight_square_sum: values[2],
            seen: part(0),
            mean: part(1),
            distance: part(2),
        })
    }

    pub fn mean(&self) -> Vec<f64> {
        self.mean.iter().zip(&self.seen).map(|(mean, seen)| mean * (seen / self.weight_sum)).collect()
    }

    /// Unbiased, for weights that count rows; zero where one row says nothing.
    pub fn variance(&self) -> Vec<f64> {
        let total = self.weight_sum;
        let denominator = total - self.weight_square_sum / total;
        (0..self.mean.len())
            .map(|i| {
                let absent = self.mean[i] * self.mean[i] * self.seen[i] * (total - self.seen[i]) / total;
                if denominator > 0.0 { ((self.distance[i] + absent) / denominator).max(0.0) } else { 0.0 }
            })
            .collect()
    }

    pub fn standard_deviation(&self) -> Vec<f64> {
        self.variance().into_iter().map(f64::sqrt).collect()
    }
}

#[cfg(test)]
mod tests {
    use arrow::buffer::ScalarBuffer;

    use super::*;

    fn dense(width: usize, values: Vec<f64>) -> Features {
        Features::Dense { width, num_rows: values.len() / width, values: ScalarBuffer::from(values) }
    }

    #[test]
    fn weighted_moments_are_those_of_the_formula() {
        let mut moments = Moments::new(2);
        moments.add(&dense(2, vec![1.0, 0.1, 4.0, 0.1, 9.0, 5.0, 6.0, 0.1]), Some(&[1.0, 2.0, 0.0, 1.0]));
        assert_eq!((moments.count, moments.weight_sum), (3, 4.0));
        assert!((moments.mean()[0] - 15.0 / 4.0).abs() < 1e-15);
        let distance = 2.75f64.powi(2) + 2.0 * 0.25f64.powi(2) + 2.25f64.powi(2);
        assert!((moments.variance()[0] - distance / (4.0 - 6.0 / 4.0)).abs() < 1e-14);
        assert_eq!(moments.variance()[1], 0.0);
        assert_eq!(moments.mean()[1], 0.1);
    }

    #[test]
    fn sparse_and_dense_rows_agree() {
        let values = vec![0.0, 2.5, 0.0, 1.0, 2.5, 0.0, -4.0, 2.5, 3.0];
        let mut expected = Moments::new(3);
        expected.add(&dense(3, values), None);
        let sparse = Features::Sparse {
            width: 3,
            offsets: vec![0, 1, 3, 6],
            indices: ScalarBuffer::from(vec![1, 0, 1, 0, 1, 2]),
            values: ScalarBuffer::from(vec![2.5, 1.0, 2.5, -4.0, 2.5, 3.0]),
        };
        let mut moments = Moments::new(3);
        moments.add(&sparse, None);
        for i in 0..3 {
            assert!((moments.mean()[i] - expected.mean()[i]).abs() < 1e-15);
            assert!((moments.variance()[i] - expected.variance()[i]).abs() < 1e-14);
        }
        assert_eq!(moments.variance()[1], 0.0);
        assert_eq!(Moments::from_bytes(&moments.to_bytes(), 3).unwrap(), moments);
    }
}
