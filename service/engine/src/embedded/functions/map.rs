//! Maps.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StructArray, UInt64Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion_spark::function::map as spark;

use super::array::{range, rows_of};
use super::kernel::{self, Kernel};
use super::{Call, Function, function};
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::{map_of, map_of_fields};
use crate::{Error, Result};

pub const FUNCTIONS: &[Function] = &[
    function("map", 0, usize::MAX, map),
    function("create_map", 0, usize::MAX, map),
    function("map_keys", 1, 1, |call| side(call, 0)),
    function("map_values", 1, 1, |call| side(call, 1)),
    function("map_entries", 1, 1, entries),
    function("map_from_arrays", 2, 2, from_arrays),
    function("map_from_entries", 1, 1, from_entries),
    function("map_concat", 0, usize::MAX, concat),
    function("map_contains_key", 2, 2, contains_key),
    function("str_to_map", 1, 3, str_to_map),
];

/// The key and value fields of a map argument.
pub fn fields_of(call: &Call<'_>, value: &Typed) -> Result<(FieldRef, FieldRef)> {
    if let DataType::Map(entries, _) = value.data_type()
        && let DataType::Struct(fields) = entries.data_type()
    {
        return Ok((fields[0].clone(), fields[1].clone()));
    }
    Err(call.unexpected(value, "MAP"))
}

/// A map column of keys and values, each map checked for null and repeated keys.
pub fn build(
    offsets: OffsetBuffer<i32>,
    keys: ArrayRef,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let DataType::Map(entries, sorted) = data_type else {
        return Err(Error::Bug { invariant: "a map has a map's type".into() });
    };
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(Error::Bug { invariant: "a map holds structs".into() });
    };
    if keys.logical_null_count() > 0 {
        return Err(Error::Row {
            class: "NULL_MAP_KEY",
            message: "Cannot use null as map key.".into(),
            parameters: vec![],
        });
    }
    let rows = &rows_of(&[&keys])?[0];
    for pair in offsets.windows(2) {
        let mut seen = HashSet::new();
        for at in pair[0] as usize..pair[1] as usize {
            if !seen.insert(rows.row(at)) {
                let key = arrow::util::display::array_value_to_string(&keys, at)?;
                return Err(Error::Row {
                    class: "DUPLICATED_MAP_KEY",
                    message: format!(
                        "Duplicate map key {key} was found, please check the input data. If you want to remove the duplicated \
                         keys, you can set \"spark.sql.mapKeyDedupPolicy\" to \"LAST_WIN\" so that the key inserted at last takes \
                         precedence."
                    ),
                    parameters: vec![("key", key), ("mapKeyDedupPolicy", "\"spark.sql.mapKeyDedupPolicy\"".into())],
                });
            }
        }
    }
    let entries_array = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, entries_array, nulls, *sorted)?))
}

fn map(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.len() % 2 == 1 {
        return Err(Error::WrongNumArgs {
            name: call.name.into(),
            expected: "2n (n > 0)".into(),
            found: call.arguments.len(),
        });
    }
    let arguments = std::mem::take(&mut call.arguments);
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for (at, argument) in arguments.into_iter().enumerate() {
        if at % 2 == 0 { keys.push(argument) } else { values.push(argument) }
    }
    if keys.is_empty() {
        let output = map_of(DataType::Null, DataType::Null);
        return Ok(Kernel::new("map", output.clone(), false).call(vec![], move |_, num_rows| {
            let none = arrow::array::new_empty_array(&DataType::Null);
            build(OffsetBuffer::from_lengths(std::iter::repeat_n(0, num_rows)), none.clone(), none, None, &output)
        }));
    }
    let (keys, key_type) = call.unified(keys)?;
    let (values, value_type) = call.unified(values)?;
    let has_nulls = values.iter().any(Typed::nullable);
    let output = map_of_fields(Field::new("key", key_type, false), Field::new("value", value_type, has_nulls));
    let width = keys.len();
    let kernel = Kernel { raises: true, ..Kernel::new("map", output.clone(), false) };
    Ok(kernel.call(keys.into_iter().chain(values).collect(), move |arguments, num_rows| {
        let order: Vec<(usize, usize)> =
            (0..num_rows).flat_map(|row| (0..width).map(move |column| (column, row))).collect();
        let gather = |columns: &[ArrayRef]| {
            let sources: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
            arrow::compute::interleave(&sources, &order)
        };
        let offsets = OffsetBuffer::from_repeated_length(width, num_rows);
        build(offsets, gather(&arguments[..width])?, gather(&arguments[width..])?, None, &output)
    }))
}

