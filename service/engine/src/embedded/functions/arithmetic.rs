//! `+ - * / % div`, bits, and their checked and try_ forms.

mod decimal;
mod integer;

use arrow::array::{ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, TimeUnit};
use datafusion::logical_expr::{Operator, binary_expr};
use std::sync::Arc;

use super::kernel::{self, Kernel};
use super::{Call, Function, function};
use crate::data_type::sql_name;
use crate::embedded::expression::Typed;
use crate::embedded::expression::coercion::{
    decimal_of_operand, is_decimal, is_float, is_integral, is_numeric, timestamp_type, wider,
};
use crate::{Error, Result};

pub const FUNCTIONS: &[Function] = &[
    function("+", 1, 2, add),
    function("-", 1, 2, subtract),
    function("*", 2, 2, |call| binary(call, Operation::Multiply, false)),
    function("/", 2, 2, |call| divide(call, false)),
    function("%", 2, 2, |call| binary(call, Operation::Remainder, false)),
    function("mod", 2, 2, |call| binary(call, Operation::Remainder, false)),
    function("pmod", 2, 2, |call| binary(call, Operation::PositiveRemainder, false)),
    function("div", 2, 2, |call| binary(call, Operation::IntegralDivide, false)),
    function("try_add", 2, 2, |call| binary(call, Operation::Add, true)),
    function("try_subtract", 2, 2, |call| binary(call, Operation::Subtract, true)),
    function("try_multiply", 2, 2, |call| binary(call, Operation::Multiply, true)),
    function("try_divide", 2, 2, |call| divide(call, true)),
    function("try_mod", 2, 2, |call| binary(call, Operation::Remainder, true)),
    function("negative", 1, 1, negative),
    function("positive", 1, 1, positive),
    function("&", 2, 2, |call| bits(call, Operator::BitwiseAnd)),
    function("|", 2, 2, |call| bits(call, Operator::BitwiseOr)),
    function("^", 2, 2, |call| bits(call, Operator::BitwiseXor)),
    function("~", 1, 1, bit_not),
    function("bitwise_not", 1, 1, bit_not),
    function("shiftleft", 2, 2, |call| shift(call, Shift::Left)),
    function("<<", 2, 2, |call| shift(call, Shift::Left)),
    function("shiftright", 2, 2, |call| shift(call, Shift::Right)),
    function(">>", 2, 2, |call| shift(call, Shift::Right)),
    function("shiftrightunsigned", 2, 2, |call| shift(call, Shift::UnsignedRight)),
    function(">>>", 2, 2, |call| shift(call, Shift::UnsignedRight)),
    function("bit_count", 1, 1, bit_count),
];

/// An operation on two numbers of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    PositiveRemainder,
    IntegralDivide,
}

/// What overflow and division by zero do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    Raise,
    Null,
    Wrap,
}

impl Overflow {
    fn of(call: &Call<'_>, is_try: bool) -> Overflow {
        match (is_try, call.ansi()) {
            (true, _) => Overflow::Null,
            (false, true) => Overflow::Raise,
            (false, false) => Overflow::Wrap,
        }
    }
}

fn add(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.len() == 1 {
        return positive(call);
    }
    let types = (call.arguments[0].data_type().clone(), call.arguments[1].data_type().clone());
    match types {
        (DataType::Date32, days) if is_integral(&days) => super::date::add_days(call, 1),
        (days, DataType::Date32) if is_integral(&days) => {
            call.arguments.reverse();
            super::date::add_days(call, 1)
        }
        _ if is_temporal(&types.0) || is_temporal(&types.1) => temporal(call, false),
        _ => binary(call, Operation::Add, false),
    }
}

