//! The minimizers on functions whose minima are known.

use super::*;
use crate::Error;

const OPTIONS: Options = Options { max_iterations: 200, tolerance: 1e-9, memory: 10 };

fn rosenbrock(x: &[f64]) -> crate::Result<(f64, Vec<f64>)> {
    let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
    Ok((a * a + 100.0 * b * b, vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b]))
}

fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= tolerance, "{found:?} is not {expected:?}");
    }
}

#[test]
fn lbfgs_finds_the_valley_of_rosenbrock() {
    let minimum = lbfgs(&OPTIONS, &[-1.2, 1.0], &mut rosenbrock, &mut |_| Ok(())).unwrap();
    close(&minimum.point, &[1.0, 1.0], 1e-6);
    assert!(minimum.history.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", minimum.history);
}

#[test]
fn owlqn_shrinks_what_the_penalty_outweighs() {
    // minimum of 1/2 (x - t)^2 + |x| is the soft threshold of t
    let target = [3.0, 0.5, -2.0, -0.9];
    let mut evaluate = |x: &[f64]| {
        let gradient = difference(x, &target);
        Ok((0.5 * dot(&gradient, &gradient), gradient))
    };
    let minimum = owlqn(&OPTIONS, &[1.0; 4], &[0.0; 4], &mut evaluate, &mut |_| Ok(())).unwrap();
    close(&minimum.point, &[2.0, 0.0, -1.0, 0.0], 1e-6);
    assert_eq!(minimum.point[1], 0.0);
}

#[test]
fn lbfgsb_stays_in_its_box() {
    let minimum = lbfgsb(&OPTIONS, &[-5.0, -5.0], &[0.5, 5.0], &[-1.2, 1.0], &mut rosenbrock, &mut |_| Ok(())).unwrap();
    close(&minimum.point, &[0.5, 0.25], 1e-4);
    let free =
        lbfgsb(&OPTIONS, &[f64::NEG_INFINITY; 2], &[f64::INFINITY; 2], &[-1.2, 1.0], &mut rosenbrock, &mut |_| Ok(()));
    close(&free.unwrap().point, &[1.0, 1.0], 1e-3);
}

#[test]
fn a_loss_that_is_no_number_is_an_error_that_names_the_step() {
    let error = lbfgs(&OPTIONS, &[0.0], &mut |_| Ok((f64::NAN, vec![0.0])), &mut |_| Ok(())).unwrap_err();
    assert!(matches!(error, Error::LossNotFinite { step: 0, .. }), "{error}");
}

#[test]
fn an_observer_can_end_a_minimization() {
    let mut seen = 0;
    let error = lbfgs(&OPTIONS, &[-1.2, 1.0], &mut rosenbrock, &mut |iteration| {
        seen = iteration.iteration;
        if seen == 3 { Err(Error::Cancelled { reason: "enough".into() }) } else { Ok(()) }
    });
    assert!(matches!(error, Err(Error::Cancelled { .. })));
    assert_eq!(seen, 3);
}
