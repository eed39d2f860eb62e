//! `exp` and `log(1 + x)` without branches or calls, so that loops over them vectorise. Within 2 units in the last place
//! of the exact values, over the ranges that are stated.

use std::f64::consts::{LN_2, LOG2_E};

use super::multiply_add;

/// Adding it rounds a double to an integer, which then stands in the low bits.
const ROUNDING: f64 = 6_755_399_441_055_744.0;
/// The parts of ln 2: the first has enough trailing zeros that its multiples are exact.
const LN_2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Below this, exp is 0 here.
const EXP_MIN: f64 = -708.0;

/// Taylor's coefficients of exp from that of `x^13`, one in 13!, down to that of `x^0`.
const EXP_COEFFICIENTS: [f64; 14] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    1.0 / 2.0,
    1.0,
    1.0,
];

/// The coefficients of `atanh(s) / s - 1` from `s^22` down to `s^2`.
const ATANH_COEFFICIENTS: [f64; 11] = [
    1.0 / 23.0,
    1.0 / 21.0,
    1.0 / 19.0,
    1.0 / 17.0,
    1.0 / 15.0,
    1.0 / 13.0,
    1.0 / 11.0,
    1.0 / 9.0,
    1.0 / 7.0,
    1.0 / 5.0,
    1.0 / 3.0,
];

/// `e^x` for `x <= 0`.
#[inline(always)]
pub fn exp_nonpositive<const FMA: bool>(x: f64) -> f64 {
    let clamped = if x < EXP_MIN { EXP_MIN } else { x };
    let shifted = multiply_add::<FMA>(clamped, LOG2_E, ROUNDING);
    let power = shifted - ROUNDING;
    let rest = multiply_add::<FMA>(power, -LN_2_HIGH, clamped);
    let rest = multiply_add::<FMA>(power, -LN_2_LOW, rest);
    let mut sum = EXP_COEFFICIENTS[0];
    for coefficient in &EXP_COEFFICIENTS[1..] {
        sum = multiply_add::<FMA>(sum, rest, *coefficient);
    }
    let scale = f64::from_bits((shifted.to_bits().wrapping_add(1023)) << 52);
    if x < EXP_MIN { 0.0 } else { sum * scale }
}

/// `ln(1 + x)` for `0 <= x <= 1`, as `2 atanh(x / (2 + x))`.
#[inline(always)]
pub fn ln_1p_unit<const FMA: bool>(x: f64) -> f64 {
    // above sqrt(2) - 1, half the argument's logarithm is ln(2)/2 away and the series is shorter around it
    let is_large = x > std::f64::consts::SQRT_2 - 1.0;
    let (numerator, denominator) = if is_large { (x - 1.0, 3.0 + x) } else { (x, 2.0 + x) };
    let s = numerator / denominator;
    let square = s * s;
    let mut sum = ATANH_COEFFICIENTS[0];
    for coefficient in &ATANH_COEFFICIENTS[1..] {
        sum = multiply_add::<FMA>(sum, square, *coefficient);
    }
    let tail = multiply_add::<FMA>(sum * square, 2.0 * s, 2.0 * s);
    if is_large { tail + LN_2 } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(points: impl Iterator<Item = f64>, approximate: fn(f64) -> f64, exact: fn(f64) -> f64) -> f64 {
        points.fold(0.0, |worst, x| f64::max(worst, ((approximate(x) - exact(x)) / exact(x)).abs()))
    }

    #[test]
    fn exp_and_log_are_exact_to_two_units() {
        for fused in [true, false] {
            let exp = if fused { exp_nonpositive::<true> } else { exp_nonpositive::<false> };
            let ln = if fused { ln_1p_unit::<true> } else { ln_1p_unit::<false> };
            assert!(worst((0..70_000).map(|i| f64::from(i) * -0.01), exp, f64::exp) < 5e-16);
            assert!(worst((1..100_000).map(|i| f64::from(i) * 1e-5), ln, f64::ln_1p) < 5e-16);
            assert!(worst((1..300).map(|i| 10f64.powi(-i)), ln, f64::ln_1p) < 5e-16);
            assert_eq!(exp(0.0), 1.0);
            assert_eq!(exp(-1000.0), 0.0);
            assert_eq!(ln(0.0), 0.0);
            assert!(exp(f64::NAN).is_nan());
        }
    }
}
