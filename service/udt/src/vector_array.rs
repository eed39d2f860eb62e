//! A column of vectors, read and built without a copy per row.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int8Array, Int32Array, ListArray, StructArray, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Float64Type, Int8Type, Int32Type};

use crate::field::vector_data_type;
use crate::{Error, Result, Vector};

/// One row of a vector column, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum VectorRow<'a> {
    Dense(&'a [f64]),
    Sparse { size: usize, indices: &'a [i32], values: &'a [f64] },
}

impl VectorRow<'_> {
    pub fn size(&self) -> usize {
        match self {
            VectorRow::Dense(values) => values.len(),
            VectorRow::Sparse { size, .. } => *size,
        }
    }

    /// The stored values: all of a dense row, the listed ones of a sparse row.
    pub fn values(&self) -> &[f64] {
        match self {
            VectorRow::Dense(values) | VectorRow::Sparse { values, .. } => values,
        }
    }

    /// Calls `visit(index, value)` for every stored value.
    pub fn for_each(&self, mut visit: impl FnMut(usize, f64)) {
        match self {
            VectorRow::Dense(values) => values.iter().enumerate().for_each(|(i, v)| visit(i, *v)),
            VectorRow::Sparse { indices, values, .. } => {
                indices.iter().zip(*values).for_each(|(i, v)| visit(*i as usize, *v));
            }
        }
    }

    pub fn to_vector(&self) -> Vector {
        match self {
            VectorRow::Dense(values) => Vector::Dense(values.to_vec()),
            VectorRow::Sparse { size, indices, values } => {
                Vector::Sparse { size: *size, indices: indices.to_vec(), values: values.to_vec() }
            }
        }
    }
}

/// A typed view of a vector column (`struct<type, size, indices, values>`).
#[derive(Debug, Clone)]
pub struct VectorArray {
    nulls: Option<NullBuffer>,
    storage: Int8Array,
    sizes: Int32Array,
    indices: ListArray,
    index_values: Int32Array,
    values: ListArray,
    value_values: Float64Array,
}

impl VectorArray {
    /// Views an Arrow column as vectors.
    ///
    /// # Errors
    /// [`Error::NotAVector`] when the array has another type.
    pub fn try_new(array: &dyn Array) -> Result<VectorArray> {
        let not_a_vector = || Error::NotAVector { found: array.data_type().to_string() };
        let rows = array.as_struct_opt().ok_or_else(not_a_vector)?;
        if rows.num_columns() != 4 {
            return Err(not_a_vector());
        }
        let list = |column: &ArrayRef| -> Result<ListArray> {
            match column.as_list_opt::<i32>() {
                Some(list) => Ok(list.clone()),
                None => {
                    let element = match column.data_type() {
                        DataType::LargeList(element) => element.clone(),
                        _ => return Err(not_a_vector()),
                    };
                    let cast = arrow::compute::cast(column, &DataType::List(element)).map_err(|_| not_a_vector())?;
                    cast.as_list_opt::<i32>().cloned().ok_or_else(not_a_vector)
                }
            }
        };
        let indices = list(rows.column(2))?;
        let values = list(rows.column(3))?;
        Ok(VectorArray {
            nulls: rows.nulls().cloned(),
            storage: rows.column(0).as_primitive_opt::<Int8Type>().ok_or_else(not_a_vector)?.clone(),
            sizes: rows.column(1).as_primitive_opt::<Int32Type>().ok_or_else(not_a_vector)?.clone(),
            index_values: indices.values().as_primitive_opt::<Int32Type>().ok_or_else(not_a_vector)?.clone(),
            value_values: values.values().as_primitive_opt::<Float64Type>().ok_or_else(not_a_vector)?.clone(),
            indices,
            values,
        })
    }

