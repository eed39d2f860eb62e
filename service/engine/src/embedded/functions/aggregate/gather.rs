//! Aggregates that need all of a group's values at once.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray, StructArray, UInt64Array, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use super::aggregate;
use crate::Result;
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::{array_of, is_integral, is_numeric};
use crate::embedded::expression::order::canonical_float;
use crate::embedded::functions::Call;

type Finish = Arc<dyn Fn(&[ArrayRef]) -> Result<ScalarValue> + Send + Sync>;

/// A call that hands a group's rows, those with a null argument left out, to `finish`. `name` tells what `finish` captures.
fn gathered(
    name: String,
    arguments: Vec<Typed>,
    output: FieldRef,
    is_distinct: bool,
    finish: impl Fn(&[ArrayRef]) -> Result<ScalarValue> + Send + Sync + 'static,
) -> Typed {
    let inputs: Fields = arguments
        .iter()
        .enumerate()
        .map(|(at, argument)| argument.field.as_ref().clone().with_name(format!("{at}")).with_nullable(true))
        .collect::<Vec<_>>()
        .into();
    let gather = Gather {
        name,
        output: output.clone(),
        inputs,
        is_distinct,
        signature: Signature::variadic_any(Volatility::Immutable),
        finish: Arc::new(finish),
    };
    Typed {
        expr: aggregate(Arc::new(AggregateUDF::new_from_impl(gather)), arguments, false, vec![], None),
        field: output,
    }
}

#[derive(Clone)]
struct Gather {
    name: String,
    output: FieldRef,
    inputs: Fields,
    is_distinct: bool,
    signature: Signature,
    finish: Finish,
}

impl std::fmt::Debug for Gather {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gather").field("name", &self.name).field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

impl PartialEq for Gather {
    fn eq(&self, other: &Gather) -> bool {
        self.name == other.name
            && self.output == other.output
            && self.inputs == other.inputs
            && self.is_distinct == other.is_distinct
    }
}

impl Eq for Gather {}

impl Hash for Gather {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.is_distinct.hash(state);
    }
}

impl Gather {
    fn state_type(&self) -> DataType {
        DataType::List(Arc::new(Field::new("element", DataType::Struct(self.inputs.clone()), true)))
    }
}

impl AggregateUDFImpl for Gather {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> datafusion::common::Result<DataType> {
        Ok(self.output.data_type().clone())
    }

    fn return_field(&self, _: &[FieldRef]) -> datafusion::common::Result<FieldRef> {
        Ok(Arc::new(self.output.as_ref().clone().with_name(&self.name)))
    }

    fn is_nullable(&self) -> bool {
        self.output.is_nullable()
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> datafusion::common::Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "rows"), self.state_type(), true))])
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> datafusion::common::Result<Box<dyn Accumulator>> {
        Ok(Box::new(Gathering { gather: self.clone(), chunks: Vec::new() }))
    }

    fn order_sensitivity(&self) -> datafusion::logical_expr::utils::AggregateOrderSensitivity {
        datafusion::logical_expr::utils::AggregateOrderSensitivity::Insensitive
    }

    fn default_value(&self, _: &DataType) -> datafusion::common::Result<ScalarValue> {
        let empty: Vec<ArrayRef> = self.inputs.iter().map(|field| new_empty_array(field.data_type())).collect();
        Ok((self.finish)(&empty)?)
    }
}

#[derive(Debug)]
struct Gathering {
    gather: Gather,
    chunks: Vec<StructArray>,
}

impl Gathering {
    fn columns(&self) -> datafusion::common::Result<Vec<ArrayRef>> {
        let mut columns = Vec::with_capacity(self.gather.inputs.len());
        for (at, field) in self.gather.inputs.iter().enumerate() {
            let parts: Vec<&dyn Array> = self.chunks.iter().map(|chunk| chunk.column(at).as_ref()).collect();
            columns.push(if parts.is_empty() {
                new_empty_array(field.data_type())
            } else {
                arrow::compute::concat(&parts)?
            });
        }
        Ok(columns)
    }
}

