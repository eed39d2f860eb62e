//! One row of vectors, matrices and numbers, as Spark's models of coefficients are saved.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int8Array, Int32Array, ListArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Float64Type, Int8Type, Int32Type, Schema};
use arrow::record_batch::RecordBatch;
use udt::{Matrix, Vector, VectorArray, VectorBuilder};

use crate::{Error, Result};

/// A value of a saved row.
pub enum Cell {
    Boolean(bool),
    Int(i32),
    Double(f64),
    Vector(Vector),
    Matrix(Matrix),
}

/// A table of one row. Numbers are not nullable, vectors and matrices are, as in Spark.
///
/// # Errors
/// [`Error::Arrow`] should the columns not fit their schema.
pub fn one_row(cells: Vec<(&str, Cell)>) -> Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (name, cell) in cells {
        let (field, column): (Field, ArrayRef) = match cell {
            Cell::Boolean(v) => (Field::new(name, DataType::Boolean, false), Arc::new(BooleanArray::from(vec![v]))),
            Cell::Int(v) => (Field::new(name, DataType::Int32, false), Arc::new(Int32Array::from(vec![v]))),
            Cell::Double(v) => (Field::new(name, DataType::Float64, false), Arc::new(Float64Array::from(vec![v]))),
            Cell::Vector(v) => {
                let mut builder = VectorBuilder::default();
                builder.append_vector(&v);
                (udt::field::vector_field(name), builder.finish())
            }
            Cell::Matrix(v) => (udt::field::matrix_field(name), matrix_column(v)?),
        };
        fields.push(field);
        columns.push(column);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn list(values: ArrayRef, is_valid: bool) -> ListArray {
    let element = Arc::new(Field::new("element", values.data_type().clone(), false));
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    ListArray::new(element, offsets, values, (!is_valid).then(|| NullBuffer::new_null(1)))
}

fn matrix_column(matrix: Matrix) -> Result<ArrayRef> {
    let (num_rows, num_cols) = (matrix.num_rows() as i32, matrix.num_cols() as i32);
    let (storage, col_ptrs, row_indices, values, is_transposed) = match matrix {
        Matrix::Dense { values, is_transposed, .. } => (1, None, None, values, is_transposed),
        Matrix::Sparse { col_ptrs, row_indices, values, is_transposed, .. } => {
            (0, Some(col_ptrs), Some(row_indices), values, is_transposed)
        }
    };
    let ints = |values: Option<Vec<i32>>| {
        let is_valid = values.is_some();
        list(Arc::new(Int32Array::from(values.unwrap_or_default())), is_valid)
    };
    let DataType::Struct(fields) = udt::field::matrix_data_type() else {
        return Err(Error::Bug { invariant: "a matrix is a struct".into() });
    };
    Ok(Arc::new(StructArray::try_new(
        fields,
        vec![
            Arc::new(Int8Array::from(vec![storage])),
            Arc::new(Int32Array::from(vec![num_rows])),
            Arc::new(Int32Array::from(vec![num_cols])),
            Arc::new(ints(col_ptrs)),
            Arc::new(ints(row_indices)),
            Arc::new(list(Arc::new(Float64Array::from(values)), true)),
            Arc::new(BooleanArray::from(vec![is_transposed])),
        ],
        None,
    )?))
}

/// The first row of a saved table.
pub struct SavedRow<'a> {
    name: &'a str,
    rows: &'a RecordBatch,
}

impl<'a> SavedRow<'a> {
    /// # Errors
    /// [`Error::Corrupted`] for a table without rows.
    pub fn new(name: &'a str, rows: &'a RecordBatch) -> Result<SavedRow<'a>> {
        let row = SavedRow { name, rows };
        if rows.num_rows() == 0 { Err(row.corrupted("the table has no rows")) } else { Ok(row) }
    }

    fn corrupted(&self, detail: &str) -> Error {
        Error::Corrupted { path: self.name.into(), detail: detail.into() }
    }

    fn column(&self, name: &str) -> Result<&ArrayRef> {
        let column = self.rows.column_by_name(name);
        let column = column.ok_or_else(|| self.corrupted(&format!("column {name} is missing")))?;
        if column.is_null(0) { Err(self.corrupted(&format!("column {name} is null"))) } else { Ok(column) }
    }

    fn wrong(&self, name: &str, expected: &str) -> Error {
        self.corrupted(&format!("column {name} is no {expected}"))
    }

    /// # Errors
    /// [`Error::Corrupted`] naming the column, here and below.
    pub fn int(&self, name: &str) -> Result<i32> {
        let ints = self.column(name)?.as_primitive_opt::<Int32Type>();
        ints.map(|ints| ints.value(0)).ok_or_else(|| self.wrong(name, "int"))
    }

    pub fn double(&self, name: &str) -> Result<f64> {
        let doubles = self.column(name)?.as_primitive_opt::<Float64Type>();
        doubles.map(|doubles| doubles.value(0)).ok_or_else(|| self.wrong(name, "double"))
    }

    pub fn boolean(&self, name: &str) -> Result<bool> {
        let booleans = self.column(name)?.as_boolean_opt();
        booleans.map(|booleans| booleans.value(0)).ok_or_else(|| self.wrong(name, "boolean"))
    }

    pub fn vector(&self, name: &str) -> Result<Vector> {
        let vectors = VectorArray::try_new(self.column(name)?.as_ref()).map_err(|_| self.wrong(name, "vector"))?;
        vectors.row(0).map(|row| row.to_vector()).map_err(|_| self.wrong(name, "vector"))
    }

    pub fn matrix(&self, name: &str) -> Result<Matrix> {
        read_matrix(self.column(name)?).ok_or_else(|| self.wrong(name, "matrix"))
    }
}

