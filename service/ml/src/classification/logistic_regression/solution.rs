//! A fitted function: coefficients and intercepts, and what it says of a row.

use arrow::array::ArrayRef;
use train::kernel::elementary::exp_nonpositive;
use train::kernel::{Kernel, run};
use udt::{Matrix, Vector, VectorRow};

use crate::classification::prediction::{Classifier, Scores, argmax, argmax_by_thresholds, softmax};
use crate::linear::margins::Margins;
use crate::{Params, Result};

/// A row of coefficients a class (multinomial), or one row for class 1 (binomial).
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    pub num_classes: usize,
    pub is_multinomial: bool,
    pub coefficients: Matrix,
    pub intercepts: Vector,
}

/// A solution with the thresholds of a transform.
pub struct Prediction {
    num_classes: usize,
    is_multinomial: bool,
    margins: Margins,
    /// Of class 1, as a probability and as a margin.
    threshold: (f64, f64),
    /// Of all classes, if they are set.
    thresholds: Option<Vec<f64>>,
}

impl Prediction {
    /// # Errors
    /// `threshold` and `thresholds` that contradict each other, and thresholds for another number of classes.
    pub fn new(solution: &Solution, params: &Params) -> Result<Prediction> {
        super::check_thresholds(params)?;
        let thresholds = params.doubles("thresholds").ok();
        if let Some(found) = thresholds.as_ref().map(Vec::len).filter(|found| *found != solution.num_classes) {
            return Err(crate::Error::InvalidParam {
                operator: params.uid.clone(),
                param: "thresholds".into(),
                value: params.get("thresholds").map(ToString::to_string).unwrap_or_default(),
                detail: format!(", expected as many as there are classes, {}, found {found}", solution.num_classes),
            });
        }
        let probability = match thresholds.as_deref() {
            Some([low, high]) => 1.0 / (1.0 + low / high),
            _ => params.double("threshold").unwrap_or(0.5),
        };
        let margin = match probability {
            0.0 => f64::NEG_INFINITY,
            1.0 => f64::INFINITY,
            p => (p / (1.0 - p)).ln(),
        };
        Ok(Prediction {
            num_classes: solution.num_classes,
            is_multinomial: solution.is_multinomial,
            margins: Margins::new(&solution.coefficients, &solution.intercepts.to_dense()),
            threshold: (probability, margin),
            thresholds,
        })
    }

    /// Raw scores of one vector.
    ///
    /// # Errors
    /// A vector of another length than the model's.
    pub fn raw_of(&self, vector: &VectorRow<'_>) -> Result<Vec<f64>> {
        let margins = self.margins.of_vector(vector)?;
        Ok(match margins[..] {
            [margin] if !self.is_multinomial => vec![-margin, margin],
            _ => margins,
        })
    }
}

impl Classifier for Prediction {
    /// Two for a binomial model, even of one class, since it scores both.
    fn num_classes(&self) -> usize {
        if self.is_multinomial { self.num_classes } else { 2 }
    }

    fn raw(&self, features: &ArrayRef) -> Result<Scores> {
        let margins = self.margins.of_column(features)?;
        let num_classes = self.num_classes();
        let values = match &margins[..] {
            [margins] if !self.is_multinomial => margins.iter().flat_map(|margin| [-margin, *margin]).collect(),
            _ => {
                let num_rows = margins.first().map_or(0, Vec::len);
                let mut values = vec![0.0; num_rows * num_classes];
                for (class, margins) in margins.iter().enumerate() {
                    values.iter_mut().skip(class).step_by(num_classes).zip(margins).for_each(|(v, m)| *v = *m);
                }
                values
            }
        };
        Ok(Scores { num_classes, values })
    }

    fn normalize(&self, scores: &mut Scores) {
        if self.is_multinomial {
            scores.values.chunks_exact_mut(scores.num_classes).for_each(softmax);
        } else {
            run(Logistic { pairs: &mut scores.values });
        }
    }

    fn class_of_raw(&self, raw: &[f64]) -> f64 {
        if !self.is_multinomial {
            return if raw[1] > self.threshold.1 { 1.0 } else { 0.0 };
        }
        match &self.thresholds {
            None => argmax(raw),
            Some(thresholds) => {
                let mut probability = raw.to_vec();
                softmax(&mut probability);
                argmax_by_thresholds(&probability, thresholds)
            }
        }
    }

    fn class_of_probability(&self, probability: &[f64]) -> f64 {
        match &self.thresholds {
            _ if !self.is_multinomial => {
                if probability[1] > self.threshold.0 {
                    1.0
                } else {
                    0.0
                }
            }
            None => argmax(probability),
            Some(thresholds) => argmax_by_thresholds(probability, thresholds),
        }
    }
}

/// Turns pairs of opposite margins into the probabilities of both classes.
struct Logistic<'a> {
    pairs: &'a mut [f64],
}

impl Kernel for Logistic<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for pair in self.pairs.chunks_exact_mut(2) {
            let decay = exp_nonpositive::<FMA>(-pair[0].abs());
            let numerator = if pair[0] >= 0.0 { 1.0 } else { decay };
            pair[0] = numerator / (1.0 + decay);
            pair[1] = 1.0 - pair[0];
        }
    }
}
