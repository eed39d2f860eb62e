//! Functions of numbers.

mod base;
mod round;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type};
use datafusion::common::ScalarValue;

use super::arithmetic::overflowed;
use super::kernel::{self, Kernel};
use super::{Call, Function, function};
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::{is_integral, is_numeric};
use crate::{Error, Result};

pub use base::unhex;

pub const FUNCTIONS: &[Function] = &[
    function("abs", 1, 1, abs),
    function("sign", 1, 1, |call| double(call, |x| if x == 0.0 || x.is_nan() { x } else { x.signum() })),
    function("signum", 1, 1, |call| double(call, |x| if x == 0.0 || x.is_nan() { x } else { x.signum() })),
    function("sqrt", 1, 1, |call| double(call, f64::sqrt)),
    function("cbrt", 1, 1, |call| double(call, f64::cbrt)),
    function("exp", 1, 1, |call| double(call, f64::exp)),
    function("expm1", 1, 1, |call| double(call, f64::exp_m1)),
    function("ln", 1, 1, |call| logarithm(call, f64::ln, 0.0)),
    function("log", 1, 2, log),
    function("log10", 1, 1, |call| logarithm(call, f64::log10, 0.0)),
    function("log2", 1, 1, |call| logarithm(call, f64::log2, 0.0)),
    function("log1p", 1, 1, |call| logarithm(call, f64::ln_1p, -1.0)),
    function("pow", 2, 2, |call| doubles(call, f64::powf)),
    function("power", 2, 2, |call| doubles(call, f64::powf)),
    function("hypot", 2, 2, |call| doubles(call, f64::hypot)),
    function("atan2", 2, 2, |call| doubles(call, |y, x| (y + 0.0).atan2(x + 0.0))),
    function("sin", 1, 1, |call| double(call, f64::sin)),
    function("cos", 1, 1, |call| double(call, f64::cos)),
    function("tan", 1, 1, |call| double(call, f64::tan)),
    function("cot", 1, 1, |call| double(call, |x| 1.0 / x.tan())),
    function("sec", 1, 1, |call| double(call, |x| 1.0 / x.cos())),
    function("csc", 1, 1, |call| double(call, |x| 1.0 / x.sin())),
    function("asin", 1, 1, |call| double(call, f64::asin)),
    function("acos", 1, 1, |call| double(call, f64::acos)),
    function("atan", 1, 1, |call| double(call, f64::atan)),
    function("sinh", 1, 1, |call| double(call, f64::sinh)),
    function("cosh", 1, 1, |call| double(call, f64::cosh)),
    function("tanh", 1, 1, |call| double(call, f64::tanh)),
    function("asinh", 1, 1, |call| double(call, f64::asinh)),
    function("acosh", 1, 1, |call| double(call, f64::acosh)),
    function("atanh", 1, 1, |call| double(call, f64::atanh)),
    function("degrees", 1, 1, |call| double(call, f64::to_degrees)),
    function("radians", 1, 1, |call| double(call, f64::to_radians)),
    function("rint", 1, 1, |call| double(call, f64::round_ties_even)),
    function("e", 0, 0, |_| Ok(Typed::literal(ScalarValue::Float64(Some(std::f64::consts::E))))),
    function("pi", 0, 0, |_| Ok(Typed::literal(ScalarValue::Float64(Some(std::f64::consts::PI))))),
    function("ceil", 1, 2, |call| round::toward(call, round::Toward::Up)),
    function("ceiling", 1, 2, |call| round::toward(call, round::Toward::Up)),
    function("floor", 1, 2, |call| round::toward(call, round::Toward::Down)),
    function("round", 1, 2, |call| round::round(call, round::Ties::Away)),
    function("bround", 1, 2, |call| round::round(call, round::Ties::Even)),
    function("factorial", 1, 1, factorial),
    function("bin", 1, 1, base::bin),
    function("conv", 3, 3, base::conv),
    function("hex", 1, 1, base::hex),
    function("unhex", 1, 1, base::unhex),
    function("width_bucket", 4, 4, width_bucket),
];

fn double(mut call: Call<'_>, compute: fn(f64) -> f64) -> Result<Typed> {
    call.cast_arguments(&[DataType::Float64])?;
    Ok(kernel::strict(call.name, call.arguments, DataType::Float64, move |arguments, _| {
        let values: Float64Array = arguments[0].as_primitive::<Float64Type>().unary(compute);
        Ok(Arc::new(values))
    }))
}

fn doubles(mut call: Call<'_>, compute: fn(f64, f64) -> f64) -> Result<Typed> {
    call.cast_arguments(&[DataType::Float64, DataType::Float64])?;
    Ok(kernel::strict(call.name, call.arguments, DataType::Float64, move |arguments, _| {
        let (left, right) = (arguments[0].as_primitive::<Float64Type>(), arguments[1].as_primitive::<Float64Type>());
        let values: Float64Array = arrow::compute::binary(left, right, compute)?;
        Ok(Arc::new(values))
    }))
}

/// A logarithm, null for arguments at or below its pole.
fn logarithm(mut call: Call<'_>, compute: fn(f64) -> f64, pole: f64) -> Result<Typed> {
    call.cast_arguments(&[DataType::Float64])?;
    Ok(kernel::nullable(call.name, call.arguments, DataType::Float64, move |arguments, _| {
        let values: Float64Array =
            arguments[0].as_primitive::<Float64Type>().unary_opt(|x| (x > pole || x.is_nan()).then(|| compute(x)));
        Ok(Arc::new(values))
    }))
}

