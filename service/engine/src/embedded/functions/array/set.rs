//! Arrays as sets.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, FieldRef};

use super::super::Call;
use super::super::kernel::{self, Kernel};
use super::{Taken, element_of, range, rows_of, with_element};
use crate::Result;
use crate::embedded::expression::Typed;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combination {
    Union,
    Intersect,
    Except,
}

fn both(call: &mut Call<'_>) -> Result<FieldRef> {
    element_of(call, &call.arguments[0])?;
    element_of(call, &call.arguments[1])?;
    let data_type = call.unify()?;
    match data_type {
        DataType::List(element) => Ok(element),
        _ => Err(call.unexpected(&call.arguments[0], "ARRAY")),
    }
}

pub fn overlap(mut call: Call<'_>) -> Result<Typed> {
    both(&mut call)?;
    Ok(kernel::nullable("arrays_overlap", call.arguments, DataType::Boolean, |arguments, num_rows| {
        let (left, right) = (arguments[0].as_list::<i32>(), arguments[1].as_list::<i32>());
        let rows = rows_of(&[left.values(), right.values()])?;
        let truths = (0..num_rows).map(|row| {
            if left.is_null(row) || right.is_null(row) {
                return None;
            }
            let own: HashSet<_> =
                range(left, row).filter(|at| left.values().is_valid(*at)).map(|at| rows[0].row(at)).collect();
            let meets = range(right, row).any(|at| right.values().is_valid(at) && own.contains(&rows[1].row(at)));
            let has_null = range(left, row).any(|at| left.values().is_null(at))
                || range(right, row).any(|at| right.values().is_null(at));
            let is_open = has_null && !range(left, row).is_empty() && !range(right, row).is_empty();
            if meets {
                Some(true)
            } else if is_open {
                None
            } else {
                Some(false)
            }
        });
        Ok(Arc::new(truths.collect::<BooleanArray>()))
    }))
}

fn kept(
    call: Call<'_>,
    name: &str,
    element: FieldRef,
    keep: fn(&arrow::array::ListArray, &arrow::row::Rows, usize) -> Vec<usize>,
) -> Typed {
    let output = DataType::List(element.clone());
    kernel::strict(name, call.arguments, output, move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let rows = rows_of(&[list.values()])?;
        let mut taken = Taken::with_capacity(num_rows);
        for row in 0..num_rows {
            if list.is_null(row) { taken.append_null() } else { taken.append(keep(list, &rows[0], row)) }
        }
        taken.finish(list.values(), &element)
    })
}

pub fn distinct(call: Call<'_>) -> Result<Typed> {
    let element = element_of(&call, &call.arguments[0])?;
    Ok(kept(call, "array_distinct", element, |list, rows, row| {
        let mut seen = HashSet::new();
        range(list, row).filter(|at| seen.insert(rows.row(*at))).collect()
    }))
}

pub fn compact(call: Call<'_>) -> Result<Typed> {
    let element = element_of(&call, &call.arguments[0])?;
    let element = Arc::new(element.as_ref().clone().with_nullable(false));
    Ok(kept(call, "array_compact", element, |list, _, row| {
        range(list, row).filter(|at| list.values().is_valid(*at)).collect()
    }))
}

pub fn remove(mut call: Call<'_>) -> Result<Typed> {
    let element = with_element(&mut call)?;
    let output = DataType::List(element.clone());
    Ok(kernel::strict("array_remove", call.arguments, output, move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let rows = rows_of(&[list.values(), &arguments[1]])?;
        let mut taken = Taken::with_capacity(num_rows);
        for row in 0..num_rows {
            if list.is_null(row) || arguments[1].is_null(row) {
                taken.append_null();
            } else {
                taken.append(
                    range(list, row).filter(|at| list.values().is_null(*at) || rows[0].row(*at) != rows[1].row(row)),
                );
            }
        }
        taken.finish(list.values(), &element)
    }))
}

pub fn combined(mut call: Call<'_>, combination: Combination) -> Result<Typed> {
    let element = both(&mut call)?;
    let nullable = call.arguments.iter().any(Typed::nullable);
    let output = DataType::List(element.clone());
    let kernel = Kernel::new(format!("array {combination:?}"), output, nullable);
    Ok(kernel.call(call.arguments, move |arguments, num_rows| {
        let (left, right) = (arguments[0].as_list::<i32>(), arguments[1].as_list::<i32>());
        let all: ArrayRef = arrow::compute::concat(&[left.values().as_ref(), right.values().as_ref()])?;
        let rows = &rows_of(&[&all])?[0];
        let shift = left.values().len();
        let mut taken = Taken::with_capacity(num_rows);
        for row in 0..num_rows {
            if left.is_null(row) || right.is_null(row) {
                taken.append_null();
                continue;
            }
            let other: HashSet<_> = range(right, row).map(|at| rows.row(at + shift)).collect();
            let mut seen = HashSet::new();
            let own = range(left, row);
            match combination {
                Combination::Union => {
                    let places = own.chain(range(right, row).map(|at| at + shift));
                    taken.append(places.filter(|at| seen.insert(rows.row(*at))));
                }
                Combination::Intersect => {
                    taken.append(own.filter(|at| other.contains(&rows.row(*at)) && seen.insert(rows.row(*at))));
                }
                Combination::Except => {
                    taken.append(own.filter(|at| !other.contains(&rows.row(*at)) && seen.insert(rows.row(*at))));
                }
            }
        }
        taken.finish(&all, &element)
    }))
}
