//! The rank program: by the normal equation over summed products, or by minimizing the summed loss.

use serde::{Deserialize, Serialize};
use train::batch::Problem;
use train::gram::Gram;
use train::loss::{Huber, Squared};
use train::moments::Moments;
use train::optim::{self, Minimum, Options};
use train::{Error, Progress, RankContext, RankProgram, Result};

use super::normal;
use crate::linear::bits;
use crate::linear::instances::{Columns, Instances, read_instances};
use crate::linear::objective::{L2, Standardized, dot, l1_weights, observe};
use crate::linear::resume::Resumable;

pub static PROGRAM: RankProgram = RankProgram { name: "linear_regression", run };

/// Steps that L-BFGS remembers, in Spark.
pub(super) const MEMORY: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Loss {
    SquaredError,
    Huber,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Solver {
    /// The normal equation for as many features as it takes, else L-BFGS.
    Auto,
    Normal,
    Lbfgs,
}

/// What the estimator planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Features, label and, when there is one, weight.
    pub columns: Vec<String>,
    pub loss: Loss,
    pub solver: Solver,
    #[serde(with = "bits")]
    pub epsilon: f64,
    #[serde(with = "bits")]
    pub reg_param: f64,
    #[serde(with = "bits")]
    pub elastic_net: f64,
    pub max_iterations: usize,
    #[serde(with = "bits")]
    pub tolerance: f64,
    pub fits_intercept: bool,
    pub is_standardized: bool,
}

/// What rank 0 returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    #[serde(with = "bits::many")]
    pub coefficients: Vec<f64>,
    #[serde(with = "bits")]
    pub intercept: f64,
    #[serde(with = "bits")]
    pub scale: f64,
    #[serde(with = "bits::many")]
    pub objective_history: Vec<f64>,
    /// The diagonal of `(A^T W A)^-1`, the intercept's last; a single 0 where it is not known.
    #[serde(with = "bits::many")]
    pub inverse_diagonal: Vec<f64>,
}

fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> Result<Vec<u8>> {
    let read = |source| Error::Spec { program: PROGRAM.name, source };
    let spec: Spec = serde_json::from_slice(spec).map_err(read)?;
    let fitted = fit(&spec, ctx)?;
    if ctx.rank() == 0 { serde_json::to_vec(&fitted).map_err(read) } else { Ok(Vec::new()) }
}

pub(super) fn invalid(text: String) -> Error {
    Problem::data(text).into_error()
}

fn fit(spec: &Spec, ctx: &mut RankContext<'_>) -> Result<Fitted> {
    let [features, label, weight @ ..] = &spec.columns[..] else {
        return Err(Error::Bug { invariant: "a fit is planned with features and a label".into() });
    };
    let weight = weight.first().map(String::as_str);
    let instances = read_instances(ctx, &Columns { features, label, weight, is_classification: false })?;
    let fits_memory = instances.num_features <= normal::FEATURES_MAX;
    if spec.loss == Loss::SquaredError
        && (spec.solver == Solver::Normal || (spec.solver == Solver::Auto && fits_memory))
    {
        return fit_normal(spec, ctx, &instances);
    }
    let moments = Moments::of_features(&instances.batches, instances.num_features).over_ranks(ctx.group)?;
    if moments.weight_sum <= 0.0 {
        return Err(invalid("Nothing has been added to this summarizer: the weights of all rows are zero".into()));
    }
    let labels = Moments::of_labels(&instances.batches).over_ranks(ctx.group)?;
    let (mean, std) = (labels.mean()[0], labels.standard_deviation()[0]);
    if std == 0.0 {
        if spec.fits_intercept || mean == 0.0 {
            return Ok(constant_label(instances.num_features, mean));
        }
        if spec.reg_param != 0.0 {
            return Err(invalid("The standard deviation of the label is zero. Model cannot be regularized.".into()));
        }
    }
    let trainer = Trainer {
        spec,
        rows: Standardized::new(ctx.group, &instances.batches, &moments),
        label_mean: mean,
        label_std: if std > 0.0 { std } else { mean.abs() },
    };
    let params = Spec { max_iterations: 0, tolerance: 0.0, ..spec.clone() };
    let resumable = Resumable::find(ctx, PROGRAM.name, &params, instances.num_rows, instances.num_features)?;
    let minimum = trainer.minimize(ctx.progress, &resumable).map_err(|error| trainer.rows.find_culprits(error))?;
    Ok(trainer.finish(minimum))
}

fn fit_normal(spec: &Spec, ctx: &RankContext<'_>, instances: &Instances) -> Result<Fitted> {
    if instances.num_features > normal::FEATURES_MAX {
        return Err(invalid(format!(
            "In order to take the normal equation approach efficiently, we set the max number of features to {} but got {}.",
            normal::FEATURES_MAX,
            instances.num_features
        )));
    }
    if spec.max_iterations == 0 {
        return Err(invalid("maxIter must be a positive integer: 0".into()));
    }
    let gram = Gram::over_ranks(&instances.batches, instances.num_features, ctx.group)?;
    if gram.weight <= 0.0 {
        return Err(invalid("Sum of weights cannot be zero.".into()));
    }
    let mut seen =
        |iteration: &optim::Iteration<'_>| observe(ctx.progress, iteration, spec.max_iterations, instances.num_rows);
    normal::solve(spec, &gram, &mut seen)
}

