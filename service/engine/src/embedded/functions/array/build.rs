//! Arrays out of values.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, ListArray, TimestampMicrosecondArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, TimeUnit};
use datafusion::common::ScalarValue;

use super::super::Call;
use super::super::kernel::{self, Kernel};
use super::Taken;
use crate::embedded::expression::Typed;
use crate::embedded::expression::cast::time::micros;
use crate::embedded::expression::coercion::{is_integral, timestamp_type};
use crate::embedded::expression::zone::Zone;
use crate::{Error, Result};

pub fn array(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.is_empty() {
        let element = Arc::new(Field::new("element", DataType::Null, false));
        let empty = ListArray::try_new(
            element,
            OffsetBuffer::from_lengths([0]),
            arrow::array::new_empty_array(&DataType::Null),
            None,
        )?;
        return Ok(Typed::literal(ScalarValue::List(Arc::new(empty))));
    }
    let metadata = call.arguments[0].field.metadata().clone();
    let data_type = call.unify()?;
    let arguments = std::mem::take(&mut call.arguments);
    let nullable = arguments.iter().any(Typed::nullable);
    let element = Arc::new(Field::new("element", data_type, nullable).with_metadata(metadata));
    Ok(Kernel::new("array", DataType::List(element.clone()), false).call(arguments, move |arguments, num_rows| {
        let sources: Vec<&dyn Array> = arguments.iter().map(AsRef::as_ref).collect();
        let width = sources.len();
        let order: Vec<(usize, usize)> =
            (0..num_rows).flat_map(|row| (0..width).map(move |column| (column, row))).collect();
        let values = arrow::compute::interleave(&sources, &order)?;
        let offsets = OffsetBuffer::from_repeated_length(width, num_rows);
        Ok(Arc::new(ListArray::try_new(element.clone(), offsets, values, None)?))
    }))
}

pub fn repeat(mut call: Call<'_>) -> Result<Typed> {
    let [value, times] = call.take()?;
    let times = call.cast(times, &DataType::Int32)?;
    let element = Arc::new(value.field.as_ref().clone().with_name("element"));
    let output = DataType::List(element.clone());
    let nullable = times.nullable();
    Ok(Kernel::new("array_repeat", output, nullable).call(vec![value, times], move |arguments, num_rows| {
        let times = arguments[1].as_primitive::<Int32Type>();
        let mut taken = Taken::with_capacity(num_rows);
        for row in 0..num_rows {
            if times.is_null(row) {
                taken.append_null();
            } else {
                taken.append(std::iter::repeat_n(row, times.value(row).max(0) as usize));
            }
        }
        taken.finish(&arguments[0], &element)
    }))
}

/// Spark's own bound on the length of an array.
const LENGTH_MAX: i64 = i32::MAX as i64 - 15;

fn boundaries(start: i64, stop: i64, step: i64) -> Error {
    Error::Row {
        class: "ILLEGAL_SEQUENCE_BOUNDARIES",
        message: format!("Illegal sequence boundaries: {start} to {stop} by {step}."),
        parameters: vec![("start", start.to_string()), ("stop", stop.to_string()), ("step", step.to_string())],
    }
}

fn check(start: i64, stop: i64, step: i64) -> Result<()> {
    let fits = (step > 0 && start <= stop) || (step < 0 && start >= stop) || (step == 0 && start == stop);
    let length = if step == 0 { 1 } else { (i128::from(stop) - i128::from(start)) / i128::from(step) + 1 };
    if !fits || length > LENGTH_MAX.into() { Err(boundaries(start, stop, step)) } else { Ok(()) }
}

pub fn sequence(mut call: Call<'_>) -> Result<Typed> {
    let step = call.arguments.get(2).cloned();
    let first = call.arguments[0].data_type().clone();
    call.arguments.truncate(2);
    if is_integral(&first) || matches!(first, DataType::Utf8 | DataType::Null) {
        let mut ends = std::mem::take(&mut call.arguments);
        ends.extend(step);
        let (arguments, data_type) = call.unified(ends)?;
        let data_type = if is_integral(&data_type) { data_type } else { DataType::Int64 };
        call.arguments = arguments;
        call.cast_arguments(&[data_type.clone(), data_type.clone(), data_type.clone()])?;
        return Ok(integers(call.arguments, data_type));
    }
    temporal(call, step, first)
}

