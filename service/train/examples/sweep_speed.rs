//! How fast one evaluation of the logistic loss is, with the kernels and with libtorch: nanoseconds a row, one thread.
//!
//! `cargo run --release -p train --example sweep_speed [rows] [features] [classes]`

use std::time::Instant;

use arrow::buffer::ScalarBuffer;
use tch::{Kind, Tensor};
use train::batch::{Batch, Features};
use train::loss::{Logistic, RowLoss, Softmax};
use train::sweep::{sweep, sweep_classes};

const REPEATS: usize = 7;
/// Rows of a block that libtorch works on.
const BLOCK_ROWS: usize = 4096;

fn main() {
    tch::set_num_threads(1);
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<usize>().ok());
    let num_rows = arguments.next().unwrap_or(1_000_000);
    let width = arguments.next().unwrap_or(28);
    let num_classes = arguments.next().unwrap_or(3);
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let values: Vec<f64> = (0..num_rows * width).map(|_| random()).collect();
    let coefficients: Vec<f64> = (0..num_classes * width).map(|_| random()).collect();
    let labels: Vec<f64> = (0..num_rows).map(|row| (row % 2) as f64).collect();
    let features = Features::Dense { width, num_rows, values: ScalarBuffer::from(values) };
    let batch = [Batch { features, labels: labels.into(), weights: None }];

    let report = |name: &str, seconds: f64| {
        let per_row = seconds * 1e9 / num_rows as f64;
        let bandwidth = (8 * width * num_rows) as f64 / seconds / 1e9;
        println!("{name:24} {per_row:8.2} ns a row {bandwidth:8.2} GB/s");
    };
    report(
        "read only",
        best(|| {
            batch[0].features.values().chunks_exact(8).fold([0.0; 8], |mut sums, chunk| {
                sums.iter_mut().zip(chunk).for_each(|(sum, v)| *sum += v);
                sums
            })
        }),
    );
    report(
        "binomial, kernels",
        best(|| {
            let mut loss = Logistic::default();
            let gradient = sweep(&batch, &coefficients[..width], 0.1, &mut loss);
            (gradient, loss.sums())
        }),
    );
    report("binomial, libtorch", best(|| binomial_with_libtorch(&batch[0], &coefficients[..width])));
    report(
        "softmax, kernels",
        best(|| {
            let mut loss = Softmax::new(num_classes);
            let gradient = sweep_classes(&batch, &coefficients, &vec![0.0; num_classes], &mut loss);
            (gradient, loss.sums())
        }),
    );
    report("softmax, libtorch", best(|| softmax_with_libtorch(&batch[0], &coefficients, num_classes)));
}

fn best<T>(mut work: impl FnMut() -> T) -> f64 {
    (0..REPEATS).fold(f64::INFINITY, |best, _| {
        let start = Instant::now();
        std::hint::black_box(work());
        best.min(start.elapsed().as_secs_f64())
    })
}

fn blocks(batch: &Batch) -> impl Iterator<Item = (Tensor, &[f64])> {
    let width = batch.features.width();
    let blocks = batch.features.values().chunks(BLOCK_ROWS * width).zip(batch.labels.chunks(BLOCK_ROWS));
    blocks.map(move |(rows, labels)| {
        let shape = [labels.len() as i64, width as i64];
        // SAFETY: the tensor does not outlive the batch, and nothing writes through it.
        let x = unsafe {
            Tensor::from_blob(rows.as_ptr().cast(), &shape, &[width as i64, 1], Kind::Double, tch::Device::Cpu)
        };
        (x, labels)
    })
}

fn binomial_with_libtorch(batch: &Batch, coefficients: &[f64]) -> (Tensor, f64) {
    let c = Tensor::from_slice(coefficients);
    let mut gradient = c.zeros_like();
    let mut loss = 0.0;
    for (x, labels) in blocks(batch) {
        let y = Tensor::from_slice(labels);
        let margins = x.mv(&c) + 0.1;
        loss += margins.softplus().sum(Kind::Double).double_value(&[])
            - (&margins * &y).sum(Kind::Double).double_value(&[]);
        gradient += x.transpose(0, 1).mv(&(margins.sigmoid() - y));
    }
    (gradient, loss)
}

fn softmax_with_libtorch(batch: &Batch, coefficients: &[f64], num_classes: usize) -> (Tensor, f64) {
    let c = Tensor::from_slice(coefficients).view([num_classes as i64, -1]);
    let c_transposed = c.transpose(0, 1);
    let mut gradient = c.zeros_like();
    let mut loss = 0.0;
    for (x, labels) in blocks(batch) {
        let y = Tensor::from_slice(labels).to_kind(Kind::Int64).unsqueeze(1);
        let logs = x.matmul(&c_transposed).log_softmax(1, Kind::Double);
        let own = logs.gather(1, &y, false);
        loss -= own.sum(Kind::Double).double_value(&[]);
        let multipliers = logs.exp().scatter_add(1, &y, &own.full_like(-1.0));
        gradient += multipliers.transpose(0, 1).matmul(&x);
    }
    (gradient, loss)
}
