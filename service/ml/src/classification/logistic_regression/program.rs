//! The rank program: statistics, then L-BFGS, OWL-QN or L-BFGS-B on the summed loss.
//!
//! Parameters are laid out as Spark lays them out, since the path of the minimizer depends on it: the coefficients of
//! the first feature for every class, those of the second, and so on; the intercepts last.

use collective::{Group, ReduceOp};
use serde::{Deserialize, Serialize};
use train::batch::{Batch, Problem};
use train::loss::Logistic;
use train::moments::Moments;
use train::optim::{self, Minimum, Options};
use train::{Error, Progress, RankContext, RankProgram, Result};

use super::bounds::Bounds;
use crate::linear::bits;
use crate::linear::instances::{Columns, read_instances};
use crate::linear::objective::{L2, Standardized, dot, l1_weights, observe};
use crate::linear::resume::Resumable;

pub static PROGRAM: RankProgram = RankProgram { name: "logistic_regression", run };

/// Steps that L-BFGS remembers, in Spark.
const MEMORY: usize = 10;
/// More classes than labels can sensibly name: a label column that holds something else.
const CLASSES_MAX: usize = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Family {
    Auto,
    Binomial,
    Multinomial,
}

impl Family {
    /// By the param's value, which was checked.
    pub fn named(name: &str) -> Family {
        match name.to_ascii_lowercase().as_str() {
            "binomial" => Family::Binomial,
            "multinomial" => Family::Multinomial,
            _ => Family::Auto,
        }
    }
}

/// What the estimator planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Features, label and, when there is one, weight.
    pub columns: Vec<String>,
    pub family: Family,
    #[serde(with = "bits")]
    pub reg_param: f64,
    #[serde(with = "bits")]
    pub elastic_net: f64,
    pub max_iterations: usize,
    #[serde(with = "bits")]
    pub tolerance: f64,
    pub fits_intercept: bool,
    pub is_standardized: bool,
    /// As the label column's metadata says, if it does.
    pub num_classes: Option<usize>,
    pub num_thresholds: Option<usize>,
    pub bounds: Option<Bounds>,
}

/// What rank 0 returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    pub num_classes: usize,
    pub num_features: usize,
    pub is_multinomial: bool,
    /// Row-major: a row a class, or one row.
    #[serde(with = "bits::many")]
    pub coefficients: Vec<f64>,
    #[serde(with = "bits::many")]
    pub intercepts: Vec<f64>,
    #[serde(with = "bits::many")]
    pub objective_history: Vec<f64>,
    /// Whether there was one label only, and so nothing to train.
    pub is_constant: bool,
}

fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> Result<Vec<u8>> {
    let read = |source| Error::Spec { program: PROGRAM.name, source };
    let spec: Spec = serde_json::from_slice(spec).map_err(read)?;
    let fitted = fit(&spec, ctx)?;
    if ctx.rank() == 0 { serde_json::to_vec(&fitted).map_err(read) } else { Ok(Vec::new()) }
}

