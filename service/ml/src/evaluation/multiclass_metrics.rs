//! Metrics of predicted classes against labels, weighted, as `org.apache.spark.mllib.evaluation.MulticlassMetrics`.

use std::any::Any;
use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use udt::VectorArray;

use super::binary_metrics::not_same;
use super::column;
use crate::Result;
use crate::evaluator::Accumulator;

/// A double that orders and compares by its total order, so that it can be a key.
#[derive(Debug, Clone, Copy)]
struct Class(f64);

impl PartialEq for Class {
    fn eq(&self, other: &Class) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Class {}

impl PartialOrd for Class {
    fn partial_cmp(&self, other: &Class) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Class {
    fn cmp(&self, other: &Class) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Folds batches of (prediction, label[, weight][, probability]).
#[derive(Debug, Clone)]
pub struct MulticlassAccumulator {
    has_weight: bool,
    /// Probabilities are kept off 0 and 1 by this much; `None`: there is no probability column.
    probability_eps: Option<f64>,
    /// Weight by (label, prediction).
    confusion: BTreeMap<(Class, Class), f64>,
    log_loss_sum: f64,
}

impl MulticlassAccumulator {
    pub fn new(has_weight: bool, probability_eps: Option<f64>) -> MulticlassAccumulator {
        MulticlassAccumulator { has_weight, probability_eps, confusion: BTreeMap::new(), log_loss_sum: 0.0 }
    }

    pub fn add(&mut self, prediction: f64, label: f64, weight: f64) {
        *self.confusion.entry((Class(label), Class(prediction))).or_insert(0.0) += weight;
    }

    fn add_log_loss(&mut self, probability: f64, weight: f64, eps: f64) {
        self.log_loss_sum -= weight * probability.clamp(eps, 1.0 - eps).ln();
    }

    pub fn add_all(&mut self, other: &MulticlassAccumulator) {
        for ((label, prediction), weight) in &other.confusion {
            *self.confusion.entry((*label, *prediction)).or_insert(0.0) += weight;
        }
        self.log_loss_sum += other.log_loss_sum;
    }

    pub fn metrics(&self) -> MulticlassMetrics {
        let mut classes: BTreeMap<Class, ClassWeights> = BTreeMap::new();
        let mut total = 0.0;
        for ((label, prediction), weight) in &self.confusion {
            let of_label = classes.entry(*label).or_default();
            of_label.labelled += weight;
            if label == prediction {
                of_label.true_positive += weight;
            } else {
                classes.entry(*prediction).or_default().false_positive += weight;
            }
            total += weight;
        }
        let seen: Vec<Class> = self.confusion.keys().map(|(label, _)| *label).collect();
        classes.retain(|class, _| seen.contains(class));
        let classes = classes.into_iter().map(|(class, weights)| (class.0, weights)).collect();
        MulticlassMetrics { classes, total, log_loss_sum: self.log_loss_sum }
    }
}

impl Accumulator for MulticlassAccumulator {
    fn update(&mut self, record_batch: &RecordBatch) -> Result<()> {
        let predictions = column::doubles(record_batch.column(0), "the prediction")?;
        let labels = column::doubles(record_batch.column(1), "the label")?;
        let weight_column = self.has_weight.then(|| record_batch.column(2));
        let weights = column::weights(weight_column, record_batch.num_rows())?;
        for ((prediction, label), weight) in predictions.values().iter().zip(labels.values()).zip(weights.iter()) {
            self.add(*prediction, *label, *weight);
        }
        if let Some(eps) = self.probability_eps {
            let probability = record_batch.column(if self.has_weight { 3 } else { 2 });
            let vectors = VectorArray::try_new(probability.as_ref())?;
            for (row, (label, weight)) in labels.values().iter().zip(weights.iter()).enumerate() {
                self.add_log_loss(column::element(&vectors, row, *label as usize)?, *weight, eps);
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let other = other.into_any().downcast::<MulticlassAccumulator>().map_err(|_| not_same())?;
        self.add_all(&other);
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct ClassWeights {
    labelled: f64,
    true_positive: f64,
    false_positive: f64,
}

/// Metrics by class and over all classes. Classes are the labels that occur, ascending.
#[derive(Debug, Clone)]
pub struct MulticlassMetrics {
    classes: Vec<(f64, ClassWeights)>,
    total: f64,
    log_loss_sum: f64,
}

fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator == 0.0 { 0.0 } else { numerator / denominator }
}

fn f_measure(precision: f64, recall: f64, beta: f64) -> f64 {
    let beta_squared = beta * beta;
    ratio((1.0 + beta_squared) * precision * recall, beta_squared * precision + recall)
}

impl MulticlassMetrics {
    pub fn labels(&self) -> Vec<f64> {
        self.classes.iter().map(|(label, _)| *label).collect()
    }

    fn class(&self, label: f64) -> ClassWeights {
        self.classes.iter().find(|(class, _)| *class == label).map(|(_, weights)| *weights).unwrap_or_default()
    }

    pub fn precision(&self, label: f64) -> f64 {
        let class = self.class(label);
        ratio(class.true_positive, class.true_positive + class.false_positive)
    }

    /// The recall of a class, which is its true positive rate too.
    pub fn recall(&self, label: f64) -> f64 {
        let class = self.class(label);
        ratio(class.true_positive, class.labelled)
    }

    pub fn false_positive_rate(&self, label: f64) -> f64 {
        let class = self.class(label);
        ratio(class.false_positive, self.total - class.labelled)
    }

    pub fn f_measure(&self, label: f64, beta: f64) -> f64 {
        f_measure(self.precision(label), self.recall(label), beta)
    }

    /// The mean of a metric of classes, weighted by how often each class occurs.
    fn weighted(&self, metric: impl Fn(f64) -> f64) -> f64 {
        self.classes.iter().map(|(label, weights)| metric(*label) * weights.labelled / self.total).sum()
    }

    pub fn weighted_precision(&self) -> f64 {
        self.weighted(|label| self.precision(label))
    }

    pub fn weighted_recall(&self) -> f64 {
        self.weighted(|label| self.recall(label))
    }

    pub fn weighted_false_positive_rate(&self) -> f64 {
        self.weighted(|label| self.false_positive_rate(label))
    }

    pub fn weighted_f_measure(&self, beta: f64) -> f64 {
        self.weighted(|label| self.f_measure(label, beta))
    }

    pub fn accuracy(&self) -> f64 {
        self.classes.iter().map(|(_, weights)| weights.true_positive).sum::<f64>() / self.total
    }

    pub fn hamming_loss(&self) -> f64 {
        let right: f64 = self.classes.iter().map(|(_, weights)| weights.true_positive).sum();
        (self.total - right) / self.total
    }

    pub fn log_loss(&self) -> f64 {
        self.log_loss_sum / self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_agree_with_the_confusion_matrix() {
        // rows are labels, columns predictions: [[2, 1, 1], [1, 3, 0], [0, 0, 1]]
        let rows = [
            (0.0, 0.0), (1.0, 0.0), (0.0, 0.0), (1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (2.0, 2.0), (2.0, 0.0), (0.0, 1.0),
        ];
        let mut accumulator = MulticlassAccumulator::new(false, None);
        rows.iter().for_each(|(prediction, label)| accumulator.add(*prediction, *label, 1.0));
        let metrics = accumulator.metrics();
        assert_eq!(metrics.labels(), vec![0.0, 1.0, 2.0]);
        assert_eq!(metrics.precision(0.0), 2.0 / 3.0);
        assert_eq!(metrics.recall(0.0), 2.0 / 4.0);
        assert_eq!(metrics.false_positive_rate(0.0), 1.0 / 5.0);
        assert_eq!(metrics.accuracy(), 6.0 / 9.0);
        assert!((metrics.weighted_recall() - metrics.accuracy()).abs() < 1e-15);
        assert!((metrics.hamming_loss() - 3.0 / 9.0).abs() < 1e-15);
    }

    #[test]
    fn a_class_that_is_only_predicted_is_no_label() {
        let mut accumulator = MulticlassAccumulator::new(false, None);
        accumulator.add(5.0, 1.0, 1.0);
        accumulator.add(1.0, 1.0, 1.0);
        assert_eq!(accumulator.metrics().labels(), vec![1.0]);
        assert_eq!(accumulator.metrics().recall(1.0), 0.5);
    }
}
