//! Arrays made longer, shorter, flat or sorted.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray, StructArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Int32Type};

use super::super::Call;
use super::super::kernel::{self, Kernel};
use super::{Taken, element_of, nullable_element, range, rows_of};
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::{array_of, wider};
use crate::{Error, Result};

pub fn reverse(call: Call<'_>) -> Result<Typed> {
    let element = element_of(&call, &call.arguments[0])?;
    let output = DataType::List(element.clone());
    Ok(kernel::strict("reverse", call.arguments, output, move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let mut taken = Taken::with_capacity(num_rows);
        for row in 0..num_rows {
            if list.is_null(row) { taken.append_null() } else { taken.append(range(list, row).rev()) }
        }
        taken.finish(list.values(), &element)
    }))
}

/// `concat` of arrays.
pub fn concat(mut call: Call<'_>) -> Result<Typed> {
    let data_type = call.unify()?;
    let DataType::List(element) = data_type.clone() else {
        return Err(call.unexpected(&call.arguments[0], "ARRAY"));
    };
    Ok(kernel::strict("concat arrays", call.arguments, data_type, move |arguments, num_rows| {
        let lists: Vec<&ListArray> = arguments.iter().map(|column| column.as_list::<i32>()).collect();
        let sources: Vec<&dyn Array> = lists.iter().map(|list| list.values().as_ref()).collect();
        let all = arrow::compute::concat(&sources)?;
        let mut shifts = vec![0];
        for list in &lists {
            shifts.push(shifts[shifts.len() - 1] + list.values().len());
        }
        let mut taken = Taken::with_capacity(num_rows);
        for row in 0..num_rows {
            if lists.iter().any(|list| list.is_null(row)) {
                taken.append_null();
            } else {
                let shifts = &shifts;
                taken.append(
                    lists
                        .iter()
                        .enumerate()
                        .flat_map(|(at, list)| range(list, row).map(move |place| place + shifts[at])),
                );
            }
        }
        taken.finish(&all, &element)
    }))
}

fn with_new_element(call: &mut Call<'_>, value_at: usize) -> Result<arrow::datatypes::FieldRef> {
    let element = element_of(call, &call.arguments[0])?;
    let value = &call.arguments[value_at];
    let Some(common) = wider(element.data_type(), value.data_type(), call.conf()) else {
        return Err(call.mismatch(
            "ARRAY_FUNCTION_DIFF_TYPES",
            format!("input to `{}` should have been an array followed by a value of its element type", call.name),
        ));
    };
    let nullable = element.is_nullable() || value.nullable();
    let element = Arc::new(element.as_ref().clone().with_data_type(common.clone()).with_nullable(nullable));
    let mut types = vec![DataType::List(element.clone()), common.clone(), common];
    if value_at == 2 {
        types[1] = DataType::Int32;
    }
    call.cast_arguments(&types)?;
    Ok(element)
}

/// `array_append` and `array_prepend`.
pub fn extend(mut call: Call<'_>, at_end: bool) -> Result<Typed> {
    let element = with_new_element(&mut call, 1)?;
    let nullable = call.arguments[0].nullable();
    let kernel = Kernel::new(format!("extend at end {at_end}"), DataType::List(element.clone()), nullable);
    Ok(kernel.call(call.arguments, move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let all = arrow::compute::concat(&[list.values().as_ref(), arguments[1].as_ref()])?;
        let shift = list.values().len();
        let mut taken = Taken::with_capacity(num_rows);
        for row in 0..num_rows {
            if list.is_null(row) {
                taken.append_null();
            } else if at_end {
                taken.append(range(list, row).chain([shift + row]));
            } else {
                taken.append([shift + row].into_iter().chain(range(list, row)));
            }
        }
        taken.finish(&all, &element)
    }))
}