/// The model of a label that never changes.
pub(super) fn constant_label(num_features: usize, mean: f64) -> Fitted {
    Fitted {
        coefficients: vec![0.0; num_features],
        intercept: mean,
        scale: 1.0,
        objective_history: vec![0.0],
        inverse_diagonal: vec![0.0],
    }
}

struct Trainer<'a> {
    spec: &'a Spec,
    rows: Standardized<'a>,
    label_mean: f64,
    label_std: f64,
}

impl Trainer<'_> {
    fn num_features(&self) -> usize {
        self.rows.std.len()
    }

    fn minimize(&self, progress: &dyn Progress, resumable: &Resumable<'_>) -> Result<Minimum> {
        let spec = self.spec;
        let options = Options { max_iterations: spec.max_iterations, tolerance: spec.tolerance, memory: MEMORY };
        let reg_param = match spec.loss {
            Loss::SquaredError => spec.reg_param / self.label_std,
            Loss::Huber => spec.reg_param,
        };
        let features = || 0..self.num_features();
        let l2 = L2::new((1.0 - spec.elastic_net) * reg_param, features(), &self.rows.std, spec.is_standardized);
        let mut evaluate = |point: &[f64]| {
            let (mut value, mut gradient) = match spec.loss {
                Loss::SquaredError => self.squared(point)?,
                Loss::Huber => self.huber(point)?,
            };
            l2.add(point, &mut value, &mut gradient);
            Ok((value, gradient))
        };
        let mut seen = |iteration: &optim::Iteration<'_>| {
            resumable.keep(iteration);
            observe(progress, iteration, spec.max_iterations, self.rows.rows_used())
        };
        let zeros = vec![0.0; self.num_features()];
        match spec.loss {
            Loss::SquaredError if spec.elastic_net == 0.0 || reg_param == 0.0 => {
                optim::lbfgs(&options, &resumable.start(&zeros)?, &mut evaluate, &mut seen)
            }
            Loss::SquaredError => {
                let l1 = l1_weights(spec.elastic_net * reg_param, features(), &self.rows.std, spec.is_standardized);
                optim::owlqn(&options, &l1, &resumable.start(&zeros)?, &mut evaluate, &mut seen)
            }
            Loss::Huber => {
                let mut initial = vec![1.0; self.num_features() + 1 + usize::from(spec.fits_intercept)];
                if spec.fits_intercept {
                    initial[self.num_features()] += self.rows.scaled_mean.iter().sum::<f64>();
                }
                // all is free but the scale, which is positive
                let mut lower = vec![f64::MIN; initial.len()];
                if let Some(scale) = lower.last_mut() {
                    *scale = f64::from_bits(1);
                }
                let upper = vec![f64::MAX; initial.len()];
                optim::lbfgsb(&options, &lower, &upper, &resumable.start(&initial)?, &mut evaluate, &mut seen)
            }
        }
    }

    /// The intercept is not a parameter: it follows from the means, which centering makes zero.
    fn squared(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let offset = match self.spec.fits_intercept {
            true => self.label_mean / self.label_std - dot(point, &self.rows.scaled_mean),
            false => 0.0,
        };
        // a feature that never changes has no coefficient
        let coefficients: Vec<f64> = point
            .iter()
            .zip(&self.rows.inverse_std)
            .map(|(c, inverse)| if *inverse != 0.0 { *c } else { 0.0 })
            .collect();
        let means = self.rows.rows(&coefficients, offset, &mut Squared::new(1.0 / self.label_std))?;
        Ok((means.sums[0], means.gradient))
    }

    fn huber(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let (coefficients, rest) = point.split_at(self.num_features());
        let scale = rest.last().copied().unwrap_or(1.0);
        let offset = match self.spec.fits_intercept {
            true => rest[0] - dot(coefficients, &self.rows.scaled_mean),
            false => 0.0,
        };
        let means = self.rows.rows(coefficients, offset, &mut Huber::new(self.spec.epsilon, scale))?;
        let [loss, multipliers, scale_gradient] = means.sums[..] else {
            return Err(Error::Bug { invariant: "Huber's loss has three sums".into() });
        };
        let mut gradient = means.gradient;
        if self.spec.fits_intercept {
            gradient.iter_mut().zip(&self.rows.scaled_mean).for_each(|(g, mean)| *g -= multipliers * mean);
            gradient.push(multipliers);
        }
        gradient.push(scale_gradient);
        Ok((loss, gradient))
    }

    fn finish(&self, minimum: Minimum) -> Fitted {
        let (scaled, rest) = minimum.point.split_at(self.num_features());
        let label_scale = if self.spec.loss == Loss::Huber { 1.0 } else { self.label_std };
        let coefficients: Vec<f64> = scaled
            .iter()
            .zip(&self.rows.std)
            .map(|(c, std)| if *std != 0.0 { c * label_scale / std } else { 0.0 })
            .collect();
        let intercept = match (self.spec.fits_intercept, self.spec.loss) {
            (false, _) => 0.0,
            (true, Loss::SquaredError) => self.label_mean - dot(&coefficients, &self.rows.mean),
            (true, Loss::Huber) => rest[0] - dot(scaled, &self.rows.scaled_mean),
        };
        let scale = if self.spec.loss == Loss::Huber { rest.last().copied().unwrap_or(1.0) } else { 1.0 };
        Fitted { coefficients, intercept, scale, objective_history: minimum.history, inverse_diagonal: vec![0.0] }
    }
}
