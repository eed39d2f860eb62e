//! A vector outside Arrow: a model's coefficients, a param, one row.

use serde::{Deserialize, Serialize};

/// A vector of doubles, dense or sparse. Sparse indices are strictly increasing and below `size`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Vector {
    Dense(Vec<f64>),
    Sparse { size: usize, indices: Vec<i32>, values: Vec<f64> },
}

impl Vector {
    pub fn size(&self) -> usize {
        match self {
            Vector::Dense(values) => values.len(),
            Vector::Sparse { size, .. } => *size,
        }
    }

    pub fn to_dense(&self) -> Vec<f64> {
        match self {
            Vector::Dense(values) => values.clone(),
            Vector::Sparse { size, indices, values } => {
                let mut dense = vec![0.0; *size];
                for (index, value) in indices.iter().zip(values) {
                    dense[*index as usize] = *value;
                }
                dense
            }
        }
    }

    /// The storage that takes fewer bytes, as Spark's `Vector.compressed` decides.
    pub fn compressed(self) -> Vector {
        let dense = self.to_dense();
        let num_nonzeros = dense.iter().filter(|v| **v != 0.0).count();
        if is_smaller_sparse(num_nonzeros, dense.len()) {
            let (indices, values) =
                dense.iter().enumerate().filter(|(_, v)| **v != 0.0).map(|(i, v)| (i as i32, *v)).unzip();
            Vector::Sparse { size: dense.len(), indices, values }
        } else {
            Vector::Dense(dense)
        }
    }
}

/// Whether Spark keeps a vector sparse: it counts 12 bytes a nonzero and 28 more against 8 bytes an element and 12 more.
pub fn is_smaller_sparse(num_nonzeros: usize, size: usize) -> bool {
    12 * num_nonzeros + 28 < 8 * size + 12
}

/// As Spark prints vectors: `[1.0,2.0]` and `(3,[0,2],[1.0,2.0])`.
impl std::fmt::Display for Vector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let doubles = |values: &[f64]| values.iter().map(|v| java_double(*v)).collect::<Vec<_>>().join(",");
        match self {
            Vector::Dense(values) => write!(f, "[{}]", doubles(values)),
            Vector::Sparse { size, indices, values } => {
                let indices: Vec<String> = indices.iter().map(i32::to_string).collect();
                write!(f, "({size},[{}],[{}])", indices.join(","), doubles(values))
            }
        }
    }
}

/// A double as Java's `Double.toString` prints it: `1.0`, `1.0E-5`, `NaN`, `-Infinity`.
pub fn java_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let magnitude = value.abs();
    if value == 0.0 || (1e-3..1e7).contains(&magnitude) {
        return format!("{value:?}");
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => format!("{mantissa}E{exponent}"),
        Some((mantissa, exponent)) => format!("{mantissa}.0E{exponent}"),
        None => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_in_java() {
        for (value, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.001, "0.001"),
            (1e-5, "1.0E-5"),
            (1.25e-5, "1.25E-5"),
            (1e7, "1.0E7"),
            (9999999.0, "9999999.0"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(java_double(value), text);
        }
    }

    #[test]
    fn compression_keeps_the_smaller_storage() {
        let sparse = Vector::Dense(vec![0.0, 0.0, 3.0, 0.0]).compressed();
        assert_eq!(sparse, Vector::Sparse { size: 4, indices: vec![2], values: vec![3.0] });
        assert_eq!(sparse.to_dense(), vec![0.0, 0.0, 3.0, 0.0]);
        assert_eq!(sparse.to_string(), "(4,[2],[3.0])");
        for dense in [vec![1.0, 0.0], vec![0.0, 0.0]] {
            assert_eq!(Vector::Dense(dense.clone()).compressed(), Vector::Dense(dense));
        }
    }
}