impl Accumulator for Gathering {
    fn update_batch(&mut self, values: &[ArrayRef]) -> datafusion::common::Result<()> {
        let rows = StructArray::try_new(self.gather.inputs.clone(), values.to_vec(), None)?;
        let present: Option<arrow::buffer::NullBuffer> = values
            .iter()
            .map(|column| column.logical_nulls())
            .fold(None, |all, nulls| arrow::buffer::NullBuffer::union(all.as_ref(), nulls.as_ref()));
        let rows = match present {
            Some(present) if present.null_count() > 0 => {
                let keep = arrow::array::BooleanArray::new(present.into_inner(), None);
                arrow::compute::filter(&rows, &keep)?.as_struct().clone()
            }
            _ => rows,
        };
        if !rows.is_empty() {
            self.chunks.push(rows);
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> datafusion::common::Result<()> {
        let is_present = |row: &usize| values.iter().all(|column| column.is_valid(*row));
        let mut num_gone = (0..values.first().map_or(0, |column| column.len())).filter(is_present).count();
        while num_gone > 0 {
            let Some(first) = self.chunks.first_mut() else { break };
            if first.len() <= num_gone {
                num_gone -= first.len();
                self.chunks.remove(0);
            } else {
                *first = first.slice(num_gone, first.len() - num_gone);
                num_gone = 0;
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> datafusion::common::Result<ScalarValue> {
        let mut columns = self.columns()?;
        if self.gather.is_distinct {
            columns = distinct(columns)?;
        }
        Ok((self.gather.finish)(&columns)?)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.chunks.iter().map(|chunk| chunk.get_array_memory_size()).sum::<usize>()
    }

    fn state(&mut self) -> datafusion::common::Result<Vec<ScalarValue>> {
        let columns = self.columns()?;
        let length = columns.first().map_or(0, |column| column.len());
        let rows = StructArray::try_new(self.gather.inputs.clone(), columns, None)?;
        let element = Arc::new(Field::new("element", DataType::Struct(self.gather.inputs.clone()), true));
        let list = ListArray::try_new(element, OffsetBuffer::from_lengths([length]), Arc::new(rows), None)?;
        Ok(vec![ScalarValue::List(Arc::new(list))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> datafusion::common::Result<()> {
        let lists = states[0].as_list::<i32>();
        for row in 0..lists.len() {
            if lists.is_valid(row) && lists.value_length(row) > 0 {
                self.chunks.push(lists.value(row).as_struct().clone());
            }
        }
        Ok(())
    }
}

/// The rows that differ from all before them.
fn distinct(columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let rows = RowConverter::new(fields)?.convert_columns(&columns)?;
    let mut seen = std::collections::HashSet::new();
    let kept: UInt64Array =
        (0..rows.num_rows()).filter(|row| seen.insert(rows.row(*row))).map(|row| row as u64).collect::<Vec<_>>().into();
    columns.iter().map(|column| Ok(arrow::compute::take(column, &kept, None)?)).collect()
}

/// `collect_list` and `collect_set`.
pub fn list(mut call: Call<'_>, is_set: bool) -> Result<Typed> {
    let [value] = call.take()?;
    let value = if is_set { canonical_float(value) } else { value };
    let element = Arc::new(value.field.as_ref().clone().with_name("element").with_nullable(false));
    let output = Arc::new(Field::new("", DataType::List(element.clone()), false));
    let is_distinct = is_set || call.is_distinct;
    Ok(gathered(format!("collect distinct {is_distinct}"), vec![value], output, is_distinct, move |columns| {
        let offsets = OffsetBuffer::from_lengths([columns[0].len()]);
        let list = ListArray::try_new(element.clone(), offsets, columns[0].clone(), None)?;
        Ok(ScalarValue::List(Arc::new(list)))
    }))
}

/// The most frequent value: of several the first met, or the least if the second argument says so.
pub fn mode(mut call: Call<'_>) -> Result<Typed> {
    let mut arguments = std::mem::take(&mut call.arguments);
    let takes_least = match arguments.get(1) {
        Some(flag) => call.constant_boolean(flag)?,
        None => false,
    };
    let value = canonical_float(arguments.swap_remove(0));
    let output = Arc::new(value.field.as_ref().clone().with_nullable(true));
    let data_type = value.data_type().clone();
    Ok(gathered(format!("mode least {takes_least}"), vec![value], output, false, move |columns| {
        let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
        let rows = converter.convert_columns(columns)?;
        let mut counts: std::collections::HashMap<arrow::row::Row<'_>, (usize, usize)> = Default::default();
        for row in 0..rows.num_rows() {
            counts.entry(rows.row(row)).or_insert((0, row)).0 += 1;
        }
        let best = counts.into_iter().reduce(|best, next| {
            let ((_, (best_count, best_row)), (_, (count, row))) = (&best, &next);
            let is_before = if takes_least { next.0 < best.0 } else { row < best_row };
            if count > best_count || (count == best_count && is_before) { next } else { best }
        });
        match best {
            Some((_, (_, row))) => Ok(ScalarValue::try_from_array(&columns[0], row)?),
            None => Ok(ScalarValue::try_from(&data_type)?),
        }
    }))
}

/// The percentages of a constant second argument, and whether it is one number.
fn percentages(call: &Call<'_>, argument: &Typed) -> Result<(Vec<f64>, bool)> {
    let invalid = || call.mismatch("VALUE_OUT_OF_RANGE", "the percentage must be constants between 0.0 and 1.0".into());
    let is_list = matches!(argument.data_type(), DataType::List(_));
    let target = if is_list { array_of(DataType::Float64) } else { DataType::Float64 };
    let constant = match argument.value() {
        Some(value) => value.clone(),
        // array(0.25, 0.5) is a call over constants.
        None => evaluate_constant(call, argument).ok_or_else(invalid)?,
    };
    let cast = crate::embedded::expression::cast::cast_array(
        &constant.to_array()?,
        &argument.field,
        &Field::new("", target, true),
        crate::embedded::expression::cast::Mode::Ansi,
        call.conf(),
    )?;
    let values = if is_list { cast.as_list::<i32>().value(0) } else { cast };
    let values: Vec<f64> = values.as_primitive::<Float64Type>().iter().flatten().collect();
    if values.is_empty() || values.iter().any(|value| !(0.0..=1.0).contains(value)) {
        return Err(invalid());
    }
    Ok((values, !is_list))
}

fn evaluate_constant(call: &Call<'_>, argument: &Typed) -> Option<ScalarValue> {
    let schema = datafusion::common::DFSchema::empty();
    let physical = call.resolver.state.create_physical_expr(argument.expr.clone(), &schema).ok()?;
    let batch = arrow::array::RecordBatch::new_empty(Arc::new(arrow::datatypes::Schema::empty()));
    match physical.evaluate(&batch).ok()? {
        datafusion::logical_expr::ColumnarValue::Scalar(value) => Some(value),
        datafusion::logical_expr::ColumnarValue::Array(_) => None,
    }
}

pub fn median(mut call: Call<'_>) -> Result<Typed> {
    call.arguments.push(Typed::literal(ScalarValue::Float64(Some(0.5))));
    percentile(call)
}

/// Exact percentiles, between two values by their distance.
pub fn percentile(mut call: Call<'_>) -> Result<Typed> {
    let arguments = std::mem::take(&mut call.arguments);
    let (wanted, is_one) = percentages(&call, &arguments[1])?;
    let value = call.cast(arguments[0].clone(), &DataType::Float64)?;
    let mut inputs = vec![value];
    if let Some(frequency) = arguments.get(2) {
        inputs.push(call.cast(frequency.clone(), &DataType::Int64)?);
    }
    let data_type = if is_one { DataType::Float64 } else { array_with(DataType::Float64) };
    let output = Arc::new(Field::new("", data_type, true));
    Ok(gathered(format!("percentile {wanted:?}"), inputs, output, call.is_distinct, move |columns| {
        let mut values: Vec<f64> = match columns.get(1) {
            None => columns[0].as_primitive::<Float64Type>().values().to_vec(),
            Some(frequencies) => {
                let frequencies = frequencies.as_primitive::<arrow::datatypes::Int64Type>();
                let pairs = columns[0].as_primitive::<Float64Type>().values().iter().zip(frequencies.values());
                pairs.flat_map(|(value, times)| std::iter::repeat_n(*value, (*times).max(0) as usize)).collect()
            }
        };
        values.sort_by(f64::total_cmp);
        let at = |wanted: &f64| {
            let position = wanted * (values.len() - 1) as f64;
            let (low, high) = (position.floor(), position.ceil());
            if low == high {
                return values[low as usize];
            }
            (high - position) * values[low as usize] + (position - low) * values[high as usize]
        };
        if values.is_empty() {
            return none_of(is_one, DataType::Float64);
        }
        if is_one {
            return Ok(ScalarValue::Float64(Some(at(&wanted[0]))));
        }
        listed(Arc::new(Float64Array::from_iter_values(wanted.iter().map(at))))
    }))
}

/// The least value that so large a part of the values does not exceed: exact, whatever accuracy is asked for.
pub fn approximate_percentile(mut call: Call<'_>) -> Result<Typed> {
    let arguments = std::mem::take(&mut call.arguments);
    let (wanted, is_one) = percentages(&call, &arguments[1])?;
    if let Some(accuracy) = arguments.get(2)
        && call.constant_integer(accuracy)? <= 0
    {
        return Err(call.mismatch("VALUE_OUT_OF_RANGE", "the accuracy must be positive".into()));
    }
    let mut value = arguments[0].clone();
    let is_ordered = is_numeric(value.data_type())
        || matches!(value.data_type(), DataType::Date32 | DataType::Timestamp(_, _) | DataType::Duration(_));
    if !is_ordered {
        value = call.cast(value, &DataType::Float64)?;
    }
    let value = canonical_float(value);
    let element = value.data_type().clone();
    let output = if is_one { element.clone() } else { array_with(element.clone()) };
    let output = Arc::new(Field::new("", output, true));
    Ok(gathered(format!("percentile_approx {wanted:?}"), vec![value], output, call.is_distinct, move |columns| {
        let sorted = arrow::compute::sort(&columns[0], None)?;
        if sorted.is_empty() {
            return none_of(is_one, element.clone());
        }
        let at = |wanted: &f64| ((wanted * sorted.len() as f64).ceil() as u64).clamp(1, sorted.len() as u64) - 1;
        let taken = UInt64Array::from_iter_values(wanted.iter().map(at));
        let taken = arrow::compute::take(&sorted, &taken, None)?;
        if is_one { Ok(ScalarValue::try_from_array(&taken, 0)?) } else { listed(taken) }
    }))
}

fn array_with(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", element, false)))
}

fn listed(values: ArrayRef) -> Result<ScalarValue> {
    let element = Arc::new(Field::new("element", values.data_type().clone(), false));
    let list = ListArray::try_new(element, OffsetBuffer::from_lengths([values.len()]), values, None)?;
    Ok(ScalarValue::List(Arc::new(list)))
}

fn none_of(is_one: bool, element: DataType) -> Result<ScalarValue> {
    Ok(ScalarValue::try_from(&if is_one { element } else { array_with(element) })?)
}

pub fn product(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    let value = call.cast(value, &DataType::Float64)?;
    let output = Arc::new(Field::new("", DataType::Float64, true));
    Ok(gathered("product".into(), vec![value], output, call.is_distinct, |columns| {
        let values = columns[0].as_primitive::<Float64Type>().values();
        Ok(ScalarValue::Float64((!values.is_empty()).then(|| values.iter().product())))
    }))
}

/// `listagg`: texts joined by a constant delimiter.
pub fn concatenation(mut call: Call<'_>) -> Result<Typed> {
    let mut arguments = std::mem::take(&mut call.arguments);
    let delimiter = match arguments.get(1) {
        Some(delimiter) if delimiter.data_type() == &DataType::Null => String::new(),
        Some(delimiter) => call.constant_string(delimiter)?,
        None => String::new(),
    };
    let value = arguments.swap_remove(0);
    if is_integral(value.data_type()) {
        return Err(call.unexpected(&value, "STRING"));
    }
    let value = call.cast(value, &DataType::Utf8)?;
    let output = Arc::new(Field::new("", DataType::Utf8, true));
    Ok(gathered(format!("listagg {delimiter:?}"), vec![value], output, call.is_distinct, move |columns| {
        let texts: Vec<&str> = columns[0].as_string::<i32>().iter().flatten().collect();
        Ok(ScalarValue::Utf8((!texts.is_empty()).then(|| texts.join(&delimiter))))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_rows_count_once_in_a_distinct_aggregate() {
        let columns: Vec<ArrayRef> = vec![Arc::new(Float64Array::from(vec![1.0, 2.0, 1.0]))];
        assert_eq!(distinct(columns).unwrap()[0].len(), 2);
    }
}
