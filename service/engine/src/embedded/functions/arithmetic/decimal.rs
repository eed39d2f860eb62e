//! Decimal arithmetic with Spark's result types: exact in 256 bits, then rounded half up to what a decimal holds.

use std::sync::Arc;

use arrow::array::{AsArray, Decimal128Array, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, i256};

use super::{Operation, Overflow, divided_by_zero, overflowed};
use crate::embedded::expression::Typed;
use crate::embedded::functions::kernel::Kernel;
use crate::{Error, Result};

const MAX_PRECISION: i32 = 38;
const MIN_ADJUSTED_SCALE: i32 = 6;

/// Spark's result type, before and after it is cut to 38 digits.
fn result_type(operation: Operation, (p1, s1): (i32, i32), (p2, s2): (i32, i32)) -> (u8, i8) {
    let (precision, scale) = match operation {
        Operation::Add | Operation::Subtract => {
            let scale = s1.max(s2);
            ((p1 - s1).max(p2 - s2) + scale + 1, scale)
        }
        Operation::Multiply => (p1 + p2 + 1, s1 + s2),
        Operation::Divide => {
            let scale = MIN_ADJUSTED_SCALE.max(s1 + p2 + 1);
            (p1 - s1 + s2 + scale, scale)
        }
        Operation::Remainder | Operation::PositiveRemainder => ((p1 - s1).min(p2 - s2) + s1.max(s2), s1.max(s2)),
        Operation::IntegralDivide => ((p1 - s1 + s2).max(1), 0),
    };
    adjusted(precision, scale)
}

/// Digits before the point are kept first, then at least six after it.
fn adjusted(precision: i32, scale: i32) -> (u8, i8) {
    if precision <= MAX_PRECISION {
        return (precision as u8, scale as i8);
    }
    let whole = precision - scale;
    let scale = (MAX_PRECISION - whole).max(scale.min(MIN_ADJUSTED_SCALE));
    (MAX_PRECISION as u8, scale as i8)
}

pub fn apply(operation: Operation, overflow: Overflow, left: Typed, right: Typed) -> Typed {
    let shape = |value: &Typed| match value.data_type() {
        DataType::Decimal128(precision, scale) => (i32::from(*precision), i32::from(*scale)),
        _ => (MAX_PRECISION, 0),
    };
    let (left_shape, right_shape) = (shape(&left), shape(&right));
    let (precision, scale) = result_type(operation, left_shape, right_shape);
    let is_whole = operation == Operation::IntegralDivide;
    let output = if is_whole { DataType::Int64 } else { DataType::Decimal128(precision, scale) };
    let nullable = overflow != Overflow::Raise || left.nullable() || right.nullable();
    let kernel = Kernel {
        raises: overflow == Overflow::Raise,
        ..Kernel::new(format!("decimal {operation:?} {overflow:?}"), output.clone(), nullable)
    };
    kernel.call(vec![left, right], move |arguments, _| {
        let (lefts, rights) =
            (arguments[0].as_primitive::<Decimal128Type>(), arguments[1].as_primitive::<Decimal128Type>());
        let mut results: Vec<Option<i128>> = Vec::with_capacity(lefts.len());
        for (left, right) in lefts.iter().zip(rights) {
            let (Some(left), Some(right)) = (left, right) else {
                results.push(None);
                continue;
            };
            let is_division = !matches!(operation, Operation::Add | Operation::Subtract | Operation::Multiply);
            if is_division && right == 0 {
                if overflow == Overflow::Raise {
                    return Err(divided_by_zero(operation));
                }
                results.push(None);
                continue;
            }
            let result = compute(operation, (left, left_shape.1), (right, right_shape.1), scale.into())
                .filter(|digits| digits.unsigned_abs() < 10u128.pow(precision.into()));
            if result.is_none() && overflow == Overflow::Raise {
                return Err(out_of_range(operation, (left, left_shape.1), (right, right_shape.1), precision, scale));
            }
            results.push(result);
        }
        if is_whole {
            return whole(results, overflow);
        }
        Ok(Arc::new(Decimal128Array::from(results).with_precision_and_scale(precision, scale)?))
    })
}

