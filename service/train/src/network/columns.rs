//! A rank's rows as tensors: one of all rows a column, kept row-major, from which the rows of a step are taken.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type};
use tch::Tensor;
use udt::{VectorArray, VectorRow};

use super::sampler::mix;
use crate::batch::Problem;
use crate::{Error, Result};

/// What a column becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ColumnKind {
    /// `[rows]` of f32
    Number,
    /// `[rows, width]` of f32: vectors, and lists of numbers
    Numbers,
    /// `[rows]` of i64
    Integer,
    /// `[rows, width]` of i64: lists of integers
    Integers,
    /// `[rows]` of i64, none negative: a label that is a class, of any numeric column
    Class,
}

impl ColumnKind {
    /// By a column's type; `is_vector` for a column of Spark's vectors. `None`: no tensor is made of such columns.
    pub fn of(data_type: &DataType, is_vector: bool) -> Option<ColumnKind> {
        if is_vector {
            return Some(ColumnKind::Numbers);
        }
        match data_type {
            DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
                match ColumnKind::of(element.data_type(), false)? {
                    ColumnKind::Number => Some(ColumnKind::Numbers),
                    ColumnKind::Integer => Some(ColumnKind::Integers),
                    _ => None,
                }
            }
            DataType::Float32 | DataType::Float64 | DataType::Decimal128(..) => Some(ColumnKind::Number),
            DataType::Boolean => Some(ColumnKind::Integer),
            other if other.is_integer() => Some(ColumnKind::Integer),
            _ => None,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, ColumnKind::Number | ColumnKind::Numbers)
    }

    fn has_width(self) -> bool {
        matches!(self, ColumnKind::Numbers | ColumnKind::Integers)
    }
}

/// One column of a rank's rows, or of some rows.
#[derive(Debug, Clone)]
pub struct Column {
    name: String,
    kind: ColumnKind,
    /// Values a row; unknown before the first one.
    width: Option<usize>,
    values: Values,
}

#[derive(Debug, Clone)]
enum Values {
    Floats(Vec<f32>),
    Integers(Vec<i64>),
}

type Checked<T> = std::result::Result<T, Problem>;

impl Column {
    pub fn new(name: &str, kind: ColumnKind) -> Column {
        let values = if kind.is_float() { Values::Floats(Vec::new()) } else { Values::Integers(Vec::new()) };
        Column { name: name.into(), kind, width: (!kind.has_width()).then_some(1), values }
    }

    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// What ranks without rows learn from the others.
    pub fn set_width(&mut self, width: usize) {
        self.width.get_or_insert(width);
    }

