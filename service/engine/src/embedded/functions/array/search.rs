//! Elements found in arrays.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, Int32Array, Int64Array, UInt64Array};
use arrow::datatypes::DataType;

use super::super::Call;
use super::super::kernel::{self, Kernel};
use super::{element_of, range, rows_of, with_element};
use crate::Result;
use crate::embedded::expression::Typed;
use crate::embedded::expression::extract::{element_at_index, map_value};

/// The number of elements; of null it is null, or -1 outside ANSI for `size`.
pub fn size(mut call: Call<'_>, takes_maps: bool) -> Result<Typed> {
    let is_legacy = takes_maps && !call.ansi();
    let [value] = call.take()?;
    let is_right = match value.data_type() {
        DataType::List(_) | DataType::Null => true,
        DataType::Map(_, _) => takes_maps,
        _ => false,
    };
    if !is_right {
        return Err(call.unexpected(&value, if takes_maps { "ARRAY or MAP" } else { "ARRAY" }));
    }
    let nullable = value.nullable() && !is_legacy;
    let kernel = Kernel::new(format!("size, legacy {is_legacy}"), DataType::Int32, nullable);
    Ok(kernel.call(vec![value], move |arguments, num_rows| {
        let offsets = match arguments[0].data_type() {
            DataType::List(_) => Some(arguments[0].as_list::<i32>().value_offsets().to_vec()),
            DataType::Map(_, _) => Some(arguments[0].as_map().value_offsets().to_vec()),
            _ => None,
        };
        let sizes = (0..num_rows).map(|row| match &offsets {
            Some(offsets) if arguments[0].is_valid(row) => Some(offsets[row + 1] - offsets[row]),
            _ if is_legacy => Some(-1),
            _ => None,
        });
        Ok(Arc::new(sizes.collect::<Int32Array>()))
    }))
}

/// `element_at`: arrays from 1, or from the end; maps by key.
pub fn element_at(mut call: Call<'_>, is_try: bool) -> Result<Typed> {
    let [container, key] = call.take()?;
    match container.data_type().clone() {
        DataType::List(element) => {
            let key = call.cast(key, &DataType::Int64)?;
            Ok(element_at_index(container, key, &element, 1, call.ansi() && !is_try))
        }
        DataType::Map(entries, _) => map_value(call.resolver, container, key, &entries),
        _ => Err(call.unexpected(&container, "ARRAY or MAP")),
    }
}

/// `get`: arrays from 0, null outside.
pub fn get(mut call: Call<'_>) -> Result<Typed> {
    let [array, index] = call.take()?;
    let element = element_of(&call, &array)?;
    let index = call.cast(index, &DataType::Int64)?;
    Ok(element_at_index(array, index, &element, 0, false))
}

/// Whether an array holds a value; null when it does not but holds a null.
pub fn contains(mut call: Call<'_>) -> Result<Typed> {
    let element = with_element(&mut call)?;
    let nullable = element.is_nullable() || call.arguments.iter().any(Typed::nullable);
    Ok(Kernel::new("array_contains", DataType::Boolean, nullable).call(call.arguments, |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let [values, wanted] = &rows_of(&[list.values(), &arguments[1]])?[..] else {
            return Ok(arrow::array::new_null_array(&DataType::Boolean, num_rows));
        };
        let truths = (0..num_rows).map(|row| {
            if list.is_null(row) || arguments[1].is_null(row) {
                return None;
            }
            let is_found = range(list, row).any(|at| list.values().is_valid(at) && values.row(at) == wanted.row(row));
            let has_null = || range(list, row).any(|at| list.values().is_null(at));
            if is_found {
                Some(true)
            } else if has_null() {
                None
            } else {
                Some(false)
            }
        });
        Ok(Arc::new(truths.collect::<BooleanArray>()))
    }))
}

/// The 1-based place of a value in an array, 0 if it is not there.
pub fn position(mut call: Call<'_>) -> Result<Typed> {
    with_element(&mut call)?;
    Ok(kernel::strict("array_position", call.arguments, DataType::Int64, |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let [values, wanted] = &rows_of(&[list.values(), &arguments[1]])?[..] else {
            return Ok(arrow::array::new_null_array(&DataType::Int64, num_rows));
        };
        let places = (0..num_rows).map(|row| {
            if list.is_null(row) || arguments[1].is_null(row) {
                return None;
            }
            let found = range(list, row).position(|at| list.values().is_valid(at) && values.row(at) == wanted.row(row));
            Some(found.map_or(0, |at| at as i64 + 1))
        });
        Ok(Arc::new(places.collect::<Int64Array>()))
    }))
}

/// The 0-based place of a value in a sorted array, or `-(place to insert) - 1`.
pub fn binary_search(mut call: Call<'_>) -> Result<Typed> {
    with_element(&mut call)?;
    Ok(kernel::strict("array_binary_search", call.arguments, DataType::Int32, |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let [values, wanted] = &rows_of(&[list.values(), &arguments[1]])?[..] else {
            return Ok(arrow::array::new_null_array(&DataType::Int32, num_rows));
        };
        let places = (0..num_rows).map(|row| {
            if list.is_null(row) || arguments[1].is_null(row) {
                return None;
            }
            let range = range(list, row);
            let (mut low, mut high) = (range.start as i64, range.end as i64 - 1);
            while low <= high {
                let middle = (low + high) / 2;
                match values.row(middle as usize).cmp(&wanted.row(row)) {
                    std::cmp::Ordering::Equal => return Some((middle - range.start as i64) as i32),
                    std::cmp::Ordering::Less => low = middle + 1,
                    std::cmp::Ordering::Greater => high = middle - 1,
                }
            }
            Some(-((low - range.start as i64) as i32) - 1)
        });
        Ok(Arc::new(places.collect::<Int32Array>()))
    }))
}

pub fn extreme(mut call: Call<'_>, is_max: bool) -> Result<Typed> {
    let [array] = call.take()?;
    let element = element_of(&call, &array)?;
    let output = Arc::new(element.as_ref().clone().with_nullable(true));
    let name = if is_max { "array_max" } else { "array_min" };
    let kernel = Kernel { output, ..Kernel::new(name, element.data_type().clone(), true) };
    Ok(kernel.call(vec![array], move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let values = &rows_of(&[list.values()])?[0];
        let taken: UInt64Array = (0..num_rows)
            .map(|row| {
                let present = range(list, row).filter(|at| list.is_valid(row) && list.values().is_valid(*at));
                let best = if is_max {
                    present.max_by(|a, b| values.row(*a).cmp(&values.row(*b)))
                } else {
                    present.min_by(|a, b| values.row(*a).cmp(&values.row(*b)))
                };
                best.map(|at| at as u64)
            })
            .collect();
        Ok(arrow::compute::take(list.values(), &taken, None)?)
    }))
}
