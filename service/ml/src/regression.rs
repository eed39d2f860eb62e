//! Regressors, a file each.

pub mod linear_regression;
