//! Small dense linear systems, by LU factorisation with row pivoting.

/// A factored square matrix.
pub(super) struct Lu {
    size: usize,
    factors: Vec<f64>,
    pivots: Vec<usize>,
}

impl Lu {
    /// Factors a row-major matrix; `None` when it is singular.
    pub(super) fn new(size: usize, mut factors: Vec<f64>) -> Option<Lu> {
        debug_assert_eq!(factors.len(), size * size);
        let mut pivots = Vec::with_capacity(size);
        for column in 0..size {
            let magnitude = |row: usize| factors[row * size + column].abs();
            let pivot =
                (column..size).fold(column, |best, row| if magnitude(row) > magnitude(best) { row } else { best });
            if factors[pivot * size + column] == 0.0 || !factors[pivot * size + column].is_finite() {
                return None;
            }
            pivots.push(pivot);
            if pivot != column {
                for k in 0..size {
                    factors.swap(column * size + k, pivot * size + k);
                }
            }
            for row in column + 1..size {
                let ratio = factors[row * size + column] / factors[column * size + column];
                factors[row * size + column] = ratio;
                for k in column + 1..size {
                    factors[row * size + k] -= ratio * factors[column * size + k];
                }
            }
        }
        Some(Lu { size, factors, pivots })
    }

    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let size = self.size;
        let mut x = right.to_vec();
        for (row, pivot) in self.pivots.iter().enumerate() {
            x.swap(row, *pivot);
        }
        for row in 0..size {
            let known: f64 = (0..row).map(|k| self.factors[row * size + k] * x[k]).sum();
            x[row] -= known;
        }
        for row in (0..size).rev() {
            let known: f64 = (row + 1..size).map(|k| self.factors[row * size + k] * x[k]).sum();
            x[row] = (x[row] - known) / self.factors[row * size + row];
        }
        x
    }

    /// The inverse, row-major.
    pub(super) fn inverse(&self) -> Vec<f64> {
        let size = self.size;
        let mut inverse = vec![0.0; size * size];
        for column in 0..size {
            let mut unit = vec![0.0; size];
            unit[column] = 1.0;
            for (row, value) in self.solve(&unit).into_iter().enumerate() {
                inverse[row * size + column] = value;
            }
        }
        inverse
    }
}
