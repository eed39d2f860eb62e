//! A matrix outside Arrow: a multinomial model's coefficients, a param.

use serde::{Deserialize, Serialize};

/// A matrix of doubles, as Spark's `DenseMatrix` and `SparseMatrix` hold it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Matrix {
    /// Column-major, or row-major when `is_transposed`.
    Dense { num_rows: usize, num_cols: usize, values: Vec<f64>, is_transposed: bool },
    /// Compressed columns, or compressed rows when `is_transposed`.
    Sparse {
        num_rows: usize,
        num_cols: usize,
        col_ptrs: Vec<i32>,
        row_indices: Vec<i32>,
        values: Vec<f64>,
        is_transposed: bool,
    },
}

impl Matrix {
    /// A dense matrix from row-major values, stored row-major (`is_transposed`), as Spark's models hold theirs.
    pub fn from_rows(num_rows: usize, num_cols: usize, values: Vec<f64>) -> Matrix {
        debug_assert_eq!(values.len(), num_rows * num_cols);
        Matrix::Dense { num_rows, num_cols, values, is_transposed: true }
    }

    pub fn num_rows(&self) -> usize {
        match self {
            Matrix::Dense { num_rows, .. } | Matrix::Sparse { num_rows, .. } => *num_rows,
        }
    }

    pub fn num_cols(&self) -> usize {
        match self {
            Matrix::Dense { num_cols, .. } | Matrix::Sparse { num_cols, .. } => *num_cols,
        }
    }

    /// All values, row after row.
    pub fn to_row_major(&self) -> Vec<f64> {
        let (num_rows, num_cols) = (self.num_rows(), self.num_cols());
        match self {
            Matrix::Dense { values, is_transposed: true, .. } => values.clone(),
            Matrix::Dense { values, .. } => {
                (0..num_rows * num_cols).map(|i| values[(i % num_cols) * num_rows + i / num_cols]).collect()
            }
            Matrix::Sparse { col_ptrs, row_indices, values, is_transposed, .. } => {
                let mut dense = vec![0.0; num_rows * num_cols];
                for major in 0..col_ptrs.len().saturating_sub(1) {
                    for k in col_ptrs[major] as usize..col_ptrs[major + 1] as usize {
                        let minor = row_indices[k] as usize;
                        let (row, col) = if *is_transposed { (major, minor) } else { (minor, major) };
                        dense[row * num_cols + col] = values[k];
                    }
                }
                dense
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_storage_gives_the_same_rows() {
        let rows = vec![1.0, 0.0, 2.0, 0.0, 3.0, 0.0];
        let by_row = Matrix::from_rows(2, 3, rows.clone());
        let by_column = Matrix::Dense {
            num_rows: 2,
            num_cols: 3,
            values: vec![1.0, 0.0, 0.0, 3.0, 2.0, 0.0],
            is_transposed: false,
        };
        let compressed = Matrix::Sparse {
            num_rows: 2,
            num_cols: 3,
            col_ptrs: vec![0, 1, 2, 3],
            row_indices: vec![0, 1, 0],
            values: vec![1.0, 3.0, 2.0],
            is_transposed: false,
        };
        for matrix in [by_row, by_column, compressed] {
            assert_eq!(matrix.to_row_major(), rows);
        }
    }
}
