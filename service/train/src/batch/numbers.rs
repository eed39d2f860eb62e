//! A numeric column as doubles.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::ScalarBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};

use super::Problem;
use crate::{Error, Result};

/// Doubles that may be shared with an Arrow array.
pub type Numbers = ScalarBuffer<f64>;

/// Reads a numeric column. A column of doubles is not copied. Nulls and NaN are a problem; `is_allowed` judges the rest,
/// and `text` says of a value what is wrong with it.
///
/// # Errors
/// The outer one when the column cannot be cast to doubles at all; the inner one names what is wrong with the data.
pub fn numbers(
    column: &str,
    plural: &str,
    array: &ArrayRef,
    is_allowed: fn(f64) -> bool,
    text: fn(f64) -> String,
) -> Result<std::result::Result<Numbers, Problem>> {
    let doubles = match array.data_type() {
        DataType::Float64 => array.clone(),
        _ => cast(array, &DataType::Float64)?,
    };
    let doubles = doubles
        .as_primitive_opt::<Float64Type>()
        .ok_or_else(|| Error::Bug { invariant: "a column that was cast to doubles holds doubles".into() })?;
    let values = doubles.values();
    // nothing more to do for the usual column: one pass, without a branch a row
    let refused = values.iter().map(|v| usize::from(!is_allowed(*v))).sum::<usize>();
    if doubles.null_count() == 0 && refused == 0 {
        return Ok(Ok(values.clone()));
    }
    let missing = (0..doubles.len()).filter(|row| doubles.is_null(*row) || values[*row].is_nan()).count();
    if missing > 0 {
        let text = format!("{plural} MUST NOT be Null or NaN");
        return Ok(Err(Problem::user(column, missing as u64, text)));
    }
    let first = values.iter().copied().find(|v| !is_allowed(*v)).unwrap_or(f64::NAN);
    Ok(Err(Problem::user(column, refused as u64, text(first))))
}