fn whole(results: Vec<Option<i128>>, overflow: Overflow) -> Result<arrow::array::ArrayRef> {
    let mut longs = Vec::with_capacity(results.len());
    for result in results {
        longs.push(match result.map(i64::try_from) {
            Some(Ok(long)) => Some(long),
            Some(Err(_)) if overflow == Overflow::Raise => return Err(overflowed(&DataType::Int64, "")),
            _ => None,
        });
    }
    Ok(Arc::new(PrimitiveArray::<Int64Type>::from(longs)))
}

fn power_of_ten(exponent: i32) -> Option<i256> {
    let mut power = i256::ONE;
    for _ in 0..exponent {
        power = power.checked_mul(i256::from_i128(10))?;
    }
    Some(power)
}

fn compute(operation: Operation, (left, s1): (i128, i32), (right, s2): (i128, i32), scale: i32) -> Option<i128> {
    let (left, right) = (i256::from_i128(left), i256::from_i128(right));
    let common = s1.max(s2);
    let aligned =
        || Some((left.checked_mul(power_of_ten(common - s1)?)?, right.checked_mul(power_of_ten(common - s2)?)?));
    let (digits, from) = match operation {
        Operation::Add => {
            let (left, right) = aligned()?;
            (left.checked_add(right)?, common)
        }
        Operation::Subtract => {
            let (left, right) = aligned()?;
            (left.checked_sub(right)?, common)
        }
        Operation::Multiply => (left.checked_mul(right)?, s1 + s2),
        Operation::Divide => {
            // One digit more than is asked for, and whether anything is left, decide the rounding.
            let exponent = scale + 1 + s2 - s1;
            let (left, right) = if exponent >= 0 {
                (left.checked_mul(power_of_ten(exponent)?)?, right)
            } else {
                (left, right.checked_mul(power_of_ten(-exponent)?)?)
            };
            (left.checked_div(right)?, scale + 1)
        }
        Operation::Remainder => {
            let (left, right) = aligned()?;
            (left.checked_rem(right)?, common)
        }
        Operation::PositiveRemainder => {
            let (left, right) = aligned()?;
            let rest = left.checked_rem(right)?;
            (if rest < i256::ZERO { rest.checked_add(right)?.checked_rem(right)? } else { rest }, common)
        }
        Operation::IntegralDivide => {
            let (left, right) = aligned()?;
            (left.checked_div(right)?, 0)
        }
    };
    if from <= scale {
        return digits.checked_mul(power_of_ten(scale - from)?)?.to_i128();
    }
    let divisor = power_of_ten(from - scale)?;
    let (quotient, rest) = (digits.checked_div(divisor)?, digits.checked_rem(divisor)?);
    let doubled = rest.checked_abs()?.checked_mul(i256::from_i128(2))?;
    let step = if digits < i256::ZERO { i256::MINUS_ONE } else { i256::ONE };
    let rounded = if doubled >= divisor { quotient.checked_add(step)? } else { quotient };
    rounded.to_i128()
}

fn out_of_range(operation: Operation, left: (i128, i32), right: (i128, i32), precision: u8, scale: i8) -> Error {
    let value = compute(operation, left, right, scale.into())
        .map(|digits| crate::embedded::expression::cast::number::decimal_text(digits, scale))
        .unwrap_or_else(|| "The result".into());
    Error::Row {
        class: "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
        message: format!(
            "{value} cannot be represented as Decimal({precision}, {scale}). If necessary set \"spark.sql.ansi.enabled\" to \
             \"false\" to bypass this error, and return NULL instead."
        ),
        parameters: vec![
            ("value", value),
            ("precision", precision.to_string()),
            ("scale", scale.to_string()),
            ("config", "\"spark.sql.ansi.enabled\"".into()),
        ],
    }
}
