//! Integer arithmetic, checked.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Int8Type, Int16Type, Int32Type, Int64Type};
use num::{Integer, apply_checked, apply_wrapping};

use super::{Operation, Overflow, divided_by_zero, overflowed};
use crate::Result;
use crate::embedded::expression::Typed;
use crate::embedded::functions::kernel::Kernel;

pub fn apply(operation: Operation, overflow: Overflow, left: Typed, right: Typed, data_type: &DataType) -> Typed {
    let divides = matches!(operation, Operation::Remainder | Operation::PositiveRemainder | Operation::IntegralDivide);
    let makes_null = overflow == Overflow::Null || (divides && overflow == Overflow::Wrap);
    let nullable = left.nullable() || right.nullable() || makes_null;
    let kernel = Kernel {
        raises: overflow == Overflow::Raise,
        ..Kernel::new(format!("{operation:?} {overflow:?}"), data_type.clone(), nullable)
    };
    let data_type = data_type.clone();
    kernel.call(vec![left, right], move |arguments, _| match data_type {
        DataType::Int8 => columns::<Int8Type>(operation, overflow, arguments),
        DataType::Int16 => columns::<Int16Type>(operation, overflow, arguments),
        DataType::Int32 => columns::<Int32Type>(operation, overflow, arguments),
        _ => columns::<Int64Type>(operation, overflow, arguments),
    })
}

fn columns<T: ArrowPrimitiveType>(operation: Operation, overflow: Overflow, arguments: &[ArrayRef]) -> Result<ArrayRef>
where
    T::Native: Integer,
{
    let (left, right) = (arguments[0].as_primitive::<T>(), arguments[1].as_primitive::<T>());
    let divides = matches!(operation, Operation::Remainder | Operation::PositiveRemainder | Operation::IntegralDivide);
    if overflow == Overflow::Wrap && !divides {
        let wrapped = arrow::compute::binary::<T, T, _, T>(left, right, |l, r| apply_wrapping(operation, l, r))?;
        return Ok(Arc::new(wrapped));
    }
    if overflow == Overflow::Raise && !divides {
        let checked = arrow::compute::try_binary::<_, _, _, T>(left, right, |l, r| {
            apply_checked(operation, l, r).ok_or_else(|| {
                let alternative = match operation {
                    Operation::Add => "try_add",
                    Operation::Subtract => "try_subtract",
                    _ => "try_multiply",
                };
                let error = overflowed(&T::DATA_TYPE, alternative);
                arrow::error::ArrowError::ExternalError(Box::new(error))
            })
        })?;
        return Ok(Arc::new(checked));
    }
    let mut results = Vec::with_capacity(left.len());
    for (l, r) in left.iter().zip(right) {
        let (Some(l), Some(r)) = (l, r) else {
            results.push(None);
            continue;
        };
        if divides && r == T::Native::default() {
            if overflow == Overflow::Raise {
                return Err(divided_by_zero(operation));
            }
            results.push(None);
            continue;
        }
        results.push(match apply_checked(operation, l, r) {
            None if overflow == Overflow::Raise => return Err(overflowed(&T::DATA_TYPE, "")),
            None if overflow == Overflow::Wrap => Some(apply_wrapping(operation, l, r)),
            result => result,
        });
    }
    Ok(Arc::new(PrimitiveArray::<T>::from_iter(results)))
}

/// The operations on each width of integer.
mod num {
    use super::Operation;

    pub trait Integer: Copy + PartialOrd + Default {
        fn checked(operation: Operation, left: Self, right: Self) -> Option<Self>;
        fn wrapping(operation: Operation, left: Self, right: Self) -> Self;
    }

    macro_rules! integer {
        ($($native:ty),*) => {$(
            impl Integer for $native {
                fn checked(operation: Operation, left: Self, right: Self) -> Option<Self> {
                    match operation {
                        Operation::Add => left.checked_add(right),
                        Operation::Subtract => left.checked_sub(right),
                        Operation::Multiply => left.checked_mul(right),
                        Operation::Divide | Operation::IntegralDivide => left.checked_div(right),
                        // The remainder of the least number by -1 is 0, though the quotient overflows.
                        Operation::Remainder => Some(left.wrapping_rem(right)),
                        Operation::PositiveRemainder => {
                            let rest = left.wrapping_rem(right);
                            Some(if rest < 0 { rest.wrapping_add(right).wrapping_rem(right) } else { rest })
                        }
                    }
                }

                fn wrapping(operation: Operation, left: Self, right: Self) -> Self {
                    match operation {
                        Operation::Add => left.wrapping_add(right),
                        Operation::Subtract => left.wrapping_sub(right),
                        Operation::Multiply => left.wrapping_mul(right),
                        _ => left.wrapping_div(right),
                    }
                }
            }
        )*};
    }

    integer!(i8, i16, i32, i64);

    pub fn apply_checked<T: Integer>(operation: Operation, left: T, right: T) -> Option<T> {
        T::checked(operation, left, right)
    }

    pub fn apply_wrapping<T: Integer>(operation: Operation, left: T, right: T) -> T {
        T::wrapping(operation, left, right)
    }
}
