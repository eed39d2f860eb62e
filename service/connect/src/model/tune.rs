//! `TUNE BY`: trials side by side, each in gangs of its own within the server's slots.

mod propose;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt, stream};
use ml::Value;
use sql::model::{Constant, Domain, Place, Search, StopRule, Tune};

use super::document::{KeptStep, KeptTrial};
use super::evaluate::{Evaluation, MetricSpec, metrics};
use super::fit::{Encoders, FitCall, Fitted, fit};
use super::options::{Settings, check_param, normalized, snake};
use super::plan::{Task, TrainPlan, Trainable};
use super::rows::Rows;
use super::store::Running;
use super::train::{Learn, Outcome, Prepared, kept_steps, measured, warning};
use super::{Refusal, options};
use crate::{Error, Operation, Result, Session};
use propose::{Observation, Proposer};

/// Trials where TRIALS says nothing and the search is no grid.
const TRIALS: usize = 20;
const TRIALS_MAX: u64 = 1000;
const FOLDS_MAX: i64 = 100;
const REDUCTION: i64 = 3;

/// A hyperparameter and where it is searched.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Spark's name.
    pub param: String,
    /// As the statement has it.
    pub shown: String,
    pub range: Range,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Range {
    OneOf(Vec<(Constant, Value)>),
    Between { low: f64, high: f64, is_log: bool, is_integer: bool },
}

/// A search that can begin.
pub struct TunePlan {
    pub search: Search,
    pub axes: Vec<Axis>,
    /// None: the first one that fits.
    metric: Option<(&'static MetricSpec, Place)>,
    pub trials: usize,
    folds: Option<usize>,
    pub parallelism: usize,
    pub workers: usize,
    seed: i64,
    rungs: Vec<Rung>,
}

/// How far trials train before the worse ones end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rung {
    iterations: i32,
    /// One of this many goes on.
    reduction: usize,
}

/// # Errors
/// Whatever can be told without data.
pub fn plan(
    tune: &Tune,
    trainable: Trainable,
    settings: &Settings,
    workers: usize,
    session: &Session,
) -> Result<TunePlan> {
    let estimator = trainable.operator.snake_name();
    let axes =
        tune.dimensions.iter().map(|dimension| axis(dimension, trainable, settings)).collect::<Result<Vec<_>>>()?;
    let metric = metric(tune, trainable.task, &estimator)?;
    let grid: u64 = axes.iter().fold(1u64, |size, axis| match &axis.range {
        Range::OneOf(values) => size.saturating_mul(values.len() as u64),
        Range::Between { .. } => u64::MAX,
    });
    let count = |value: Option<(i64, Place)>, what: &'static str, least: i64| match value {
        Some((value, place)) if value < least => {
            Err(Error::from(Refusal::InvalidTuning { what, detail: format!("{value} is less than {least}"), place }))
        }
        Some((value, _)) => Ok(Some(value as usize)),
        None => Ok(None),
    };
    let wanted = count(tune.trials, "TRIALS", 1)?;
    let trials = match tune.search {
        Search::Grid => wanted.map_or(grid, |wanted| grid.min(wanted as u64)),
        Search::Random | Search::Bayes => wanted.unwrap_or(TRIALS) as u64,
    };
    if trials > TRIALS_MAX {
        return Err(Refusal::TooManyTrials { found: trials, max: TRIALS_MAX, place: tune.place }.into());
    }
    let folds = count(tune.folds, "FOLDS", 2)?;
    if let (Some(folds), Some((_, place))) = (folds, tune.folds)
        && folds as i64 > FOLDS_MAX
    {
        let detail = format!("{folds} is more than {FOLDS_MAX}");
        return Err(Refusal::InvalidTuning { what: "FOLDS", detail, place }.into());
    }
    if folds.is_some() && !settings.refits {
        let detail = "with FOLDS no trial trains on all rows, so refit cannot be false".into();
        return Err(Refusal::InvalidTuning { what: "FOLDS", detail, place: tune.place }.into());
    }
    let slots = session.services.options.slots;
    // Side by side on a slot each, trials take the least time together.
    let workers = if session_says_workers(session) { workers } else { 1 };
    let side_by_side = (slots / workers).max(1);
    let parallelism =
        count(tune.parallelism, "PARALLELISM", 1)?.map_or(side_by_side, |wanted| wanted.min(side_by_side));
    Ok(TunePlan {
        search: tune.search,
        axes,
        metric,
        trials: trials as usize,
        folds,
        parallelism,
        workers,
        seed: tune.seed.unwrap_or(42),
        rungs: rungs(tune, trainable, settings)?,
    })
}

