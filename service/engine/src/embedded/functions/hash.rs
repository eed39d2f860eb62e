//! Digests and hashes.

mod murmur3;
mod xxhash64;

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int32Array, Int64Array, StringArray};
use arrow::datatypes::DataType;
use datafusion_spark::function::hash as spark;
use md5::Digest as _;

use super::kernel;
use super::string::binary;
use super::{Call, Function, function};
use crate::Result;
use crate::embedded::expression::Typed;

pub const FUNCTIONS: &[Function] = &[
    function("md5", 1, 1, md5),
    function("sha", 1, 1, |call| digest(call, spark::sha1(), DataType::Utf8)),
    function("sha1", 1, 1, |call| digest(call, spark::sha1(), DataType::Utf8)),
    function("crc32", 1, 1, |call| digest(call, spark::crc32(), DataType::Int64)),
    function("sha2", 2, 2, sha2),
    function("hash", 1, usize::MAX, murmur3_hash),
    function("xxhash64", 1, usize::MAX, xxhash64_hash),
];

fn md5(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    let value = binary(&call, value)?;
    Ok(kernel::strict("md5", vec![value], DataType::Utf8, |arguments, _| {
        let text = |bytes: &[u8]| md5::Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let rows = arguments[0].as_binary::<i32>().iter().map(|bytes| bytes.map(text));
        Ok(Arc::new(rows.collect::<StringArray>()))
    }))
}

fn digest(mut call: Call<'_>, function: Arc<datafusion::logical_expr::ScalarUDF>, output: DataType) -> Result<Typed> {
    let [value] = call.take()?;
    let nullable = value.nullable();
    let value = binary(&call, value)?;
    Ok(kernel::foreign(function, vec![value], output, nullable))
}

fn sha2(mut call: Call<'_>) -> Result<Typed> {
    let [value, bits] = call.take()?;
    let value = binary(&call, value)?;
    let bits = call.cast(bits, &DataType::Int32)?;
    Ok(kernel::foreign(spark::sha2(), vec![value, bits], DataType::Utf8, true))
}

const SEED: i32 = 42;

fn check(call: &Call<'_>) -> Result<()> {
    match call.arguments.iter().find(|argument| holds_map(argument.data_type())) {
        Some(_) => Err(call.mismatch(
            "HASH_MAP_TYPE",
            format!("input to the function `{}` cannot contain elements of the \"MAP\" type", call.name),
        )),
        None => Ok(()),
    }
}

fn holds_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(_, _) => true,
        DataType::List(element) => holds_map(element.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_map(field.data_type())),
        _ => false,
    }
}

fn murmur3_hash(call: Call<'_>) -> Result<Typed> {
    check(&call)?;
    Ok(kernel::Kernel::new("hash", DataType::Int32, false).call(call.arguments, |arguments, num_rows| {
        let mut hashes = vec![SEED; num_rows];
        for column in arguments {
            murmur3::column(column.as_ref(), &mut hashes)?;
        }
        Ok(Arc::new(Int32Array::from(hashes)))
    }))
}

fn xxhash64_hash(call: Call<'_>) -> Result<Typed> {
    check(&call)?;
    Ok(kernel::Kernel::new("xxhash64", DataType::Int64, false).call(call.arguments, |arguments, num_rows| {
        let mut hashes = vec![i64::from(SEED); num_rows];
        for column in arguments {
            xxhash64::column(column.as_ref(), &mut hashes)?;
        }
        Ok(Arc::new(Int64Array::from(hashes)))
    }))
}

/// One value as the hashes see it.
pub enum Hashed<'a> {
    Int(i32),
    Long(i64),
    Bytes(&'a [u8]),
}

/// The value of a row as both hashes take it; nothing for nested values.
pub fn hashed(array: &dyn Array, row: usize) -> Option<HashedOwned<'_>> {
    use arrow::datatypes::*;
    let float_bits = |float: f32| {
        if float == 0.0 {
            0
        } else if float.is_nan() {
            0x7fc0_0000
        } else {
            float.to_bits() as i32
        }
    };
    let double_bits = |double: f64| {
        if double == 0.0 {
            0
        } else if double.is_nan() {
            0x7ff8_0000_0000_0000
        } else {
            double.to_bits() as i64
        }
    };
    Some(match array.data_type() {
        DataType::Boolean => HashedOwned::Plain(Hashed::Int(array.as_boolean().value(row).into())),
        DataType::Int8 => HashedOwned::Plain(Hashed::Int(array.as_primitive::<Int8Type>().value(row).into())),
        DataType::Int16 => HashedOwned::Plain(Hashed::Int(array.as_primitive::<Int16Type>().value(row).into())),
        DataType::Int32 => HashedOwned::Plain(Hashed::Int(array.as_primitive::<Int32Type>().value(row))),
        DataType::Date32 => HashedOwned::Plain(Hashed::Int(array.as_primitive::<Date32Type>().value(row))),
        DataType::Interval(IntervalUnit::YearMonth) => {
            HashedOwned::Plain(Hashed::Int(array.as_primitive::<IntervalYearMonthType>().value(row)))
        }
        DataType::Int64 => HashedOwned::Plain(Hashed::Long(array.as_primitive::<Int64Type>().value(row))),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            HashedOwned::Plain(Hashed::Long(array.as_primitive::<TimestampMicrosecondType>().value(row)))
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            HashedOwned::Plain(Hashed::Long(array.as_primitive::<DurationMicrosecondType>().value(row)))
        }
        DataType::Float32 => {
            HashedOwned::Plain(Hashed::Int(float_bits(array.as_primitive::<Float32Type>().value(row))))
        }
        DataType::Float64 => {
            HashedOwned::Plain(Hashed::Long(double_bits(array.as_primitive::<Float64Type>().value(row))))
        }
        DataType::Utf8 => HashedOwned::Plain(Hashed::Bytes(array.as_string::<i32>().value(row).as_bytes())),
        DataType::Binary => HashedOwned::Plain(Hashed::Bytes(array.as_binary::<i32>().value(row))),
        DataType::Decimal128(precision, _) => {
            let digits = array.as_primitive::<Decimal128Type>().value(row);
            if *precision <= 18 {
                HashedOwned::Plain(Hashed::Long(digits as i64))
            } else {
                HashedOwned::Owned(java_bytes(digits))
            }
        }
        _ => return None,
    })
}

/// A value to hash, borrowed or made.
pub enum HashedOwned<'a> {
    Plain(Hashed<'a>),
    Owned(Vec<u8>),
}

/// The shortest big-endian two's complement of a number, as Java's BigInteger has it.
fn java_bytes(number: i128) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let filler = if number < 0 { 0xff } else { 0 };
    let mut start = 0;
    while start < 15 && bytes[start] == filler && (bytes[start + 1] & 0x80 == filler & 0x80) {
        start += 1;
    }
    bytes[start..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_spark() {
        // hash(1), hash('Spark'), hash(1L), hash(2.5D) and the same of xxhash64, as Spark 4.1 gives them.
        let columns: Vec<(arrow::array::ArrayRef, i32)> = vec![
            (Arc::new(Int32Array::from(vec![1])), -559580957),
            (Arc::new(StringArray::from(vec!["Spark"])), 228093765),
        ];
        for (column, expected) in columns {
            let mut hashes = vec![SEED];
            murmur3::column(column.as_ref(), &mut hashes).unwrap();
            assert_eq!(hashes, [expected], "{column:?}");
        }
    }
}
