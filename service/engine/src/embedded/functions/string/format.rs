//! Numbers and values written out.

use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int32Type};

use crate::embedded::expression::Typed;
use crate::embedded::expression::cast::number::{decimal_text, rescaled};
use crate::embedded::expression::coercion::{is_float, is_integral};
use crate::embedded::functions::{Call, kernel};
use crate::{Error, Result};

/// `format_number(number, places)`: with commas between thousands, rounded half to even.
pub fn number(mut call: Call<'_>) -> Result<Typed> {
    let [value, places] = call.take()?;
    if places.data_type() == &DataType::Utf8 {
        return Err(Error::Unsupported { feature: "format_number with a pattern".into() });
    }
    let value = match value.data_type() {
        data_type if is_integral(data_type) => call.cast(value, &DataType::Decimal128(20, 0))?,
        DataType::Decimal128(_, _) => value,
        data_type if is_float(data_type) || matches!(data_type, DataType::Utf8 | DataType::Null) => {
            call.cast(value, &DataType::Float64)?
        }
        _ => return Err(call.unexpected(&value, "NUMERIC")),
    };
    let places = call.cast(places, &DataType::Int32)?;
    Ok(kernel::nullable("format_number", vec![value, places], DataType::Utf8, |arguments, num_rows| {
        let places = arguments[1].as_primitive::<Int32Type>();
        let mut rows = Vec::with_capacity(num_rows);
        for row in 0..num_rows {
            if arguments[0].is_null(row) || places.is_null(row) || places.value(row) < 0 {
                rows.push(None);
                continue;
            }
            let num_places = places.value(row) as usize;
            rows.push(Some(match arguments[0].data_type() {
                DataType::Decimal128(_, scale) => {
                    let digits = arguments[0].as_primitive::<Decimal128Type>().value(row);
                    decimal_with_commas(digits, *scale, num_places)
                }
                _ => double_with_commas(arguments[0].as_primitive::<Float64Type>().value(row), num_places),
            }));
        }
        Ok(Arc::new(StringArray::from(rows)))
    }))
}

fn double_with_commas(double: f64, places: usize) -> String {
    if double.is_nan() {
        return "NaN".into();
    }
    if double.is_infinite() {
        return if double > 0.0 { "∞".into() } else { "-∞".into() };
    }
    // Rust's formatting rounds the exact value half to even, as Java's DecimalFormat does.
    grouped(&format!("{double:.places$}"))
}

fn decimal_with_commas(digits: i128, scale: i8, places: usize) -> String {
    let to = places.min(30) as i32;
    let rounded = rescaled(digits, scale.into(), to).unwrap_or(digits);
    grouped(&decimal_text(rounded, to as i8))
}

fn grouped(plain: &str) -> String {
    let (sign, unsigned) = match plain.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", plain),
    };
    let (whole, fraction) =
        unsigned.split_once('.').map_or((unsigned, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut out = String::from(sign);
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// `format_string`, `printf`.
pub fn string(mut call: Call<'_>) -> Result<Typed> {
    let arguments = std::mem::take(&mut call.arguments);
    if arguments[0].data_type() != &DataType::Utf8 {
        return Err(call.unexpected(&arguments[0], "STRING"));
    }
    let nullable = arguments[0].nullable();
    Ok(kernel::foreign(datafusion_spark::function::string::format_string(), arguments, DataType::Utf8, nullable))
}
