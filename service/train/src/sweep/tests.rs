//! Sweeps against sums written out, over dense, sparse and weighted batches of awkward sizes.

use arrow::buffer::ScalarBuffer;

use super::*;
use crate::loss::{Logistic, Squared};

/// Small numbers that look random and are the same every time.
fn noise(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        })
        .collect()
}

fn batch(num_rows: usize, width: usize, is_sparse: bool, is_weighted: bool) -> Batch {
    let mut values = noise(num_rows * width, 7);
    let features = if is_sparse {
        let mut offsets = vec![0];
        let (mut indices, mut kept) = (Vec::new(), Vec::new());
        for (i, v) in values.iter_mut().enumerate() {
            if i % 3 == 0 {
                indices.push((i % width) as i32);
                kept.push(*v);
            } else {
                *v = 0.0;
            }
            if (i + 1) % width == 0 {
                offsets.push(kept.len());
            }
        }
        Features::Sparse { width, offsets, indices: ScalarBuffer::from(indices), values: ScalarBuffer::from(kept) }
    } else {
        Features::Dense { width, num_rows, values: ScalarBuffer::from(values) }
    };
    let labels: Vec<f64> = (0..num_rows).map(|row| (row % 3 % 2) as f64).collect();
    let weights = is_weighted.then(|| (0..num_rows).map(|row| (row % 4) as f64 * 0.5).collect::<Vec<f64>>().into());
    Batch { features, labels: labels.into(), weights }
}

fn dense_row(batch: &Batch, row: usize) -> Vec<f64> {
    match &batch.features {
        Features::Dense { width, values, .. } => values[row * width..(row + 1) * width].to_vec(),
        Features::Sparse { width, .. } => {
            let mut dense = vec![0.0; *width];
            let rows = batch.features.sparse_rows(row..row + 1).unwrap();
            let (indices, values) = rows.row(0);
            indices.iter().zip(values).for_each(|(i, v)| dense[*i as usize] = *v);
            dense
        }
    }
}

#[test]
fn a_sweep_is_the_sum_over_rows() {
    for (num_rows, width) in [(1, 1), (7, 3), (8, 4), (37, 28), (1000, 13), (129, 700)] {
        for (is_sparse, is_weighted) in [(false, false), (false, true), (true, false), (true, true)] {
            let batch = batch(num_rows, width, is_sparse, is_weighted);
            let coefficients = noise(width, 3);
            let (mut gradient, mut loss) = (vec![0.0; width], 0.0);
            for row in 0..num_rows {
                let x = dense_row(&batch, row);
                let weight = batch.weights.as_ref().map_or(1.0, |weights| weights[row]);
                let margin = 0.25 + x.iter().zip(&coefficients).map(|(x, c)| x * c).sum::<f64>();
                let difference = margin - 2.0 * batch.labels[row];
                loss += weight * difference * difference / 2.0;
                gradient.iter_mut().zip(&x).for_each(|(g, x)| *g += weight * difference * x);
            }
            let mut squared = Squared::new(2.0);
            let found = sweep(&[batch], &coefficients, 0.25, &mut squared);
            assert!((squared.sums()[0] - loss).abs() < 1e-10 * loss.max(1.0), "{num_rows} x {width}");
            for (f, g) in found.iter().zip(&gradient) {
                assert!((f - g).abs() < 1e-10, "{num_rows} x {width}: {f} {g}");
            }
        }
    }
}

#[test]
fn two_classes_of_softmax_are_the_logistic_loss() {
    for (is_sparse, is_weighted) in [(false, false), (false, true), (true, true)] {
        let batch = batch(301, 11, is_sparse, is_weighted);
        let coefficients = noise(11, 5);
        let mut logistic = Logistic::default();
        let gradient = sweep(std::slice::from_ref(&batch), &coefficients, 0.5, &mut logistic);
        let by_class: Vec<f64> = coefficients.iter().map(|_| 0.0).chain(coefficients.iter().copied()).collect();
        let mut softmax = Softmax::new(2);
        let classes = sweep_classes(&[batch], &by_class, &[0.0, 0.5], &mut softmax);
        assert!((softmax.sums()[0] - logistic.sums()[0]).abs() < 1e-10);
        assert!((softmax.sums()[2] - logistic.sums()[1]).abs() < 1e-10);
        for (i, g) in gradient.iter().enumerate() {
            assert!((classes[11 + i] - g).abs() < 1e-11 && (classes[i] + g).abs() < 1e-11);
        }
    }
}