fn side(call: Call<'_>, at: usize) -> Result<Typed> {
    let (key, value) = fields_of(&call, &call.arguments[0])?;
    let field = if at == 0 { key } else { value };
    let element = Arc::new(field.as_ref().clone().with_name("element"));
    let name = if at == 0 { "map_keys" } else { "map_values" };
    Ok(kernel::strict(name, call.arguments, DataType::List(element.clone()), move |arguments, _| {
        let map = arguments[0].as_map();
        let values = map.entries().column(at).clone();
        Ok(Arc::new(ListArray::try_new(element.clone(), map.offsets().clone(), values, map.nulls().cloned())?))
    }))
}

fn entries(call: Call<'_>) -> Result<Typed> {
    let (key, value) = fields_of(&call, &call.arguments[0])?;
    let fields: Fields = vec![key, value].into();
    let element = Arc::new(Field::new("element", DataType::Struct(fields.clone()), false));
    Ok(kernel::strict("map_entries", call.arguments, DataType::List(element.clone()), move |arguments, _| {
        let map = arguments[0].as_map();
        let rows = StructArray::try_new(fields.clone(), map.entries().columns().to_vec(), None)?;
        Ok(Arc::new(ListArray::try_new(element.clone(), map.offsets().clone(), Arc::new(rows), map.nulls().cloned())?))
    }))
}

fn from_arrays(call: Call<'_>) -> Result<Typed> {
    let key = super::array::element_of(&call, &call.arguments[0])?;
    let value = super::array::element_of(&call, &call.arguments[1])?;
    let output = map_of_fields(key.as_ref().clone(), value.as_ref().clone());
    Ok(kernel::raising("map_from_arrays", call.arguments, output.clone(), move |arguments, num_rows| {
        let (keys, values) = (arguments[0].as_list::<i32>(), arguments[1].as_list::<i32>());
        let nulls = NullBuffer::union(keys.nulls(), values.nulls());
        let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let mut lengths = Vec::with_capacity(num_rows);
        let (mut key_places, mut value_places) = (Vec::new(), Vec::new());
        for row in 0..num_rows {
            if is_null(row) {
                lengths.push(0);
                continue;
            }
            let (own, other) = (range(keys, row), range(values, row));
            if own.len() != other.len() {
                return Err(Error::Row {
                    class: "_LEGACY_ERROR_TEMP_2128",
                    message: "The key array and value array of MapData must have the same length.".into(),
                    parameters: vec![],
                });
            }
            lengths.push(own.len());
            key_places.extend(own.map(|at| at as u64));
            value_places.extend(other.map(|at| at as u64));
        }
        let keys = arrow::compute::take(keys.values(), &UInt64Array::from(key_places), None)?;
        let values = arrow::compute::take(values.values(), &UInt64Array::from(value_places), None)?;
        build(OffsetBuffer::from_lengths(lengths), keys, values, nulls, &output)
    }))
}

