//! Functions that take lambda functions: `transform`, `filter`, `aggregate` and their kin.

mod fold;
mod maps;
mod order;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, ListArray, UInt64Array};
use arrow::datatypes::{DataType, Field, FieldRef};
use spark_connect_proto::Expression;
use spark_connect_proto::expression::ExprType;

use super::array::{Taken, range};
use super::kernel::{self, Kernel};
use super::{Function, lambda};
use crate::data_type::sql_name;
use crate::embedded::expression::lambda::{Lambda, repeated, rows_of_elements};
use crate::embedded::expression::{Resolver, Typed};
use crate::{Error, Result};

pub const FUNCTIONS: &[Function] = &[
    lambda("transform", 2, 2, transform),
    lambda("filter", 2, 2, filter),
    lambda("exists", 2, 2, |resolver, name, arguments| quantified(resolver, name, arguments, true)),
    lambda("forall", 2, 2, |resolver, name, arguments| quantified(resolver, name, arguments, false)),
    lambda("aggregate", 3, 4, fold::fold),
    lambda("reduce", 3, 4, fold::fold),
    lambda("zip_with", 3, 3, fold::zip_with),
    lambda("array_sort", 1, 2, order::array_sort),
    lambda("map_filter", 2, 2, maps::filter),
    lambda("transform_keys", 2, 2, |resolver, name, arguments| maps::transform(resolver, name, arguments, true)),
    lambda("transform_values", 2, 2, |resolver, name, arguments| maps::transform(resolver, name, arguments, false)),
    lambda("map_zip_with", 3, 3, maps::zip_with),
];

/// How many arguments a lambda function has.
pub fn num_variables(expression: &Expression) -> usize {
    match &expression.expr_type {
        Some(ExprType::LambdaFunction(lambda)) => lambda.arguments.len(),
        _ => 0,
    }
}

pub fn nullable(field: &Field) -> FieldRef {
    Arc::new(field.clone().with_nullable(true))
}

/// An array argument and its element field.
pub fn array_argument(resolver: &Resolver<'_>, name: &str, argument: &Expression) -> Result<(Typed, FieldRef)> {
    let array = resolver.typed(argument)?;
    match array.data_type().clone() {
        DataType::List(element) => Ok((array, element)),
        _ => Err(wrong(name, &array, "ARRAY")),
    }
}

pub fn wrong(name: &str, value: &Typed, required: &str) -> Error {
    Error::DatatypeMismatch {
        kind: "UNEXPECTED_INPUT_TYPE",
        expression: format!("{name}({})", value.expr),
        detail: format!("the first parameter requires the {required} type, has {}", sql_name(&value.field)),
    }
}

/// The list's elements from the first to the last, their offsets from 0, and the row of each.
pub fn elements(list: &ListArray) -> (ArrayRef, Vec<i32>, UInt64Array) {
    let offsets = list.value_offsets();
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    let values = list.values().slice(first as usize, (last - first) as usize);
    let offsets: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
    let rows = rows_of_elements(&offsets);
    (values, offsets, rows)
}

/// Each element's place in its row.
pub fn places(offsets: &[i32]) -> ArrayRef {
    let places = offsets.windows(2).flat_map(|range| 0..range[1] - range[0]);
    Arc::new(places.collect::<Int32Array>())
}

/// A lambda over an array's elements and, if it takes two arguments, their places.
fn element_lambda(resolver: &Resolver<'_>, element: &Field, function: &Expression) -> Result<Lambda> {
    let mut variables = vec![Arc::new(element.clone())];
    if num_variables(function) == 2 {
        variables.push(Arc::new(Field::new("", DataType::Int32, false)));
    }
    resolver.lambda(function, &variables)
}

/// Runs an element lambda for all elements of a list column.
fn run(lambda: &Lambda, has_place: bool, arguments: &[ArrayRef]) -> Result<(ArrayRef, Vec<i32>)> {
    let (values, offsets, rows) = elements(arguments[0].as_list::<i32>());
    let captured = repeated(&arguments[1..], &rows)?;
    let num_elements = values.len();
    let mut variables = vec![values];
    if has_place {
        variables.push(places(&offsets));
    }
    Ok((lambda.run(&variables, &captured, num_elements)?, offsets))
}

