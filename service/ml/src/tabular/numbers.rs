//! Number columns of any type as doubles.

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};

use crate::Result;

/// The column as doubles; NaN is null.
pub fn doubles(column: &ArrayRef) -> Result<Float64Array> {
    let cast = cast(column, &DataType::Float64)?;
    let values = cast.as_primitive::<Float64Type>();
    if values.values().iter().any(|value| value.is_nan()) {
        return Ok(values.iter().map(|value| value.filter(|value| !value.is_nan())).collect());
    }
    Ok(values.clone())
}

/// What is learned of numbers in one pass, by Welford's updates.
#[derive(Debug, Clone, Default)]
pub struct Moments {
    pub count: u64,
    pub mean: f64,
    m2: f64,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

impl Moments {
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.m2 += delta * (value - self.mean);
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.max = Some(self.max.map_or(value, |max| max.max(value)));
    }

    /// Of a sample.
    pub fn standard_deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.m2 / (self.count - 1) as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Array;

    use super::*;

    #[test]
    fn moments_are_those_of_the_textbook() {
        let mut moments = Moments::default();
        [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].iter().for_each(|value| moments.add(*value));
        assert_eq!((moments.mean, moments.min, moments.max), (5.0, Some(2.0), Some(9.0)));
        assert!((moments.standard_deviation().unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn not_a_number_is_missing() {
        let column: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), Some(f64::NAN), None]));
        assert_eq!(doubles(&column).unwrap().null_count(), 2);
    }
}
