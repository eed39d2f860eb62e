//! One sweep over a rank's batches: margins, multipliers and the gradient, a tile of rows at a time.
//!
//! A tile is small enough to stay in the first-level cache, so that its rows come from memory once an evaluation,
//! though they are used twice.

use crate::batch::{Batch, Features};
use crate::kernel::{dense, run, sparse};
use crate::loss::{RowLoss, Softmax};

/// Half of a first-level cache.
const TILE_BYTES: usize = 16 << 10;
const TILE_ROWS_MAX: usize = 512;
/// A multiple of the rows that the kernels take at once.
const TILE_ROWS_STEP: usize = 8;

fn tile_rows(features: &Features) -> usize {
    let bytes_per_row = match features {
        Features::Dense { width, .. } => 8 * width,
        Features::Sparse { .. } => 12 * (features.values().len() / features.num_rows().max(1)),
    };
    let rows = TILE_BYTES / bytes_per_row.max(1);
    (rows / TILE_ROWS_STEP * TILE_ROWS_STEP).clamp(TILE_ROWS_STEP, TILE_ROWS_MAX)
}

fn tiles(num_rows: usize, size: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..num_rows).step_by(size).map(move |start| start..num_rows.min(start + size))
}

/// Sums a loss of one margin a row, `offset + x . coefficients`, and returns `sum_r multiplier_r x_r`.
///
/// The same through libtorch (two matrix-vector products and the elementwise steps between them, block by block) reads
/// rows twice and writes margins three times: of one million rows of 28 doubles it takes 24 ns a row where this takes 13,
/// by `examples/sweep_speed.rs`; of 700 doubles, 580 ns where this takes 270.
pub fn sweep(batches: &[Batch], coefficients: &[f64], offset: f64, loss: &mut dyn RowLoss) -> Vec<f64> {
    let mut gradient = vec![0.0; coefficients.len()];
    let mut margins = Vec::new();
    for batch in batches {
        for rows in tiles(batch.num_rows(), tile_rows(&batch.features)) {
            margins.clear();
            margins.resize(rows.len(), offset);
            add_margins(&batch.features, rows.clone(), coefficients, &mut margins);
            loss.differentiate(&batch.labels[rows.clone()], batch.weights_of(rows.clone()), &mut margins);
            add_rows(&batch.features, rows, true, &margins, &mut gradient);
        }
    }
    gradient
}

/// Sums the softmax loss of margins `offsets[c] + x . coefficients[c]`. `coefficients` has a row for every class; so has
/// the gradient that is returned.
///
/// A product of matrices by libtorch is slower up to some ten classes (3 classes, 28 features: 64 ns a row against 30; 10
/// classes, 700 features: 2.7 us against 1.5) and faster by a third at a hundred.
pub fn sweep_classes(batches: &[Batch], coefficients: &[f64], offsets: &[f64], softmax: &mut Softmax) -> Vec<f64> {
    let width = coefficients.len() / offsets.len().max(1);
    let mut gradient = vec![0.0; coefficients.len()];
    let mut margins = Vec::new();
    for batch in batches {
        for rows in tiles(batch.num_rows(), tile_rows(&batch.features)) {
            margins.clear();
            for (class, offset) in offsets.iter().enumerate() {
                margins.resize((class + 1) * rows.len(), *offset);
                let margins = &mut margins[class * rows.len()..];
                let coefficients = &coefficients[class * width..(class + 1) * width];
                add_margins(&batch.features, rows.clone(), coefficients, margins);
            }
            softmax.differentiate(&batch.labels[rows.clone()], batch.weights_of(rows.clone()), &mut margins);
            let by_class = margins.chunks_exact(rows.len()).zip(gradient.chunks_exact_mut(width.max(1)));
            for (class, (multipliers, gradient)) in by_class.enumerate() {
                add_rows(&batch.features, rows.clone(), class + 1 == offsets.len(), multipliers, gradient);
            }
        }
    }
    gradient
}

fn add_margins(features: &Features, rows: std::ops::Range<usize>, coefficients: &[f64], margins: &mut [f64]) {
    match features {
        Features::Dense { width, values, .. } => {
            let rows = &values[rows.start * width..rows.end * width];
            run(dense::Margins { rows, coefficients, margins });
        }
        Features::Sparse { offsets, indices, values, .. } => {
            let rows = sparse::Rows { offsets: &offsets[rows.start..=rows.end], indices, values };
            sparse::add_margins(rows, coefficients, margins);
        }
    }
}

/// `is_last`: the rows are not needed again in this sweep, so that the ones after them are fetched meanwhile.
fn add_rows(
    features: &Features,
    rows: std::ops::Range<usize>,
    is_last: bool,
    multipliers: &[f64],
    gradient: &mut [f64],
) {
    match features {
        Features::Dense { width, num_rows, values } => {
            let next_end = if is_last { (rows.end + rows.len()).min(*num_rows) } else { rows.end };
            let next_rows = &values[rows.end * width..next_end * width];
            let rows = &values[rows.start * width..rows.end * width];
            run(dense::AddRows { rows, next_rows, multipliers, gradient });
        }
        Features::Sparse { offsets, indices, values, .. } => {
            let rows = sparse::Rows { offsets: &offsets[rows.start..=rows.end], indices, values };
            sparse::add_rows(rows, multipliers, gradient);
        }
    }
}

#[cfg(test)]
mod tests;