fn transform(resolver: &Resolver<'_>, name: &str, arguments: &[Expression]) -> Result<Typed> {
    let (array, element) = array_argument(resolver, name, &arguments[0])?;
    let lambda = element_lambda(resolver, &element, &arguments[1])?;
    let has_place = num_variables(&arguments[1]) == 2;
    let output = Arc::new(lambda.field.as_ref().clone().with_name("element"));
    let nullable = array.nullable();
    let mut inputs = vec![array];
    inputs.extend(lambda.captured.iter().cloned());
    let kernel = Kernel {
        raises: true,
        ..Kernel::new(format!("transform {}", lambda.identity), DataType::List(output.clone()), nullable)
    };
    Ok(kernel.call(inputs, move |arguments, _| {
        let (values, offsets) = run(&lambda, has_place, arguments)?;
        let nulls = arguments[0].nulls().cloned();
        Ok(Arc::new(ListArray::try_new(
            output.clone(),
            arrow::buffer::OffsetBuffer::new(offsets.into()),
            values,
            nulls,
        )?))
    }))
}

/// The lambda must say yes or no.
pub fn require_boolean(name: &str, lambda: &Lambda) -> Result<()> {
    match lambda.field.data_type() {
        DataType::Boolean | DataType::Null => Ok(()),
        _ => Err(Error::DatatypeMismatch {
            kind: "UNEXPECTED_INPUT_TYPE",
            expression: name.into(),
            detail: format!("the lambda function requires the BOOLEAN type, has {}", sql_name(&lambda.field)),
        }),
    }
}

/// A truth for each value, null for those of the null type.
pub fn truths(array: &ArrayRef) -> Result<BooleanArray> {
    Ok(arrow::compute::cast(array, &DataType::Boolean)?.as_boolean().clone())
}

fn filter(resolver: &Resolver<'_>, name: &str, arguments: &[Expression]) -> Result<Typed> {
    let (array, element) = array_argument(resolver, name, &arguments[0])?;
    let lambda = element_lambda(resolver, &element, &arguments[1])?;
    require_boolean(name, &lambda)?;
    let has_place = num_variables(&arguments[1]) == 2;
    let output = array.data_type().clone();
    let nullable = array.nullable();
    let mut inputs = vec![array];
    inputs.extend(lambda.captured.iter().cloned());
    let kernel = Kernel { raises: true, ..Kernel::new(format!("filter {}", lambda.identity), output, nullable) };
    Ok(kernel.call(inputs, move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let (keep, _) = run(&lambda, has_place, arguments)?;
        let keep = truths(&keep)?;
        let first = list.value_offsets()[0] as usize;
        let mut taken = Taken::with_capacity(num_rows);
        for row in 0..num_rows {
            if list.is_null(row) {
                taken.append_null();
            } else {
                taken.append(range(list, row).filter(|at| keep.is_valid(at - first) && keep.value(at - first)));
            }
        }
        taken.finish(list.values(), &element)
    }))
}

/// `exists` and `forall`, three-valued.
fn quantified(resolver: &Resolver<'_>, name: &str, arguments: &[Expression], wanted: bool) -> Result<Typed> {
    let (array, element) = array_argument(resolver, name, &arguments[0])?;
    let lambda = element_lambda(resolver, &element, &arguments[1])?;
    require_boolean(name, &lambda)?;
    let mut inputs = vec![array];
    inputs.extend(lambda.captured.iter().cloned());
    let name = format!("{name} {}", lambda.identity);
    Ok(kernel::nullable(name, inputs, DataType::Boolean, move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let (found, _) = run(&lambda, false, arguments)?;
        let found = truths(&found)?;
        let first = list.value_offsets()[0] as usize;
        let rows = (0..num_rows).map(|row| {
            if list.is_null(row) {
                return None;
            }
            let mut own = range(list, row).map(|at| found.is_valid(at - first).then(|| found.value(at - first)));
            if own.clone().any(|truth| truth == Some(wanted)) {
                return Some(wanted);
            }
            if own.any(|truth| truth.is_none()) { None } else { Some(!wanted) }
        });
        Ok(Arc::new(rows.collect::<BooleanArray>()))
    }))
}
