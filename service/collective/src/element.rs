//! What a collective can carry: the element types, and in which type each of them is summed.

use half::{bf16, f16};

/// The type of the values of a call, as it is told to the other ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ElementType {
    U8 = 1,
    I64 = 2,
    BF16 = 3,
    F32 = 4,
    F64 = 5,
    F16 = 6,
}

impl ElementType {
    pub(crate) fn name(code: u8) -> &'static str {
        const NAMES: [&str; 7] = ["?", "u8", "i64", "bf16", "f32", "f64", "f16"];
        NAMES.get(usize::from(code)).copied().unwrap_or("?")
    }
}

/// `f32`, `f64`, `half::bf16`, `half::f16`, `i64` or `u8`.
///
/// Integers wrap when a sum overflows, and their mean is rounded towards zero. `bf16` and `f16` are summed in `f32`, `u8` in
/// `i64`, and rounded once at the end. A minimum or maximum is NaN if any value is.
pub trait Element: sealed::Arithmetic {
    const TYPE: ElementType;
}

pub(crate) mod sealed {
    use crate::error::Result;

    /// A plain number: every bit pattern is a value, and there is no padding.
    pub trait Arithmetic: Copy + Default + Send + Sync + 'static {
        type Accumulator: super::Element + Arithmetic<Accumulator = Self::Accumulator>;

        fn widen(self) -> Self::Accumulator;
        fn narrow(accumulator: Self::Accumulator) -> Self;

        // These five are called on accumulators only.
        fn add(self, upper: Self) -> Self;
        fn lesser(self, upper: Self) -> Self;
        fn greater(self, upper: Self) -> Self;
        fn divide(self, count: usize) -> Self;
        fn divide_all(values: &mut [Self], count: usize) {
            values.iter_mut().for_each(|value| *value = value.divide(count));
        }

        /// Runs `reduce` on the accumulators of `values` and takes back the part of them that it returns.
        /// Types that are their own accumulator are reduced in place.
        fn reduce_in_place<F>(values: &mut [Self], reduce: F) -> Result<()>
        where
            F: FnOnce(&mut [Self::Accumulator]) -> Result<std::ops::Range<usize>>;
    }
}

macro_rules! float {
    ($type:ty, $element_type:ident) => {
        impl Element for $type {
            const TYPE: ElementType = ElementType::$element_type;
        }

        impl sealed::Arithmetic for $type {
            type Accumulator = $type;

            #[inline(always)]
            fn widen(self) -> $type {
                self
            }
            #[inline(always)]
            fn narrow(accumulator: $type) -> $type {
                accumulator
            }
            #[inline(always)]
            fn add(self, upper: $type) -> $type {
                self + upper
            }
            #[inline(always)]
            fn lesser(self, upper: $type) -> $type {
                if upper < self || upper.is_nan() { upper } else { self }
            }
            #[inline(always)]
            fn greater(self, upper: $type) -> $type {
                if upper > self || upper.is_nan() { upper } else { self }
            }
            #[inline(always)]
            fn divide(self, count: usize) -> $type {
                self / count as $type
            }
            fn divide_all(values: &mut [$type], count: usize) {
                if count.is_power_of_two() {
                    // Has the same bits, as the reciprocal is exact, and takes a fraction of the time.
                    let reciprocal = 1.0 / count as $type;
                    values.iter_mut().for_each(|value| *value *= reciprocal);
                } else {
                    values.iter_mut().for_each(|value| *value = value.divide(count));
                }
            }
            fn reduce_in_place<F>(values: &mut [$type], reduce: F) -> crate::error::Result<()>
            where
                F: FnOnce(&mut [$type]) -> crate::error::Result<std::ops::Range<usize>>,
            {
                reduce(values).map(|_| ())
            }
        }
    };
}

float!(f32, F32);
float!(f64, F64);

impl Element for i64 {
    const TYPE: ElementType = ElementType::I64;
}

impl sealed::Arithmetic for i64 {
    type Accumulator = i64;

