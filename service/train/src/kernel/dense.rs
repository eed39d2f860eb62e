//! Rows that stand one after the other, `F` doubles each.

use super::{Kernel, LANES, Lanes, multiply_add, prefetch};

/// Rows whose sums run side by side: enough chains to hide the latency of an addition.
const ROWS_AT_ONCE: usize = 4;

/// `margins[r] += rows[r] . coefficients`
pub struct Margins<'a> {
    pub rows: &'a [f64],
    pub coefficients: &'a [f64],
    pub margins: &'a mut [f64],
}

impl Kernel for Margins<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let width = self.coefficients.len();
        if width == 0 {
            return;
        }
        let mut groups = self.rows.chunks_exact(width * ROWS_AT_ONCE);
        let mut margins = self.margins.chunks_exact_mut(ROWS_AT_ONCE);
        for (group, margins) in groups.by_ref().zip(margins.by_ref()) {
            let dots = dot_rows::<FMA>(group, self.coefficients);
            for (margin, dot) in margins.iter_mut().zip(dots) {
                *margin += dot;
            }
        }
        let rest = groups.remainder().chunks_exact(width);
        for (row, margin) in rest.zip(margins.into_remainder()) {
            *margin += dot::<FMA>(row, self.coefficients);
        }
    }
}

#[inline(always)]
fn dot_rows<const FMA: bool>(group: &[f64], coefficients: &[f64]) -> [f64; ROWS_AT_ONCE] {
    let width = coefficients.len();
    let rows = rows_of::<ROWS_AT_ONCE>(group, width);
    let (whole, rest) = coefficients.as_chunks::<LANES>();
    let mut sums: [Lanes; ROWS_AT_ONCE] = [[0.0; LANES]; ROWS_AT_ONCE];
    for (at, c) in whole.iter().enumerate() {
        for row in 0..ROWS_AT_ONCE {
            let x = rows[row][at];
            for lane in 0..LANES {
                sums[row][lane] = multiply_add::<FMA>(x[lane], c[lane], sums[row][lane]);
            }
        }
    }
    let mut dots = [0.0; ROWS_AT_ONCE];
    for row in 0..ROWS_AT_ONCE {
        dots[row] = (sums[row][0] + sums[row][2]) + (sums[row][1] + sums[row][3]);
        let x_rest = &group[(row + 1) * width - rest.len()..(row + 1) * width];
        for (x, c) in x_rest.iter().zip(rest) {
            dots[row] = multiply_add::<FMA>(*x, *c, dots[row]);
        }
    }
    dots
}

/// The whole chunks of some rows, each slice of the length of the others, so that one check serves all.
#[inline(always)]
fn rows_of<const N: usize>(group: &[f64], width: usize) -> [&[Lanes]; N] {
    let mut rows: [&[Lanes]; N] = [&[]; N];
    for (row, chunks) in rows.iter_mut().enumerate() {
        *chunks = &group[row * width..(row + 1) * width].as_chunks::<LANES>().0[..width / LANES];
    }
    rows
}

#[inline(always)]
fn dot<const FMA: bool>(row: &[f64], coefficients: &[f64]) -> f64 {
    let mut sum = [0.0; LANES];
    let (xs, cs) = (row.chunks_exact(LANES), coefficients.chunks_exact(LANES));
    let (x_rest, c_rest) = (xs.remainder(), cs.remainder());
    for (x, c) in xs.zip(cs) {
        for lane in 0..LANES {
            sum[lane] = multiply_add::<FMA>(x[lane], c[lane], sum[lane]);
        }
    }
    let mut total = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    for (x, c) in x_rest.iter().zip(c_rest) {
        total = multiply_add::<FMA>(*x, *c, total);
    }
    total
}

/// `gradient += sum_r multipliers[r] rows[r]`
pub struct AddRows<'a> {
    pub rows: &'a [f64],
    /// The rows that are wanted next, or none: they are fetched while these are added. Margins alone cannot wait for memory
    /// and compute at once.
    pub next_rows: &'a [f64],
    pub multipliers: &'a [f64],
    pub gradient: &'a mut [f64],
}

/// Rows that are added to a part of the gradient while it is in a register.
const ROWS_ADDED: usize = 8;

impl Kernel for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let width = self.gradient.len();
        if width == 0 {
            return;
        }
        let mut groups = self.rows.chunks_exact(width * ROWS_ADDED);
        let mut multipliers = self.multipliers.chunks_exact(ROWS_ADDED);
        let mut next_rows = self.next_rows.chunks(width * ROWS_ADDED);
        for (group, multipliers) in groups.by_ref().zip(multipliers.by_ref()) {
            prefetch(next_rows.next().unwrap_or_default());
            add_group::<FMA>(group, multipliers, self.gradient);
        }
        for (row, m) in groups.remainder().chunks_exact(width).zip(multipliers.remainder()) {
            for (g, x) in self.gradient.iter_mut().zip(row) {
                *g = multiply_add::<FMA>(*m, *x, *g);
            }
        }
    }
}

#[inline(always)]
fn add_group<const FMA: bool>(group: &[f64], multipliers: &[f64], gradient: &mut [f64]) {
    let width = gradient.len();
    let rows = rows_of::<ROWS_ADDED>(group, width);
    let mut m = [0.0; ROWS_ADDED];
    m.copy_from_slice(&multipliers[..ROWS_ADDED]);
    let (whole, rest) = gradient.as_chunks_mut::<LANES>();
    for (at, g) in whole.iter_mut().enumerate() {
        let mut even = *g;
        let mut odd = [0.0; LANES];
        for pair in 0..ROWS_ADDED / 2 {
            let (x, y) = (rows[2 * pair][at], rows[2 * pair + 1][at]);
            for lane in 0..LANES {
                even[lane] = multiply_add::<FMA>(m[2 * pair], x[lane], even[lane]);
                odd[lane] = multiply_add::<FMA>(m[2 * pair + 1], y[lane], odd[lane]);
            }
        }
        for lane in 0..LANES {
            g[lane] = even[lane] + odd[lane];
        }
    }
    let first = width - rest.len();
    for (i, g) in rest.iter_mut().enumerate() {
        for (row, m) in m.iter().enumerate() {
            *g = multiply_add::<FMA>(*m, group[row * width + first + i], *g);
        }
    }
}
