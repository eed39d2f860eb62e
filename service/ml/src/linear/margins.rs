//! Margins of a vector column: for every row and class, an intercept plus a product with coefficients.

use arrow::array::ArrayRef;
use train::kernel::{dense, run};
use udt::{Matrix, VectorArray, VectorRow};

use crate::{Error, Result};

/// A linear map from vectors to a few margins.
#[derive(Debug, Clone)]
pub struct Margins {
    /// One row of `num_features` a margin.
    coefficients: Vec<f64>,
    intercepts: Vec<f64>,
    num_features: usize,
}

impl Margins {
    pub fn new(coefficients: &Matrix, intercepts: &[f64]) -> Margins {
        Margins {
            coefficients: coefficients.to_row_major(),
            intercepts: intercepts.to_vec(),
            num_features: coefficients.num_cols(),
        }
    }

    fn row_of(&self, margin: usize) -> &[f64] {
        &self.coefficients[margin * self.num_features..(margin + 1) * self.num_features]
    }

    /// The margins of every row, margin after margin.
    ///
    /// # Errors
    /// [`Error::Vector`] for nulls, [`Error::InvalidRow`] for a vector of another length.
    pub fn of_column(&self, array: &ArrayRef) -> Result<Vec<Vec<f64>>> {
        let vectors = VectorArray::try_new(array.as_ref())?;
        let mut margins: Vec<Vec<f64>> =
            self.intercepts.iter().map(|intercept| vec![*intercept; vectors.len()]).collect();
        if let Some((width, rows)) = vectors.as_dense_rows() {
            self.check_length(width)?;
            for (margin, margins) in margins.iter_mut().enumerate() {
                run(dense::Margins { rows, coefficients: self.row_of(margin), margins });
            }
            return Ok(margins);
        }
        for row in 0..vectors.len() {
            let vector = vectors.row(row)?;
            self.check_length(vector.size())?;
            for (margin, margins) in margins.iter_mut().enumerate() {
                margins[row] += product(self.row_of(margin), &vector);
            }
        }
        Ok(margins)
    }

    /// The margins of one vector.
    ///
    /// # Errors
    /// [`Error::InvalidRow`] for a vector of another length.
    pub fn of_vector(&self, vector: &VectorRow<'_>) -> Result<Vec<f64>> {
        self.check_length(vector.size())?;
        let margins = self.intercepts.iter().enumerate();
        Ok(margins.map(|(margin, intercept)| product(self.row_of(margin), vector) + intercept).collect())
    }

    fn check_length(&self, found: usize) -> Result<()> {
        if found == self.num_features {
            return Ok(());
        }
        let message = format!("the model takes vectors of {} values, found one of {found}", self.num_features);
        Err(Error::InvalidRow { message })
    }
}

fn product(coefficients: &[f64], vector: &VectorRow<'_>) -> f64 {
    let mut sum = 0.0;
    vector.for_each(|i, v| sum += coefficients[i] * v);
    sum
}
