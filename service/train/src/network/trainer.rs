//! The epoch loop, on every rank alike.

use std::ops::Range;
use std::time::{Duration, Instant};

use collective::{Group, ReduceOp, shard_range};
use tch::Tensor;

use super::columns::Columns;
use super::flat::Flat;
use super::native::{ReadyHooks, with_autocast};
use super::optimizer::{OptimizerState, norm};
use super::order::places;
use super::reducer::Reducer;
use super::sampler::{Sampler, mix};
use super::state::{History, State, Weights, read_buffers, write_buffers};
use super::validation::{decide_stop, validate};
use super::{Loss, Options, Precision, ScriptModule, Sharding};
use crate::batch::Problem;
use crate::checkpoint::{Identity, load_on_all_ranks};
use crate::{Error, RankContext, Result, Step};

/// What a training gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The module, as TorchScript.
    pub module: Vec<u8>,
    /// Values of an output row; `None`: it has no axis for them.
    pub output_width: Option<usize>,
    /// The mean loss of every epoch over its training rows, each as of its own step.
    pub losses: Vec<f64>,
    /// Of every epoch's end; empty without early stopping.
    pub validation_losses: Vec<f64>,
    /// The epoch whose weights these are, when they are not the last one's.
    pub best_epoch: Option<usize>,
    pub num_steps: u64,
    pub num_rows: u64,
}

/// Reports are for people, and cost a message each.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);
/// A checkpoint is worth no more than a small share of the time.
const CHECKPOINT_INTERVAL: Duration = Duration::from_millis(200);

/// Trains a module on the rows of all ranks. A collective call: `columns` are this rank's rows, all else is equal on all
/// ranks. Every rank returns the same.
///
/// # Errors
/// [`Error::InvalidData`] without any rows to train on; [`Error::ModuleFailed`]; [`Error::LossNotFinite`];
/// [`Error::Cancelled`]; those of collectives and checkpoints.
pub fn train(
    ctx: &RankContext<'_>,
    module: ScriptModule,
    loss: &Loss,
    columns: &Columns,
    identity: impl FnOnce(u64) -> Identity,
    options: &Options,
) -> Result<Trained> {
    let group = ctx.group;
    let (places, num_rows) = places(group, &columns.hashes())?;
    let fraction = options.early_stopping.map_or(0.0, |early| early.validation_fraction);
    let num_validation = (fraction * num_rows as f64).round() as u64;
    if num_rows == num_validation {
        return Err(Problem::data("ML algorithm was given empty dataset.".into()).into_error());
    }
    if options.early_stopping.is_some() && num_validation == 0 {
        let text = format!("a share of {fraction} of {num_rows} rows leaves none for validation");
        return Err(Problem::data(text).into_error());
    }
    let sampler = Sampler::new(&places, num_rows, num_validation, options.batch_rows, options.seed);
    let flat = Flat::new(&module, options.bucket_bytes)?;
    let shard = match options.sharding {
        Sharding::None => 0..flat.len(),
        Sharding::OptimizerState => shard_range(flat.len(), group.world_size(), group.rank()),
    };
    let optimizer = OptimizerState::new(options.optimizer, shard.len());
    let buffers = module.buffers();
    let mut trainer = Trainer {
        ctx,
        loss,
        columns,
        options,
        sampler,
        module,
        flat,
        buffers,
        optimizer,
        shard,
        history: History::default(),
        rows_used: 0,
        rows_since_buffers: 0,
        last_report: None,
        last_checkpoint: None,
    };
    trainer.share_initial_weights()?;
    let identity = identity(num_rows);
    trainer.resume(&identity)?;
    trainer.run(&identity)?;
    trainer.finish(num_rows)
}

struct Trainer<'a, 'c> {
    ctx: &'a RankContext<'c>,
    loss: &'a Loss,
    columns: &'a Columns,
    options: &'a Options,
    sampler: Sampler,
    module: ScriptModule,
    flat: Flat,
    buffers: Vec<Tensor>,
    optimizer: OptimizerState,
    /// The parameters that this rank's optimizer has in its care.
    shard: Range<usize>,
    history: History,
    /// Of this rank, each as often as it was used.
    rows_used: u64,
    /// Of this rank, since buffers were last made equal.
    rows_since_buffers: u64,
    last_report: Option<Instant>,
    last_checkpoint: Option<Instant>,
}

impl Trainer<'_, '_> {
    fn group(&self) -> &Group {
        self.ctx.group
    }

