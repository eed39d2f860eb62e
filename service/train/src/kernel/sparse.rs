//! Rows in compressed form: the indices and values of row `r` stand from `offsets[r]` to `offsets[r + 1]`.
//!
//! Loads are scattered, so there are no lanes to fill.

/// A view of some compressed rows.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    pub offsets: &'a [usize],
    pub indices: &'a [i32],
    pub values: &'a [f64],
}

impl<'a> Rows<'a> {
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn row(&self, row: usize) -> (&'a [i32], &'a [f64]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.indices[range.clone()], &self.values[range])
    }
}

/// `margins[r] += rows[r] . coefficients`
pub fn add_margins(rows: Rows<'_>, coefficients: &[f64], margins: &mut [f64]) {
    for (row, margin) in margins.iter_mut().enumerate() {
        let (indices, values) = rows.row(row);
        *margin += indices.iter().zip(values).map(|(i, v)| coefficients[*i as usize] * v).sum::<f64>();
    }
}

/// `gradient += sum_r multipliers[r] rows[r]`
pub fn add_rows(rows: Rows<'_>, multipliers: &[f64], gradient: &mut [f64]) {
    for (row, multiplier) in multipliers.iter().enumerate() {
        if *multiplier == 0.0 {
            continue;
        }
        let (indices, values) = rows.row(row);
        for (i, v) in indices.iter().zip(values) {
            gradient[*i as usize] += multiplier * v;
        }
    }
}