/// Whether somebody asked for a number of workers.
fn session_says_workers(session: &Session) -> bool {
    session.engine.conf().get(crate::ml::fit::WORKERS_KEY).is_some()
}

fn axis(dimension: &sql::model::Dimension, trainable: Trainable, settings: &Settings) -> Result<Axis> {
    let (name, place) = (&dimension.key.text, dimension.key.place);
    if name.contains('.') {
        return Err(Error::Unsupported { feature: format!("the search of {name}, a stage's parameter") });
    }
    if settings.shown.keys().any(|fixed| normalized(fixed) == normalized(name)) {
        return Err(Refusal::FixedAndTuned { option: name.clone(), place }.into());
    }
    let check = |constant: &Constant| check_param(trainable.operator, name, constant, place);
    let (param, range) = match &dimension.domain {
        Domain::OneOf(values) => {
            let mut checked = Vec::with_capacity(values.len());
            let mut param = String::new();
            for value in values {
                let (name, checked_value) = check(value)?;
                param = name;
                checked.push((value.clone(), checked_value));
            }
            (param, Range::OneOf(checked))
        }
        Domain::Between { low, high, is_log } => {
            let (param, value) = check(low)?;
            check(high)?;
            let is_integer = matches!(value, Value::Int(_) | Value::Long(_));
            let (low, high) = (low.as_double().unwrap_or(0.0), high.as_double().unwrap_or(1.0));
            (param, Range::Between { low, high, is_log: *is_log, is_integer })
        }
    };
    Ok(Axis { shown: snake(&param), param, range })
}

fn metric(tune: &Tune, task: Task, estimator: &str) -> Result<Option<(&'static MetricSpec, Place)>> {
    let Some(wanted) = &tune.metric else { return Ok(None) };
    let place = wanted.name.place;
    let known = metrics(task);
    let Some(spec) = known.iter().find(|spec| spec.name.eq_ignore_ascii_case(&wanted.name.text)) else {
        return Err(Refusal::MetricUnknown {
            metric: wanted.name.text.clone(),
            estimator: estimator.to_string(),
            known: known.iter().map(|spec| spec.name.to_string()).collect(),
            place,
        }
        .into());
    };
    if spec.is_maximized != wanted.is_maximized {
        let (metric, is_maximized) = (spec.name.to_string(), wanted.is_maximized);
        return Err(Refusal::MetricDirection { metric, is_maximized, place }.into());
    }
    Ok(Some((spec, place)))
}

/// The iterations after which trials are compared; the last rung has them all.
fn rungs(tune: &Tune, trainable: Trainable, settings: &Settings) -> Result<Vec<Rung>> {
    let Some(stop) = &tune.early_stop else { return Ok(Vec::new()) };
    let estimator = trainable.operator.snake_name();
    let Some(default) = options::param(trainable.operator, "maxIter") else {
        return Err(Refusal::NotIterative { estimator, place: stop.place }.into());
    };
    if tune.dimensions.iter().any(|dimension| normalized(&dimension.key.text) == "maxiter") {
        let detail = "max_iter is searched, and EARLY STOP sets it".into();
        return Err(Refusal::InvalidTuning { what: "EARLY STOP", detail, place: stop.place }.into());
    }
    let whole = match settings.params.get("maxIter").or(default.default.as_ref()) {
        Some(Value::Int(max_iter)) => i64::from(*max_iter),
        _ => 100,
    };
    let (mut least, mut most, mut reduction) = (1, whole, if stop.rule == StopRule::Asha { REDUCTION } else { 2 });
    for property in &stop.options {
        let Constant::Integer(value) = property.value else {
            let detail = format!("{} is {}, expected INT", property.key.text, property.value.type_name());
            return Err(Refusal::InvalidTuning { what: "EARLY STOP", detail, place: property.place }.into());
        };
        match normalized(&property.key.text).as_str() {
            "miniter" if value >= 1 => least = value,
            "maxiter" if value >= 1 => most = value,
            "reduction" if value >= 2 && stop.rule == StopRule::Asha => reduction = value,
            _ => {
                let detail = format!(
                    "{} = {value}: min_iter and max_iter of at least 1 are taken, and for ASHA \
                                      reduction of at least 2",
                    property.key.text
                );
                return Err(Refusal::InvalidTuning { what: "EARLY STOP", detail, place: property.place }.into());
            }
        }
    }
    let mut rungs = Vec::new();
    let mut iterations = least.min(most);
    loop {
        let reduction = usize::try_from(reduction).unwrap_or(2);
        rungs.push(Rung { iterations: i32::try_from(iterations).unwrap_or(i32::MAX), reduction });
        if iterations >= most {
            return Ok(rungs);
        }
        iterations = iterations.saturating_mul(reduction as i64).min(most);
    }
}

