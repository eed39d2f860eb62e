//! `aggregate`, one step for all rows at a time, and `zip_with`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::DataType;
use spark_connect_proto::Expression;

use super::super::array::range;
use super::super::kernel::Kernel;
use super::{array_argument, nullable};
use crate::embedded::expression::coercion::{implicit, wider};
use crate::embedded::expression::lambda::repeated;
use crate::embedded::expression::{Resolver, Typed};
use crate::{Error, Result};

/// `aggregate(array, start, merge, finish)`.
pub fn fold(resolver: &Resolver<'_>, name: &str, arguments: &[Expression]) -> Result<Typed> {
    let (array, element) = array_argument(resolver, name, &arguments[0])?;
    let start = resolver.typed(&arguments[1])?;
    let mut accumulator = nullable(&start.field);
    let mut merge = resolver.lambda(&arguments[2], &[accumulator.clone(), element.clone()])?;
    if merge.field.data_type() != accumulator.data_type() {
        // The start is cast to what merging gives, as long as that is wider: then merging keeps the type.
        let wider = wider(accumulator.data_type(), merge.field.data_type(), resolver.conf());
        let wider =
            wider.filter(|wider| wider == merge.field.data_type() || accumulator.data_type() == &DataType::Null);
        let Some(wider) = wider else {
            return Err(Error::DatatypeMismatch {
                kind: "UNEXPECTED_INPUT_TYPE",
                expression: name.into(),
                detail: format!(
                    "the merge function must give the start's type {}, gives {}",
                    crate::data_type::sql_name(&accumulator),
                    crate::data_type::sql_name(&merge.field)
                ),
            });
        };
        accumulator = Arc::new(accumulator.as_ref().clone().with_data_type(wider));
        merge = resolver.lambda(&arguments[2], &[accumulator.clone(), element.clone()])?;
    }
    let start = implicit(start, accumulator.data_type(), resolver.conf())?;
    let finish = match arguments.get(3) {
        Some(finish) => Some(resolver.lambda(finish, std::slice::from_ref(&accumulator))?),
        None => None,
    };
    let output = nullable(finish.as_ref().map_or(&accumulator, |finish| &finish.field));
    let num_merge = merge.captured.len();
    let mut inputs = vec![array, start];
    inputs.extend(merge.captured.iter().cloned());
    inputs.extend(finish.iter().flat_map(|finish| finish.captured.iter().cloned()));
    let identity = finish.as_ref().map(|finish| finish.identity.clone());
    let name = format!("aggregate {} then {identity:?}", merge.identity);
    let kernel = Kernel { raises: true, output: output.clone(), ..Kernel::new(name, output.data_type().clone(), true) };
    Ok(kernel.call(inputs, move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let mut state = arguments[1].clone();
        let longest =
            (0..num_rows).filter(|row| list.is_valid(*row)).map(|row| range(list, row).len()).max().unwrap_or(0);
        for step in 0..longest {
            let active: Vec<usize> =
                (0..num_rows).filter(|row| list.is_valid(*row) && step < range(list, *row).len()).collect();
            let rows = UInt64Array::from_iter_values(active.iter().map(|row| *row as u64));
            let places =
                UInt64Array::from_iter_values(active.iter().map(|row| (range(list, *row).start + step) as u64));
            let elements = arrow::compute::take(list.values(), &places, None)?;
            let before = arrow::compute::take(&state, &rows, None)?;
            let captured = repeated(&arguments[2..2 + num_merge], &rows)?;
            let merged = merge.run(&[before, elements], &captured, active.len())?;
            let mut order: Vec<(usize, usize)> = (0..num_rows).map(|row| (0, row)).collect();
            for (at, row) in active.iter().enumerate() {
                order[*row] = (1, at);
            }
            state = arrow::compute::interleave(&[state.as_ref(), merged.as_ref()], &order)?;
        }
        let result = match &finish {
            Some(finish) => finish.run(&[state], &arguments[2 + num_merge..], num_rows)?,
            None => state,
        };
        if list.null_count() == 0 {
            return Ok(result);
        }
        let is_null: BooleanArray = (0..num_rows).map(|row| Some(list.is_null(row))).collect();
        Ok(arrow::compute::nullif(&result, &is_null)?)
    }))
}

/// `zip_with(left, right, function)`: the shorter array is filled up with nulls.
pub fn zip_with(resolver: &Resolver<'_>, name: &str, arguments: &[Expression]) -> Result<Typed> {
    let (left, left_element) = array_argument(resolver, name, &arguments[0])?;
    let (right, right_element) = array_argument(resolver, name, &arguments[1])?;
    let lambda = resolver.lambda(&arguments[2], &[nullable(&left_element), nullable(&right_element)])?;
    let element = Arc::new(lambda.field.as_ref().clone().with_name("element").with_nullable(true));
    let is_nullable = left.nullable() || right.nullable();
    let mut inputs = vec![left, right];
    inputs.extend(lambda.captured.iter().cloned());
    let name = format!("zip_with {}", lambda.identity);
    let kernel = Kernel { raises: true, ..Kernel::new(name, DataType::List(element.clone()), is_nullable) };
    Ok(kernel.call(inputs, move |arguments, num_rows| {
        let lists = [arguments[0].as_list::<i32>(), arguments[1].as_list::<i32>()];
        let is_valid = |row: usize| lists.iter().all(|list| list.is_valid(row));
        let longest = |row: usize| lists.iter().map(|list| range(list, row).len()).max().unwrap_or(0);
        let lengths: Vec<usize> = (0..num_rows).map(|row| if is_valid(row) { longest(row) } else { 0 }).collect();
        let rows: UInt64Array =
            (0..num_rows).flat_map(|row| std::iter::repeat_n(row as u64, lengths[row])).collect::<Vec<_>>().into();
        let mut variables: Vec<ArrayRef> = Vec::with_capacity(2);
        for list in lists {
            let places: UInt64Array = (0..num_rows)
                .flat_map(|row| {
                    let own = range(list, row);
                    (0..lengths[row]).map(move |at| (at < own.len()).then_some((own.start + at) as u64))
                })
                .collect();
            variables.push(arrow::compute::take(list.values(), &places, None)?);
        }
        let captured = repeated(&arguments[2..], &rows)?;
        let values = lambda.run(&variables, &captured, rows.len())?;
        let valid: Vec<bool> = (0..num_rows).map(is_valid).collect();
        Ok(Arc::new(ListArray::try_new(
            element.clone(),
            OffsetBuffer::from_lengths(lengths),
            values,
            Some(valid.into()),
        )?))
    }))
}
