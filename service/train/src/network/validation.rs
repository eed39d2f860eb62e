//! The loss on rows that are not trained on, and when it says to stop.

use collective::{Group, ReduceOp};

use super::columns::Columns;
use super::native::with_autocast;
use super::{EarlyStopping, Loss, Precision, ScriptModule};
use crate::Result;

/// Rows of one forward pass.
const ROWS_AT_ONCE: usize = 4096;

/// The mean loss over all ranks' validation rows. A collective call; the module is left in evaluation mode.
///
/// # Errors
/// What the module, the loss and the collective fail with.
pub fn validate(
    group: &Group,
    module: &mut ScriptModule,
    loss: &Loss,
    columns: &Columns,
    rows: &[u32],
    precision: Precision,
) -> Result<f64> {
    module.set_training(false)?;
    let mut sums = [0.0, rows.len() as f64];
    for rows in rows.chunks(ROWS_AT_ONCE) {
        let (inputs, label) = columns.take(rows);
        let inputs: Vec<&tch::Tensor> = inputs.iter().collect();
        let mean = tch::no_grad(|| {
            with_autocast(precision == Precision::Bf16, || loss.mean(&module.forward(&inputs)?, &label))
        })?;
        sums[0] += mean.double_value(&[]) * rows.len() as f64;
    }
    group.all_reduce(&mut sums, ReduceOp::Sum)?;
    Ok(sums[0] / sums[1])
}

/// The epoch of the lowest loss, and whether nothing got better for so long that training ends.
pub fn decide_stop(losses: &[f64], early: &EarlyStopping) -> (usize, bool) {
    let (mut best, mut lowest) = (0, f64::INFINITY);
    for (epoch, loss) in losses.iter().enumerate() {
        if *loss < lowest - early.min_delta {
            (best, lowest) = (epoch, *loss);
        }
    }
    (best, losses.len() > best + early.patience.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_counts_from_the_best_epoch() {
        let early = EarlyStopping { validation_fraction: 0.1, patience: 2, min_delta: 0.1 };
        assert_eq!(decide_stop(&[1.0], &early), (0, false));
        assert_eq!(decide_stop(&[1.0, 0.5, 0.45], &early), (1, false));
        assert_eq!(decide_stop(&[1.0, 0.5, 0.45, 0.44], &early), (1, true));
    }
}