/// One point of the search.
struct Trial {
    id: i32,
    point: Vec<f64>,
    params: BTreeMap<String, Value>,
    shown: BTreeMap<String, String>,
    value: Option<f64>,
    fold_values: Vec<f64>,
    iterations: u64,
    stopped_early: bool,
    duration_ms: u64,
    error: Option<Error>,
    steps: Vec<KeptStep>,
    /// The last fit, where there are no folds.
    fitted: Option<Fitted>,
    validation: Option<Evaluation>,
}

/// Rows of one fold, encoded for training, and raw for validation.
struct Fold {
    encoders: Arc<Encoders>,
    encoded: Rows,
    validation: Rows,
    is_of_query: bool,
}

/// What all trials share.
struct Context<'a> {
    session: &'a Arc<Session>,
    operation: &'a Arc<Operation>,
    plan: &'a TrainPlan,
    tune: &'a TunePlan,
    prepared: &'a Prepared,
    metric: &'static MetricSpec,
    folds: Vec<Fold>,
    training_id: &'a str,
}

/// Runs a search and trains the best of it.
///
/// # Errors
/// [`Refusal::AllTrialsFailed`]; [`Error::Cancelled`]; what the last fit says.
pub async fn search(
    session: &Arc<Session>,
    operation: &Arc<Operation>,
    running: &Running,
    plan: &TrainPlan,
    tune: &TunePlan,
    prepared: &Prepared,
    training_id: &str,
) -> Result<Outcome> {
    let metric = chosen_metric(plan, tune, prepared)?;
    let folds = folds(session, operation, plan, tune, prepared, training_id).await?;
    let context = Context { session, operation, plan, tune, prepared, metric, folds, training_id };
    running.enter("tuning", 0.1);
    let mut trials = all_trials(&context, running).await?;
    if operation.is_cancelled() {
        return Err(Error::Cancelled);
    }
    let best = best_of(&trials, metric).ok_or_else(|| Refusal::AllTrialsFailed {
        trials: trials.len(),
        first: trials.first().and_then(|trial| trial.error.as_ref()).map(ToString::to_string).unwrap_or_default(),
    })?;
    running.enter("refitting", 0.8);
    let (fitted, validation) = (trials[best].fitted.take(), trials[best].validation.take());
    let (best_trial, best_params) = (trials[best].id, trials[best].shown.clone());
    let mut steps: Vec<KeptStep> = trials.iter_mut().flat_map(|trial| std::mem::take(&mut trial.steps)).collect();
    let fitted = match (plan.settings.refits, fitted) {
        (false, Some(fitted)) => fitted,
        _ => {
            let fitted = Box::pin(refit(&context, &trials[best].params)).await?;
            steps.extend(kept_steps(&fitted.steps, None, None));
            fitted
        }
    };
    let failed = trials.iter().filter(|trial| trial.error.is_some()).count();
    let warnings = match failed {
        0 => Vec::new(),
        failed => vec![warning("TRIALS_FAILED", format!("{failed} of {} trials failed.", trials.len()))],
    };
    Ok(Outcome {
        fitted,
        validation,
        steps,
        trials: trials.into_iter().map(|trial| kept(trial, best_trial, metric)).collect(),
        best_params,
        best_trial: Some(best_trial),
        warnings,
    })
}