    pub fn len(&self) -> usize {
        self.storage.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    pub fn null_count(&self) -> usize {
        self.nulls.as_ref().map_or(0, NullBuffer::null_count)
    }

    /// The vector at `row`.
    ///
    /// # Errors
    /// [`Error::NullVector`] for a null row; [`Error::UnknownStorage`] and [`Error::MalformedSparse`] for bytes that no
    /// Spark writes, so that a reader may index by what it gets.
    pub fn row(&self, row: usize) -> Result<VectorRow<'_>> {
        if self.is_null(row) || self.values.is_null(row) {
            return Err(Error::NullVector { row });
        }
        let values = &self.value_values.values()[list_range(&self.values, row)];
        match self.storage.value(row) {
            1 => Ok(VectorRow::Dense(values)),
            0 => {
                let size = self.sizes.value(row);
                let indices = &self.index_values.values()[list_range(&self.indices, row)];
                let is_sorted = indices.windows(2).all(|pair| pair[0] < pair[1]);
                let is_inside = indices.first().is_none_or(|i| *i >= 0) && indices.last().is_none_or(|i| *i < size);
                if size < 0 || indices.len() != values.len() || !is_sorted || !is_inside {
                    return Err(Error::MalformedSparse {
                        row,
                        indices: indices.len(),
                        values: values.len(),
                        size: size.into(),
                    });
                }
                Ok(VectorRow::Sparse { size: size as usize, indices, values })
            }
            found => Err(Error::UnknownStorage { row, found }),
        }
    }

    /// If every row is dense, non-null and has the same length: that length, and all values as one row-major slice.
    pub fn as_dense_rows(&self) -> Option<(usize, &[f64])> {
        let num_rows = self.len();
        if num_rows == 0 || self.null_count() > 0 || self.values.null_count() > 0 {
            return None;
        }
        if self.storage.values().iter().any(|storage| *storage != 1) {
            return None;
        }
        let offsets = self.values.value_offsets();
        let width = offsets[1] - offsets[0];
        if offsets.windows(2).any(|pair| pair[1] - pair[0] != width) {
            return None;
        }
        Some((width as usize, &self.value_values.values()[offsets[0] as usize..offsets[num_rows] as usize]))
    }
}

fn list_range(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    let offsets = list.value_offsets();
    offsets[row] as usize..offsets[row + 1] as usize
}

/// Builds a vector column row by row.
#[derive(Debug, Default)]
pub struct VectorBuilder {
    valid: Vec<bool>,
    storage: Vec<i8>,
    sizes: Vec<Option<i32>>,
    index_offsets: Vec<i32>,
    indices: Vec<i32>,
    value_offsets: Vec<i32>,
    values: Vec<f64>,
}

impl VectorBuilder {
    pub fn with_capacity(num_rows: usize, values_per_row: usize) -> VectorBuilder {
        VectorBuilder {
            valid: Vec::with_capacity(num_rows),
            storage: Vec::with_capacity(num_rows),
            sizes: Vec::with_capacity(num_rows),
            index_offsets: Vec::with_capacity(num_rows),
            indices: Vec::new(),
            value_offsets: Vec::with_capacity(num_rows),
            values: Vec::with_capacity(num_rows * values_per_row),
        }
    }

    pub fn append_dense(&mut self, values: &[f64]) {
        self.values.extend_from_slice(values);
        self.end_row(true, 1, None);
    }

    /// Appends a sparse row. `indices` must be strictly increasing and below `size`.
    pub fn append_sparse(&mut self, size: usize, indices: &[i32], values: &[f64]) {
        debug_assert_eq!(indices.len(), values.len());
        self.indices.extend_from_slice(indices);
        self.values.extend_from_slice(values);
        self.end_row(true, 0, Some(size as i32));
    }

    pub fn append_vector(&mut self, vector: &Vector) {
        match vector {
            Vector::Dense(values) => self.append_dense(values),
            Vector::Sparse { size, indices, values } => self.append_sparse(*size, indices, values),
        }
    }

    pub fn append_row(&mut self, row: VectorRow<'_>) {
        match row {
            VectorRow::Dense(values) => self.append_dense(values),
            VectorRow::Sparse { size, indices, values } => self.append_sparse(size, indices, values),
        }
    }

    pub fn append_null(&mut self) {
        self.end_row(false, 1, None);
    }

    fn end_row(&mut self, valid: bool, storage: i8, size: Option<i32>) {
        self.valid.push(valid);
        self.storage.push(storage);
        self.sizes.push(size);
        self.index_offsets.push(self.indices.len() as i32);
        self.value_offsets.push(self.values.len() as i32);
    }

