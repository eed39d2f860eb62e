//! A vector column, or numeric columns, as rows of doubles.

use arrow::array::{ArrayRef, AsArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::Float64Type;
use udt::{VectorArray, VectorRow};

use super::{Numbers, Problem};
use crate::Result;
use crate::kernel::sparse::Rows;

/// Rows of `width` features.
#[derive(Debug, Clone)]
pub enum Features {
    /// Row-major.
    Dense { width: usize, num_rows: usize, values: Numbers },
    /// Row `r` has the entries from `offsets[r]` to `offsets[r + 1]`; indices rise within a row and are below `width`.
    Sparse { width: usize, offsets: Vec<usize>, indices: ScalarBuffer<i32>, values: Numbers },
}

impl Features {
    /// Reads a vector column.
    ///
    /// # Errors
    /// The outer one when the column holds no vectors or malformed ones; the inner one for nulls, values that are NaN or
    /// infinite, and vectors of different lengths.
    pub fn from_vectors(column: &str, array: &ArrayRef) -> Result<std::result::Result<Features, Problem>> {
        let malformed = |source: udt::Error| crate::Error::Partition { source: Box::new(source) };
        let vectors = VectorArray::try_new(array.as_ref()).map_err(malformed)?;
        if vectors.null_count() > 0 {
            return Ok(Err(Problem::user(column, vectors.null_count() as u64, "Vectors MUST NOT be Null".into())));
        }
        let features = match vectors.as_dense_rows() {
            Some((width, rows)) => {
                let values = shared_values(array, rows).unwrap_or_else(|| ScalarBuffer::from(rows.to_vec()));
                Features::Dense { width, num_rows: vectors.len(), values }
            }
            None => match compress(column, &vectors).map_err(malformed)? {
                Ok(features) => features,
                Err(problem) => return Ok(Err(problem)),
            },
        };
        if is_finite(features.values()) {
            return Ok(Ok(features));
        }
        Ok(Err(name_not_finite(column, &vectors).map_err(malformed)?))
    }

    pub fn width(&self) -> usize {
        match self {
            Features::Dense { width, .. } | Features::Sparse { width, .. } => *width,
        }
    }

    pub fn num_rows(&self) -> usize {
        match self {
            Features::Dense { num_rows, .. } => *num_rows,
            Features::Sparse { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    /// The stored values of all rows.
    pub fn values(&self) -> &[f64] {
        match self {
            Features::Dense { values, .. } | Features::Sparse { values, .. } => values,
        }
    }

    /// Some rows of sparse features; `None` when they are dense.
    pub fn sparse_rows(&self, rows: std::ops::Range<usize>) -> Option<Rows<'_>> {
        match self {
            Features::Dense { .. } => None,
            Features::Sparse { offsets, indices, values, .. } => {
                Some(Rows { offsets: &offsets[rows.start..=rows.end], indices, values })
            }
        }
    }
}

/// The buffer that the dense rows of a vector column stand in, where it can be shared.
fn shared_values(array: &ArrayRef, rows: &[f64]) -> Option<Numbers> {
    let list = array.as_struct_opt()?.columns().get(3)?.as_list_opt::<i32>()?.clone();
    let values = list.values().as_primitive_opt::<Float64Type>()?.values();
    let shared = values.slice(*list.value_offsets().first()? as usize, rows.len());
    std::ptr::eq(shared.as_ptr(), rows.as_ptr()).then_some(shared)
}

fn is_finite(values: &[f64]) -> bool {
    // NaN and infinities times zero are NaN, and stay so in a sum
    let mut sums = [0.0; 8];
    let chunks = values.chunks_exact(8);
    let rest: f64 = chunks.remainder().iter().map(|v| v * 0.0).sum();
    for chunk in chunks {
        for (sum, v) in sums.iter_mut().zip(chunk) {
            *sum += v * 0.0;
        }
    }
    sums.iter().sum::<f64>() + rest == 0.0
}

fn name_not_finite(column: &str, vectors: &VectorArray) -> udt::Result<Problem> {
    let mut count = 0;
    let mut shown = String::new();
    for row in 0..vectors.len() {
        let row = vectors.row(row)?;
        if row.values().iter().any(|v| !v.is_finite()) {
            if count == 0 {
                shown = row.to_vector().to_string();
                if shown.len() > SHOWN_MAX {
                    let end = (0..=SHOWN_MAX).rev().find(|end| shown.is_char_boundary(*end)).unwrap_or(0);
                    shown.truncate(end);
                    shown.push('…');
                }
            }
            count += 1;
        }
    }
    Ok(Problem::user(column, count, format!("Vector values MUST NOT be NaN or Infinity, but got {shown}")))
}

/// A long vector is not shown whole.
const SHOWN_MAX: usize = 200;

/// Compressed rows of a column that has a sparse row, or rows of different lengths (which is a problem).
fn compress(column: &str, vectors: &VectorArray) -> udt::Result<std::result::Result<Features, Problem>> {
    let mut offsets = Vec::with_capacity(vectors.len() + 1);
    offsets.push(0);
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    let mut width = None;
    for row in 0..vectors.len() {
        let vector = vectors.row(row)?;
        let expected = *width.get_or_insert(vector.size());
        if vector.size() != expected {
            return Ok(Err(unequal(column, expected, vector.size())));
        }
        match vector {
            VectorRow::Dense(dense) => {
                indices.extend(0..dense.len() as i32);
                values.extend_from_slice(dense);
            }
            VectorRow::Sparse { indices: stored, values: stored_values, .. } => {
                indices.extend_from_slice(stored);
                values.extend_from_slice(stored_values);
            }
        }
        offsets.push(values.len());
    }
    let (indices, values) = (ScalarBuffer::from(indices), ScalarBuffer::from(values));
    Ok(Ok(Features::Sparse { width: width.unwrap_or(0), offsets, indices, values }))
}

/// The problem of a row whose vector has another length than the ones before.
pub(crate) fn unequal(column: &str, expected: usize, found: usize) -> Problem {
    Problem::user(
        column,
        1,
        format!("Dimensions mismatch: expected vectors of {expected} values, found one of {found}"),
    )
}

/// Makes dense rows of numeric columns, in blocks of rows that stay in the cache while their columns are read.
pub fn interleave(columns: &[Numbers], num_rows: usize) -> Features {
    const BLOCK_ROWS: usize = 256;
    let width = columns.len();
    let mut values = vec![0.0; width * num_rows];
    for start in (0..num_rows).step_by(BLOCK_ROWS) {
        let end = num_rows.min(start + BLOCK_ROWS);
        for (feature, column) in columns.iter().enumerate() {
            let block = values[start * width..end * width].iter_mut().skip(feature).step_by(width);
            block.zip(&column[start..end]).for_each(|(to, from)| *to = *from);
        }
    }
    Features::Dense { width, num_rows, values: ScalarBuffer::from(values) }
}

#[cfg(test)]
mod tests {
    use udt::VectorBuilder;

    use super::*;

    #[test]
    fn dense_rows_share_the_arrow_buffer() {
        let column = VectorBuilder::from_dense_rows(2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).slice(1, 2);
        let features = Features::from_vectors("features", &column).unwrap().unwrap();
        let inner = column.as_struct().column(3).as_list::<i32>().values().clone();
        assert_eq!(features.values(), [3.0, 4.0, 5.0, 6.0]);
        assert!(std::ptr::eq(&features.values()[0], &inner.as_primitive::<Float64Type>().values()[2]));
    }

    #[test]
    fn one_sparse_row_makes_all_compressed() {
        let mut builder = VectorBuilder::default();
        builder.append_dense(&[1.0, 0.0, 2.0]);
        builder.append_sparse(3, &[1], &[5.0]);
        let features = Features::from_vectors("features", &builder.finish()).unwrap().unwrap();
        let rows = features.sparse_rows(0..2).unwrap();
        assert_eq!(rows.row(0), (&[0, 1, 2][..], &[1.0, 0.0, 2.0][..]));
        assert_eq!(rows.row(1), (&[1][..], &[5.0][..]));
        assert_eq!(features.width(), 3);
    }

    #[test]
    fn rows_of_different_lengths_are_a_problem_that_names_both() {
        let mut builder = VectorBuilder::default();
        builder.append_dense(&[1.0, 0.0]);
        builder.append_dense(&[1.0, 0.0, 2.0]);
        let problem = Features::from_vectors("f", &builder.finish()).unwrap().unwrap_err();
        assert!(problem.to_string().contains("expected vectors of 2 values, found one of 3"), "{problem}");
    }

    #[test]
    fn values_that_are_no_numbers_are_counted_and_shown() {
        let column = VectorBuilder::from_dense_rows(1, vec![1.0, f64::NAN, f64::INFINITY]);
        let problem = Features::from_vectors("f", &column).unwrap().unwrap_err();
        assert_eq!(
            problem.to_string(),
            "Vector values MUST NOT be NaN or Infinity, but got [NaN] (2 rows of column f)"
        );
    }

    #[test]
    fn columns_become_rows() {
        let columns = [Numbers::from(vec![1.0, 2.0, 3.0]), Numbers::from(vec![4.0, 5.0, 6.0])];
        assert_eq!(interleave(&columns, 3).values(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }
}
