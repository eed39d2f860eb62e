//! The rank program: reads a rank's rows as tensors, and trains the module on those of all ranks.

use serde::{Deserialize, Serialize};
use train::batch::{Problem, agree};
use train::checkpoint::Identity;
use train::network::{Column, ColumnKind, Columns, Loss, Options, ScriptModule, train};
use train::{Error, RankContext, RankProgram, Result};

use super::packed::{pack, unpack};
use crate::linear::bits;

pub static PROGRAM: RankProgram = RankProgram { name: "torch", run };

/// What the estimator planned; the module and a loss of the user's own go beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The inputs, in the order of the module's arguments, and the label.
    pub columns: Vec<String>,
    pub inputs: Vec<ColumnKind>,
    pub label: ColumnKind,
    pub options: Options,
}

/// What rank 0 returns beside the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// Values of an output row; `None`: the output has no axis for them.
    pub output_width: Option<usize>,
    #[serde(with = "bits::many")]
    pub losses: Vec<f64>,
    #[serde(with = "bits::many")]
    pub validation_losses: Vec<f64>,
    pub best_epoch: Option<usize>,
    pub num_steps: u64,
    pub num_rows: u64,
}

fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> Result<Vec<u8>> {
    let read = |source| Error::Spec { program: PROGRAM.name, source };
    let parts = unpack(spec);
    let [header, module, loss_module] = parts.as_deref().unwrap_or_default() else {
        return Err(Error::Bug { invariant: "a training is planned with its module and its loss".into() });
    };
    let planned: Spec = serde_json::from_slice(header).map_err(read)?;
    let columns = read_columns(&planned, ctx)?;
    let loss = Loss::new(planned.options.loss, Some(loss_module))?;
    // how long to go on is no part of what a state is of
    let lasting = Options { epochs: 0, ..planned.options.clone() };
    let mut identity = serde_json::to_vec(&(&planned.columns, lasting)).map_err(read)?;
    identity.extend_from_slice(module);
    let width = columns.inputs.iter().filter_map(Column::width).sum();
    let identity = |num_rows| Identity::new(PROGRAM.name, &identity, num_rows, width);
    let trained = train(ctx, ScriptModule::load(module)?, &loss, &columns, identity, &planned.options)?;
    if ctx.rank() != 0 {
        return Ok(Vec::new());
    }
    let fitted = Fitted {
        output_width: trained.output_width,
        losses: trained.losses,
        validation_losses: trained.validation_losses,
        best_epoch: trained.best_epoch,
        num_steps: trained.num_steps,
        num_rows: trained.num_rows,
    };
    Ok(pack(&[&serde_json::to_vec(&fitted).map_err(read)?, &trained.module]))
}

/// Reads a rank's rows. Every rank returns the same problem when any has one.
fn read_columns(spec: &Spec, ctx: &mut RankContext<'_>) -> Result<Columns> {
    let Some((label, inputs)) = spec.columns.split_last() else {
        return Err(Error::Bug { invariant: "a training is planned with columns".into() });
    };
    let mut columns = Columns {
        inputs: inputs.iter().zip(&spec.inputs).map(|(name, kind)| Column::new(name, *kind)).collect(),
        label: Column::new(label, spec.label),
    };
    let mut local = Ok(());
    while let Some(record_batch) = ctx.partition.record_batches.next() {
        let record_batch = record_batch?;
        if record_batch.num_rows() == 0 {
            continue;
        }
        local = columns.extend(record_batch.columns())?;
        if local.is_err() {
            break;
        }
        ctx.check_cancelled()?;
    }
    agree(ctx.group, local.and_then(|()| columns.check_finite()))?;
    agree_on_widths(&mut columns, &spec.columns, ctx)?;
    Ok(columns)
}

/// How many values a row has in each column, which ranks without rows learn from the others.
fn agree_on_widths(columns: &mut Columns, names: &[String], ctx: &RankContext<'_>) -> Result<()> {
    const UNKNOWN: i64 = -1;
    let all = columns.inputs.iter_mut().chain([&mut columns.label]);
    for (column, name) in all.zip(names) {
        let own = column.width().map_or(UNKNOWN, |width| width as i64);
        let mut known = ctx.group.all_gather(&[own])?.into_iter().filter(|width| *width != UNKNOWN);
        let Some(expected) = known.next() else { continue };
        if let Some(found) = known.find(|found| *found != expected) {
            let text = format!("Dimensions mismatch: expected {expected} values a row, found {found}");
            return Err(Problem::user(name, 1, text).into_error());
        }
        column.set_width(expected as usize);
    }
    Ok(())
}