    /// Adds the rows of an array.
    ///
    /// # Errors
    /// The outer one for a column of another type than was planned; the inner one for nulls, values that are no numbers,
    /// labels that are no classes, and rows of different lengths.
    pub fn extend(&mut self, array: &ArrayRef) -> Result<Checked<()>> {
        if array.null_count() > 0 {
            let text = format!("Values of {} MUST NOT be Null", self.name);
            return Ok(Err(Problem::user(&self.name, array.null_count() as u64, text)));
        }
        if udt::VectorArray::try_new(array.as_ref()).is_ok() {
            return self.extend_vectors(array);
        }
        let (width, flat) = match array.data_type() {
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                let offsets = lists.value_offsets();
                match self.uniform(offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize)) {
                    Ok(width) => {
                        (width, lists.values().slice(offsets[0] as usize, (offsets[array.len()] - offsets[0]) as usize))
                    }
                    Err(problem) => return Ok(Err(problem)),
                }
            }
            DataType::LargeList(_) => {
                let lists = array.as_list::<i64>();
                let offsets = lists.value_offsets();
                match self.uniform(offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize)) {
                    Ok(width) => {
                        (width, lists.values().slice(offsets[0] as usize, (offsets[array.len()] - offsets[0]) as usize))
                    }
                    Err(problem) => return Ok(Err(problem)),
                }
            }
            DataType::FixedSizeList(_, width) => {
                let lists = array.as_fixed_size_list();
                match self.uniform(std::iter::repeat_n(*width as usize, array.len())) {
                    Ok(width) => (width, lists.values().slice(lists.offset() * width, array.len() * width)),
                    Err(problem) => return Ok(Err(problem)),
                }
            }
            _ => (1, array.clone()),
        };
        if flat.null_count() > 0 {
            let text = format!("Values of {} MUST NOT be Null", self.name);
            return Ok(Err(Problem::user(&self.name, flat.null_count() as u64, text)));
        }
        if width > 0 || self.width.is_none() {
            self.width = self.width.or(Some(width));
        }
        self.extend_flat(&flat)
    }

    fn extend_flat(&mut self, flat: &ArrayRef) -> Result<Checked<()>> {
        match (&mut self.values, self.kind) {
            (Values::Floats(values), _) => match flat.data_type() {
                // doubles are narrowed in the pass that copies them
                DataType::Float64 => {
                    values.extend(flat.as_primitive::<Float64Type>().values().iter().map(|v| *v as f32))
                }
                _ => values.extend_from_slice(cast(flat, &DataType::Float32)?.as_primitive::<Float32Type>().values()),
            },
            (Values::Integers(values), ColumnKind::Class) => {
                let doubles = cast(flat, &DataType::Float64)?;
                let doubles = doubles.as_primitive::<Float64Type>().values();
                let is_class = |v: f64| v >= 0.0 && v < f64::from(i32::MAX) && v.fract() == 0.0;
                let refused: Vec<f64> = doubles.iter().copied().filter(|v| !is_class(*v)).collect();
                if let Some(first) = refused.first() {
                    let text = format!("Labels MUST be Integers from 0, but got {}", udt::vector::java_double(*first));
                    return Ok(Err(Problem::user(&self.name, refused.len() as u64, text)));
                }
                values.extend(doubles.iter().map(|v| *v as i64));
            }
            (Values::Integers(values), _) => {
                values.extend_from_slice(cast(flat, &DataType::Int64)?.as_primitive::<Int64Type>().values());
            }
        }
        Ok(Ok(()))
    }

    fn extend_vectors(&mut self, array: &ArrayRef) -> Result<Checked<()>> {
        let malformed = |source: udt::Error| Error::Partition { source: Box::new(source) };
        let vectors = VectorArray::try_new(array.as_ref()).map_err(malformed)?;
        if vectors.null_count() > 0 {
            let text = format!("Values of {} MUST NOT be Null", self.name);
            return Ok(Err(Problem::user(&self.name, vectors.null_count() as u64, text)));
        }
        if let Some((width, rows)) = vectors.as_dense_rows() {
            if let Err(problem) = self.uniform(std::iter::repeat_n(width, vectors.len())) {
                return Ok(Err(problem));
            }
            self.width.get_or_insert(width);
            let Values::Floats(values) = &mut self.values else { return Err(self.mistaken()) };
            values.extend(rows.iter().map(|v| *v as f32));
            return Ok(Ok(()));
        }
        for row in 0..vectors.len() {
            let vector = vectors.row(row).map_err(malformed)?;
            if let Err(problem) = self.uniform([vector.size()].into_iter()) {
                return Ok(Err(problem));
            }
            self.width.get_or_insert(vector.size());
            let Values::Floats(values) = &mut self.values else { return Err(self.mistaken()) };
            match vector {
                VectorRow::Dense(dense) => values.extend(dense.iter().map(|v| *v as f32)),
                VectorRow::Sparse { size, indices, values: stored } => {
                    let start = values.len();
                    values.resize(start + size, 0.0);
                    for (index, value) in indices.iter().zip(stored) {
                        values[start + *index as usize] = *value as f32;
                    }
                }
            }
        }
        Ok(Ok(()))
    }

    fn mistaken(&self) -> Error {
        Error::Bug { invariant: format!("column {} has the type that it was planned with", self.name) }
    }

    /// The one length that rows have, those of before included.
    fn uniform(&self, lengths: impl Iterator<Item = usize>) -> Checked<usize> {
        let mut expected = self.width;
        for length in lengths {
            let known = *expected.get_or_insert(length);
            if known != length {
                let text = format!("Dimensions mismatch: expected {known} values a row, found {length}");
                return Err(Problem::user(&self.name, 1, text));
            }
        }
        Ok(expected.unwrap_or(0))
    }

    /// Refuses values that are no numbers.
    fn check_finite(&self) -> Checked<()> {
        let Values::Floats(values) = &self.values else { return Ok(()) };
        let refused = values.iter().filter(|v| !v.is_finite()).count();
        if refused == 0 {
            return Ok(());
        }
        let text = format!("Values of {} MUST NOT be NaN or Infinity", self.name);
        Err(Problem::user(&self.name, refused as u64, text))
    }

    fn num_rows(&self) -> usize {
        let num_values = match &self.values {
            Values::Floats(values) => values.len(),
            Values::Integers(values) => values.len(),
        };
        num_values / self.width.unwrap_or(1).max(1)
    }

    fn shape(&self, num_rows: usize) -> Vec<i64> {
        match self.kind.has_width() {
            true => vec![num_rows as i64, self.width.unwrap_or(0) as i64],
            false => vec![num_rows as i64],
        }
    }

    /// Some rows as a tensor of their own.
    pub fn take(&self, rows: &[u32]) -> Tensor {
        let width = self.width.unwrap_or(0);
        let shape = self.shape(rows.len());
        match &self.values {
            Values::Floats(values) => Tensor::from_slice(&gather(values, rows, width)).view(shape.as_slice()),
            Values::Integers(values) => Tensor::from_slice(&gather(values, rows, width)).view(shape.as_slice()),
        }
    }

    /// All rows as a tensor.
    pub fn all(&self) -> Tensor {
        let shape = self.shape(self.num_rows());
        match &self.values {
            Values::Floats(values) => Tensor::from_slice(values).view(shape.as_slice()),
            Values::Integers(values) => Tensor::from_slice(values).view(shape.as_slice()),
        }
    }

    fn hash_into(&self, hashes: &mut [u64]) {
        let width = self.width.unwrap_or(0).max(1);
        match &self.values {
            Values::Floats(values) => {
                for (hash, row) in hashes.iter_mut().zip(values.chunks_exact(width)) {
                    *hash = row.iter().fold(*hash, |hash, v| mix(hash ^ u64::from(v.to_bits())));
                }
            }
            Values::Integers(values) => {
                for (hash, row) in hashes.iter_mut().zip(values.chunks_exact(width)) {
                    *hash = row.iter().fold(*hash, |hash, v| mix(hash ^ *v as u64));
                }
            }
        }
    }
}

