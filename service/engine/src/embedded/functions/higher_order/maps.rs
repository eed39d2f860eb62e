//! Lambda functions over maps.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, FieldRef};
use spark_connect_proto::Expression;

use super::super::array::rows_of;
use super::super::kernel::Kernel;
use super::super::map::build;
use super::{nullable, require_boolean, truths, wrong};
use crate::Result;
use crate::embedded::expression::coercion::{implicit, map_of_fields, wider};
use crate::embedded::expression::lambda::{Lambda, repeated, rows_of_elements};
use crate::embedded::expression::{Resolver, Typed};

fn map_argument(resolver: &Resolver<'_>, name: &str, argument: &Expression) -> Result<(Typed, FieldRef, FieldRef)> {
    let map = resolver.typed(argument)?;
    if let DataType::Map(entries, _) = map.data_type()
        && let DataType::Struct(fields) = entries.data_type()
    {
        let (key, value) = (fields[0].clone(), fields[1].clone());
        return Ok((map, key, value));
    }
    Err(wrong(name, &map, "MAP"))
}

/// A map column's keys and values from the first to the last, with offsets from 0.
fn entries(map: &MapArray) -> (ArrayRef, ArrayRef, Vec<i32>) {
    let offsets = map.value_offsets();
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    let cut = |values: &ArrayRef| values.slice(first as usize, (last - first) as usize);
    (cut(map.keys()), cut(map.values()), offsets.iter().map(|offset| offset - first).collect())
}

fn run(lambda: &Lambda, arguments: &[ArrayRef]) -> Result<(ArrayRef, ArrayRef, ArrayRef, Vec<i32>)> {
    let (keys, values, offsets) = entries(arguments[0].as_map());
    let captured = repeated(&arguments[1..], &rows_of_elements(&offsets))?;
    let result = lambda.run(&[keys.clone(), values.clone()], &captured, keys.len())?;
    Ok((keys, values, result, offsets))
}

pub fn filter(resolver: &Resolver<'_>, name: &str, arguments: &[Expression]) -> Result<Typed> {
    let (map, key, value) = map_argument(resolver, name, &arguments[0])?;
    let lambda = resolver.lambda(&arguments[1], &[key, value])?;
    require_boolean(name, &lambda)?;
    let (output, is_nullable) = (map.data_type().clone(), map.nullable());
    let mut inputs = vec![map];
    inputs.extend(lambda.captured.iter().cloned());
    let name = format!("map_filter {}", lambda.identity);
    let kernel = Kernel { raises: true, ..Kernel::new(name, output.clone(), is_nullable) };
    Ok(kernel.call(inputs, move |arguments, _| {
        let (keys, values, keep, offsets) = run(&lambda, arguments)?;
        let keep = truths(&keep)?;
        let is_kept = |at: &i32| keep.is_valid(*at as usize) && keep.value(*at as usize);
        let lengths = offsets.windows(2).map(|range| (range[0]..range[1]).filter(is_kept).count());
        let offsets = OffsetBuffer::from_lengths(lengths);
        let (keys, values) = (arrow::compute::filter(&keys, &keep)?, arrow::compute::filter(&values, &keep)?);
        build(offsets, keys, values, arguments[0].nulls().cloned(), &output)
    }))
}

pub fn transform(resolver: &Resolver<'_>, name: &str, arguments: &[Expression], of_keys: bool) -> Result<Typed> {
    let (map, key, value) = map_argument(resolver, name, &arguments[0])?;
    let lambda = resolver.lambda(&arguments[1], &[key.clone(), value.clone()])?;
    let result = lambda.field.as_ref().clone();
    let output = if of_keys {
        map_of_fields(result, value.as_ref().clone())
    } else {
        map_of_fields(key.as_ref().clone(), result)
    };
    let is_nullable = map.nullable();
    let mut inputs = vec![map];
    inputs.extend(lambda.captured.iter().cloned());
    let kernel =
        Kernel { raises: true, ..Kernel::new(format!("{name} {}", lambda.identity), output.clone(), is_nullable) };
    Ok(kernel.call(inputs, move |arguments, _| {
        let (keys, values, result, offsets) = run(&lambda, arguments)?;
        let offsets = OffsetBuffer::new(offsets.into());
        let (keys, values) = if of_keys { (result, values) } else { (keys, result) };
        build(offsets, keys, values, arguments[0].nulls().cloned(), &output)
    }))
}

