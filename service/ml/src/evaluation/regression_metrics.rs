//! Metrics of predicted numbers, weighted, as `org.apache.spark.mllib.evaluation.RegressionMetrics`.

use std::any::Any;

use arrow::record_batch::RecordBatch;

use super::binary_metrics::not_same;
use super::column;
use crate::Result;
use crate::evaluator::Accumulator;

/// A weighted mean and sum of squared deviations, folded without cancellation (West 1979; Chan et al. 1983 to merge).
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64, weight: f64, weight_sum: f64) {
        let delta = value - self.mean;
        self.mean += delta * weight / weight_sum;
        self.squares += weight * delta * (value - self.mean);
    }

    fn add_all(&mut self, other: Moments, weight_sum: f64, other_weight_sum: f64) {
        let total = weight_sum + other_weight_sum;
        if total > 0.0 {
            let delta = other.mean - self.mean;
            self.mean += delta * other_weight_sum / total;
            self.squares += other.squares + delta * delta * weight_sum * other_weight_sum / total;
        }
    }
}

/// Folds batches of (prediction, label) or (prediction, label, weight).
#[derive(Debug, Clone, Default)]
pub struct RegressionAccumulator {
    num_rows: u64,
    weight_sum: f64,
    weight_square_sum: f64,
    label: Moments,
    prediction: Moments,
    label_squares: f64,
    error_squares: f64,
    error_abs: f64,
}

impl RegressionAccumulator {
    pub fn add(&mut self, prediction: f64, label: f64, weight: f64) {
        if weight == 0.0 {
            return;
        }
        self.num_rows += 1;
        self.weight_sum += weight;
        self.weight_square_sum += weight * weight;
        self.label.add(label, weight, self.weight_sum);
        self.prediction.add(prediction, weight, self.weight_sum);
        let error = label - prediction;
        self.label_squares += weight * label * label;
        self.error_squares += weight * error * error;
        self.error_abs += weight * error.abs();
    }

    pub fn add_all(&mut self, other: &RegressionAccumulator) {
        self.label.add_all(other.label, self.weight_sum, other.weight_sum);
        self.prediction.add_all(other.prediction, self.weight_sum, other.weight_sum);
        self.num_rows += other.num_rows;
        self.weight_sum += other.weight_sum;
        self.weight_square_sum += other.weight_square_sum;
        self.label_squares += other.label_squares;
        self.error_squares += other.error_squares;
        self.error_abs += other.error_abs;
    }

    pub fn num_rows(&self) -> u64 {
        self.num_rows
    }

    pub fn weight_sum(&self) -> f64 {
        self.weight_sum
    }

    pub fn label_mean(&self) -> f64 {
        self.label.mean
    }

    /// `SSerr`
    pub fn error_square_sum(&self) -> f64 {
        self.error_squares
    }

    /// `SStot`, with Spark's factor for weighted rows.
    pub fn total_square_sum(&self) -> f64 {
        let denominator = self.weight_sum - self.weight_square_sum / self.weight_sum;
        if denominator > 0.0 { self.label.squares / denominator * (self.weight_sum - 1.0) } else { 0.0 }
    }

    /// `SSreg / weightSum`
    pub fn explained_variance(&self) -> f64 {
        let shift = self.prediction.mean - self.label.mean;
        self.prediction.squares / self.weight_sum + shift * shift
    }

    pub fn mean_absolute_error(&self) -> f64 {
        self.error_abs / self.weight_sum
    }

    pub fn mean_squared_error(&self) -> f64 {
        self.error_squares / self.weight_sum
    }

    pub fn root_mean_squared_error(&self) -> f64 {
        self.mean_squared_error().sqrt()
    }

    pub fn r2(&self, through_origin: bool) -> f64 {
        let total = if through_origin { self.label_squares } else { self.total_square_sum() };
        1.0 - self.error_squares / total
    }
}

impl Accumulator for RegressionAccumulator {
    fn update(&mut self, record_batch: &RecordBatch) -> Result<()> {
        let predictions = column::doubles(record_batch.column(0), "the prediction")?;
        let labels = column::doubles(record_batch.column(1), "the label")?;
        let weights = column::weights(record_batch.columns().get(2), record_batch.num_rows())?;
        for ((prediction, label), weight) in predictions.values().iter().zip(labels.values()).zip(weights.iter()) {
            self.add(*prediction, *label, *weight);
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let other = other.into_any().downcast::<RegressionAccumulator>().map_err(|_| not_same())?;
        self.add_all(&other);
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spark's own example: predictions and labels, and the metrics its documentation test states
    const ROWS: [(f64, f64); 4] = [(2.25, 3.0), (-0.25, -0.5), (1.75, 2.0), (7.75, 7.0)];

    fn folded(rows: &[(f64, f64)]) -> RegressionAccumulator {
        let mut accumulator = RegressionAccumulator::default();
        rows.iter().for_each(|(prediction, label)| accumulator.add(*prediction, *label, 1.0));
        accumulator
    }

    #[test]
    fn metrics_agree_with_spark() {
        let metrics = folded(&ROWS);
        assert!((metrics.explained_variance() - 8.79687).abs() < 1e-5);
        assert!((metrics.mean_absolute_error() - 0.5).abs() < 1e-12);
        assert!((metrics.mean_squared_error() - 0.3125).abs() < 1e-12);
        assert!((metrics.r2(false) - 0.95717).abs() < 1e-5);
    }

    #[test]
    fn parts_merge_to_the_whole() {
        let mut merged = folded(&ROWS[..1]);
        merged.add_all(&folded(&ROWS[1..]));
        merged.add_all(&RegressionAccumulator::default());
        let whole = folded(&ROWS);
        assert!((merged.r2(false) - whole.r2(false)).abs() < 1e-14);
        assert!((merged.explained_variance() - whole.explained_variance()).abs() < 1e-12);
    }
}