fn subtract(mut call: Call<'_>) -> Result<Typed> {
    if call.arguments.len() == 1 {
        return negative(call);
    }
    let types = (call.arguments[0].data_type().clone(), call.arguments[1].data_type().clone());
    match types {
        (DataType::Date32, days) if is_integral(&days) => super::date::add_days(call, -1),
        (DataType::Date32, DataType::Date32) => {
            let [end, start] = call.take()?;
            let nullable = end.nullable() || start.nullable();
            let kernel = Kernel::new("date minus date", DataType::Duration(TimeUnit::Microsecond), nullable);
            // Of a day-time interval this is the kind that has days only.
            let marks = [(udt::field::SPARK_TYPE.to_string(), "interval day".to_string())];
            let output = Arc::new(kernel.output.as_ref().clone().with_metadata(marks.into()));
            Ok(Kernel { output, ..kernel }.call(vec![end, start], |arguments, _| {
                let end = arrow::compute::cast(&arguments[0], &DataType::Timestamp(TimeUnit::Microsecond, None))?;
                let start = arrow::compute::cast(&arguments[1], &DataType::Timestamp(TimeUnit::Microsecond, None))?;
                Ok(numeric::sub(&end, &start)?)
            }))
        }
        (DataType::Timestamp(_, _), DataType::Timestamp(_, _) | DataType::Date32)
        | (DataType::Date32, DataType::Timestamp(_, _)) => {
            call.unify()?;
            let [end, start] = call.take()?;
            let output = DataType::Duration(TimeUnit::Microsecond);
            Ok(kernel::strict("timestamp minus timestamp", vec![end, start], output, |arguments, _| {
                Ok(numeric::sub(&arguments[0], &arguments[1])?)
            }))
        }
        _ if is_temporal(&types.0) || is_temporal(&types.1) => temporal(call, true),
        _ => binary(call, Operation::Subtract, false),
    }
}

fn is_temporal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(_, _) | DataType::Duration(_) | DataType::Interval(_))
}

/// Dates, timestamps and intervals with intervals.
fn temporal(mut call: Call<'_>, is_minus: bool) -> Result<Typed> {
    let [mut left, mut right] = call.take()?;
    let is_interval = |data_type: &DataType| matches!(data_type, DataType::Duration(_) | DataType::Interval(_));
    if is_interval(left.data_type()) && !is_interval(right.data_type()) && !is_minus {
        std::mem::swap(&mut left, &mut right);
    }
    if !is_interval(right.data_type()) {
        let detail = format!(
            "the left and right operands of the binary operator have incompatible types (\"{}\" and \"{}\")",
            sql_name(&left.field),
            sql_name(&right.field)
        );
        return Err(call.mismatch("BINARY_OP_DIFF_TYPES", detail));
    }
    if is_interval(left.data_type()) && left.data_type() != right.data_type() {
        return Err(call.mismatch("BINARY_OP_DIFF_TYPES", "the two intervals are of different kinds".into()));
    }
    let with_time = matches!(right.data_type(), DataType::Duration(_));
    if left.data_type() == &DataType::Date32 && with_time {
        left = call.cast(left, &timestamp_type())?;
    }
    let output = left.data_type().clone();
    let zone = crate::embedded::expression::zone::Zone::of(call.conf());
    let name = format!("{} interval in {zone:?}", if is_minus { "minus" } else { "plus" });
    Ok(kernel::raising(name, vec![left, right], output, move |arguments, _| {
        super::date::shift_by_interval(&arguments[0], &arguments[1], is_minus, &zone)
    }))
}

fn binary(mut call: Call<'_>, operation: Operation, is_try: bool) -> Result<Typed> {
    let overflow = Overflow::of(&call, is_try);
    if call.arguments.iter().any(|argument| is_temporal(argument.data_type())) {
        return match operation {
            Operation::Add => temporal(call, false),
            Operation::Subtract => temporal(call, true),
            _ => Err(Error::Unsupported { feature: format!("{operation:?} of intervals") }),
        };
    }
    let [left, right] = numbers(&mut call)?;
    if is_decimal(left.data_type()) || is_decimal(right.data_type()) {
        return decimals(&call, left, right, operation, overflow);
    }
    let data_type = left.data_type().clone();
    match operation {
        Operation::IntegralDivide if is_float(&data_type) => {
            Err(call.mismatch("BINARY_OP_WRONG_TYPE", "div needs integers, decimals or intervals".into()))
        }
        Operation::IntegralDivide => {
            let left = call.cast(left, &DataType::Int64)?;
            let right = call.cast(right, &DataType::Int64)?;
            Ok(integer::apply(operation, overflow, left, right, &DataType::Int64))
        }
        _ if is_integral(&data_type) => Ok(integer::apply(operation, overflow, left, right, &data_type)),
        Operation::Add => Ok(plain(left, Operator::Plus, right, data_type)),
        Operation::Subtract => Ok(plain(left, Operator::Minus, right, data_type)),
        Operation::Multiply => Ok(plain(left, Operator::Multiply, right, data_type)),
        _ => Ok(float_division(operation, overflow, left, right, data_type)),
    }
}

