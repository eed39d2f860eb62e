//! `array_sort`, by the elements' own order or by a comparing function.

use arrow::array::{Array, AsArray, UInt64Array};
use arrow::datatypes::{DataType, Int32Type};
use spark_connect_proto::Expression;

use super::super::array::{Taken, range, shape_sorted};
use super::super::kernel::Kernel;
use super::{array_argument, nullable};
use crate::embedded::expression::lambda::repeated;
use crate::embedded::expression::{Resolver, Typed};
use crate::{Error, Result};

/// `array_sort(array, comparator)`: nulls last without a comparator.
pub fn array_sort(resolver: &Resolver<'_>, name: &str, arguments: &[Expression]) -> Result<Typed> {
    let (array, element) = array_argument(resolver, name, &arguments[0])?;
    let Some(comparator) = arguments.get(1) else {
        return Ok(shape_sorted(array, element));
    };
    let lambda = resolver.lambda(comparator, &[nullable(&element), nullable(&element)])?;
    if lambda.field.data_type() != &DataType::Int32 {
        return Err(Error::DatatypeMismatch {
            kind: "UNEXPECTED_RETURN_TYPE",
            expression: name.into(),
            detail: format!("the comparator must give INT, gives {}", crate::data_type::sql_name(&lambda.field)),
        });
    }
    let is_nullable = array.nullable();
    let output = array.data_type().clone();
    let mut inputs = vec![array];
    inputs.extend(lambda.captured.iter().cloned());
    let kernel = Kernel { raises: true, ..Kernel::new(format!("array_sort {}", lambda.identity), output, is_nullable) };
    Ok(kernel.call(inputs, move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let mut taken = Taken::with_capacity(num_rows);
        for row in 0..num_rows {
            if list.is_null(row) {
                taken.append_null();
                continue;
            }
            // All pairs of a row are compared at once; sorting then looks the answers up.
            let own = range(list, row);
            let length = own.len();
            let pairs = || (0..length * length).map(|pair| (pair / length, pair % length));
            let left = UInt64Array::from_iter_values(pairs().map(|(left, _)| (own.start + left) as u64));
            let right = UInt64Array::from_iter_values(pairs().map(|(_, right)| (own.start + right) as u64));
            let rows = UInt64Array::from(vec![row as u64; length * length]);
            let variables =
                [arrow::compute::take(list.values(), &left, None)?, arrow::compute::take(list.values(), &right, None)?];
            let answers = lambda.run(&variables, &repeated(&arguments[1..], &rows)?, length * length)?;
            let answers = answers.as_primitive::<Int32Type>();
            if answers.null_count() > 0 {
                return Err(Error::Row {
                    class: "COMPARATOR_RETURNS_NULL",
                    message:
                        "The comparator has returned a NULL for a comparison. It should return a positive integer for \
                              \"greater than\", 0 for \"equal\" and a negative integer for \"less than\"."
                            .into(),
                    parameters: vec![],
                });
            }
            taken.append(
                merge_sorted((0..length).collect(), &|a, b| answers.value(a * length + b))
                    .into_iter()
                    .map(|at| own.start + at),
            );
        }
        taken.finish(list.values(), &element)
    }))
}

/// A stable merge sort: unlike the library's it cannot fail on a comparator that contradicts itself.
fn merge_sorted(places: Vec<usize>, compare: &dyn Fn(usize, usize) -> i32) -> Vec<usize> {
    if places.len() < 2 {
        return places;
    }
    let (left, right) = places.split_at(places.len() / 2);
    let (left, right) = (merge_sorted(left.to_vec(), compare), merge_sorted(right.to_vec(), compare));
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    let mut merged = Vec::with_capacity(places.len());
    loop {
        let takes_left = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) => compare(*a, *b) <= 0,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return merged,
        };
        merged.extend(if takes_left { left.next() } else { right.next() });
    }
}
