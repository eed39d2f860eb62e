//! From raw scores to probabilities to the predicted class, as Spark's probabilistic classifiers go.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array};
use arrow::datatypes::{DataType, Field, Schema};
use udt::{VectorArray, VectorBuilder};

use crate::linear::params::{check_outputs, features_column};
use crate::ml_attr::{Attribute, AttributeGroup};
use crate::{Error, Params, Result, TransformStep};

/// The scores of rows: as many for each as there are classes.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    pub num_classes: usize,
    /// Row-major.
    pub values: Vec<f64>,
}

impl Scores {
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.num_classes)
    }

    fn read(array: &ArrayRef, num_classes: usize) -> Result<Scores> {
        let vectors = VectorArray::try_new(array.as_ref())?;
        if let Some((width, values)) = vectors.as_dense_rows()
            && width == num_classes
        {
            return Ok(Scores { num_classes, values: values.to_vec() });
        }
        let mut values = Vec::with_capacity(vectors.len() * num_classes);
        for row in 0..vectors.len() {
            let vector = vectors.row(row)?;
            if vector.size() != num_classes {
                let message = format!("expected scores of {num_classes} classes, found {}", vector.size());
                return Err(Error::InvalidRow { message });
            }
            values.extend(vector.to_vector().to_dense());
        }
        Ok(Scores { num_classes, values })
    }

    fn into_column(self) -> ArrayRef {
        VectorBuilder::from_dense_rows(self.num_classes, self.values)
    }
}

/// What a probabilistic classifier adds to the common path.
pub trait Classifier: Send + Sync {
    fn num_classes(&self) -> usize;
    /// Raw scores of a vector column.
    ///
    /// # Errors
    /// Nulls, and vectors of another length than the model's.
    fn raw(&self, features: &ArrayRef) -> Result<Scores>;
    /// Turns raw scores into probabilities.
    fn normalize(&self, scores: &mut Scores);
    fn class_of_raw(&self, raw: &[f64]) -> f64;
    fn class_of_probability(&self, probability: &[f64]) -> f64;
}

/// The steps that append the columns of a classifier, each from the one before it where that is kept.
///
/// # Errors
/// A features column that is missing or no vector; output columns that exist.
pub fn transform(model: Arc<dyn Classifier>, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
    let features = features_column(params, schema)?.to_string();
    check_outputs(params, schema, &["rawPredictionCol", "probabilityCol", "predictionCol"])?;
    let num_classes = model.num_classes();
    let vectors = |name: &str| Arc::new(AttributeGroup::Size(num_classes).mark(udt::field::vector_field(name)));
    let mut steps = Vec::new();
    let raw = params.column("rawPredictionCol").map(String::from);
    if let Some(raw) = &raw {
        let model = model.clone();
        steps.push(TransformStep::Append {
            output: vectors(raw),
            inputs: vec![features.clone()],
            function: Arc::new(move |columns, _| Ok(model.raw(&columns[0])?.into_column())),
        });
    }
    let probability = params.column("probabilityCol").map(String::from);
    if let Some(probability) = &probability {
        let (model, has_raw) = (model.clone(), raw.is_some());
        steps.push(TransformStep::Append {
            output: vectors(probability),
            inputs: vec![raw.clone().unwrap_or_else(|| features.clone())],
            function: Arc::new(move |columns, _| {
                let mut scores =
                    if has_raw { Scores::read(&columns[0], num_classes)? } else { model.raw(&columns[0])? };
                model.normalize(&mut scores);
                Ok(scores.into_column())
            }),
        });
    }
    if let Some(prediction) = params.column("predictionCol") {
        let source = match (&raw, &probability) {
            (Some(_), _) => Source::Raw,
            (None, Some(_)) => Source::Probability,
            (None, None) => Source::Features,
        };
        let field = Field::new(prediction, DataType::Float64, false);
        steps.push(TransformStep::Append {
            output: Arc::new(Attribute::nominal_with_num_values(num_classes).mark(field)),
            inputs: vec![raw.or(probability).unwrap_or(features)],
            function: Arc::new(move |columns, _| predict(model.as_ref(), source, &columns[0])),
        });
    }
    Ok(steps)
}

/// Which column a prediction is made from.
#[derive(Debug, Clone, Copy)]
enum Source {
    Raw,
    Probability,
    Features,
}

fn predict(model: &dyn Classifier, source: Source, column: &ArrayRef) -> Result<ArrayRef> {
    let num_classes = model.num_classes();
    let classes: Vec<f64> = match source {
        Source::Raw => Scores::read(column, num_classes)?.rows().map(|row| model.class_of_raw(row)).collect(),
        Source::Features => model.raw(column)?.rows().map(|row| model.class_of_raw(row)).collect(),
        Source::Probability => {
            Scores::read(column, num_classes)?.rows().map(|row| model.class_of_probability(row)).collect()
        }
    };
    Ok(Arc::new(Float64Array::from(classes)))
}

/// The first class of the highest score.
pub fn argmax(scores: &[f64]) -> f64 {
    let mut best = 0;
    for (class, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = class;
        }
    }
    best as f64
}

/// The class whose probability is highest in proportion to its threshold. One threshold may be 0: its class wins unless
/// its probability is 0 too.
pub fn argmax_by_thresholds(probability: &[f64], thresholds: &[f64]) -> f64 {
    let (mut best, mut highest) = (0, f64::NEG_INFINITY);
    for (class, (p, threshold)) in probability.iter().zip(thresholds).enumerate() {
        let scaled = p / threshold;
        if scaled > highest {
            (best, highest) = (class, scaled);
        }
    }
    best as f64
}

/// Probabilities from unnormalised log-probabilities.
pub fn softmax(row: &mut [f64]) {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::INFINITY {
        // a class that is certain, as of a model of one label: the exponentials would be no numbers
        let certain = argmax(row) as usize;
        row.iter_mut().enumerate().for_each(|(class, p)| *p = if class == certain { 1.0 } else { 0.0 });
        return;
    }
    let mut total = 0.0;
    for score in row.iter_mut() {
        *score = (*score - largest).exp();
        total += *score;
    }
    row.iter_mut().for_each(|p| *p /= total);
}

/// Spark's check of `thresholds`: none negative, at most one zero.
pub fn are_thresholds(value: &crate::Value) -> bool {
    let crate::Value::Array { values, .. } = value else { return false };
    let is_zero = |v: &crate::Value| matches!(v, crate::Value::Double(v) if *v == 0.0);
    values.iter().all(|v| matches!(v, crate::Value::Double(v) if *v >= 0.0))
        && values.iter().filter(|v| is_zero(v)).count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_of_zero_wins_unless_its_class_is_impossible() {
        assert_eq!(argmax_by_thresholds(&[0.1, 0.9], &[0.0, 1.0]), 0.0);
        assert_eq!(argmax_by_thresholds(&[0.0, 1.0], &[0.0, 1.0]), 1.0);
        assert_eq!(argmax(&[0.3, 0.4, 0.4]), 1.0);
    }

    #[test]
    fn softmax_of_a_certain_class_is_one() {
        let mut row = [f64::INFINITY, 0.0];
        softmax(&mut row);
        assert_eq!(row, [1.0, 0.0]);
    }
}