fn plain(left: Typed, operator: Operator, right: Typed, data_type: DataType) -> Typed {
    let nullable = left.nullable() || right.nullable();
    Typed::new(binary_expr(left.expr, operator, right.expr), data_type, nullable)
}

/// Both operands as numbers of one type, decimals as they are.
fn numbers(call: &mut Call<'_>) -> Result<[Typed; 2]> {
    let [left, right] = call.take()?;
    let as_number = |value: Typed, other: &DataType| -> Result<Typed> {
        match value.data_type() {
            // Text next to a number becomes one, of the widest type of the number's kind.
            DataType::Utf8 if call.ansi() && is_integral(other) => call.cast(value, &DataType::Int64),
            DataType::Utf8 if is_numeric(other) || other == &DataType::Null || !call.ansi() => {
                call.cast(value, &DataType::Float64)
            }
            DataType::Null if is_numeric(other) => call.cast(value, other),
            DataType::Null => call.cast(value, &DataType::Float64),
            _ => Ok(value),
        }
    };
    let (left_type, right_type) = (left.data_type().clone(), right.data_type().clone());
    let left = as_number(left, &right_type)?;
    let right = as_number(right, &left_type)?;
    if !is_numeric(left.data_type()) || !is_numeric(right.data_type()) {
        let name = |value: &Typed| sql_name(&value.field);
        if left_type == right_type {
            return Err(call.mismatch(
                "BINARY_OP_WRONG_TYPE",
                format!("the binary operator requires the input type \"NUMERIC\", not \"{}\"", name(&left)),
            ));
        }
        return Err(call.mismatch(
            "BINARY_OP_DIFF_TYPES",
            format!(
                "the left and right operands of the binary operator have incompatible types (\"{}\" and \"{}\")",
                name(&left),
                name(&right)
            ),
        ));
    }
    if is_decimal(left.data_type()) || is_decimal(right.data_type()) {
        if is_float(left.data_type()) || is_float(right.data_type()) {
            return Ok([call.cast(left, &DataType::Float64)?, call.cast(right, &DataType::Float64)?]);
        }
        return Ok([left, right]);
    }
    let common = wider(left.data_type(), right.data_type(), call.conf())
        .ok_or_else(|| Error::Bug { invariant: "numbers have a common type".into() })?;
    Ok([call.cast(left, &common)?, call.cast(right, &common)?])
}

fn decimals(call: &Call<'_>, left: Typed, right: Typed, operation: Operation, overflow: Overflow) -> Result<Typed> {
    let (Some(left_type), Some(right_type)) = (decimal_of_operand(&left), decimal_of_operand(&right)) else {
        return Err(Error::Bug { invariant: "operands of decimal arithmetic are decimals or integers".into() });
    };
    let left = call.cast(left, &DataType::Decimal128(left_type.0, left_type.1))?;
    let right = call.cast(right, &DataType::Decimal128(right_type.0, right_type.1))?;
    Ok(decimal::apply(operation, overflow, left, right))
}

/// `/`: doubles, unless a side is decimal.
fn divide(mut call: Call<'_>, is_try: bool) -> Result<Typed> {
    let overflow = Overflow::of(&call, is_try);
    let [left, right] = numbers(&mut call)?;
    if is_decimal(left.data_type()) || is_decimal(right.data_type()) {
        return decimals(&call, left, right, Operation::Divide, overflow);
    }
    let left = call.cast(left, &DataType::Float64)?;
    let right = call.cast(right, &DataType::Float64)?;
    Ok(float_division(Operation::Divide, overflow, left, right, DataType::Float64))
}

