//! The rank program: L-BFGS or gradient descent on Spark's objective.
//!
//! Spark cuts rows into blocks and takes the mean over blocks of each block's mean. Only the last block may be short, and
//! its rows count for more. Blocks here are cut of all ranks' rows, one rank's after the other's, so one rank has those of
//! a Spark job of one partition.

use collective::ReduceOp;
use serde::{Deserialize, Serialize};
use train::batch::{Batch, Problem, agree};
use train::optim::{self, Options};
use train::{Error, RankContext, RankProgram, Result, Step};

use super::network::Network;
use crate::linear::bits;
use crate::linear::instances::{Columns, read_instances};
use crate::linear::objective::observe;
use crate::linear::resume::Resumable;

pub static PROGRAM: RankProgram = RankProgram { name: "multilayer_perceptron", run };

/// Steps that L-BFGS remembers, in Spark.
const MEMORY: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Solver {
    Lbfgs,
    GradientDescent {
        #[serde(with = "bits")]
        step_size: f64,
    },
}

/// What the estimator planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Features and label.
    pub columns: Vec<String>,
    pub layers: Vec<usize>,
    #[serde(with = "bits::optional")]
    pub initial_weights: Option<Vec<f64>>,
    pub seed: i64,
    pub block_rows: usize,
    pub max_iterations: usize,
    #[serde(with = "bits")]
    pub tolerance: f64,
    pub solver: Solver,
}

/// What rank 0 returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    #[serde(with = "bits::many")]
    pub weights: Vec<f64>,
    #[serde(with = "bits::many")]
    pub objective_history: Vec<f64>,
}

fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> Result<Vec<u8>> {
    let read = |source| Error::Spec { program: PROGRAM.name, source };
    let spec: Spec = serde_json::from_slice(spec).map_err(read)?;
    let fitted = fit(&spec, ctx)?;
    if ctx.rank() == 0 { serde_json::to_vec(&fitted).map_err(read) } else { Ok(Vec::new()) }
}

fn fit(spec: &Spec, ctx: &mut RankContext<'_>) -> Result<Fitted> {
    let [features, label] = &spec.columns[..] else {
        return Err(Error::Bug { invariant: "a fit is planned with features and a label".into() });
    };
    let network = Network::new(spec.layers.clone());
    let columns = Columns { features, label, weight: None, is_classification: true };
    let instances = read_instances(ctx, &columns)?;
    agree(ctx.group, check(&network, &columns, &instances.batches))?;
    if instances.num_features != network.num_features() {
        let (expected, found) = (network.num_features(), instances.num_features);
        let text = format!("the first of layers is {expected}, but vectors of {features} have {found} values");
        return Err(Problem::data(text).into_error());
    }
    let mut objective = Objective::new(ctx, spec, network, &instances.batches)?;
    let initial = spec.initial_weights.clone().unwrap_or_else(|| objective.network.initial_weights(spec.seed));
    let outcome = match spec.solver {
        Solver::Lbfgs => {
            let params = Spec { max_iterations: 0, tolerance: 0.0, ..spec.clone() };
            let resumable = Resumable::find(ctx, PROGRAM.name, &params, instances.num_rows, instances.num_features)?;
            lbfgs(ctx, spec, &mut objective, &resumable, &initial)
        }
        Solver::GradientDescent { step_size } => gradient_descent(ctx, spec, &mut objective, initial, step_size),
    };
    outcome.map_err(|error| objective.find_culprits(error))
}

/// Labels that the layers have no class for.
fn check(network: &Network, columns: &Columns<'_>, batches: &[Batch]) -> std::result::Result<(), Problem> {
    let num_classes = network.num_classes();
    let refused: Vec<f64> =
        batches.iter().flat_map(|batch| batch.labels.iter().copied()).filter(|v| *v >= num_classes as f64).collect();
    let Some(first) = refused.first() else { return Ok(()) };
    let allowed = if num_classes == 2 { "{0, 1}".to_string() } else { format!("[0, {num_classes})") };
    let text = format!("Labels MUST be in {allowed}, but got {}", udt::vector::java_double(*first));
    Err(Problem::user(columns.label, refused.len() as u64, text))
}

/// The objective over all ranks.
struct Objective<'a, 'c> {
    ctx: &'a RankContext<'c>,
    network: Network,
    batches: &'a [Batch],
    /// How much each row counts, a list a batch. Those of all ranks add up to 1.
    factors: Vec<Vec<f64>>,
    num_rows: u64,
    rows_used: u64,
    is_own_finite: bool,
}

