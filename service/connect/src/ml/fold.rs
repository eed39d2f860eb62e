//! Folds over a frame's partitions: what evaluators and summaries compute.

use std::sync::Arc;

use engine::embedded::Frame;
use futures::StreamExt;
use ml::Accumulator;
use tokio::task::JoinSet;

use super::cache::CachedSummary;
use super::relation;
use crate::session::Session;
use crate::{Error, Result};

/// Folds the named columns of a frame, partitions in parallel, merged in partition order so that the result does not
/// depend on timing. Dropping the future ends the fold.
pub async fn fold(
    session: &Session,
    frame: &Frame,
    columns: &[String],
    accumulator: impl Fn() -> ml::Result<Box<dyn Accumulator>>,
) -> Result<Box<dyn Accumulator>> {
    let streams = session.engine.partitions(frame, columns, session.services.options.fold_partitions).await?;
    let mut tasks = JoinSet::new();
    for (partition, mut stream) in streams.into_iter().enumerate() {
        let mut accumulator = accumulator()?;
        tasks.spawn(async move {
            while let Some(record_batch) = stream.next().await {
                let record_batch = record_batch.map_err(engine::Error::from)?;
                accumulator.update(&record_batch)?;
            }
            Ok::<_, Error>((partition, accumulator))
        });
    }
    let mut folded = Vec::new();
    while let Some(done) = tasks.join_next().await {
        folded.push(done.map_err(|source| Error::Task { source })??);
    }
    folded.sort_by_key(|(partition, _)| *partition);
    let mut folded = folded.into_iter().map(|(_, accumulator)| accumulator);
    let mut total = match folded.next() {
        Some(first) => first,
        None => accumulator()?,
    };
    for part in folded {
        total.merge(part)?;
    }
    Ok(total)
}

/// Folds a summary's predictions and hands them to it.
pub async fn observe(session: &Session, cached: &Arc<CachedSummary>) -> Result<()> {
    let predictions = relation::predictions(session, cached).await?;
    let folded = fold(session, &predictions, &cached.summary.columns(), || cached.summary.accumulator()).await?;
    Ok(cached.summary.observe(folded)?)
}