/// `log(x)` is natural, `log(base, x)` is not.
fn log(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.len() == 1 {
        return logarithm(Call { name: "ln", ..call }, f64::ln, 0.0);
    }
    call.cast_arguments(&[DataType::Float64, DataType::Float64])?;
    Ok(kernel::nullable("log with base", call.arguments, DataType::Float64, |arguments, _| {
        let rows = arguments[0].as_primitive::<Float64Type>().iter().zip(arguments[1].as_primitive::<Float64Type>());
        let logs = rows.map(|(base, x)| {
            let (base, x) = (base?, x?);
            (base > 0.0 && x > 0.0).then(|| x.ln() / base.ln())
        });
        Ok(Arc::new(logs.collect::<Float64Array>()))
    }))
}

fn abs(mut call: Call<'_>) -> Result<Typed> {
    let ansi = call.ansi();
    let [value] = call.take()?;
    let value = match value.data_type() {
        DataType::Utf8 | DataType::Null => call.cast(value, &DataType::Float64)?,
        data_type if is_numeric(data_type) => value,
        _ => return Err(call.unexpected(&value, "NUMERIC")),
    };
    let data_type = value.data_type().clone();
    let nullable = value.nullable();
    let raises = ansi && is_integral(&data_type);
    let kernel = Kernel { raises, ..Kernel::new(format!("abs, ansi {ansi}"), data_type.clone(), nullable) };
    Ok(kernel.call(vec![value], move |arguments, _| {
        let array = &arguments[0];
        Ok(match &data_type {
            DataType::Float64 => Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::abs)),
            DataType::Float32 => Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::abs)),
            DataType::Decimal128(precision, scale) => {
                let digits = array.as_primitive::<Decimal128Type>().unary::<_, Decimal128Type>(i128::abs);
                Arc::new(digits.with_precision_and_scale(*precision, *scale)?)
            }
            _ => {
                let longs = arrow::compute::cast(array, &DataType::Int64)?;
                let least = match data_type {
                    DataType::Int8 => i8::MIN.into(),
                    DataType::Int16 => i16::MIN.into(),
                    DataType::Int32 => i32::MIN.into(),
                    _ => i64::MIN,
                };
                let longs = longs.as_primitive::<Int64Type>();
                if ansi && longs.iter().flatten().any(|long| long == least) {
                    return Err(overflowed(&data_type, ""));
                }
                let absolute: ArrayRef = Arc::new(
                    longs.unary::<_, Int64Type>(|long| if long == least { long } else { long.wrapping_abs() }),
                );
                arrow::compute::cast(&absolute, &data_type)?
            }
        })
    }))
}

fn factorial(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Int32])?;
    Ok(kernel::nullable("factorial", call.arguments, DataType::Int64, |arguments, _| {
        let values: PrimitiveArray<Int64Type> = arguments[0]
            .as_primitive::<Int32Type>()
            .unary_opt(|n| (0..=20).contains(&n).then(|| (1..=i64::from(n)).product::<i64>()));
        Ok(Arc::new(values))
    }))
}

/// `width_bucket(value, min, max, buckets)`.
fn width_bucket(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Float64, DataType::Float64, DataType::Float64, DataType::Int64])?;
    Ok(kernel::nullable("width_bucket", call.arguments, DataType::Int64, |arguments, num_rows| {
        let at = |column: usize, row: usize| {
            let doubles = arguments[column].as_primitive::<Float64Type>();
            doubles.is_valid(row).then(|| doubles.value(row))
        };
        let buckets = arguments[3].as_primitive::<Int64Type>();
        let rows = (0..num_rows).map(|row| {
            let (value, min, max) = (at(0, row)?, at(1, row)?, at(2, row)?);
            let count = buckets.is_valid(row).then(|| buckets.value(row))?;
            if count <= 0 || count == i64::MAX || value.is_nan() || min == max || !min.is_finite() || !max.is_finite() {
                return None;
            }
            let (low, high) = (min.min(max), min.max(max));
            let is_below = if min < max { value < low } else { value > high };
            let is_above = if min < max { value >= high } else { value <= low };
            let width = (high - low) / count as f64;
            Some(match (is_below, is_above) {
                (true, _) => 0,
                (_, true) => count + 1,
                _ if min < max => ((value - min) / width) as i64 + 1,
                _ => ((min - value) / width) as i64 + 1,
            })
        });
        Ok(Arc::new(rows.collect::<PrimitiveArray<Int64Type>>()))
    }))
}

/// The constant second argument of a rounding, 0 without one.
fn places(call: &Call<'_>) -> Result<i32> {
    match call.arguments.get(1) {
        Some(places) => {
            let places = call.constant_integer(places)?;
            i32::try_from(places).map_err(|_| call.mismatch("NON_FOLDABLE_INPUT", "scale out of range".into()))
        }
        None => Ok(0),
    }
}

/// What a number that no theme expects is.
fn not_a_number(call: &Call<'_>, value: &Typed) -> Error {
    call.unexpected(value, "NUMERIC")
}
