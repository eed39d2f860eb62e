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
    let minimum = lbfgs(&OPTIONS, &Start::At(&[-1.2, 1.0]), &mut rosenbrock, &mut |_| Ok(())).unwrap();
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
    let minimum = owlqn(&OPTIONS, &[1.0; 4], &Start::At(&[0.0; 4]), &mut evaluate, &mut |_| Ok(())).unwrap();
    close(&minimum.point, &[2.0, 0.0, -1.0, 0.0], 1e-6);
    assert_eq!(minimum.point[1], 0.0);
}

#[test]
fn lbfgsb_stays_in_its_box() {
    let minimum = lbfgsb(&OPTIONS, &[-5.0, -5.0], &[0.5, 5.0], &Start::At(&[-1.2, 1.0]), &mut rosenbrock, &mut |_| Ok(())).unwrap();
    close(&minimum.point, &[0.5, 0.25], 1e-4);
    let free =
        lbfgsb(&OPTIONS, &[f64::NEG_INFINITY; 2], &[f64::INFINITY; 2], &Start::At(&[-1.2, 1.0]), &mut rosenbrock, &mut |_| Ok(()));
    close(&free.unwrap().point, &[1.0, 1.0], 1e-3);
}

#[test]
fn a_loss_that_is_no_number_is_an_error_that_names_the_step() {
    let error = lbfgs(&OPTIONS, &Start::At(&[0.0]), &mut |_| Ok((f64::NAN, vec![0.0])), &mut |_| Ok(())).unwrap_err();
    assert!(matches!(error, Error::LossNotFinite { step: 0, .. }), "{error}");
}

#[test]
fn an_observer_can_end_a_minimization() {
    let mut seen = 0;
    let error = lbfgs(&OPTIONS, &Start::At(&[-1.2, 1.0]), &mut rosenbrock, &mut |iteration| {
        seen = iteration.iteration;
        if seen == 3 { Err(Error::Cancelled { reason: "enough".into() }) } else { Ok(()) }
    });
    assert!(matches!(error, Err(Error::Cancelled { .. })));
    assert_eq!(seen, 3);
}

type Run<'a> = dyn Fn(&Start<'_>, &mut Observe<'_>) -> crate::Result<Minimum> + 'a;

/// Sees that a run that goes on from any of its iterates, through bytes, ends with the same bits.
fn check_resumes(initial: &[f64], run: &Run<'_>) {
    let mut snapshots: Vec<Vec<u8>> = Vec::new();
    let whole = run(&Start::At(initial), &mut |iteration| {
        snapshots.push(iteration.snapshot().to_bytes());
        Ok(())
    });
    let whole = whole.unwrap();
    assert!(snapshots.len() > 10 && snapshots.len() == whole.history.len(), "{} iterates", snapshots.len());
    for (index, bytes) in snapshots.iter().enumerate() {
        let snapshot = Snapshot::from_bytes(bytes).unwrap();
        let mut later = Vec::new();
        let resumed = run(&Start::From(&snapshot), &mut |iteration| {
            later.push(iteration.snapshot().to_bytes());
            Ok(())
        });
        assert_eq!(bits(&resumed.unwrap()), bits(&whole), "from iterate {index}");
        assert_eq!(later, snapshots[index + 1..], "the states after iterate {index}");
    }
}

fn bits(minimum: &Minimum) -> (Vec<u64>, Vec<u64>, Stop) {
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect();
    (bits(&minimum.point), bits(&minimum.history), minimum.stop)
}

/// Ten valleys side by side, so that the curvature has something to forget.
fn valleys(x: &[f64]) -> crate::Result<(f64, Vec<f64>)> {
    let (mut value, mut gradient) = (0.0, Vec::new());
    for (pair, scale) in x.chunks(2).zip(1..) {
        let (v, g) = rosenbrock(pair)?;
        value += v * f64::from(scale);
        gradient.extend(g.iter().map(|g| g * f64::from(scale)));
    }
    Ok((value, gradient))
}

#[test]
fn every_minimizer_goes_on_from_any_iterate_bit_by_bit() {
    let initial: Vec<f64> = (0..20).map(|i| if i % 2 == 0 { -1.2 } else { 1.0 + f64::from(i) / 30.0 }).collect();
    let options = Options { tolerance: 0.0, max_iterations: 60, memory: 5 };
    check_resumes(&initial, &|start, observe| lbfgs(&options, start, &mut valleys, observe));
    check_resumes(&initial, &|start, observe| owlqn(&options, &[0.05; 20], start, &mut valleys, observe));
    let (lower, upper) = ([-5.0; 20], [0.9; 20]);
    let inside: Vec<f64> = initial.iter().map(|x| x.min(0.5)).collect();
    check_resumes(&inside, &|start, observe| lbfgsb(&options, &lower, &upper, start, &mut valleys, observe));
}

#[test]
fn a_run_goes_on_through_failed_steps_as_if_it_had_never_stopped() {
    // so flat at its end that line searches fail, the curvature is forgotten, and the search fails at last
    let options = Options { tolerance: 0.0, max_iterations: 10_000, memory: 10 };
    check_resumes(&[-1.2, 1.0], &|start, observe| lbfgs(&options, start, &mut rosenbrock, observe));
}

#[test]
fn a_state_of_another_minimizer_or_of_other_bytes_is_refused() {
    let mut last = Vec::new();
    lbfgs(&OPTIONS, &Start::At(&[-1.2, 1.0]), &mut rosenbrock, &mut |iteration| {
        last = iteration.snapshot().to_bytes();
        Ok(())
    })
    .unwrap();
    let snapshot = Snapshot::from_bytes(&last).unwrap();
    let error = owlqn(&OPTIONS, &[1.0; 2], &Start::From(&snapshot), &mut rosenbrock, &mut |_| Ok(())).unwrap_err();
    assert_eq!(error.to_string(), "a minimization cannot go on from this state: it is one of lbfgs, expected owlqn");
    for bytes in [&last[..last.len() - 1], &[], &[255; 64]] {
        assert!(matches!(Snapshot::from_bytes(bytes), Err(Error::SnapshotMismatch { .. })));
    }
    last.push(0);
    assert!(Snapshot::from_bytes(&last).is_err());
}