fn float_division(operation: Operation, overflow: Overflow, left: Typed, right: Typed, data_type: DataType) -> Typed {
    let is_safe = right.value().is_some_and(|divisor| match divisor {
        datafusion::common::ScalarValue::Float64(Some(divisor)) => *divisor != 0.0,
        datafusion::common::ScalarValue::Float32(Some(divisor)) => *divisor != 0.0,
        _ => false,
    });
    if operation == Operation::Divide && is_safe {
        return plain(left, Operator::Divide, right, data_type);
    }
    let nullable = overflow != Overflow::Raise || left.nullable() || right.nullable();
    let kernel = Kernel {
        raises: overflow == Overflow::Raise,
        ..Kernel::new(format!("{operation:?} {overflow:?}"), data_type.clone(), nullable)
    };
    kernel.call(vec![left, right], move |arguments, _| {
        let doubles = |array: &ArrayRef| arrow::compute::cast(array, &DataType::Float64);
        let (left, right) = (doubles(&arguments[0])?, doubles(&arguments[1])?);
        let (left, right) = (left.as_primitive::<Float64Type>(), right.as_primitive::<Float64Type>());
        let mut quotients = Vec::with_capacity(left.len());
        for (left, right) in left.iter().zip(right) {
            quotients.push(match (left, right) {
                (Some(_), Some(0.0)) if overflow == Overflow::Raise => return Err(divided_by_zero(operation)),
                (Some(_), Some(0.0)) | (None, _) | (_, None) => None,
                (Some(left), Some(right)) => Some(match operation {
                    Operation::Divide => left / right,
                    Operation::PositiveRemainder => {
                        let rest = left % right;
                        if rest < 0.0 { (rest + right) % right } else { rest }
                    }
                    _ => left % right,
                }),
            });
        }
        let quotients: ArrayRef = Arc::new(PrimitiveArray::<Float64Type>::from(quotients));
        Ok(arrow::compute::cast(&quotients, &data_type)?)
    })
}

/// DIVIDE_BY_ZERO or, for a remainder, REMAINDER_BY_ZERO.
pub fn divided_by_zero(operation: Operation) -> Error {
    if matches!(operation, Operation::Remainder | Operation::PositiveRemainder) {
        return Error::Row {
            class: "REMAINDER_BY_ZERO",
            message:
                "Remainder by zero. Use `try_mod` to tolerate divisor being 0 and return NULL instead. If necessary \
                      set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error."
                    .into(),
            parameters: vec![("config", "\"spark.sql.ansi.enabled\"".into())],
        };
    }
    Error::Row {
        class: "DIVIDE_BY_ZERO",
        message:
            "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. If necessary set \
                  \"spark.sql.ansi.enabled\" to \"false\" to bypass this error."
                .into(),
        parameters: vec![("config", "\"spark.sql.ansi.enabled\"".into())],
    }
}

/// ARITHMETIC_OVERFLOW.
pub fn overflowed(data_type: &DataType, alternative: &str) -> Error {
    if let DataType::Int8 | DataType::Int16 = data_type {
        return Error::Row {
            class: "BINARY_ARITHMETIC_OVERFLOW",
            message: format!(
                "{} arithmetic caused overflow.{}",
                sql_name(&arrow::datatypes::Field::new("", data_type.clone(), true)),
                if alternative.is_empty() {
                    String::new()
                } else {
                    format!(" Use `{alternative}` to ignore overflow problem and return NULL.")
                }
            ),
            parameters: vec![("functionName", format!("`{alternative}`"))],
        };
    }
    let kind = match data_type {
        DataType::Int64 => "long",
        DataType::Int32 => "integer",
        _ => "numeric",
    };
    let hint = if alternative.is_empty() {
        String::new()
    } else {
        format!(" Use '{alternative}' to tolerate overflow and return NULL instead.")
    };
    Error::Row {
        class: "ARITHMETIC_OVERFLOW",
        message: format!(
            "{kind} overflow.{hint} If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error."
        ),
        parameters: vec![
            ("message", format!("{kind} overflow")),
            ("alternative", hint),
            ("config", "\"spark.sql.ansi.enabled\"".into()),
        ],
    }
}

fn number(call: &Call<'_>, value: Typed) -> Result<Typed> {
    match value.data_type() {
        DataType::Utf8 | DataType::Null => call.cast(value, &DataType::Float64),
        data_type if is_numeric(data_type) || is_temporal(data_type) => Ok(value),
        _ => Err(call.unexpected(&value, "NUMERIC")),
    }
}

fn positive(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    number(&call, value)
}