    #[inline(always)]
    fn widen(self) -> i64 {
        self
    }
    #[inline(always)]
    fn narrow(accumulator: i64) -> i64 {
        accumulator
    }
    #[inline(always)]
    fn add(self, upper: i64) -> i64 {
        self.wrapping_add(upper)
    }
    #[inline(always)]
    fn lesser(self, upper: i64) -> i64 {
        self.min(upper)
    }
    #[inline(always)]
    fn greater(self, upper: i64) -> i64 {
        self.max(upper)
    }
    #[inline(always)]
    fn divide(self, count: usize) -> i64 {
        // A gang is never so large that its size is negative as an i64, nor empty.
        self / (count as i64).max(1)
    }
    fn reduce_in_place<F>(values: &mut [i64], reduce: F) -> crate::error::Result<()>
    where
        F: FnOnce(&mut [i64]) -> crate::error::Result<std::ops::Range<usize>>,
    {
        reduce(values).map(|_| ())
    }
}

macro_rules! narrow_type {
    ($type:ty, $element_type:ident, $accumulator:ty, $widen:expr, $narrow:expr) => {
        impl Element for $type {
            const TYPE: ElementType = ElementType::$element_type;
        }

        impl sealed::Arithmetic for $type {
            type Accumulator = $accumulator;

            #[inline(always)]
            fn widen(self) -> $accumulator {
                $widen(self)
            }
            #[inline(always)]
            fn narrow(accumulator: $accumulator) -> $type {
                $narrow(accumulator)
            }
            #[inline(always)]
            fn add(self, upper: $type) -> $type {
                $narrow($widen(self).add($widen(upper)))
            }
            #[inline(always)]
            fn lesser(self, upper: $type) -> $type {
                $narrow($widen(self).lesser($widen(upper)))
            }
            #[inline(always)]
            fn greater(self, upper: $type) -> $type {
                $narrow($widen(self).greater($widen(upper)))
            }
            #[inline(always)]
            fn divide(self, count: usize) -> $type {
                $narrow($widen(self).divide(count))
            }
            fn reduce_in_place<F>(values: &mut [$type], reduce: F) -> crate::error::Result<()>
            where
                F: FnOnce(&mut [$accumulator]) -> crate::error::Result<std::ops::Range<usize>>,
            {
                let mut accumulators: Vec<$accumulator> = values.iter().map(|&value| $widen(value)).collect();
                let reduced = reduce(&mut accumulators)?;
                for (value, &accumulator) in values[reduced.clone()].iter_mut().zip(&accumulators[reduced]) {
                    *value = $narrow(accumulator);
                }
                Ok(())
            }
        }
    };
}

narrow_type!(bf16, BF16, f32, bf16::to_f32, round_to_bf16);
narrow_type!(f16, F16, f32, f16::to_f32, f16::from_f32);
narrow_type!(u8, U8, i64, i64::from, |accumulator: i64| accumulator as u8);

/// Rounds to the nearest, ties to even, without a branch on the common path so that loops over it vectorize.
#[inline(always)]
fn round_to_bf16(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    // Rounding up could turn a NaN into an infinity: keep its sign and make it quiet instead.
    let quiet_nan = (bits >> 16) | 0x0040;
    bf16::from_bits(if value.is_nan() { quiet_nan } else { rounded } as u16)
}

/// The bytes of `values`, in the order of this machine's memory.
pub(crate) fn as_bytes<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: the sealed element types are plain numbers without padding, so all their bytes are initialised;
    // the length is that of the same slice, and u8 has no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The same, to be written: every bit pattern is a value of the element types.
pub(crate) fn as_bytes_mut<T: Element>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `as_bytes`; the exclusive borrow passes on to the result, and any bytes form valid elements.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_to_bf16_agrees_with_half() {
        let mut bits = 1u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            for value in [f32::from_bits(bits), f32::from_bits(bits & 0xffff_0000 | 0x8000)] {
                let (ours, theirs) = (round_to_bf16(value), bf16::from_f32(value));
                assert!(ours.to_bits() == theirs.to_bits(), "{bits:x}");
            }
        }
    }
}