fn gather<T: Copy>(values: &[T], rows: &[u32], width: usize) -> Vec<T> {
    let mut gathered = Vec::with_capacity(rows.len() * width);
    for row in rows {
        let start = *row as usize * width;
        gathered.extend_from_slice(&values[start..start + width]);
    }
    gathered
}

/// A rank's training rows: the arguments of the module, and the label.
#[derive(Debug, Clone)]
pub struct Columns {
    pub inputs: Vec<Column>,
    pub label: Column,
}

impl Columns {
    /// Adds a record batch, whose columns are the inputs and then the label.
    ///
    /// # Errors
    /// As [`Column::extend`].
    pub fn extend(&mut self, arrays: &[ArrayRef]) -> Result<Checked<()>> {
        let columns = self.inputs.iter_mut().chain([&mut self.label]);
        for (column, array) in columns.zip(arrays) {
            if let Err(problem) = column.extend(array)? {
                return Ok(Err(problem));
            }
        }
        Ok(Ok(()))
    }

    /// # Errors
    /// The first column that holds values that are no numbers.
    pub fn check_finite(&self) -> Checked<()> {
        self.inputs.iter().chain([&self.label]).try_for_each(Column::check_finite)
    }

    pub fn num_rows(&self) -> usize {
        self.label.num_rows()
    }

    /// The inputs and the label of some rows.
    pub fn take(&self, rows: &[u32]) -> (Vec<Tensor>, Tensor) {
        (self.inputs.iter().map(|input| input.take(rows)).collect(), self.label.take(rows))
    }

    /// A hash of each row's content.
    pub fn hashes(&self) -> Vec<u64> {
        let mut hashes = vec![0; self.num_rows()];
        self.inputs.iter().chain([&self.label]).for_each(|column| column.hash_into(&mut hashes));
        hashes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{BooleanArray, Float64Array, Int32Array, ListArray};
    use udt::VectorBuilder;

    use super::*;

    fn read(kind: ColumnKind, arrays: &[ArrayRef]) -> Checked<Tensor> {
        let mut column = Column::new("c", kind);
        arrays.iter().try_for_each(|array| column.extend(array).unwrap())?;
        column.check_finite()?;
        Ok(column.take(&[1, 0, 1]))
    }

    #[test]
    fn columns_become_tensors_of_their_kind() {
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.5, 2.5]));
        let tensor = read(ColumnKind::Number, std::slice::from_ref(&numbers)).unwrap();
        assert_eq!(tensor, Tensor::from_slice(&[2.5f32, 1.5, 2.5]));
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
        assert_eq!(read(ColumnKind::Integer, &[flags]).unwrap(), Tensor::from_slice(&[0i64, 1, 0]));
        let mut vectors = VectorBuilder::default();
        vectors.append_dense(&[1.0, 2.0, 3.0]);
        vectors.append_sparse(3, &[1], &[5.0]);
        let tensor = read(ColumnKind::Numbers, &[vectors.finish()]).unwrap();
        assert_eq!(tensor.size(), [3, 3]);
        assert_eq!(tensor.get(0), Tensor::from_slice(&[0.0f32, 5.0, 0.0]));
        let lists = ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>([
            Some(vec![Some(9), Some(9)]),
            Some(vec![Some(1), Some(2)]),
            Some(vec![Some(3), Some(4)]),
        ]);
        let sliced: ArrayRef = Arc::new(lists.slice(1, 2));
        let tensor = read(ColumnKind::Integers, &[sliced]).unwrap();
        assert_eq!(tensor.get(0), Tensor::from_slice(&[3i64, 4]));
    }

    #[test]
    fn what_cannot_be_trained_on_is_named() {
        let ragged: ArrayRef = Arc::new(ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>([
            Some(vec![Some(9), Some(9)]),
            Some(vec![Some(1)]),
        ]));
        let problem = read(ColumnKind::Integers, &[ragged]).unwrap_err().to_string();
        assert!(problem.contains("expected 2 values a row, found 1"), "{problem}");
        let labels: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 0.5]));
        let problem = read(ColumnKind::Class, &[labels]).unwrap_err().to_string();
        assert!(problem.contains("but got 0.5"), "{problem}");
        let nulls: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
        assert!(read(ColumnKind::Integer, &[nulls]).is_err());
        let nan: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN]));
        assert!(read(ColumnKind::Number, &[nan]).unwrap_err().to_string().contains("NaN"));
    }
}