fn negative(mut call: Call<'_>) -> Result<Typed> {
    let overflow = Overflow::of(&call, false);
    let [value] = call.take()?;
    let value = number(&call, value)?;
    if let Some(literal) = value.value()
        && let Ok(negated) = literal.arithmetic_negate()
    {
        return Ok(Typed::literal(negated));
    }
    let data_type = value.data_type().clone();
    if is_integral(&data_type) {
        let zero = Typed::literal(datafusion::common::ScalarValue::new_zero(&data_type)?);
        return Ok(integer::apply(Operation::Subtract, overflow, zero, value, &data_type));
    }
    Ok(kernel::strict("negative", vec![value], data_type, |arguments, _| Ok(numeric::neg_wrapping(&arguments[0])?)))
}

fn bits(mut call: Call<'_>, operator: Operator) -> Result<Typed> {
    let [left, right] = call.take()?;
    if left.data_type() == &DataType::Boolean || right.data_type() == &DataType::Boolean {
        return Err(call.unexpected(&left, "INTEGRAL"));
    }
    let [left, right] = {
        call.arguments = vec![left, right];
        numbers(&mut call)?
    };
    if !is_integral(left.data_type()) {
        return Err(call.unexpected(&left, "INTEGRAL"));
    }
    let data_type = left.data_type().clone();
    Ok(plain(left, operator, right, data_type))
}

fn bit_not(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    if !is_integral(value.data_type()) {
        return Err(call.unexpected(&value, "INTEGRAL"));
    }
    let data_type = value.data_type().clone();
    let ones = Typed::literal(datafusion::common::ScalarValue::Int64(Some(-1)));
    let ones = call.cast(ones, &data_type)?;
    Ok(plain(value, Operator::BitwiseXor, ones, data_type))
}

#[derive(Debug, Clone, Copy)]
enum Shift {
    Left,
    Right,
    UnsignedRight,
}

fn shift(mut call: Call<'_>, shift: Shift) -> Result<Typed> {
    let [value, distance] = call.take()?;
    let distance = call.cast(distance, &DataType::Int32)?;
    let value = if value.data_type() == &DataType::Int64 { value } else { call.cast(value, &DataType::Int32)? };
    let data_type = value.data_type().clone();
    Ok(kernel::strict(format!("shift {shift:?}"), vec![value, distance], data_type, move |arguments, _| {
        let distances = arguments[1].as_primitive::<Int32Type>();
        if let Some(longs) = arguments[0].as_primitive_opt::<Int64Type>() {
            let shifted =
                arrow::compute::binary::<_, _, _, Int64Type>(longs, distances, |value, distance| match shift {
                    Shift::Left => value.wrapping_shl(distance as u32),
                    Shift::Right => value.wrapping_shr(distance as u32),
                    Shift::UnsignedRight => (value as u64).wrapping_shr(distance as u32) as i64,
                })?;
            return Ok(Arc::new(shifted) as ArrayRef);
        }
        let integers = arguments[0].as_primitive::<Int32Type>();
        let shifted =
            arrow::compute::binary::<_, _, _, Int32Type>(integers, distances, |value, distance| match shift {
                Shift::Left => value.wrapping_shl(distance as u32),
                Shift::Right => value.wrapping_shr(distance as u32),
                Shift::UnsignedRight => (value as u32).wrapping_shr(distance as u32) as i32,
            })?;
        Ok(Arc::new(shifted))
    }))
}

fn bit_count(mut call: Call<'_>) -> Result<Typed> {
    let [value] = call.take()?;
    if value.data_type() == &DataType::Boolean {
        return Ok(kernel::strict("bit_count", vec![value], DataType::Int32, |arguments, _| {
            let truths: &BooleanArray = arguments[0].as_boolean();
            let counts: PrimitiveArray<Int32Type> = truths.iter().map(|truth| truth.map(i32::from)).collect();
            Ok(Arc::new(counts))
        }));
    }
    if !is_integral(value.data_type()) {
        return Err(call.unexpected(&value, "INTEGRAL"));
    }
    let value = call.cast(value, &DataType::Int64)?;
    Ok(kernel::strict("bit_count", vec![value], DataType::Int32, |arguments, _| {
        let longs = arguments[0].as_primitive::<Int64Type>();
        let counts: PrimitiveArray<Int32Type> = longs.unary(|long| long.count_ones() as i32);
        Ok(Arc::new(counts))
    }))
}
