//! Arrays.

mod build;
mod search;
mod set;
mod shape;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt64Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::row::{RowConverter, Rows, SortField};

use super::{Call, Function, function};
use crate::Result;
use crate::embedded::expression::Typed;

pub use shape::{concat, reverse};

pub const FUNCTIONS: &[Function] = &[
    function("array", 0, usize::MAX, build::array),
    function("array_repeat", 2, 2, build::repeat),
    function("sequence", 2, 3, build::sequence),
    function("size", 1, 1, |call| search::size(call, true)),
    function("cardinality", 1, 1, |call| search::size(call, true)),
    function("array_size", 1, 1, |call| search::size(call, false)),
    function("element_at", 2, 2, |call| search::element_at(call, false)),
    function("try_element_at", 2, 2, |call| search::element_at(call, true)),
    function("get", 2, 2, search::get),
    function("array_contains", 2, 2, search::contains),
    function("array_position", 2, 2, search::position),
    function("array_binary_search", 2, 2, search::binary_search),
    function("array_max", 1, 1, |call| search::extreme(call, true)),
    function("array_min", 1, 1, |call| search::extreme(call, false)),
    function("arrays_overlap", 2, 2, set::overlap),
    function("array_distinct", 1, 1, set::distinct),
    function("array_union", 2, 2, |call| set::combined(call, set::Combination::Union)),
    function("array_intersect", 2, 2, |call| set::combined(call, set::Combination::Intersect)),
    function("array_except", 2, 2, |call| set::combined(call, set::Combination::Except)),
    function("array_remove", 2, 2, set::remove),
    function("array_compact", 1, 1, set::compact),
    function("array_append", 2, 2, |call| shape::extend(call, true)),
    function("array_prepend", 2, 2, |call| shape::extend(call, false)),
    function("array_insert", 3, 3, shape::insert),
    function("slice", 3, 3, shape::slice),
    function("flatten", 1, 1, shape::flatten),
    function("sort_array", 1, 2, shape::sort),
    function("array_join", 2, 3, shape::join),
    function("arrays_zip", 0, usize::MAX, shape::zip),
];

/// The element field of an array argument.
pub fn element_of(call: &Call<'_>, value: &Typed) -> Result<FieldRef> {
    match value.data_type() {
        DataType::List(element) => Ok(element.clone()),
        _ => Err(call.unexpected(value, "ARRAY")),
    }
}

/// The first argument as an array (null becomes an empty type of one) and the second cast to its element, or both to what
/// they have in common.
pub fn with_element(call: &mut Call<'_>) -> Result<FieldRef> {
    let element = element_of(call, &call.arguments[0])?;
    let value = &call.arguments[1];
    let conf = call.conf();
    let Some(common) = crate::embedded::expression::coercion::wider(element.data_type(), value.data_type(), conf)
    else {
        return Err(call.mismatch(
            "ARRAY_FUNCTION_DIFF_TYPES",
            format!(
                "input to `{}` should have been \"ARRAY\" followed by a value with same element type, but it's [\"{}\", \"{}\"]",
                call.name,
                crate::data_type::sql_name(&call.arguments[0].field),
                crate::data_type::sql_name(&value.field)
            ),
        ));
    };
    let element = Arc::new(element.as_ref().clone().with_data_type(common.clone()));
    call.cast_arguments(&[DataType::List(element.clone()), common])?;
    Ok(element)
}

/// Values so that equal ones have equal rows: floats with one NaN and one zero.
pub fn comparable_column(array: &ArrayRef) -> Result<ArrayRef> {
    use arrow::datatypes::{Float32Type, Float64Type};
    Ok(match array.data_type() {
        DataType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|x| if x.is_nan() { f64::NAN } else { x + 0.0 }),
        ),
        DataType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|x| if x.is_nan() { f32::NAN } else { x + 0.0 }),
        ),
        _ => array.clone(),
    })
}

/// Columns of one type as rows that compare as bytes.
pub fn rows_of(columns: &[&ArrayRef]) -> Result<Vec<Rows>> {
    let converter = RowConverter::new(vec![SortField::new(columns[0].data_type().clone())])?;
    columns.iter().map(|column| Ok(converter.convert_columns(&[comparable_column(column)?])?)).collect()
}

/// The range of a list's row among its values.
pub fn range(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    let offsets = list.value_offsets();
    offsets[row] as usize..offsets[row + 1] as usize
}

/// A list column of elements taken from `values`, some to a row.
pub struct Taken {
    indices: Vec<Option<u64>>,
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

impl Taken {
    pub fn with_capacity(num_rows: usize) -> Taken {
        Taken { indices: Vec::new(), lengths: Vec::with_capacity(num_rows), valid: Vec::with_capacity(num_rows) }
    }

    pub fn append(&mut self, indices: impl IntoIterator<Item = usize>) {
        self.append_nullable(indices.into_iter().map(Some));
    }

    pub fn append_nullable(&mut self, indices: impl IntoIterator<Item = Option<usize>>) {
        let before = self.indices.len();
        self.indices.extend(indices.into_iter().map(|index| index.map(|index| index as u64)));
        self.lengths.push(self.indices.len() - before);
        self.valid.push(true);
    }

    pub fn append_null(&mut self) {
        self.lengths.push(0);
        self.valid.push(false);
    }

    pub fn finish(self, values: &ArrayRef, element: &FieldRef) -> Result<ArrayRef> {
        let values = arrow::compute::take(values, &UInt64Array::from(self.indices), None)?;
        let nulls = NullBuffer::from(self.valid);
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        Ok(Arc::new(ListArray::try_new(element.clone(), OffsetBuffer::from_lengths(self.lengths), values, nulls)?))
    }
}

/// An element field that may be null.
pub fn nullable_element(element: &Field) -> FieldRef {
    Arc::new(element.clone().with_name("element").with_nullable(true))
}

/// The array sorted ascending, nulls last.
pub fn shape_sorted(array: Typed, element: FieldRef) -> Typed {
    shape::sorted(array, element, true, false)
}
