//! Numbers in other bases.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryArray, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};

use super::super::string::{binary, texts};
use super::super::{Call, kernel};
use crate::Result;
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::is_numeric;

pub fn bin(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Int64])?;
    Ok(kernel::strict("bin", call.arguments, DataType::Utf8, |arguments, _| {
        let rows = arguments[0].as_primitive::<Int64Type>().iter().map(|long| long.map(|long| format!("{long:b}")));
        Ok(Arc::new(rows.collect::<StringArray>()))
    }))
}

pub fn hex(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    if is_numeric(value.data_type()) {
        let value = call.cast(value, &DataType::Int64)?;
        return Ok(kernel::strict("hex", vec![value], DataType::Utf8, |arguments, _| {
            let rows = arguments[0].as_primitive::<Int64Type>().iter().map(|long| long.map(|long| format!("{long:X}")));
            Ok(Arc::new(rows.collect::<StringArray>()))
        }));
    }
    let value = binary(&call, value)?;
    Ok(kernel::strict("hex", vec![value], DataType::Utf8, |arguments, _| {
        let rows = arguments[0].as_binary::<i32>().iter();
        let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
        Ok(Arc::new(rows.map(|bytes| bytes.map(text)).collect::<StringArray>()))
    }))
}

pub fn unhex(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8])?;
    Ok(kernel::nullable("unhex", call.arguments, DataType::Binary, |arguments, _| {
        let rows: Vec<Option<Vec<u8>>> = texts(&arguments[0]).iter().map(|text| bytes_of(text?)).collect();
        Ok(Arc::new(rows.iter().map(Option::as_deref).collect::<BinaryArray>()))
    }))
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let padded = if text.len() % 2 == 1 { format!("0{text}") } else { text.to_string() };
    let digits: Vec<u8> = padded.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// `conv(text, from, to)`: a negative target base reads the 64 bits as signed.
pub fn conv(mut call: Call<'_>) -> Result<Typed> {
    call.cast_arguments(&[DataType::Utf8, DataType::Int32, DataType::Int32])?;
    Ok(kernel::nullable("conv", call.arguments, DataType::Utf8, |arguments, num_rows| {
        let numbers = texts(&arguments[0]);
        let (from, to) = (arguments[1].as_primitive::<Int32Type>(), arguments[2].as_primitive::<Int32Type>());
        let rows = (0..num_rows).map(|row| {
            let is_present = numbers.is_valid(row) && from.is_valid(row) && to.is_valid(row);
            is_present.then(|| converted(numbers.value(row), from.value(row), to.value(row))).flatten()
        });
        Ok(Arc::new(rows.collect::<StringArray>()))
    }))
}

fn converted(text: &str, from: i32, to: i32) -> Option<String> {
    let text = text.trim();
    if !(2..=36).contains(&from) || !(2..=36).contains(&to.abs()) || text.is_empty() {
        return None;
    }
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let mut number: u64 = 0;
    for digit in digits.chars().map_while(|character| character.to_digit(from as u32)) {
        number = number.checked_mul(from as u64).and_then(|n| n.checked_add(digit.into())).unwrap_or(u64::MAX);
    }
    if is_negative {
        number = number.wrapping_neg();
    }
    let is_signed = to < 0 && (number as i64) < 0;
    let mut rest = if is_signed { (number as i64).unsigned_abs() } else { number };
    let base = to.unsigned_abs();
    let mut out = Vec::new();
    loop {
        out.push(char::from_digit((rest % u64::from(base)) as u32, base)?.to_ascii_uppercase());
        rest /= u64::from(base);
        if rest == 0 {
            break;
        }
    }
    if is_signed {
        out.push('-');
    }
    Some(out.into_iter().rev().collect())
}