/// `array_insert(array, position, value)`: positions from 1, or from the end; gaps are null.
pub fn insert(mut call: Call<'_>) -> Result<Typed> {
    let element = nullable_element(&*with_new_element(&mut call, 2)?);
    Ok(Kernel { raises: true, ..Kernel::new("array_insert", DataType::List(element.clone()), true) }.call(
        call.arguments,
        move |arguments, num_rows| {
            let list = arguments[0].as_list::<i32>();
            let positions = arguments[1].as_primitive::<Int32Type>();
            let all = arrow::compute::concat(&[list.values().as_ref(), arguments[2].as_ref()])?;
            let shift = list.values().len();
            let mut taken = Taken::with_capacity(num_rows);
            for row in 0..num_rows {
                if list.is_null(row) || positions.is_null(row) {
                    taken.append_null();
                    continue;
                }
                let mut elements: Vec<Option<usize>> = range(list, row).map(Some).collect();
                let length = elements.len() as i64;
                let position = i64::from(positions.value(row));
                let index = match position {
                    0 => {
                        return Err(Error::Row {
                            class: "INVALID_INDEX_OF_ZERO",
                            message: "The index 0 is invalid. An index shall be either < 0 or > 0 (the first element has index 1).".into(),
                            parameters: vec![],
                        });
                    }
                    position if position > 0 => position - 1,
                    position => length + position + 1,
                };
                if index < 0 {
                    let mut grown = vec![Some(shift + row)];
                    grown.extend(std::iter::repeat_n(None, (-index) as usize));
                    grown.extend(elements);
                    elements = grown;
                } else {
                    while (elements.len() as i64) < index {
                        elements.push(None);
                    }
                    elements.insert(index as usize, Some(shift + row));
                }
                taken.append_nullable(elements);
            }
            taken.finish(&all, &element)
        },
    ))
}

/// `slice(array, start, length)`: from 1, or from the end.
pub fn slice(mut call: Call<'_>) -> Result<Typed> {
    let element = element_of(&call, &call.arguments[0])?;
    let output = call.arguments[0].data_type().clone();
    call.cast_arguments(&[output.clone(), DataType::Int32, DataType::Int32])?;
    Ok(kernel::raising("slice", call.arguments, output, move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let (starts, lengths) = (arguments[1].as_primitive::<Int32Type>(), arguments[2].as_primitive::<Int32Type>());
        let mut taken = Taken::with_capacity(num_rows);
        for row in 0..num_rows {
            if list.is_null(row) || starts.is_null(row) || lengths.is_null(row) {
                taken.append_null();
                continue;
            }
            let (start, length) = (i64::from(starts.value(row)), i64::from(lengths.value(row)));
            let invalid = |parameter: &str, detail: String| Error::Row {
                class: "INVALID_PARAMETER_VALUE",
                message: format!("The value of parameter(s) `{parameter}` in `slice` is invalid: {detail}"),
                parameters: vec![("parameter", format!("`{parameter}`")), ("functionName", "`slice`".into())],
            };
            if start == 0 {
                return Err(invalid("start", "Expects a positive or a negative value for `start`, but got 0.".into()));
            }
            if length < 0 {
                return Err(invalid(
                    "length",
                    format!("Expects `length` greater than or equal to 0, but got {length}."),
                ));
            }
            let whole = range(list, row);
            let from = if start > 0 { start - 1 } else { whole.len() as i64 + start };
            if from < 0 || from >= whole.len() as i64 {
                taken.append([]);
                continue;
            }
            let begin = whole.start + from as usize;
            taken.append(begin..(begin + length as usize).min(whole.end));
        }
        taken.finish(list.values(), &element)
    }))
}

/// Arrays of arrays made one; null if one of them is.
pub fn flatten(call: Call<'_>) -> Result<Typed> {
    let outer = element_of(&call, &call.arguments[0])?;
    let DataType::List(element) = outer.data_type().clone() else {
        return Err(call.unexpected(&call.arguments[0], "ARRAY of ARRAY"));
    };
    let nullable = outer.is_nullable() || call.arguments[0].nullable();
    Ok(Kernel::new("flatten", DataType::List(element.clone()), nullable).call(
        call.arguments,
        move |arguments, num_rows| {
            let list = arguments[0].as_list::<i32>();
            let inner = list.values().as_list::<i32>();
            let mut taken = Taken::with_capacity(num_rows);
            for row in 0..num_rows {
                if list.is_null(row) || range(list, row).any(|at| inner.is_null(at)) {
                    taken.append_null();
                } else {
                    taken.append(range(list, row).flat_map(|at| range(inner, at)));
                }
            }
            taken.finish(inner.values(), &element)
        },
    ))
}

/// `sort_array(array, ascending)`: nulls first ascending, last descending.
pub fn sort(mut call: Call<'_>) -> Result<Typed> {
    let ascending = match call.arguments.get(1) {
        Some(flag) => call.constant_boolean(flag)?,
        None => true,
    };
    call.arguments.truncate(1);
    let [array] = call.take()?;
    let element = element_of(&call, &array)?;
    Ok(sorted(array, element, ascending, ascending))
}