/// The first matrix of a column; `None` for one that no Spark writes.
fn read_matrix(column: &ArrayRef) -> Option<Matrix> {
    let parts = column.as_struct_opt()?;
    let int = |name: &str| parts.column_by_name(name)?.as_primitive_opt::<Int32Type>().map(|ints| ints.value(0));
    let first = |name: &str| parts.column_by_name(name)?.as_list_opt::<i32>().map(|lists| lists.value(0));
    let ints = |name: &str| Some(first(name)?.as_primitive_opt::<Int32Type>()?.values().to_vec());
    let storage = parts.column_by_name("type")?.as_primitive_opt::<Int8Type>()?.value(0);
    let (num_rows, num_cols) = (usize::try_from(int("numRows")?).ok()?, usize::try_from(int("numCols")?).ok()?);
    let values = first("values")?.as_primitive_opt::<Float64Type>()?.values().to_vec();
    let is_transposed = parts.column_by_name("isTransposed")?.as_boolean_opt()?.value(0);
    if storage == 1 {
        let is_whole = values.len() == num_rows.checked_mul(num_cols)?;
        return is_whole.then_some(Matrix::Dense { num_rows, num_cols, values, is_transposed });
    }
    let (col_ptrs, row_indices) = (ints("colPtrs")?, ints("rowIndices")?);
    let (major, minor) = if is_transposed { (num_rows, num_cols) } else { (num_cols, num_rows) };
    let is_sound = storage == 0
        && col_ptrs.len() == major + 1
        && col_ptrs.first() == Some(&0)
        && col_ptrs.windows(2).all(|pair| pair[0] <= pair[1])
        && col_ptrs.last().and_then(|end| usize::try_from(*end).ok()) == Some(values.len())
        && row_indices.len() == values.len()
        && row_indices.iter().all(|i| usize::try_from(*i).is_ok_and(|i| i < minor));
    is_sound.then_some(Matrix::Sparse { num_rows, num_cols, col_ptrs, row_indices, values, is_transposed })
}

/// The storage that takes fewer bytes, as Spark 4.3's `Vector.compressed` counts them.
pub fn compress_vector(values: Vec<f64>) -> Vector {
    let num_nonzeros = values.iter().filter(|v| **v != 0.0).count();
    if 12 * num_nonzeros + 28 < 8 * values.len() + 12 { sparse_vector(&values) } else { Vector::Dense(values) }
}

/// A vector of only what is not zero.
pub fn sparse_vector(values: &[f64]) -> Vector {
    let stored = values.iter().enumerate().filter(|(_, v)| **v != 0.0);
    let (indices, kept) = stored.map(|(i, v)| (i as i32, *v)).unzip();
    Vector::Sparse { size: values.len(), indices, values: kept }
}

/// The storage that takes fewest bytes, as Spark's `Matrix.compressed` counts them, of row-major values.
pub fn compress(num_rows: usize, num_cols: usize, values: Vec<f64>) -> Matrix {
    let num_nonzeros = values.iter().filter(|v| **v != 0.0).count();
    let sparse_bytes = |num_pointers: usize| 12 * num_nonzeros + 4 * num_pointers + 3 * 12;
    let (by_column, by_row) = (sparse_bytes(num_cols + 1), sparse_bytes(num_rows + 1));
    let dense = 8 * num_rows * num_cols + 12;
    if dense <= by_column.min(by_row) {
        return Matrix::from_rows(num_rows, num_cols, values);
    }
    let is_transposed = by_row < by_column;
    let (majors, minors) = if is_transposed { (num_rows, num_cols) } else { (num_cols, num_rows) };
    let mut sparse = (vec![0], Vec::new(), Vec::new());
    for major in 0..majors {
        for minor in 0..minors {
            let (row, col) = if is_transposed { (major, minor) } else { (minor, major) };
            let value = values[row * num_cols + col];
            if value != 0.0 {
                sparse.1.push(minor as i32);
                sparse.2.push(value);
            }
        }
        sparse.0.push(sparse.2.len() as i32);
    }
    let (col_ptrs, row_indices, values) = sparse;
    Matrix::Sparse { num_rows, num_cols, col_ptrs, row_indices, values, is_transposed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_row_reads_back() {
        let sparse = compress(2, 40, (0..80).map(|i| if i % 20 == 3 { f64::from(i) } else { 0.0 }).collect());
        assert!(matches!(&sparse, Matrix::Sparse { is_transposed: true, .. }));
        let dense = compress(2, 2, vec![1.0, 2.0, 3.0, 4.0]);
        let rows = one_row(vec![
            ("n", Cell::Int(3)),
            ("is", Cell::Boolean(true)),
            ("x", Cell::Double(f64::INFINITY)),
            ("v", Cell::Vector(Vector::Sparse { size: 5, indices: vec![2], values: vec![1.5] })),
            ("s", Cell::Matrix(sparse.clone())),
            ("d", Cell::Matrix(dense.clone())),
        ])
        .unwrap();
        let row = SavedRow::new("data", &rows).unwrap();
        assert_eq!((row.int("n").unwrap(), row.boolean("is").unwrap()), (3, true));
        assert_eq!(row.double("x").unwrap(), f64::INFINITY);
        assert_eq!(row.vector("v").unwrap().to_string(), "(5,[2],[1.5])");
        assert_eq!(row.matrix("s").unwrap(), sparse);
        assert_eq!(row.matrix("d").unwrap(), dense);
        assert!(matches!(row.double("n"), Err(Error::Corrupted { .. })));
        assert!(matches!(row.int("absent"), Err(Error::Corrupted { .. })));
    }
}
