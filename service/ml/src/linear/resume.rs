//! How a minimization outlives its gang: its state goes to a checkpoint every few iterations, and comes from one.

use collective::{Group, ReduceOp};
use serde::Serialize;
use train::checkpoint::{Checkpointer, Identity, load_on_all_ranks};
use train::optim::{Iteration, Snapshot, Start};
use train::{Error, RankContext, Result};

/// The checkpoints of one minimization.
pub struct Resumable<'a> {
    group: &'a Group,
    checkpoints: &'a dyn Checkpointer,
    identity: Identity,
    /// What an earlier generation, or another job, has come to.
    snapshot: Option<Snapshot>,
}

impl<'a> Resumable<'a> {
    /// Looks for a state to go on from. A collective call. `params` are those that the state's meaning depends on: not how
    /// long to go on, so that a fit can be resumed to go further. `num_rows` are this rank's.
    ///
    /// # Errors
    /// [`Error::CheckpointNotUsable`], and what the collectives fail with.
    pub fn find(
        ctx: &RankContext<'a>,
        program: &'static str,
        params: &impl Serialize,
        num_rows: u64,
        num_features: usize,
    ) -> Result<Resumable<'a>> {
        let params = serde_json::to_vec(params).map_err(|source| Error::Spec { program, source })?;
        let mut all_rows = [num_rows as f64];
        ctx.group.all_reduce(&mut all_rows, ReduceOp::Sum)?;
        let identity = Identity::new(program, &params, all_rows[0] as u64, num_features);
        let saved = load_on_all_ranks(ctx.group, ctx.checkpoints, &identity)?;
        let snapshot = saved.map(|saved| Snapshot::from_bytes(&saved.state)).transpose()?;
        Ok(Resumable { group: ctx.group, checkpoints: ctx.checkpoints, identity, snapshot })
    }

    /// Where to start: at `initial`, unless there is a state to go on from.
    ///
    /// # Errors
    /// [`Error::SnapshotMismatch`]: it has another number of parameters.
    pub fn start<'s>(&'s self, initial: &'s [f64]) -> Result<Start<'s>> {
        match &self.snapshot {
            None => Ok(Start::At(initial)),
            Some(snapshot) if snapshot.num_parameters() == initial.len() => Ok(Start::From(snapshot)),
            Some(snapshot) => {
                let (found, expected) = (snapshot.num_parameters(), initial.len());
                Err(Error::SnapshotMismatch { reason: format!("it has {found} parameters, expected {expected}") })
            }
        }
    }

    /// Keeps the state at every so many iterations, and at the last. All ranks' states are equal: rank 0 keeps it.
    pub fn keep(&self, iteration: &Iteration<'_>) {
        let Some(interval) = self.checkpoints.interval().filter(|_| self.group.rank() == 0) else { return };
        let step = iteration.iteration as u64;
        if iteration.stop.is_some() || (step > 0 && step.is_multiple_of(interval.max(1))) {
            self.checkpoints.save(&self.identity, step, iteration.snapshot().to_bytes());
        }
    }
}