fn fit(spec: &Spec, ctx: &mut RankContext<'_>) -> Result<Fitted> {
    let [features, label, weight @ ..] = &spec.columns[..] else {
        return Err(Error::Bug { invariant: "a fit is planned with features and a label".into() });
    };
    let weight = weight.first().map(String::as_str);
    let instances = read_instances(ctx, &Columns { features, label, weight, is_classification: true })?;
    let moments = Moments::of_features(&instances.batches, instances.num_features).over_ranks(ctx.group)?;
    if moments.weight_sum <= 0.0 {
        return Err(invalid("Nothing has been added to this summarizer: the weights of all rows are zero".into()));
    }
    let histogram = histogram(&instances.batches, ctx.group)?;
    let num_classes = decide_num_classes(spec, histogram.len())?;
    let is_multinomial = decide_multinomial(spec.family, num_classes)?;
    let num_sets = if is_multinomial { num_classes } else { 1 };
    if let Some(bounds) = &spec.bounds {
        bounds.check(num_sets, instances.num_features)?;
    }
    if let Some(found) = spec.num_thresholds.filter(|found| *found != num_classes) {
        return Err(invalid(format!(
            "LogisticRegression.train() called with non-matching numClasses and thresholds.length. \
             numClasses={num_classes}, but thresholds has length {found}"
        )));
    }
    let is_constant = histogram.iter().filter(|weight| **weight != 0.0).count() == 1;
    if is_constant && spec.fits_intercept && spec.bounds.is_none() {
        return Ok(constant(num_classes, instances.num_features, is_multinomial, &histogram));
    }
    let trainer = Trainer {
        spec,
        num_sets,
        num_features: instances.num_features,
        is_multinomial,
        histogram,
        rows: Standardized::new(ctx.group, &instances.batches, &moments),
    };
    let params = Spec { max_iterations: 0, tolerance: 0.0, ..spec.clone() };
    let resumable = Resumable::find(ctx, PROGRAM.name, &params, instances.num_rows, instances.num_features)?;
    let minimum = trainer.minimize(ctx.progress, &resumable).map_err(|error| trainer.rows.find_culprits(error))?;
    Ok(trainer.finish(minimum, num_classes))
}

fn invalid(text: String) -> Error {
    Problem::data(text).into_error()
}

/// The weight of every class, over all ranks.
fn histogram(batches: &[Batch], group: &Group) -> Result<Vec<f64>> {
    let mut histogram = Vec::new();
    let mut too_large = 0.0;
    for batch in batches {
        for (row, label) in batch.labels.iter().enumerate() {
            let weight = batch.weights.as_ref().map_or(1.0, |weights| weights[row]);
            if weight > 0.0 {
                let class = *label as usize;
                if class >= CLASSES_MAX {
                    too_large = f64::max(too_large, *label);
                    continue;
                }
                if class >= histogram.len() {
                    histogram.resize(class + 1, 0.0);
                }
                histogram[class] += weight;
            }
        }
    }
    let mut largest = [histogram.len() as f64, too_large];
    group.all_reduce(&mut largest, ReduceOp::Max)?;
    if largest[1] > 0.0 {
        return Err(invalid(format!(
            "Labels are classes numbered from 0, of which there may be {CLASSES_MAX}, but got {}",
            udt::vector::java_double(largest[1])
        )));
    }
    histogram.resize(largest[0] as usize, 0.0);
    group.all_reduce(&mut histogram, ReduceOp::Sum)?;
    Ok(histogram)
}

fn decide_num_classes(spec: &Spec, found: usize) -> Result<usize> {
    match spec.num_classes {
        Some(stated) if stated < found => Err(invalid(format!(
            "Specified number of classes {stated} was less than the number of unique labels {found}."
        ))),
        stated => Ok(stated.unwrap_or(found)),
    }
}

fn decide_multinomial(family: Family, num_classes: usize) -> Result<bool> {
    match family {
        Family::Binomial if num_classes > 2 => {
            Err(invalid(format!("Binomial family only supports 1 or 2 outcome classes but found {num_classes}.")))
        }
        Family::Binomial => Ok(false),
        Family::Multinomial => Ok(true),
        Family::Auto => Ok(num_classes > 2),
    }
}

/// The model of a single label: coefficients of zero, and that label for certain.
fn constant(num_classes: usize, num_features: usize, is_multinomial: bool, histogram: &[f64]) -> Fitted {
    let label = histogram.iter().position(|weight| *weight != 0.0).unwrap_or(0);
    let intercepts = if is_multinomial {
        (0..num_classes).map(|class| if class == label { f64::INFINITY } else { 0.0 }).collect()
    } else {
        vec![if num_classes == 2 { f64::INFINITY } else { f64::NEG_INFINITY }]
    };
    Fitted {
        num_classes,
        num_features,
        is_multinomial,
        coefficients: vec![0.0; intercepts.len() * num_features],
        intercepts,
        objective_history: vec![0.0],
        is_constant: true,
    }
}

