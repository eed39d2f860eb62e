//! Mean and variance of each element of a vector column, over all ranks.
//!
//! Only nonzero values are visited, so that sparse vectors cost what they hold; the zeros are accounted for at the end,
//! as Spark's summarizer does it.

use serde::{Deserialize, Serialize};
use train::RankContext;
use udt::{VectorArray, VectorRow};

/// Sums over one rank's rows, or over all ranks'.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Moments {
    num_rows: u64,
    num_nonzeros: Vec<u64>,
    mean: Vec<f64>,
    squares: Vec<f64>,
}

impl Moments {
    /// # Errors
    /// A vector of another size than the first.
    pub fn add(&mut self, row: VectorRow<'_>) -> train::Result<()> {
        if self.num_rows == 0 {
            self.resize(row.size());
        }
        self.check_size(row.size())?;
        self.num_rows += 1;
        row.for_each(|index, value| {
            if value != 0.0 {
                self.num_nonzeros[index] += 1;
                let delta = value - self.mean[index];
                self.mean[index] += delta / self.num_nonzeros[index] as f64;
                self.squares[index] += delta * (value - self.mean[index]);
            }
        });
        Ok(())
    }

    fn resize(&mut self, size: usize) {
        self.num_nonzeros.resize(size, 0);
        self.mean.resize(size, 0.0);
        self.squares.resize(size, 0.0);
    }

    fn check_size(&self, found: usize) -> train::Result<()> {
        let expected = self.mean.len();
        if expected == found {
            return Ok(());
        }
        let message = format!("vectors must have one size, but both {expected} and {found} occur");
        Err(train::Error::InvalidData { class: "INVALID_TRAINING_DATA.VECTOR_SIZE", message })
    }

    /// # Errors
    /// The other rank's vectors have another size.
    pub fn merge(&mut self, other: &Moments) -> train::Result<()> {
        if other.num_rows == 0 {
            return Ok(());
        }
        if self.num_rows == 0 {
            *self = other.clone();
            return Ok(());
        }
        self.check_size(other.mean.len())?;
        self.num_rows += other.num_rows;
        for i in 0..self.mean.len() {
            let (here, there) = (self.num_nonzeros[i] as f64, other.num_nonzeros[i] as f64);
            let total = here + there;
            if total > 0.0 {
                let delta = other.mean[i] - self.mean[i];
                self.mean[i] += delta * there / total;
                self.squares[i] += other.squares[i] + delta * delta * here * there / total;
                self.num_nonzeros[i] += other.num_nonzeros[i];
            }
        }
        Ok(())
    }

    pub fn num_rows(&self) -> u64 {
        self.num_rows
    }

    pub fn mean(&self) -> Vec<f64> {
        let num_rows = self.num_rows as f64;
        self.mean.iter().zip(&self.num_nonzeros).map(|(mean, nonzeros)| mean * *nonzeros as f64 / num_rows).collect()
    }

    /// The sample standard deviation; 0 for a single row.
    pub fn std(&self) -> Vec<f64> {
        let num_rows = self.num_rows as f64;
        let variance = |i: usize| {
            let nonzeros = self.num_nonzeros[i] as f64;
            let squares = self.squares[i] + self.mean[i] * self.mean[i] * nonzeros * (num_rows - nonzeros) / num_rows;
            if num_rows > 1.0 { (squares / (num_rows - 1.0)).max(0.0) } else { 0.0 }
        };
        (0..self.mean.len()).map(|i| variance(i).sqrt()).collect()
    }
}

/// Reads the rank's vectors (the first column) and merges all ranks' sums, in the order of ranks.
///
/// # Errors
/// A null vector, vectors of different sizes, no rows at all.
pub fn over_all_ranks(program: &'static str, ctx: &mut RankContext<'_>) -> train::Result<Moments> {
    let invalid = |source: udt::Error| train::Error::InvalidData {
        class: "INVALID_TRAINING_DATA.VECTOR",
        message: source.to_string(),
    };
    let mut moments = Moments::default();
    for record_batch in &mut *ctx.partition.record_batches {
        let vectors = VectorArray::try_new(record_batch?.column(0).as_ref()).map_err(invalid)?;
        for row in 0..vectors.len() {
            moments.add(vectors.row(row).map_err(invalid)?)?;
        }
    }
    let mut total = Moments::default();
    for part in super::gather(program, ctx, &moments)? {
        total.merge(&part)?;
    }
    if total.num_rows() == 0 {
        let message = "the input has no rows".to_string();
        return Err(train::Error::InvalidData { class: "INVALID_TRAINING_DATA.EMPTY", message });
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_zeros_give_the_plain_mean_and_deviation() {
        let rows = [[1.0, 0.0], [0.0, 0.0], [3.0, -2.0], [0.0, 6.0]];
        let (mut first, mut second) = (Moments::default(), Moments::default());
        rows[..1].iter().for_each(|row| first.add(VectorRow::Dense(row)).unwrap());
        rows[1..].iter().for_each(|row| second.add(VectorRow::Dense(row)).unwrap());
        first.merge(&second).unwrap();
        first.merge(&Moments::default()).unwrap();
        assert_eq!(first.mean(), vec![1.0, 1.0]);
        let expected = [(6.0_f64 / 3.0).sqrt(), (36.0_f64 / 3.0).sqrt()];
        first.std().iter().zip(expected).for_each(|(found, expected)| assert!((found - expected).abs() < 1e-14));
    }

    #[test]
    fn vectors_of_two_sizes_are_refused() {
        let mut moments = Moments::default();
        moments.add(VectorRow::Dense(&[1.0])).unwrap();
        assert!(moments.add(VectorRow::Dense(&[1.0, 2.0])).is_err());
    }
}
