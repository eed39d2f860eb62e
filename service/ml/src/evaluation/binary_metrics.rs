//! Metrics of scores against binary labels, by threshold.
//!
//! As `org.apache.spark.mllib.evaluation.BinaryClassificationMetrics`: one point a distinct score, from the highest down;
//! equal scores are one point; beyond `num_bins` distinct scores, neighbours are joined, each chunk standing at its lowest.

use std::any::Any;

use arrow::record_batch::RecordBatch;

use super::column;
use crate::evaluator::Accumulator;
use crate::{Error, Result};

/// Points kept before equal scores are joined for the first time.
const COMPACT_AT: usize = 1 << 16;

/// Spark's default number of bins.
pub const NUM_BINS: usize = 1000;

/// The weight of positive and negative rows at one score.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    score: f64,
    positive: f64,
    negative: f64,
}

/// Folds batches of (score, label) or (score, label, weight). A label above 0.5 is positive.
#[derive(Debug, Clone)]
pub struct BinaryAccumulator {
    points: Vec<Point>,
    compact_at: usize,
}

impl Default for BinaryAccumulator {
    fn default() -> BinaryAccumulator {
        BinaryAccumulator { points: Vec::new(), compact_at: COMPACT_AT }
    }
}

impl BinaryAccumulator {
    pub fn add(&mut self, score: f64, label: f64, weight: f64) {
        let (positive, negative) = if label > 0.5 { (weight, 0.0) } else { (0.0, weight) };
        self.points.push(Point { score, positive, negative });
        if self.points.len() >= self.compact_at {
            self.compact();
            self.compact_at = COMPACT_AT.max(2 * self.points.len());
        }
    }

    /// Sorts from the highest score and joins equal ones.
    fn compact(&mut self) {
        self.points.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.points.dedup_by(|next, kept| {
            let is_same = next.score.to_bits() == kept.score.to_bits();
            if is_same {
                kept.positive += next.positive;
                kept.negative += next.negative;
            }
            is_same
        });
    }

    pub fn add_all(&mut self, other: BinaryAccumulator) {
        self.points.extend(other.points);
        self.compact();
    }

    /// The metrics of everything folded in. `num_bins` 0 keeps every distinct score.
    pub fn metrics(&self, num_bins: usize) -> BinaryMetrics {
        let mut sorted = self.clone();
        sorted.compact();
        let grouping = sorted.points.len().checked_div(num_bins).unwrap_or(0);
        let binned = if grouping < 2 {
            sorted.points
        } else {
            let join = |chunk: &[Point]| Point {
                score: chunk[chunk.len() - 1].score,
                positive: chunk.iter().map(|p| p.positive).sum(),
                negative: chunk.iter().map(|p| p.negative).sum(),
            };
            sorted.points.chunks(grouping).map(join).collect()
        };
        let mut total = Point { score: f64::NAN, positive: 0.0, negative: 0.0 };
        let cumulative = binned
            .into_iter()
            .map(|point| {
                total.positive += point.positive;
                total.negative += point.negative;
                Point { score: point.score, ..total }
            })
            .collect();
        BinaryMetrics { cumulative, total }
    }
}

