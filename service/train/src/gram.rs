//! The sums that least squares needs: weighted products of features with each other and with the label.

use collective::{Group, ReduceOp};
use tch::{Kind, Tensor};

use crate::batch::{Batch, Features};
use crate::kernel::{Kernel, multiply_add, run};
use crate::{Error, Result};

/// Sums over rows, each times its weight. `a` is a row's features, `b` its label.
#[derive(Debug, Clone, PartialEq)]
pub struct Gram {
    pub num_features: usize,
    pub count: f64,
    pub weight: f64,
    pub b: f64,
    pub bb: f64,
    pub a: Vec<f64>,
    pub ab: Vec<f64>,
    /// The upper triangle of `a a^T`, packed by columns: `a_i a_j` stands at `j (j + 1) / 2 + i`.
    pub aa: Vec<f64>,
}

/// From this many features on, libtorch's blocked product of whole blocks is faster than adding row after row (measured:
/// 28 features 0.6 times as fast, 64 as fast, 256 three times).
const PRODUCT_FEATURES_MIN: usize = 64;
/// Rows that are multiplied at once.
const PRODUCT_ROWS: usize = 2048;

impl Gram {
    /// # Errors
    /// What the collective, or libtorch, fails with.
    pub fn over_ranks(batches: &[Batch], num_features: usize, group: &Group) -> Result<Gram> {
        let mut gram = Gram::new(num_features);
        for batch in batches {
            gram.add(batch)?;
        }
        let mut packed = vec![gram.count, gram.weight, gram.b, gram.bb];
        for part in [&gram.a, &gram.ab, &gram.aa] {
            packed.extend_from_slice(part);
        }
        group.all_reduce(&mut packed, ReduceOp::Sum)?;
        let (head, rest) = packed.split_at(4);
        let (a, rest) = rest.split_at(num_features);
        let (ab, aa) = rest.split_at(num_features);
        let [count, weight, b, bb] = [head[0], head[1], head[2], head[3]];
        Ok(Gram { num_features, count, weight, b, bb, a: a.to_vec(), ab: ab.to_vec(), aa: aa.to_vec() })
    }

    fn new(num_features: usize) -> Gram {
        let zeros = vec![0.0; num_features];
        let aa = vec![0.0; num_features * (num_features + 1) / 2];
        Gram { num_features, count: 0.0, weight: 0.0, b: 0.0, bb: 0.0, a: zeros.clone(), ab: zeros, aa }
    }

    fn add(&mut self, batch: &Batch) -> Result<()> {
        let num_rows = batch.num_rows();
        self.count += num_rows as f64;
        for row in 0..num_rows {
            let (weight, label) = (batch.weights.as_ref().map_or(1.0, |w| w[row]), batch.labels[row]);
            self.weight += weight;
            self.b += weight * label;
            self.bb += weight * label * label;
        }
        match &batch.features {
            Features::Dense { width, values, .. } => {
                run(DenseRows { rows: values, width: *width, batch, gram: self });
                if *width >= PRODUCT_FEATURES_MIN {
                    for start in (0..num_rows).step_by(PRODUCT_ROWS) {
                        let end = num_rows.min(start + PRODUCT_ROWS);
                        self.add_product(&values[start * width..end * width], batch.weights_of(start..end))?;
                    }
                }
            }
            Features::Sparse { .. } => self.add_sparse(batch),
        }
        Ok(())
    }

    /// Adds the products of whole rows through libtorch. B: rows, F: features.
    #[expect(non_snake_case, reason = "tensors are named by their shapes")]
    fn add_product(&mut self, rows: &[f64], weights: Option<&[f64]>) -> Result<()> {
        let failed = |error: tch::TchError| Error::Tensor { message: error.to_string() };
        let x_BF = Tensor::f_from_slice(rows).and_then(|x| x.f_view([-1, self.num_features as i64])).map_err(failed)?;
        let weighted_BF = match weights {
            Some(weights) => {
                let w_B1 = Tensor::f_from_slice(weights).and_then(|w| w.f_view([-1, 1])).map_err(failed)?;
                x_BF.f_mul(&w_B1).map_err(failed)?
            }
            None => x_BF.shallow_clone(),
        };
        let product_FF = x_BF.f_transpose(0, 1).and_then(|x| x.f_matmul(&weighted_BF)).map_err(failed)?;
        let flat = product_FF.f_contiguous().and_then(|p| p.f_view([-1])).map_err(failed)?;
        debug_assert_eq!(flat.kind(), Kind::Double);
        let product: Vec<f64> = Vec::try_from(&flat).map_err(failed)?;
        let mut at = 0;
        for j in 0..self.num_features {
            for i in 0..=j {
                self.aa[at] += product[i * self.num_features + j];
                at += 1;
            }
        }
        Ok(())
    }

    fn add_sparse(&mut self, batch: &Batch) {
        let Some(rows) = batch.features.sparse_rows(0..batch.num_rows()) else { return };
        for row in 0..batch.num_rows() {
            let (weight, label) = (batch.weights.as_ref().map_or(1.0, |w| w[row]), batch.labels[row]);
            let (indices, values) = rows.row(row);
            for (k, (j, y)) in indices.iter().zip(values).enumerate() {
                let j = *j as usize;
                let weighted = weight * y;
                self.a[j] += weighted;
                self.ab[j] += weighted * label;
                let column = &mut self.aa[j * (j + 1) / 2..];
                for (i, x) in indices[..=k].iter().zip(values) {
                    column[*i as usize] += weighted * x;
                }
            }
        }
    }
}

/// Adds dense rows: sums and products with the label, and where there are few features their products too.
struct DenseRows<'a> {
    rows: &'a [f64],
    width: usize,
    batch: &'a Batch,
    gram: &'a mut Gram,
}

impl Kernel for DenseRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let DenseRows { rows, width, batch, gram } = self;
        if width == 0 {
            return;
        }
        let with_products = width < PRODUCT_FEATURES_MIN;
        for (row, x) in rows.chunks_exact(width).enumerate() {
            let (weight, label) = (batch.weights.as_ref().map_or(1.0, |w| w[row]), batch.labels[row]);
            for ((a, ab), x) in gram.a.iter_mut().zip(&mut gram.ab).zip(x) {
                let weighted = weight * x;
                *a += weighted;
                *ab = multiply_add::<FMA>(weighted, label, *ab);
            }
            if with_products {
                let mut at = 0;
                for j in 0..width {
                    let weighted = weight * x[j];
                    for (product, x) in gram.aa[at..=at + j].iter_mut().zip(x) {
                        *product = multiply_add::<FMA>(weighted, *x, *product);
                    }
                    at += j + 1;
                }
            }
        }
    }
}