impl<'a, 'c> Objective<'a, 'c> {
    fn new(ctx: &'a RankContext<'c>, spec: &Spec, network: Network, batches: &'a [Batch]) -> Result<Objective<'a, 'c>> {
        let num_rows: usize = batches.iter().map(Batch::num_rows).sum();
        let of_ranks = ctx.group.all_gather(&[num_rows as i64])?;
        let before: i64 = of_ranks[..ctx.rank()].iter().sum();
        let all = of_ranks.iter().sum::<i64>() as usize;
        let (num_blocks, last_rows) = (all.div_ceil(spec.block_rows), all % spec.block_rows);
        let first_of_last = all - last_rows;
        let factor = |row: usize| {
            let block_rows = if row >= first_of_last { last_rows } else { spec.block_rows };
            1.0 / (num_blocks * block_rows) as f64
        };
        let mut row = before as usize;
        let factors = batches
            .iter()
            .map(|batch| {
                let factors = (row..row + batch.num_rows()).map(factor).collect();
                row += batch.num_rows();
                factors
            })
            .collect();
        Ok(Objective { ctx, network, batches, factors, num_rows: num_rows as u64, rows_used: 0, is_own_finite: true })
    }

    fn evaluate(&mut self, weights: &[f64]) -> Result<(f64, Vec<f64>)> {
        let (mut loss, mut gradient) = (0.0, vec![0.0; weights.len()]);
        for (batch, factors) in self.batches.iter().zip(&self.factors) {
            self.network.add_loss(weights, &batch.features, &batch.labels, factors, &mut loss, &mut gradient);
        }
        self.is_own_finite = loss.is_finite();
        self.rows_used += self.num_rows;
        gradient.push(loss);
        self.ctx.group.all_reduce(&mut gradient, ReduceOp::Sum)?;
        let loss = gradient.pop().unwrap_or_default();
        Ok((loss, gradient))
    }

    /// Adds to the error of a loss that is no number which ranks it came from. Every rank calls it with the same outcome.
    fn find_culprits(&self, error: Error) -> Error {
        let Error::LossNotFinite { step, loss, .. } = error else { return error };
        match self.ctx.group.all_gather(&[u8::from(self.is_own_finite)]) {
            Ok(finite) => {
                let ranks = finite.iter().enumerate().filter(|(_, is_finite)| **is_finite == 0).map(|(rank, _)| rank);
                Error::LossNotFinite { step, loss, ranks: ranks.collect() }
            }
            Err(error) => error.into(),
        }
    }
}

fn lbfgs(
    ctx: &RankContext<'_>,
    spec: &Spec,
    objective: &mut Objective<'_, '_>,
    resumable: &Resumable<'_>,
    initial: &[f64],
) -> Result<Fitted> {
    let options = Options { max_iterations: spec.max_iterations, tolerance: spec.tolerance, memory: MEMORY };
    let rows_used = std::cell::Cell::new(0);
    let mut evaluate = |point: &[f64]| {
        let evaluated = objective.evaluate(point);
        rows_used.set(objective.rows_used);
        evaluated
    };
    let mut seen = |iteration: &optim::Iteration<'_>| {
        resumable.keep(iteration);
        observe(ctx.progress, iteration, spec.max_iterations, rows_used.get())
    };
    let minimum = optim::lbfgs(&options, &resumable.start(initial)?, &mut evaluate, &mut seen)?;
    Ok(Fitted { weights: minimum.point, objective_history: minimum.history })
}

/// Steps against the gradient, all of one size, until one changes the weights by less than the tolerance. The loss after
/// a step is known with the next gradient. As in Spark, one more is taken after the last of `max_iterations` steps, and none
/// after a step that ends the descent by itself, so that the history lacks the loss of those weights.
fn gradient_descent(
    ctx: &RankContext<'_>,
    spec: &Spec,
    objective: &mut Objective<'_, '_>,
    mut weights: Vec<f64>,
    step_size: f64,
) -> Result<Fitted> {
    let mut history = Vec::new();
    loop {
        ctx.check_cancelled()?;
        let (loss, gradient) = objective.evaluate(&weights)?;
        let iteration = history.len();
        if !loss.is_finite() {
            return Err(Error::LossNotFinite { step: iteration as u64, loss, ranks: Vec::new() });
        }
        history.push(loss);
        ctx.progress.report(Step {
            step: iteration as u64,
            steps_max: spec.max_iterations as u64,
            rows: objective.rows_used,
            loss: Some(loss),
            metrics: Vec::new(),
        });
        if iteration >= spec.max_iterations {
            return Ok(Fitted { weights, objective_history: history });
        }
        weights.iter_mut().zip(&gradient).for_each(|(weight, slope)| *weight -= step_size * slope);
        let norm = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>().sqrt();
        // Spark compares with the step before, so the first step never ends it
        if iteration > 0 && step_size * norm(&gradient) < spec.tolerance * norm(&weights).max(1.0) {
            return Ok(Fitted { weights, objective_history: history });
        }
    }
}