/// `map_zip_with(left, right, function)`: for each key of either map, the function of the key and both values.
pub fn zip_with(resolver: &Resolver<'_>, name: &str, arguments: &[Expression]) -> Result<Typed> {
    let (left, left_key, left_value) = map_argument(resolver, name, &arguments[0])?;
    let (right, right_key, right_value) = map_argument(resolver, name, &arguments[1])?;
    let Some(key_type) = wider(left_key.data_type(), right_key.data_type(), resolver.conf()) else {
        return Err(wrong(name, &right, "MAP with the other's key"));
    };
    let key = Arc::new(left_key.as_ref().clone().with_data_type(key_type));
    let left = implicit(left, &map_of_fields(key.as_ref().clone(), left_value.as_ref().clone()), resolver.conf())?;
    let right = implicit(right, &map_of_fields(key.as_ref().clone(), right_value.as_ref().clone()), resolver.conf())?;
    let lambda = resolver.lambda(&arguments[2], &[key.clone(), nullable(&left_value), nullable(&right_value)])?;
    let output = map_of_fields(key.as_ref().clone(), lambda.field.as_ref().clone());
    let is_nullable = left.nullable() || right.nullable();
    let mut inputs = vec![left, right];
    inputs.extend(lambda.captured.iter().cloned());
    let name = format!("map_zip_with {}", lambda.identity);
    let kernel = Kernel { raises: true, ..Kernel::new(name, output.clone(), is_nullable) };
    Ok(kernel.call(inputs, move |arguments, num_rows| {
        let (left, right) = (arguments[0].as_map(), arguments[1].as_map());
        let shift = left.keys().len();
        let keys = arrow::compute::concat(&[left.keys().as_ref(), right.keys().as_ref()])?;
        let rows = &rows_of(&[&keys])?[0];
        let range =
            |map: &MapArray, row: usize| map.value_offsets()[row] as usize..map.value_offsets()[row + 1] as usize;
        let (mut key_places, mut left_places, mut right_places) = (Vec::new(), Vec::new(), Vec::new());
        let (mut owners, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..num_rows {
            let before = owners.len();
            let is_valid = left.is_valid(row) && right.is_valid(row);
            valid.push(is_valid);
            if is_valid {
                let mut unmatched: Vec<usize> = range(right, row).collect();
                for at in range(left, row) {
                    let other = unmatched.iter().position(|other| rows.row(other + shift) == rows.row(at));
                    key_places.push(at as u64);
                    left_places.push(Some(at as u64));
                    right_places.push(other.map(|other| unmatched.remove(other) as u64));
                    owners.push(row as u64);
                }
                for at in unmatched {
                    key_places.push((at + shift) as u64);
                    left_places.push(None);
                    right_places.push(Some(at as u64));
                    owners.push(row as u64);
                }
            }
            lengths.push(owners.len() - before);
        }
        let keys = arrow::compute::take(&keys, &UInt64Array::from(key_places), None)?;
        let lefts = arrow::compute::take(left.values(), &UInt64Array::from(left_places), None)?;
        let rights = arrow::compute::take(right.values(), &UInt64Array::from(right_places), None)?;
        let captured = repeated(&arguments[2..], &UInt64Array::from(owners))?;
        let values = lambda.run(&[keys.clone(), lefts, rights], &captured, keys.len())?;
        build(OffsetBuffer::from_lengths(lengths), keys, values, Some(valid.into()), &output)
    }))
}