fn kept(trial: Trial, best: i32, metric: &MetricSpec) -> KeptTrial {
    let status = match (&trial.error, trial.stopped_early) {
        (Some(_), _) => "FAILED",
        (None, true) => "STOPPED",
        (None, false) => "SUCCEEDED",
    };
    KeptTrial {
        trial_id: trial.id,
        status: status.into(),
        params: trial.shown,
        metric: metric.name.into(),
        value: trial.value,
        fold_values: trial.fold_values,
        iterations: trial.iterations,
        stopped_early: trial.stopped_early,
        is_optimal: trial.id == best,
        duration_ms: trial.duration_ms,
        error: trial.error.map(|error| error.to_string()),
    }
}

fn chosen_metric(plan: &TrainPlan, tune: &TunePlan, prepared: &Prepared) -> Result<&'static MetricSpec> {
    let all = metrics(plan.trainable.task);
    let is_available = |spec: &MetricSpec| !matches!(spec.name, "auc" | "area_under_pr") || prepared.num_classes() == 2;
    match tune.metric {
        Some((spec, _)) if is_available(spec) => Ok(spec),
        Some((spec, place)) => Err(Refusal::MetricUnknown {
            metric: spec.name.into(),
            estimator: format!("{} with {} classes", plan.estimator_name(), prepared.num_classes()),
            known: all.iter().filter(|spec| is_available(spec)).map(|spec| spec.name.to_string()).collect(),
            place,
        }
        .into()),
        None => all.iter().find(|spec| is_available(spec)).ok_or(Error::Bug { invariant: "every task has a metric" }),
    }
}

/// The folds that trials are measured on: one, the validation part, unless FOLDS says more.
async fn folds(
    session: &Arc<Session>,
    operation: &Arc<Operation>,
    plan: &TrainPlan,
    tune: &TunePlan,
    prepared: &Prepared,
    training_id: &str,
) -> Result<Vec<Fold>> {
    let fold = async |train: Rows, validation: Rows, is_of_query: bool, at: usize| {
        let job_id = format!("{training_id}-fold-{at}");
        let learn = Learn { session, operation, plan, prepared, job_id: &job_id, workers: tune.workers };
        let (encoders, encoded) = Box::pin(learn.from(&train)).await?;
        Ok::<Fold, Error>(Fold { encoders: Arc::new(encoders), encoded, validation, is_of_query })
    };
    let Some(count) = tune.folds else {
        let Some(validation) = prepared.validation.clone() else {
            let detail = "without a validation part it needs FOLDS".to_string();
            return Err(Refusal::InvalidTuning { what: "TUNE", detail, place: Place::default() }.into());
        };
        return Ok(vec![fold(prepared.train.clone(), validation, plan.validate.is_none(), 0).await?]);
    };
    let pool = pool(plan, prepared);
    let mut hashes = ml::tabular::RowHashes::default();
    for batch in &pool.batches {
        hashes.add(batch.columns(), batch.num_rows(), tune.seed)?;
    }
    // equal rows are in one fold
    let mut order = hashes.hashes.clone();
    order.sort_unstable();
    let place = |row: usize| order.partition_point(|hash| *hash < hashes.hashes[row]) * count / order.len().max(1);
    let of_row: Vec<usize> = (0..pool.num_rows()).map(place).collect();
    let mut folds = Vec::with_capacity(count);
    for at in 0..count {
        let (train, validation) = (pool.filter(|row| of_row[row] != at)?, pool.filter(|row| of_row[row] == at)?);
        folds.push(fold(train, validation, true, at).await?);
    }
    Ok(folds)
}

/// All rows that may be trained on: not the test part, and not rows of another query.
fn pool(plan: &TrainPlan, prepared: &Prepared) -> Rows {
    match &prepared.validation {
        Some(validation) if plan.validate.is_none() => prepared.train.and(validation),
        _ => prepared.train.clone(),
    }
}

