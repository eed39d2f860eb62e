//! The data of a gang: a relation in exactly as many streams as there are ranks.
//!
//! Which rows a rank gets, and in which order, depends on the relation and the number of ranks only, so that a fit can be
//! repeated bit by bit: exchanges read their inputs in turn, and filters that depend on how far a join is are off.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use tokio::sync::mpsc;

use super::operator::{InTurnRule, in_order, is_position_dependent, slices};
use super::relation::select;
use super::session::execute;
use super::{Frame, Session};
use crate::{Error, Result};

/// Batches that a rank may lag behind the dealer before it waits for that rank.
const BATCHES_WAITING: usize = 16;
const BATCH_BYTES: usize = 8 * 1024 * 1024;
const BATCH_ROWS: std::ops::RangeInclusive<usize> = 8192..=65_536;
/// What a column that holds lists is taken for, since nobody knows how long they are.
const NESTED_ROW_BYTES: usize = 256;

impl Session {
    /// The named columns of a frame in exactly `num_partitions` streams. Nothing is gathered: rows are computed as the
    /// streams are read. They must be read concurrently; one that is dropped does not hold up the others.
    ///
    /// # Errors
    /// [`Error::UnresolvedColumn`] and [`Error::AmbiguousReference`] for the columns, and those of planning.
    pub async fn partitions(
        &self,
        frame: &Frame,
        columns: &[String],
        num_partitions: usize,
    ) -> Result<Vec<SendableRecordBatchStream>> {
        if num_partitions == 0 {
            return Err(Error::InvalidPlan { detail: "a gang of no ranks".into() });
        }
        let conf = self.conf();
        let frame = select(&conf, frame, columns)?;
        let is_fixed = is_position_dependent(&frame.plan)?;
        let target = if is_fixed { self.engine().options().target_partitions } else { num_partitions };
        let state = self.gang_state(target, &frame);
        let physical = self.physical(&state, &frame).await?;
        let streams = execute(&physical, &state.task_ctx(), &frame)?;
        Ok(spread(frame.schema(), streams, num_partitions))
    }

    fn gang_state(&self, target_partitions: usize, frame: &Frame) -> SessionState {
        let state = self.state();
        let mut config =
            state.config().clone().with_target_partitions(target_partitions).with_batch_size(batch_rows(frame));
        let settings = config.options_mut();

        settings.optimizer.enable_dynamic_filter_pushdown = false;
        settings.optimizer.enable_join_dynamic_filter_pushdown = false;
        settings.optimizer.enable_topk_dynamic_filter_pushdown = false;
        settings.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
        let mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = state.physical_optimizers().to_vec();
        rules.push(Arc::new(InTurnRule));
        SessionStateBuilder::new_from_existing(state).with_config(config).with_physical_optimizer_rules(rules).build()
    }
}

/// As many rows as make a batch of some megabytes.
fn batch_rows(frame: &Frame) -> usize {
    let row_bytes: usize =
        frame.visible().map(|column| column.data_type().primitive_width().unwrap_or(NESTED_ROW_BYTES)).sum();
    (BATCH_BYTES / row_bytes.max(1)).clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end())
}

/// Turns P streams into N: one to one, several after each other, or dealt out.
fn spread(
    schema: SchemaRef,
    streams: Vec<SendableRecordBatchStream>,
    num_partitions: usize,
) -> Vec<SendableRecordBatchStream> {
    if streams.len() < num_partitions {
        let schema = streams.first().map_or(schema, |stream| stream.schema());
        return dealt(Arc::clone(&schema), in_order(schema, streams), num_partitions);
    }
    let mut groups: Vec<Vec<SendableRecordBatchStream>> = (0..num_partitions).map(|_| Vec::new()).collect();
    for (index, stream) in streams.into_iter().enumerate() {
        groups[index % num_partitions].push(stream);
    }
    groups
        .into_iter()
        .map(|group| {
            let schema = group.first().map_or(Arc::clone(&schema), |stream| stream.schema());
            in_order(schema, group)
        })
        .collect()
}

type Batch = datafusion::error::Result<RecordBatch>;

/// Deals each batch out in slices, one a receiver. The dealer is a task that starts when the first receiver is read.
fn dealt(
    schema: SchemaRef,
    mut input: SendableRecordBatchStream,
    num_partitions: usize,
) -> Vec<SendableRecordBatchStream> {
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..num_partitions).map(|_| mpsc::channel::<Batch>(BATCHES_WAITING)).unzip();
    let deal = async move {
        while let Some(batch) = input.next().await {
            let mut is_heard = false;
            match batch {
                Ok(batch) => {
                    for (sender, slice) in senders.iter().zip(slices(&batch, senders.len())) {
                        if slice.num_rows() == 0 {
                            is_heard |= !sender.is_closed();
                            continue;
                        }
                        // A receiver that is gone takes no more; its slice goes with it.
                        is_heard |= sender.send(Ok(slice)).await.is_ok();
                    }
                }
                Err(error) => {
                    let error = Arc::new(error);
                    for sender in &senders {
                        let shared = datafusion::error::DataFusionError::Shared(Arc::clone(&error));
                        let _ = sender.send(Err(shared)).await;
                    }
                    return;
                }
            }
            if !is_heard {
                return;
            }
        }
    };
    let dealer = Arc::new(parking_lot::Mutex::new(Some(deal)));
    receivers
        .into_iter()
        .map(|receiver| {
            let dealer = Arc::clone(&dealer);
            let batches = stream::unfold(receiver, move |mut receiver| {
                if let Some(deal) = dealer.lock().take() {
                    tokio::spawn(deal);
                }
                async move { receiver.recv().await.map(|batch| (batch, receiver)) }
            });
            Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), batches)) as SendableRecordBatchStream
        })
        .collect()
}