    /// All ranks loaded the same module; that they start alike is made sure of all the same.
    fn share_initial_weights(&mut self) -> Result<()> {
        self.ctx.group.broadcast(self.flat.values_mut(), 0)?;
        Ok(())
    }

    fn run(&mut self, identity: &Identity) -> Result<()> {
        let group = self.ctx.group;
        let interval = checkpoint_interval(self.ctx)?;
        std::thread::scope(|scope| {
            let reducer = Reducer::new(scope, group, &self.flat, self.options.wire)?;
            // the thread of the gradients may wait for ranks that will never come: the gang ends with the first error
            self.epochs(&reducer, interval, identity).inspect_err(|error| group.abort(&error.to_string()))
        })
    }

    fn epochs(&mut self, reducer: &Reducer<'_>, interval: Option<u64>, identity: &Identity) -> Result<()> {
        let parameters: Vec<Tensor> = self.flat.parameters().iter().map(Tensor::shallow_clone).collect();
        let _hooks = ReadyHooks::new(&parameters, reducer)?;
        let per_epoch = self.sampler.steps_per_epoch();
        let steps_max = per_epoch * self.options.epochs as u64;
        self.report(steps_max, None, true);
        while self.history.step < steps_max && !self.is_over() {
            let epoch = self.sampler.epoch(self.history.step / per_epoch);
            self.module.set_training(true)?;
            loop {
                self.ctx.check_cancelled()?;
                let step = self.history.step % per_epoch;
                let loss = self.step(reducer, epoch.step(step), step, steps_max)?;
                let is_epoch_end = step + 1 == per_epoch;
                if is_epoch_end {
                    self.end_epoch()?;
                }
                self.report(steps_max, Some(loss), is_epoch_end);
                let is_due = interval.is_some_and(|interval| self.history.step.is_multiple_of(interval.max(1)));
                if is_due || (is_epoch_end && interval.is_some()) {
                    self.checkpoint(identity, is_epoch_end)?;
                }
                if is_epoch_end {
                    break;
                }
            }
        }
        Ok(())
    }

    /// One step: this rank's rows of the batch, the sum of gradients over all ranks, one update. Returns the mean loss
    /// over the batch.
    fn step(&mut self, reducer: &Reducer<'_>, rows: &[u32], step_of_epoch: u64, steps_max: u64) -> Result<f64> {
        let global_rows = self.sampler.global_rows(step_of_epoch);
        self.flat.gradients_mut().fill(0.0);
        reducer.begin();
        let own_loss = self.backward(reducer, rows, global_rows)?;
        reducer.finish()?;
        let mut loss = [own_loss];
        self.group().all_reduce(&mut loss, ReduceOp::Sum)?;
        let [loss] = loss;
        if !loss.is_finite() {
            return Err(self.not_finite(loss, own_loss));
        }
        self.update(steps_max)?;
        self.history.step += 1;
        self.history.epoch_sum += loss * global_rows as f64;
        self.rows_used += rows.len() as u64;
        self.rows_since_buffers += rows.len() as u64;
        Ok(loss)
    }

    /// Adds up this rank's part of the gradient of the mean over `global_rows`; returns its part of that mean.
    fn backward(&mut self, reducer: &Reducer<'_>, rows: &[u32], global_rows: u64) -> Result<f64> {
        if rows.is_empty() {
            return Ok(0.0);
        }
        // what is random in the module depends on the step, so that a training that goes on does as one that was never cut
        tch::manual_seed(mix(mix(self.options.seed as u64 ^ self.history.step) ^ self.group().rank() as u64) as i64);
        let at_once = rows.len().div_ceil(self.options.accumulation.max(1));
        let mut own_loss = 0.0;
        let num_passes = rows.len().div_ceil(at_once);
        for (pass, rows) in rows.chunks(at_once).enumerate() {
            let (inputs, label) = self.columns.take(rows);
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            // a module that normalises by the batch cannot do so with one row: that row is seen as in evaluation
            let is_alone = rows.len() == 1 && !self.buffers.is_empty();
            if is_alone {
                self.module.set_training(false)?;
            }
            let mean = with_autocast(self.options.precision == Precision::Bf16, || {
                self.loss.mean(&self.module.forward(&inputs)?, &label)
            })?;
            let part = mean * (rows.len() as f64 / global_rows as f64);
            if pass + 1 == num_passes {
                reducer.arm();
            }
            part.f_backward().map_err(|error| Error::ModuleFailed {
                what: "failed in the backward pass".into(),
                reason: super::loss::first_line(&error.to_string()),
            })?;
            own_loss += part.double_value(&[]);
            if is_alone {
                self.module.set_training(true)?;
            }
        }
        Ok(own_loss)
    }