fn from_entries(call: Call<'_>) -> Result<Typed> {
    let element = super::array::element_of(&call, &call.arguments[0])?;
    let DataType::Struct(fields) = element.data_type() else {
        return Err(call.unexpected(&call.arguments[0], "ARRAY of STRUCT of two fields"));
    };
    if fields.len() != 2 {
        return Err(call.unexpected(&call.arguments[0], "ARRAY of STRUCT of two fields"));
    }
    let output = map_of_fields(fields[0].as_ref().clone(), fields[1].as_ref().clone());
    let kernel = Kernel { raises: true, ..Kernel::new("map_from_entries", output.clone(), true) };
    Ok(kernel.call(call.arguments, move |arguments, num_rows| {
        let list = arguments[0].as_list::<i32>();
        let rows = list.values().as_struct();
        let mut lengths = Vec::with_capacity(num_rows);
        let mut valid = Vec::with_capacity(num_rows);
        let mut places = Vec::new();
        for row in 0..num_rows {
            let is_valid = list.is_valid(row) && range(list, row).all(|at| rows.is_valid(at));
            valid.push(is_valid);
            lengths.push(if is_valid { range(list, row).len() } else { 0 });
            if is_valid {
                places.extend(range(list, row).map(|at| at as u64));
            }
        }
        let places = UInt64Array::from(places);
        let keys = arrow::compute::take(rows.column(0), &places, None)?;
        let values = arrow::compute::take(rows.column(1), &places, None)?;
        build(OffsetBuffer::from_lengths(lengths), keys, values, Some(valid.into()), &output)
    }))
}

fn concat(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.is_empty() {
        return map(call);
    }
    let output = call.unify()?;
    if !matches!(output, DataType::Map(_, _)) {
        return Err(call.unexpected(&call.arguments[0], "MAP"));
    }
    Ok(kernel::raising("map_concat", call.arguments, output.clone(), move |arguments, num_rows| {
        let maps: Vec<&MapArray> = arguments.iter().map(|column| column.as_map()).collect();
        let mut order = Vec::new();
        let mut lengths = Vec::with_capacity(num_rows);
        let mut valid = Vec::with_capacity(num_rows);
        for row in 0..num_rows {
            let before = order.len();
            let is_valid = maps.iter().all(|map| map.is_valid(row));
            if is_valid {
                for (source, map) in maps.iter().enumerate() {
                    let offsets = map.value_offsets();
                    order.extend((offsets[row] as usize..offsets[row + 1] as usize).map(|at| (source, at)));
                }
            }
            valid.push(is_valid);
            lengths.push(order.len() - before);
        }
        let gather = |of: fn(&MapArray) -> &ArrayRef| {
            let sources: Vec<&dyn Array> = maps.iter().map(|map| of(map).as_ref()).collect();
            arrow::compute::interleave(&sources, &order)
        };
        let (keys, values) = (gather(MapArray::keys)?, gather(MapArray::values)?);
        build(OffsetBuffer::from_lengths(lengths), keys, values, Some(valid.into()), &output)
    }))
}

fn contains_key(mut call: Call<'_>) -> Result<Typed> {
    let (key, _) = fields_of(&call, &call.arguments[0])?;
    let map_type = call.arguments[0].data_type().clone();
    call.cast_arguments(&[map_type, key.data_type().clone()])?;
    Ok(kernel::strict("map_contains_key", call.arguments, DataType::Boolean, |arguments, num_rows| {
        let map = arguments[0].as_map();
        let rows = rows_of(&[map.keys(), &arguments[1]])?;
        let offsets = map.value_offsets();
        let truths = (0..num_rows).map(|row| {
            let is_present = map.is_valid(row) && arguments[1].is_valid(row);
            is_present.then(|| {
                (offsets[row] as usize..offsets[row + 1] as usize).any(|at| rows[0].row(at) == rows[1].row(row))
            })
        });
        Ok(Arc::new(truths.collect::<BooleanArray>()))
    }))
}

fn str_to_map(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Utf8, DataType::Utf8])?;
    let arguments = call.arguments;
    let own = map_of(DataType::Utf8, DataType::Utf8);
    let foreign = spark::str_to_map();
    let fields: Vec<FieldRef> = arguments.iter().map(|argument| argument.field.clone()).collect();
    let scalars = vec![None; fields.len()];
    let found = foreign.return_field_from_args(datafusion::logical_expr::ReturnFieldArgs {
        arg_fields: &fields,
        scalar_arguments: &scalars,
    })?;
    let value = kernel::foreign(foreign, arguments, found.data_type().clone(), true);
    Ok(kernel::nullable("as map", vec![value], own.clone(), move |arguments, _| {
        let map = arguments[0].as_map();
        build(map.offsets().clone(), map.keys().clone(), map.values().clone(), map.nulls().cloned(), &own)
    }))
}