async fn refit(context: &Context<'_>, params: &BTreeMap<String, Value>) -> Result<Fitted> {
    let rows = pool(context.plan, context.prepared);
    let job_id = format!("{}-refit", context.training_id);
    let learn = Learn {
        session: context.session,
        operation: context.operation,
        plan: context.plan,
        prepared: context.prepared,
        job_id: &job_id,
        workers: context.plan.workers,
    };
    let (encoders, encoded) = Box::pin(learn.from(&rows)).await?;
    let call = FitCall {
        job_id: job_id.clone(),
        operation: context.operation,
        workers: context.plan.workers,
        params,
    };
    fit(context.session, context.plan, call, &Arc::new(encoders), &encoded).await
}

/// The best trial that ran to its end: of equal ones the first.
fn best_of(trials: &[Trial], metric: &MetricSpec) -> Option<usize> {
    let whole = trials.iter().enumerate().filter(|(_, trial)| !trial.stopped_early && trial.error.is_none());
    let values = whole.filter_map(|(at, trial)| Some((at, trial.value?)));
    let better = |left: f64, right: f64| if metric.is_maximized { left > right } else { left < right };
    values
        .fold(None, |best: Option<(usize, f64)>, (at, value)| match best {
            Some((_, known)) if !better(value, known) => best,
            _ => Some((at, value)),
        })
        .map(|(at, _)| at)
}

/// Runs the trials: in waves as wide as the slots allow, so that a seed gives one outcome whatever runs faster.
async fn all_trials(context: &Context<'_>, running: &Running) -> Result<Vec<Trial>> {
    let tune = context.tune;
    let mut proposer = Proposer::new(tune.search, &tune.axes, tune.seed, tune.trials);
    let mut trials: Vec<Trial> = Vec::new();
    let first = tune.rungs.first().map(|rung| rung.iterations);
    while trials.len() < tune.trials {
        // what is proposed next may depend on what came out before
        let width = if tune.search == Search::Bayes { tune.parallelism } else { tune.trials };
        let observed: Vec<Observation> = trials.iter().filter_map(|trial| observation(trial, context.metric)).collect();
        let mut wave: Vec<Trial> = Vec::new();
        for _ in 0..width.min(tune.trials - trials.len()) {
            let point = proposer.propose(&observed);
            let id = i32::try_from(trials.len() + wave.len() + 1).unwrap_or(i32::MAX);
            wave.push(trial(context, id, point));
        }
        let wave = run_wave(context, wave, first, 0, |done| {
            let share = (trials.len() + done) as f64 / tune.trials as f64;
            running.enter("tuning", 0.1 + 0.7 * share / tune.rungs.len().max(1) as f64);
        })
        .await;
        trials.extend(wave);
        if context.operation.is_cancelled() {
            return Err(Error::Cancelled);
        }
    }
    for (at, rung) in tune.rungs.iter().enumerate().skip(1) {
        let keep = survivors(&trials, tune.rungs[at - 1].reduction, context.metric);
        let (mut going, rest): (Vec<Trial>, Vec<Trial>) =
            trials.into_iter().partition(|trial| keep.contains(&trial.id));
        let mut rest = rest;
        for trial in rest.iter_mut().filter(|trial| trial.error.is_none()) {
            trial.stopped_early = true;
            trial.fitted = None;
        }
        going = run_wave(context, going, Some(rung.iterations), at, |_| {
            running.enter("tuning", 0.1 + 0.7 * at as f64 / tune.rungs.len() as f64);
        })
        .await;
        trials = going.into_iter().chain(rest).collect();
        trials.sort_by_key(|trial| trial.id);
        if context.operation.is_cancelled() {
            return Err(Error::Cancelled);
        }
    }
    Ok(trials)
}

fn observation(trial: &Trial, metric: &MetricSpec) -> Option<Observation> {
    let value = trial.value?;
    Some(Observation { point: trial.point.clone(), loss: if metric.is_maximized { -value } else { value } })
}

/// The trials that go on to the next rung: of those that still run, the best of each `reduction`, one at least.
fn survivors(trials: &[Trial], reduction: usize, metric: &MetricSpec) -> Vec<i32> {
    let mut running: Vec<(f64, i32)> = trials
        .iter()
        .filter(|trial| !trial.stopped_early && trial.error.is_none())
        .filter_map(|trial| Some((observation(trial, metric)?.loss, trial.id)))
        .collect();
    running.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
    let count = running.len().div_ceil(reduction).max(1);
    running.into_iter().take(count).map(|(_, id)| id).collect()
}