    fn not_finite(&self, loss: f64, own_loss: f64) -> Error {
        match self.group().all_gather(&[u8::from(own_loss.is_finite())]) {
            Ok(finite) => {
                let ranks = finite.iter().enumerate().filter(|(_, is_finite)| **is_finite == 0).map(|(rank, _)| rank);
                Error::LossNotFinite { step: self.history.step, loss, ranks: ranks.collect() }
            }
            Err(error) => error.into(),
        }
    }

    fn update(&mut self, steps_max: u64) -> Result<()> {
        if let Some(norm_max) = self.options.gradient_norm_max {
            clip(self.flat.gradients_mut(), norm_max);
        }
        let factor = self.options.schedule.factor(self.history.step, self.sampler.steps_per_epoch(), steps_max);
        let places = self.flat.places().to_vec();
        let (values, gradients) = self.flat.split_mut();
        let own = self.shard.clone();
        self.optimizer.update(
            &mut values[own.clone()],
            &gradients[own.clone()],
            self.options.learning_rate * factor,
            &places,
        );
        if self.options.sharding == Sharding::OptimizerState {
            let whole = self.ctx.group.all_gather(&values[own])?;
            values.copy_from_slice(&whole);
        }
        Ok(())
    }

    fn end_epoch(&mut self) -> Result<()> {
        let mean = self.history.epoch_sum / self.sampler.num_rows() as f64;
        self.history.losses.push(mean);
        self.history.epoch_sum = 0.0;
        self.share_buffers()?;
        let Some(early) = self.options.early_stopping else { return Ok(()) };
        let rows = self.sampler.validation_rows.clone();
        let loss = validate(self.ctx.group, &mut self.module, self.loss, self.columns, &rows, self.options.precision)?;
        self.history.validation_losses.push(loss);
        let (best, _) = decide_stop(&self.history.validation_losses, &early);
        if best + 1 == self.history.validation_losses.len() {
            self.history.best = Some(self.weights()?);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let losses = &self.history.validation_losses;
        self.options.early_stopping.is_some_and(|early| decide_stop(losses, &early).1)
    }

    /// Makes the buffers of all ranks equal: the mean of what is floating, in proportion to the rows that each rank has
    /// seen since, and the largest of the rest, which are counts.
    fn share_buffers(&mut self) -> Result<()> {
        if self.buffers.is_empty() {
            return Ok(());
        }
        let own_rows = std::mem::take(&mut self.rows_since_buffers) as f64;
        let mut rows = [own_rows];
        self.group().all_reduce(&mut rows, ReduceOp::Sum)?;
        if rows[0] == 0.0 {
            return Ok(());
        }
        let mut values = read_buffers(&self.buffers)?;
        for (buffer, values) in self.buffers.iter().zip(&mut values) {
            if buffer.is_floating_point() {
                values.iter_mut().for_each(|v| *v *= own_rows / rows[0]);
                self.ctx.group.all_reduce(values, ReduceOp::Sum)?;
            } else {
                self.ctx.group.all_reduce(values, ReduceOp::Max)?;
            }
        }
        write_buffers(&mut self.buffers, &values)
    }

    fn weights(&self) -> Result<Weights> {
        Ok(Weights { parameters: self.flat.values().to_vec(), buffers: read_buffers(&self.buffers)? })
    }

    fn set_weights(&mut self, weights: &Weights) -> Result<()> {
        let values = self.flat.values_mut();
        if values.len() != weights.parameters.len() {
            let (found, expected) = (weights.parameters.len(), values.len());
            let reason = format!("it has {found} parameters, expected {expected}");
            return Err(Error::SnapshotMismatch { reason });
        }
        values.copy_from_slice(&weights.parameters);
        write_buffers(&mut self.buffers, &weights.buffers)
    }

    /// Keeps the state. All ranks call it at the same steps, since it makes their buffers equal and gathers their shards;
    /// rank 0 keeps it, unless it has kept one a moment ago.
    fn checkpoint(&mut self, identity: &Identity, is_epoch_end: bool) -> Result<()> {
        self.share_buffers()?;
        let (mut first, mut second) = (Vec::new(), Vec::new());
        if self.options.sharding == Sharding::OptimizerState {
            first = self.ctx.group.all_gather(&self.optimizer.first)?;
            second = self.ctx.group.all_gather(&self.optimizer.second)?;
        }
        let is_soon = self.last_checkpoint.is_some_and(|last| last.elapsed() < CHECKPOINT_INTERVAL);
        if self.ctx.rank() != 0 || (is_soon && !is_epoch_end) {
            return Ok(());
        }
        if self.options.sharding == Sharding::None {
            (first, second) = (self.optimizer.first.clone(), self.optimizer.second.clone());
        }
        let state = State {
            history: self.history.clone(),
            weights: self.weights()?,
            optimizer_steps: self.optimizer.steps,
            first,
            second,
        };
        self.ctx.checkpoints.save(identity, self.history.step, state.to_bytes());
        self.last_checkpoint = Some(Instant::now());
        Ok(())
    }

    fn resume(&mut self, identity: &Identity) -> Result<()> {
        let Some(saved) = load_on_all_ranks(self.group(), self.ctx.checkpoints, identity)? else { return Ok(()) };
        let state = State::from_bytes(&saved.state)?;
        self.set_weights(&state.weights)?;
        let own = |whole: &[f32]| match whole.is_empty() {
            true => Ok(Vec::new()),
            false => whole.get(self.shard.clone()).map(<[f32]>::to_vec).ok_or_else(|| Error::SnapshotMismatch {
                reason: format!("the optimizer's state has {} values, expected {}", whole.len(), self.flat.len()),
            }),
        };
        let (first, second) = (own(&state.first)?, own(&state.second)?);
        if first.len() != self.optimizer.first.len() || second.len() != self.optimizer.second.len() {
            return Err(Error::SnapshotMismatch { reason: "it is of another optimizer".into() });
        }
        (self.optimizer.first, self.optimizer.second) = (first, second);
        self.optimizer.steps = state.optimizer_steps;
        self.history = state.history;
        Ok(())
    }

    fn report(&mut self, steps_max: u64, loss: Option<f64>, is_due: bool) {
        if !is_due && self.last_report.is_some_and(|last| last.elapsed() < REPORT_INTERVAL) {
            return;
        }
        self.last_report = Some(Instant::now());
        let mut metrics = vec![("epoch", self.history.losses.len() as f64)];
        metrics.extend(self.history.losses.last().map(|loss| ("epoch_loss", *loss)));
        metrics.extend(self.history.validation_losses.last().map(|loss| ("validation_loss", *loss)));
        self.ctx.progress.report(Step { step: self.history.step, steps_max, rows: self.rows_used, loss, metrics });
    }

    fn finish(mut self, num_rows: u64) -> Result<Trained> {
        let mut best_epoch = None;
        if let Some(best) = self.history.best.take() {
            self.set_weights(&best)?;
            best_epoch =
                self.options.early_stopping.map(|early| decide_stop(&self.history.validation_losses, &early).0);
        }
        self.module.set_training(false)?;
        let output_width = self.output_width()?;
        self.flat.release()?;
        // only rank 0's bytes are looked at
        let module = if self.ctx.rank() == 0 { self.module.save()? } else { Vec::new() };
        Ok(Trained {
            module,
            output_width,
            losses: self.history.losses,
            validation_losses: self.history.validation_losses,
            best_epoch,
            num_steps: self.history.step,
            num_rows,
        })
    }

    /// What ranks with rows see of an output row, told to all.
    fn output_width(&self) -> Result<Option<usize>> {
        let mut shape = [-1i64];
        if self.columns.num_rows() > 0 {
            let (inputs, _) = self.columns.take(&[0]);
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            let output = tch::no_grad(|| self.module.forward(&inputs))?;
            shape = [if output.dim() <= 1 { 0 } else { output.numel() as i64 }];
        }
        self.group().all_reduce(&mut shape, ReduceOp::Max)?;
        Ok(usize::try_from(shape[0]).ok().filter(|width| *width > 0))
    }
}

/// Rank 0 alone knows of checkpoints, and the others must take part in them.
fn checkpoint_interval(ctx: &RankContext<'_>) -> Result<Option<u64>> {
    let own = ctx.checkpoints.interval().filter(|_| ctx.rank() == 0);
    let mut told = [own.map_or(0, |interval| i64::try_from(interval.max(1)).unwrap_or(i64::MAX))];
    ctx.group.broadcast(&mut told, 0)?;
    Ok(u64::try_from(told[0]).ok().filter(|interval| *interval > 0))
}

/// Scales gradients down to a norm, as PyTorch's `clip_grad_norm_` does.
fn clip(gradients: &mut [f32], norm_max: f64) {
    let factor = (norm_max / (norm(gradients) + 1e-6)) as f32;
    if factor < 1.0 {
        gradients.iter_mut().for_each(|g| *g *= factor);
    }
}