struct Trainer<'a> {
    spec: &'a Spec,
    /// Rows of coefficients: the classes, or one.
    num_sets: usize,
    num_features: usize,
    is_multinomial: bool,
    histogram: Vec<f64>,
    rows: Standardized<'a>,
}

impl Trainer<'_> {
    fn num_coefficients(&self) -> usize {
        self.num_sets * self.num_features
    }

    fn num_parameters(&self) -> usize {
        self.num_coefficients() + if self.spec.fits_intercept { self.num_sets } else { 0 }
    }

    /// Features are centered where the intercept is free to take up their means.
    fn is_centered(&self) -> bool {
        self.spec.fits_intercept && !self.spec.bounds.as_ref().is_some_and(Bounds::hold_intercepts)
    }

    /// By coefficient, its feature.
    fn features(&self) -> impl Iterator<Item = usize> {
        let num_sets = self.num_sets;
        (0..self.num_coefficients()).map(move |coefficient| coefficient / num_sets)
    }

    fn minimize(&self, progress: &dyn Progress, resumable: &Resumable<'_>) -> Result<Minimum> {
        let spec = self.spec;
        let options = Options { max_iterations: spec.max_iterations, tolerance: spec.tolerance, memory: MEMORY };
        let bounds =
            spec.bounds.as_ref().map(|bounds| bounds.scaled(&self.rows.std, self.num_sets, spec.fits_intercept));
        let mut initial = self.initial(bounds.as_ref())?;
        if self.is_centered() {
            self.shift_intercepts(&mut initial, 1.0);
        }
        let l2 =
            L2::new((1.0 - spec.elastic_net) * spec.reg_param, self.features(), &self.rows.std, spec.is_standardized);
        let mut evaluate = |point: &[f64]| {
            let (mut value, mut gradient) =
                if self.is_multinomial { self.classes(point)? } else { self.binary(point)? };
            l2.add(point, &mut value, &mut gradient);
            Ok((value, gradient))
        };
        let mut seen = |iteration: &optim::Iteration<'_>| {
            resumable.keep(iteration);
            observe(progress, iteration, spec.max_iterations, self.rows.rows_used())
        };
        let start = resumable.start(&initial)?;
        let mut minimum = if spec.elastic_net != 0.0 && spec.reg_param != 0.0 {
            let strength = spec.elastic_net * spec.reg_param;
            let mut l1 = l1_weights(strength, self.features(), &self.rows.std, spec.is_standardized);
            l1.resize(self.num_parameters(), 0.0);
            optim::owlqn(&options, &l1, &start, &mut evaluate, &mut seen)?
        } else if let Some((lower, upper)) = &bounds {
            optim::lbfgsb(&options, lower, upper, &start, &mut evaluate, &mut seen)?
        } else {
            optim::lbfgs(&options, &start, &mut evaluate, &mut seen)?
        };
        if self.is_centered() {
            self.shift_intercepts(&mut minimum.point, -1.0);
        }
        Ok(minimum)
    }

    fn binary(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let coefficients = &point[..self.num_features];
        let mut offset = point.get(self.num_features).copied().unwrap_or(0.0);
        if self.is_centered() {
            offset -= dot(coefficients, &self.rows.scaled_mean);
        }
        let means = self.rows.rows(coefficients, offset, &mut Logistic::default())?;
        let multipliers = means.sums[1];
        let mut gradient = means.gradient;
        if self.is_centered() {
            gradient.iter_mut().zip(&self.rows.scaled_mean).for_each(|(g, mean)| *g -= multipliers * mean);
        }
        if self.spec.fits_intercept {
            gradient.push(multipliers);
        }
        Ok((means.sums[0], gradient))
    }

    fn classes(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let (num_sets, num_features) = (self.num_sets, self.num_features);
        let by_class = self.by_class(point);
        let mut offsets = match self.spec.fits_intercept {
            true => point[self.num_coefficients()..].to_vec(),
            false => vec![0.0; num_sets],
        };
        if self.is_centered() {
            for (offset, coefficients) in offsets.iter_mut().zip(by_class.chunks_exact(num_features.max(1))) {
                *offset -= dot(coefficients, &self.rows.scaled_mean);
            }
        }
        let means = self.rows.classes(&by_class, &offsets)?;
        let multipliers = &means.sums[1..];
        let mut gradient = vec![0.0; self.num_parameters()];
        for (class, multiplier) in multipliers.iter().enumerate() {
            for feature in 0..num_features {
                let mut g = means.gradient[class * num_features + feature];
                if self.is_centered() {
                    g -= multiplier * self.rows.scaled_mean[feature];
                }
                gradient[feature * num_sets + class] = g;
            }
            if self.spec.fits_intercept {
                gradient[self.num_coefficients() + class] = *multiplier;
            }
        }
        Ok((means.sums[0], gradient))
    }

    /// The coefficients of a point, class after class.
    fn by_class(&self, point: &[f64]) -> Vec<f64> {
        let at = |class: usize, feature: usize| point[feature * self.num_sets + class];
        (0..self.num_sets).flat_map(|class| (0..self.num_features).map(move |feature| at(class, feature))).collect()
    }

    /// Moves intercepts between the problem of centered features and that of features as they are.
    fn shift_intercepts(&self, point: &mut [f64], sign: f64) {
        let (coefficients, intercepts) = point.split_at_mut(self.num_coefficients());
        for (i, c) in coefficients.iter().enumerate() {
            intercepts[i % self.num_sets] += sign * c * self.rows.scaled_mean[i / self.num_sets];
        }
    }

    /// Zero coefficients, and the intercepts that the shares of labels give; then brought within the bounds.
    fn initial(&self, bounds: Option<&(Vec<f64>, Vec<f64>)>) -> Result<Vec<f64>> {
        let mut initial = vec![0.0; self.num_parameters()];
        let intercepts = &mut initial[self.num_coefficients()..];
        if self.spec.fits_intercept && self.is_multinomial {
            let logs: Vec<f64> = self.histogram.iter().map(|weight| weight.ln_1p()).collect();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            intercepts.iter_mut().zip(&logs).for_each(|(intercept, log)| *intercept = log - mean);
        } else if self.spec.fits_intercept {
            let [negative, positive] = self.histogram[..] else {
                return Err(invalid(format!(
                    "a bounded binomial model needs labels of 2 classes, found {}",
                    self.histogram.len()
                )));
            };
            intercepts[0] = (positive / negative).ln();
        }
        if let Some((lower, upper)) = bounds {
            for (i, x) in initial.iter_mut().enumerate() {
                *x = x.max(lower[i]).min(upper[i]);
            }
        }
        Ok(initial)
    }

    /// Coefficients of features as they are; centered where only their differences matter.
    fn finish(&self, minimum: Minimum, num_classes: usize) -> Fitted {
        let is_free = self.spec.bounds.is_none() && self.is_multinomial;
        let mut coefficients = self.by_class(&minimum.point);
        for (c, std) in coefficients.iter_mut().zip(self.rows.std.iter().cycle()) {
            *c = if *std != 0.0 { *c / std } else { 0.0 };
        }
        if is_free && self.spec.reg_param == 0.0 {
            for feature in 0..self.num_features {
                let of_feature = || (0..self.num_sets).map(|set| set * self.num_features + feature);
                let center = of_feature().map(|i| coefficients[i]).sum::<f64>() / self.num_sets as f64;
                of_feature().for_each(|i| coefficients[i] -= center);
            }
        }
        let mut intercepts = minimum.point[self.num_coefficients()..].to_vec();
        intercepts.resize(self.num_sets, 0.0);
        if is_free && self.spec.fits_intercept {
            let center = intercepts.iter().sum::<f64>() / intercepts.len() as f64;
            intercepts.iter_mut().for_each(|intercept| *intercept -= center);
        }
        Fitted {
            num_classes,
            num_features: self.num_features,
            is_multinomial: self.is_multinomial,
            coefficients,
            intercepts,
            objective_history: minimum.history,
            is_constant: false,
        }
    }
}