fn trial(context: &Context<'_>, id: i32, point: Vec<f64>) -> Trial {
    let (params, shown) = propose::params(&context.tune.axes, &point);
    let mut all = context.plan.settings.params.clone();
    all.extend(params);
    Trial {
        id,
        point,
        params: all,
        shown,
        value: None,
        fold_values: Vec::new(),
        iterations: 0,
        stopped_early: false,
        duration_ms: 0,
        error: None,
        steps: Vec::new(),
        fitted: None,
        validation: None,
    }
}

/// Runs trials side by side; they come back in their order.
async fn run_wave(
    context: &Context<'_>,
    trials: Vec<Trial>,
    iterations: Option<i32>,
    rung: usize,
    done: impl Fn(usize),
) -> Vec<Trial> {
    let runs = trials.into_iter().map(|trial| Box::pin(run_trial(context, trial, iterations, rung)));
    let mut finished = Vec::new();
    let mut runs = stream::iter(runs).buffered(context.tune.parallelism);
    while let Some(trial) = runs.next().await {
        finished.push(trial);
        done(finished.len());
    }
    finished
}

async fn run_trial(context: &Context<'_>, mut trial: Trial, iterations: Option<i32>, rung: usize) -> Trial {
    let began = Instant::now();
    let mut params = trial.params.clone();
    if let Some(iterations) = iterations {
        params.insert("maxIter".into(), Value::Int(iterations));
    }
    trial.fold_values.clear();
    trial.steps.clear();
    trial.iterations = 0;
    let mut last = None;
    for (at, fold) in context.folds.iter().enumerate() {
        if context.operation.is_cancelled() {
            trial.error = Some(Error::Cancelled);
            return trial;
        }
        let job_id = format!("{}-{}-{at}-{rung}", context.training_id, trial.id);
        match Box::pin(run_fold(context, &params, fold, job_id)).await {
            Ok((fitted, evaluation)) => {
                let fold_id = context.tune.folds.and_then(|_| i32::try_from(at).ok());
                trial.iterations = trial.iterations.max(fitted.steps.last().map_or(0, |step| step.step));
                trial.steps.extend(kept_steps(&fitted.steps, Some(trial.id), fold_id));
                match evaluation.metric(context.metric.name) {
                    Some(value) => trial.fold_values.push(value),
                    None => {
                        let what = format!("The metric `{}` of a validation part without it", context.metric.name);
                        trial.error = Some(Refusal::UnsupportedOperation { what }.into());
                    }
                }
                last = Some((fitted, evaluation));
            }
            Err(error) => trial.error = Some(error),
        }
        if trial.error.is_some() {
            break;
        }
    }
    trial.duration_ms += u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    if trial.error.is_none() {
        trial.value = Some(trial.fold_values.iter().sum::<f64>() / trial.fold_values.len().max(1) as f64);
        if let (None, Some((fitted, evaluation))) = (context.tune.folds, last) {
            (trial.fitted, trial.validation) = (Some(fitted), Some(evaluation));
        }
    } else {
        trial.value = None;
    }
    trial
}

/// One fit and its measure. The trial has an operation of its own, since a client's progress can show one at a time.
async fn run_fold(
    context: &Context<'_>,
    params: &BTreeMap<String, Value>,
    fold: &Fold,
    job_id: String,
) -> Result<(Fitted, Evaluation)> {
    let own = Operation::detached(job_id.clone(), context.session);
    let call = FitCall { job_id, operation: &own, workers: context.tune.workers, params };
    let fitting = fit(context.session, context.plan, call, &fold.encoders, &fold.encoded);
    tokio::pin!(fitting);
    let fitted = tokio::select! {
        fitted = &mut fitting => fitted?,
        () = context.operation.cancelled() => {
            own.cancel();
            // its gang ends in order
            fitting.await?
        }
    };
    let layout = if fold.is_of_query { &context.prepared.layout } else { &context.prepared.validation_layout };
    let evaluation =
        measured(context.session, context.plan, context.prepared, &fitted, &fold.validation, layout).await?;
    Ok((fitted, evaluation))
}
