//! Symmetric positive definite systems, by Cholesky factorisation of packed upper triangles: the entry of row `i` and
//! column `j >= i` stands at `j (j + 1) / 2 + i`, as in LAPACK and in Spark.

/// The factor `U` of `A = U^T U`, packed as `A` was.
#[derive(Debug, Clone)]
pub struct Cholesky {
    size: usize,
    factor: Vec<f64>,
}

fn start_of(column: usize) -> usize {
    column * (column + 1) / 2
}

impl Cholesky {
    /// Factors a matrix; `None` when it is not positive definite.
    pub fn new(size: usize, packed: &[f64]) -> Option<Cholesky> {
        let mut factor = packed.to_vec();
        for column in 0..size {
            let (done, rest) = factor.split_at_mut(start_of(column));
            let entries = &mut rest[..=column];
            for row in 0..column {
                let above = &done[start_of(row)..start_of(row) + row];
                let known: f64 = above.iter().zip(&*entries).map(|(u, x)| u * x).sum();
                entries[row] = (entries[row] - known) / done[start_of(row) + row];
            }
            let squares: f64 = entries[..column].iter().map(|x| x * x).sum();
            let pivot = entries[column] - squares;
            if pivot.is_nan() || pivot <= 0.0 {
                return None;
            }
            entries[column] = pivot.sqrt();
        }
        Some(Cholesky { size, factor })
    }

    fn column(&self, column: usize) -> &[f64] {
        &self.factor[start_of(column)..=start_of(column) + column]
    }

    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut x = right.to_vec();
        for row in 0..self.size {
            let column = self.column(row);
            let known: f64 = column[..row].iter().zip(&x).map(|(u, x)| u * x).sum();
            x[row] = (x[row] - known) / column[row];
        }
        for row in (0..self.size).rev() {
            let column = self.column(row);
            x[row] /= column[row];
            let found = x[row];
            x[..row].iter_mut().zip(column).for_each(|(x, u)| *x -= u * found);
        }
        x
    }

    /// The diagonal of the inverse.
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        // A^-1 = V V^T with V the inverse of U, so an entry of the diagonal is the squared norm of a row of V
        let mut diagonal = vec![0.0; self.size];
        for column in 0..self.size {
            let mut x = vec![0.0; column + 1];
            x[column] = 1.0;
            for row in (0..=column).rev() {
                let entries = self.column(row);
                x[row] /= entries[row];
                let found = x[row];
                x[..row].iter_mut().zip(entries).for_each(|(x, u)| *x -= u * found);
            }
            diagonal.iter_mut().zip(&x).for_each(|(d, v)| *d += v * v);
        }
        diagonal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_and_inverts() {
        // [4 2 1; 2 5 3; 1 3 6]
        let cholesky = Cholesky::new(3, &[4.0, 2.0, 5.0, 1.0, 3.0, 6.0]).unwrap();
        let x = cholesky.solve(&[7.0, 10.0, 10.0]);
        x.iter().for_each(|x| assert!((x - 1.0).abs() < 1e-14, "{x}"));
        let determinant = 67.0;
        for (found, cofactor) in cholesky.inverse_diagonal().iter().zip([21.0, 23.0, 16.0]) {
            assert!((found - cofactor / determinant).abs() < 1e-14, "{found}");
        }
    }

    #[test]
    fn a_singular_matrix_has_no_factor() {
        assert!(Cholesky::new(2, &[1.0, 1.0, 1.0]).is_none());
        assert!(Cholesky::new(2, &[1.0, f64::NAN, 1.0]).is_none());
    }
}
