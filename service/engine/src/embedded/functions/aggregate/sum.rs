//! `sum`: of longs it is exact, so that one that does not fit is found.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type};
use datafusion::functions_aggregate as df;

use super::aggregate;
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::{is_decimal, is_integral, is_numeric};
use crate::embedded::functions::Call;
use crate::embedded::functions::arithmetic::overflowed;
use crate::embedded::functions::kernel::Kernel;
use crate::{Error, Result};

pub fn sum(call: Call<'_>) -> Result<Typed> {
    let overflow = if call.ansi() { Overflow::Raises } else { Overflow::Wraps };
    summed(call, overflow)
}

pub fn try_sum(call: Call<'_>) -> Result<Typed> {
    summed(call, Overflow::IsNull)
}

/// What a sum beyond 64 bits becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Raises,
    IsNull,
    Wraps,
}

fn summed(mut call: Call<'_>, overflow: Overflow) -> Result<Typed> {
    let [value] = call.take()?;
    let is_long = value.data_type() == &DataType::Int64;
    let value = match value.data_type().clone() {
        data_type if is_integral(&data_type) => call.cast(value, &DataType::Int64)?,
        data_type if is_decimal(&data_type) => value,
        DataType::Duration(_) => return Err(Error::Unsupported { feature: "sum of intervals".into() }),
        data_type if is_numeric(&data_type) || matches!(data_type, DataType::Utf8 | DataType::Null) => {
            call.cast(value, &DataType::Float64)?
        }
        _ => return Err(call.unexpected(&value, "NUMERIC")),
    };
    // Smaller integers overflow only after billions of the largest of them.
    if is_long && overflow != Overflow::Wraps {
        return exact(value, call.is_distinct, overflow);
    }
    let data_type = match value.data_type() {
        DataType::Decimal128(precision, scale) => DataType::Decimal128((precision + 10).min(38), *scale),
        data_type => data_type.clone(),
    };
    let expr = aggregate(df::sum::sum_udaf(), vec![value], call.is_distinct, vec![], None);
    Ok(Typed::new(expr, data_type, true))
}

/// Sums longs as decimals of 128 bits.
fn exact(value: Typed, is_distinct: bool, overflow: Overflow) -> Result<Typed> {
    const LONG_DIGITS: u8 = 19;
    let wide = super::cast(value.expr, DataType::Decimal128(LONG_DIGITS, 0));
    let wide = Typed::new(wide, DataType::Decimal128(LONG_DIGITS, 0), true);
    let sum = aggregate(df::sum::sum_udaf(), vec![wide], is_distinct, vec![], None);
    let sum = Typed::new(sum, DataType::Decimal128(LONG_DIGITS + 10, 0), true);
    let raises = overflow == Overflow::Raises;
    let kernel = Kernel { raises, ..Kernel::new(format!("long_of_sum {overflow:?}"), DataType::Int64, true) };
    Ok(kernel.call(vec![sum], move |arguments, num_rows| {
        let mut longs = Vec::with_capacity(num_rows);
        for sum in arguments[0].as_primitive::<Decimal128Type>() {
            let long = sum.and_then(|sum| i64::try_from(sum).ok());
            if raises && sum.is_some() && long.is_none() {
                return Err(overflowed(&DataType::Int64, "try_sum"));
            }
            longs.push(long);
        }
        Ok(Arc::new(Int64Array::from(longs)))
    }))
}