/// The array sorted by its elements' own order.
pub fn sorted(array: Typed, element: arrow::datatypes::FieldRef, ascending: bool, nulls_first: bool) -> Typed {
    let name = format!("sort_array ascending {ascending} nulls first {nulls_first}");
    kernel::strict(name, vec![array], DataType::List(element.clone()), move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let rows = &rows_of(&[list.values()])?[0];
        let mut taken = Taken::with_capacity(num_rows);
        for row in 0..num_rows {
            if list.is_null(row) {
                taken.append_null();
                continue;
            }
            let (nulls, mut places): (Vec<usize>, Vec<usize>) =
                range(list, row).partition(|at| list.values().is_null(*at));
            places.sort_by(|a, b| {
                let order = rows.row(*a).cmp(&rows.row(*b));
                if ascending { order } else { order.reverse() }
            });
            if nulls_first {
                taken.append(nulls.into_iter().chain(places))
            } else {
                taken.append(places.into_iter().chain(nulls))
            }
        }
        taken.finish(list.values(), &element)
    })
}

/// `array_join(array, delimiter, null replacement)`.
pub fn join(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[array_of(DataType::Utf8), DataType::Utf8, DataType::Utf8])?;
    Ok(kernel::strict("array_join", call.arguments, DataType::Utf8, |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let delimiters = arguments[1].as_string::<i32>();
        let replacements = arguments.get(2).map(|column| column.as_string::<i32>());
        let texts = list.values().as_string::<i32>();
        let rows = (0..num_rows).map(|row| {
            let is_null = arguments.iter().any(|column| column.is_null(row));
            if is_null {
                return None;
            }
            let parts = range(list, row).filter_map(|at| match replacements {
                _ if texts.is_valid(at) => Some(texts.value(at)),
                Some(replacements) => Some(replacements.value(row)),
                None => None,
            });
            Some(parts.collect::<Vec<_>>().join(delimiters.value(row)))
        });
        Ok(Arc::new(rows.collect::<StringArray>()))
    }))
}

/// `arrays_zip`: structs of the arrays' elements, as many as the longest has.
pub fn zip(mut call: Call<'_>) -> Result<Typed> {
    let arguments = std::mem::take(&mut call.arguments);
    let names = match &call.expression.expr_type {
        Some(spark_connect_proto::expression::ExprType::UnresolvedFunction(function)) => function.arguments.clone(),
        _ => Vec::new(),
    };
    let mut fields = Vec::with_capacity(arguments.len());
    for (at, argument) in arguments.iter().enumerate() {
        let element = element_of(&call, argument)?;
        let name = match names.get(at).and_then(|name| name.expr_type.as_ref()) {
            Some(spark_connect_proto::expression::ExprType::UnresolvedAttribute(attribute)) => {
                crate::embedded::expression::parse_name(&attribute.unparsed_identifier)?.pop().unwrap_or_default()
            }
            Some(spark_connect_proto::expression::ExprType::Alias(alias)) => {
                alias.name.first().cloned().unwrap_or_default()
            }
            _ => at.to_string(),
        };
        fields.push(element.as_ref().clone().with_name(name).with_nullable(true));
    }
    let fields: Fields = fields.into();
    let element = Arc::new(Field::new("element", DataType::Struct(fields.clone()), false));
    Ok(kernel::strict("arrays_zip", arguments, DataType::List(element.clone()), move |arguments, num_rows| {
        let lists: Vec<&ListArray> = arguments.iter().map(|column| column.as_list::<i32>()).collect();
        let mut lengths = Vec::with_capacity(num_rows);
        let mut valid = Vec::with_capacity(num_rows);
        for row in 0..num_rows {
            let is_valid = lists.iter().all(|list| list.is_valid(row));
            valid.push(is_valid);
            let longest = lists.iter().map(|list| range(list, row).len()).max().unwrap_or(0);
            lengths.push(if is_valid { longest } else { 0 });
        }
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(lists.len());
        for list in &lists {
            let places: UInt64Array = (0..num_rows)
                .flat_map(|row| {
                    let own = range(list, row);
                    (0..lengths[row]).map(move |at| (at < own.len()).then_some((own.start + at) as u64))
                })
                .collect();
            columns.push(arrow::compute::take(list.values(), &places, None)?);
        }
        let total = lengths.iter().sum();
        let rows = StructArray::try_new_with_length(fields.clone(), columns, None, total)?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(element.clone(), offsets, Arc::new(rows), Some(valid.into()))?))
    }))
}
