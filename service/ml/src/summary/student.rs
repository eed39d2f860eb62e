//! Student's t distribution.

/// The probability that a variable of so many degrees of freedom is at most `t`, for `t >= 0`.
pub fn cumulative(t: f64, degrees_of_freedom: f64) -> f64 {
    if t.is_nan() || degrees_of_freedom <= 0.0 {
        return f64::NAN;
    }
    if t.is_infinite() {
        return 1.0;
    }
    let square = t * t;
    let (x, complement) = (degrees_of_freedom / (degrees_of_freedom + square), square / (degrees_of_freedom + square));
    1.0 - 0.5 * incomplete_beta(x, complement, degrees_of_freedom / 2.0, 0.5)
}

/// The regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8). `complement` is
/// `1 - x`, which the caller knows to more digits than a difference would have.
fn incomplete_beta(x: f64, complement: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if complement <= 0.0 {
        return 1.0;
    }
    // the fraction converges fast on one side of the mean, so the other side is its complement
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(complement, x, b, a);
    }
    let front = (a * ln(x, complement) + b * ln(complement, x) - ln_beta(a, b)).exp() / a;
    front / fraction(x, a, b)
}

/// The logarithm of `x`, of which `complement` is `1 - x`.
fn ln(x: f64, complement: f64) -> f64 {
    if x > 0.5 { (-complement).ln_1p() } else { x.ln() }
}

/// The logarithm of the beta function. For large arguments the logarithms of gamma functions are huge and nearly equal,
/// so their difference is taken term by term of Stirling's series.
fn ln_beta(a: f64, b: f64) -> f64 {
    const LARGE: f64 = 20.0;
    let (small, large) = (a.min(b), a.max(b));
    if large < LARGE {
        return ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    }
    let rest = |x: f64| 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    let sum = large + small;
    let ratio = (large - 0.5) * (small / large).ln_1p() + small * sum.ln() - small + rest(sum) - rest(large);
    ln_gamma(small) - ratio
}

/// The continued fraction, from the front (Lentz).
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const TERMS_MAX: u32 = 10_000;
    let mut value = 1.0;
    let (mut c, mut d) = (1.0, 0.0);
    for term in 1..=TERMS_MAX {
        let m = f64::from(term / 2);
        let numerator = if term % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        d = 1.0 + numerator * d;
        d = 1.0 / if d.abs() < TINY { TINY } else { d };
        c = 1.0 + numerator / c;
        c = if c.abs() < TINY { TINY } else { c };
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function, for positive arguments (Lanczos 1964, with 9 terms around 7).
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let shifted = x - 1.0;
    let base = shifted + 7.5;
    let terms = COEFFICIENTS.iter().enumerate().map(|(i, c)| c / (shifted + i as f64 + 1.0));
    let series = 0.999_999_999_999_809_9 + terms.sum::<f64>();
    0.5 * (2.0 * std::f64::consts::PI).ln() + (shifted + 0.5) * base.ln() - base + series.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_tables() {
        // t distributions with closed forms: 1 degree is Cauchy's, 2 degrees are algebraic
        for t in [0.0, 0.1, 1.0, 3.0, 20.0_f64] {
            assert!((cumulative(t, 1.0) - (0.5 + t.atan() / std::f64::consts::PI)).abs() < 1e-14, "{t}");
            assert!((cumulative(t, 2.0) - (0.5 + t / (2.0 * (2.0 + t * t).sqrt()))).abs() < 1e-14, "{t}");
        }
        // with many degrees of freedom it is the normal distribution
        assert!((cumulative(1.959_963_984_540_054, 1e9) - 0.975).abs() < 1e-9);
        // 30 degrees, at the 99.5 % point
        assert!((cumulative(2.749_995_653_567_231, 30.0) - 0.995).abs() < 1e-12);
        assert_eq!(cumulative(f64::INFINITY, 3.0), 1.0);
    }
}