fn integers(arguments: Vec<Typed>, data_type: DataType) -> Typed {
    let element = Arc::new(Field::new("element", data_type.clone(), false));
    kernel::raising("sequence", arguments, DataType::List(element.clone()), move |arguments, num_rows| {
        let columns = arguments
            .iter()
            .map(|column| Ok(arrow::compute::cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().clone()))
            .collect::<Result<Vec<_>>>()?;
        let mut values: Vec<i64> = Vec::new();
        let mut lengths = Vec::with_capacity(num_rows);
        let mut valid = Vec::with_capacity(num_rows);
        for row in 0..num_rows {
            let before = values.len();
            let is_valid = columns.iter().all(|column| column.is_valid(row));
            if is_valid {
                let (start, stop) = (columns[0].value(row), columns[1].value(row));
                let step = columns.get(2).map_or(if start <= stop { 1 } else { -1 }, |steps| steps.value(row));
                check(start, stop, step)?;
                let mut at = start;
                loop {
                    values.push(at);
                    match at.checked_add(step) {
                        Some(next) if step != 0 && (if step > 0 { next <= stop } else { next >= stop }) => at = next,
                        _ => break,
                    }
                }
            }
            valid.push(is_valid);
            lengths.push(values.len() - before);
        }
        let values = arrow::compute::cast(&Int64Array::from(values), &data_type)?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(element.clone(), offsets, values, Some(NullBuffer::from(valid)))?))
    })
}

/// Dates and timestamps by an interval, of a day without one.
fn temporal(mut call: Call<'_>, step: Option<Typed>, first: DataType) -> Result<Typed> {
    if !matches!(first, DataType::Date32 | DataType::Timestamp(_, _)) {
        return Err(call.mismatch("SEQUENCE_WRONG_INPUT_TYPES", "sequence needs integers, dates or timestamps".into()));
    }
    let data_type = call.unify()?;
    let step = match step {
        Some(step) => step,
        None => Typed::literal(ScalarValue::DurationMicrosecond(Some(86_400_000_000))),
    };
    if !matches!(step.data_type(), DataType::Duration(_) | DataType::Interval(_)) {
        return Err(call.mismatch("SEQUENCE_WRONG_INPUT_TYPES", "the step must be an interval".into()));
    }
    let [start, stop] = call.take()?;
    let (start, stop) = (call.cast(start, &timestamp_type())?, call.cast(stop, &timestamp_type())?);
    let zone = Zone::of(call.conf());
    let element = Arc::new(Field::new("element", data_type.clone(), false));
    let name = format!("sequence in {zone:?}");
    Ok(kernel::raising(name, vec![start, stop, step], DataType::List(element.clone()), move |arguments, num_rows| {
        let (starts, stops) = (micros(&arguments[0])?, micros(&arguments[1])?);
        let mut instants: Vec<i64> = Vec::new();
        let mut lengths = Vec::with_capacity(num_rows);
        let mut valid = Vec::with_capacity(num_rows);
        for row in 0..num_rows {
            let is_valid = arguments.iter().all(|column| column.is_valid(row));
            valid.push(is_valid);
            if !is_valid {
                lengths.push(0);
                continue;
            }
            let before = instants.len();
            let (start, stop) = (starts.value(row), stops.value(row));
            let step = arguments[2].slice(row, 1);
            let plus = |from: i64, times: usize| -> Result<i64> {
                let mut at: arrow::array::ArrayRef =
                    Arc::new(TimestampMicrosecondArray::from(vec![from]).with_timezone("UTC"));
                for _ in 0..times {
                    at = super::super::date::shift_by_interval(&at, &step, false, &zone)?;
                }
                Ok(micros(&at)?.value(0))
            };
            let second = plus(start, 1)?;
            check(start, stop, second - start)?;
            let mut at = start;
            while (second > start && at <= stop) || (second < start && at >= stop) || (second == start && at == stop) {
                instants.push(at);
                if second == start {
                    break;
                }
                at = plus(at, 1)?;
            }
            lengths.push(instants.len() - before);
        }
        let instants = TimestampMicrosecondArray::from(instants).with_timezone("UTC");
        let values: arrow::array::ArrayRef = Arc::new(instants);
        let values = match &data_type {
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => values,
            to => crate::embedded::expression::cast::time::convert(
                &values,
                &timestamp_type(),
                to,
                crate::embedded::expression::cast::Mode::Legacy,
                &zone,
            )?,
        };
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(element.clone(), offsets, values, Some(NullBuffer::from(valid)))?))
    }))
}