    /// The finished column, of [`vector_data_type`].
    pub fn finish(self) -> ArrayRef {
        let is_sparse = NullBuffer::from_iter(self.sizes.iter().map(Option::is_some));
        let valid = NullBuffer::from(self.valid);
        let offsets = |ends: Vec<i32>| {
            let mut offsets = Vec::with_capacity(ends.len() + 1);
            offsets.push(0);
            offsets.extend(ends);
            OffsetBuffer::new(ScalarBuffer::from(offsets))
        };
        let element = |data_type| Arc::new(Field::new("element", data_type, false));
        let indices = ListArray::new(
            element(DataType::Int32),
            offsets(self.index_offsets),
            Arc::new(Int32Array::from(self.indices)),
            Some(is_sparse),
        );
        let values = ListArray::new(
            element(DataType::Float64),
            offsets(self.value_offsets),
            Arc::new(Float64Array::from(self.values)),
            Some(valid.clone()),
        );
        struct_of(Int8Array::from(self.storage), Int32Array::from(self.sizes), indices, values, valid)
    }

    /// A column of dense rows of `width` values each, taken over without a copy.
    pub fn from_dense_rows(width: usize, values: Vec<f64>) -> ArrayRef {
        let num_rows = if width == 0 { 0 } else { values.len() / width };
        let offsets: Vec<i32> = (0..=num_rows).map(|row| (row * width) as i32).collect();
        let element = |data_type| Arc::new(Field::new("element", data_type, false));
        let indices = new_null_array(&DataType::List(element(DataType::Int32)), num_rows);
        let values = ListArray::new(
            element(DataType::Float64),
            OffsetBuffer::new(ScalarBuffer::from(offsets)),
            Arc::new(Float64Array::from(values)),
            None,
        );
        struct_of(
            Int8Array::from(vec![1; num_rows]),
            Int32Array::new_null(num_rows),
            indices.as_list::<i32>().clone(),
            values,
            NullBuffer::new_valid(num_rows),
        )
    }
}

fn struct_of(storage: Int8Array, sizes: Int32Array, indices: ListArray, values: ListArray, valid: NullBuffer) -> ArrayRef {
    let DataType::Struct(fields) = vector_data_type() else { unreachable!("a vector is a struct") };
    let nulls = (valid.null_count() > 0).then_some(valid);
    Arc::new(StructArray::new(
        fields,
        vec![Arc::new(storage), Arc::new(sizes), Arc::new(indices), Arc::new(values)],
        nulls,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_went_in() {
        let mut builder = VectorBuilder::default();
        builder.append_dense(&[1.0, 2.0]);
        builder.append_null();
        builder.append_sparse(5, &[1, 4], &[-1.0, 3.0]);
        let column = builder.finish();
        assert_eq!(column.data_type(), &vector_data_type());
        let vectors = VectorArray::try_new(column.as_ref()).unwrap();
        assert_eq!(vectors.row(0).unwrap(), VectorRow::Dense(&[1.0, 2.0]));
        assert_eq!(vectors.row(1), Err(Error::NullVector { row: 1 }));
        assert_eq!(
            vectors.row(2).unwrap().to_vector(),
            Vector::Sparse { size: 5, indices: vec![1, 4], values: vec![-1.0, 3.0] }
        );
        assert_eq!(vectors.as_dense_rows(), None);
    }

    #[test]
    fn dense_rows_of_a_slice_are_one_slice() {
        let column = VectorBuilder::from_dense_rows(2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let sliced = column.slice(1, 2);
        let vectors = VectorArray::try_new(sliced.as_ref()).unwrap();
        assert_eq!(vectors.as_dense_rows(), Some((2, &[3.0, 4.0, 5.0, 6.0][..])));
    }

    #[test]
    fn a_sparse_row_with_an_index_outside_is_refused() {
        let mut builder = VectorBuilder::default();
        builder.append_sparse(2, &[7], &[1.0]);
        let column = builder.finish();
        let vectors = VectorArray::try_new(column.as_ref()).unwrap();
        assert_eq!(vectors.row(0), Err(Error::MalformedSparse { row: 0, indices: 1, values: 1, size: 2 }));
    }
}