impl Accumulator for BinaryAccumulator {
    fn update(&mut self, record_batch: &RecordBatch) -> Result<()> {
        let scores = column::scores(record_batch.column(0))?;
        let labels = column::doubles(record_batch.column(1), "the label")?;
        let weights = column::weights(record_batch.columns().get(2), record_batch.num_rows())?;
        for ((score, label), weight) in scores.iter().zip(labels.values()).zip(weights.iter()) {
            self.add(*score, *label, *weight);
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let other = other.into_any().downcast::<BinaryAccumulator>().map_err(|_| not_same())?;
        self.add_all(*other);
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Two accumulators of different kinds met.
pub(crate) fn not_same() -> Error {
    Error::Bug { invariant: "accumulators of one fold are of one kind".into() }
}

/// Weighted counts at each threshold, from the highest down.
#[derive(Debug, Clone)]
pub struct BinaryMetrics {
    cumulative: Vec<Point>,
    total: Point,
}

impl BinaryMetrics {
    fn precision(&self, point: &Point) -> f64 {
        let predicted = point.positive + point.negative;
        if predicted == 0.0 { 1.0 } else { point.positive / predicted }
    }

    fn recall(&self, point: &Point) -> f64 {
        if self.total.positive == 0.0 { 0.0 } else { point.positive / self.total.positive }
    }

    fn false_positive_rate(&self, point: &Point) -> f64 {
        if self.total.negative == 0.0 { 0.0 } else { point.negative / self.total.negative }
    }

    fn curve(&self, x: impl Fn(&Point) -> f64, y: impl Fn(&Point) -> f64) -> Vec<(f64, f64)> {
        self.cumulative.iter().map(|point| (x(point), y(point))).collect()
    }

    /// (false positive rate, true positive rate), from (0, 0) to (1, 1).
    pub fn roc(&self) -> Vec<(f64, f64)> {
        let mut curve = vec![(0.0, 0.0)];
        curve.extend(self.curve(|p| self.false_positive_rate(p), |p| self.recall(p)));
        curve.push((1.0, 1.0));
        curve
    }

    /// (recall, precision), beginning at recall 0 with the first precision.
    pub fn pr(&self) -> Vec<(f64, f64)> {
        let curve = self.curve(|p| self.recall(p), |p| self.precision(p));
        let first = curve.first().map(|(_, precision)| (0.0, *precision));
        first.into_iter().chain(curve).collect()
    }

    /// (threshold, F-measure).
    pub fn f_measure_by_threshold(&self, beta: f64) -> Vec<(f64, f64)> {
        let beta_squared = beta * beta;
        let f_measure = |point: &Point| {
            let (precision, recall) = (self.precision(point), self.recall(point));
            if precision + recall == 0.0 {
                0.0
            } else {
                (1.0 + beta_squared) * (precision * recall) / (beta_squared * precision + recall)
            }
        };
        self.curve(|p| p.score, f_measure)
    }

    /// (threshold, precision).
    pub fn precision_by_threshold(&self) -> Vec<(f64, f64)> {
        self.curve(|p| p.score, |p| self.precision(p))
    }

    /// (threshold, recall).
    pub fn recall_by_threshold(&self) -> Vec<(f64, f64)> {
        self.curve(|p| p.score, |p| self.recall(p))
    }

    pub fn area_under_roc(&self) -> f64 {
        area(&self.roc())
    }

    pub fn area_under_pr(&self) -> f64 {
        area(&self.pr())
    }
}

/// The area under a curve of straight pieces.
fn area(curve: &[(f64, f64)]) -> f64 {
    curve.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[1].1 + pair[0].1) / 2.0).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(rows: &[(f64, f64)]) -> BinaryAccumulator {
        let mut accumulator = BinaryAccumulator::default();
        rows.iter().for_each(|(score, label)| accumulator.add(*score, *label, 1.0));
        accumulator
    }

    // values that Spark's own documentation test states for these rows
    const ROWS: [(f64, f64); 7] =
        [(0.1, 0.0), (0.1, 1.0), (0.4, 0.0), (0.6, 0.0), (0.6, 1.0), (0.6, 1.0), (0.8, 1.0)];

    #[test]
    fn areas_agree_with_spark() {
        let metrics = folded(&ROWS).metrics(0);
        assert!((metrics.area_under_roc() - 0.708_333_333_333_333_3).abs() < 1e-12);
        assert!((metrics.area_under_pr() - 0.833_928_571_428_571_4).abs() < 1e-12, "{}", metrics.area_under_pr());
        let precision: Vec<f64> = metrics.precision_by_threshold().iter().map(|(_, p)| *p).collect();
        assert_eq!(precision, vec![1.0, 0.75, 0.6, 4.0 / 7.0]);
    }

    #[test]
    fn the_order_of_rows_and_parts_does_not_matter() {
        let mut merged = folded(&ROWS[4..]);
        merged.add_all(folded(&ROWS[..4]));
        assert_eq!(merged.metrics(0).roc(), folded(&ROWS).metrics(0).roc());
    }

    #[test]
    fn neighbours_are_joined_beyond_the_bins() {
        let rows: Vec<(f64, f64)> = (0..10).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let thresholds: Vec<f64> = folded(&rows).metrics(3).recall_by_threshold().iter().map(|(t, _)| *t).collect();
        assert_eq!(thresholds, vec![7.0, 4.0, 1.0, 0.0]);
    }
}
