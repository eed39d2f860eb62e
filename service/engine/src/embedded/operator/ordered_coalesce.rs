//! Many partitions read as one, in their order: the first rows of a relation are always the same ones.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::LimitStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, stream};
use tokio::sync::mpsc;

/// Batches each partition may run ahead of the reader.
const BATCHES_AHEAD: usize = 16;

/// Reads the streams one after the other while all of them work ahead, each a bounded number of batches.
pub fn in_order(schema: SchemaRef, mut streams: Vec<SendableRecordBatchStream>) -> SendableRecordBatchStream {
    if streams.len() == 1
        && let Some(only) = streams.pop()
    {
        return only;
    }
    let tasks: Vec<_> = streams.into_iter().map(work_ahead).collect();
    let batches = stream::iter(tasks).flatten();
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// Reads one batch of each stream in turn while all of them work ahead: an order that does not depend on which is faster,
/// and that keeps all of them busy.
fn in_turn(schema: SchemaRef, streams: Vec<SendableRecordBatchStream>) -> SendableRecordBatchStream {
    let waiting: VecDeque<_> = streams.into_iter().map(|stream| Box::pin(work_ahead(stream))).collect();
    let batches = stream::unfold(waiting, |mut waiting| async move {
        while let Some(mut next) = waiting.pop_front() {
            if let Some(batch) = next.next().await {
                waiting.push_back(next);
                return Some((batch, waiting));
            }
        }
        None
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

type Batch = Result<arrow::array::RecordBatch>;

/// Runs a stream in a task of its own, which ends when the result is dropped.
fn work_ahead(mut input: SendableRecordBatchStream) -> impl futures::Stream<Item = Batch> + Send {
    let (sender, receiver) = mpsc::channel::<Batch>(BATCHES_AHEAD);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        while let Some(batch) = input.next().await {
            if sender.send(batch).await.is_err() {
                return;
            }
        }
    });
    stream::unfold((receiver, tasks), |(mut receiver, mut tasks)| async move {
        if let Some(batch) = receiver.recv().await {
            return Some((batch, (receiver, tasks)));
        }
        match tasks.join_next().await {
            Some(Err(failed)) => Some((Err(DataFusionError::ExecutionJoin(Box::new(failed))), (receiver, tasks))),
            Some(Ok(())) | None => None,
        }
    })
}

/// [`CoalescePartitionsExec`] with a defined order.
#[derive(Debug)]
pub struct OrderedCoalesceExec {
    input: Arc<dyn ExecutionPlan>,
    fetch: Option<usize>,
    is_in_turn: bool,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl OrderedCoalesceExec {
    /// One partition after the other.
    pub fn new(input: Arc<dyn ExecutionPlan>, fetch: Option<usize>) -> OrderedCoalesceExec {
        OrderedCoalesceExec::with_order(input, fetch, false)
    }

    /// A batch of each partition in turn.
    pub fn in_turn(input: Arc<dyn ExecutionPlan>) -> OrderedCoalesceExec {
        OrderedCoalesceExec::with_order(input, None, true)
    }

    fn with_order(input: Arc<dyn ExecutionPlan>, fetch: Option<usize>, is_in_turn: bool) -> OrderedCoalesceExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        OrderedCoalesceExec {
            input,
            fetch,
            is_in_turn,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for OrderedCoalesceExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrderedCoalesceExec")?;
        self.fetch.map_or(Ok(()), |fetch| write!(f, ": fetch={fetch}"))
    }
}

impl ExecutionPlan for OrderedCoalesceExec {
    fn name(&self) -> &str {
        "OrderedCoalesceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(OrderedCoalesceExec::with_order(children.swap_remove(0), self.fetch, self.is_in_turn)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let num_partitions = self.input.output_partitioning().partition_count();
        let streams = (0..num_partitions)
            .map(|index| self.input.execute(index, Arc::clone(&context)))
            .collect::<Result<Vec<_>>>()?;
        let merge = if self.is_in_turn { in_turn } else { in_order };
        let merged = merge(self.schema(), streams);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        Ok(Box::pin(LimitStream::new(merged, 0, self.fetch, metrics)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }
}

/// Puts [`OrderedCoalesceExec`] where DataFusion would merge partitions as their batches come.
#[derive(Debug)]
pub struct OrderedCoalesceRule;

impl PhysicalOptimizerRule for OrderedCoalesceRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(coalesce) = plan.downcast_ref::<CoalescePartitionsExec>() else {
                return Ok(Transformed::no(plan));
            };
            let ordered = OrderedCoalesceExec::new(Arc::clone(coalesce.input()), coalesce.fetch());
            Ok(Transformed::yes(Arc::new(ordered) as Arc<dyn ExecutionPlan>))
        })
        .data()
    }

    fn name(&self) -> &str {
        "ordered_coalesce"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Gives every exchange one input that comes in a defined order, so that its outputs do too: the rows of a gang's
/// partitions must be the same, in the same order, in every attempt.
#[derive(Debug)]
pub struct InTurnRule;

impl PhysicalOptimizerRule for InTurnRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(exchange) = plan.downcast_ref::<RepartitionExec>() else { return Ok(Transformed::no(plan)) };
            let input = exchange.input();
            if input.output_partitioning().partition_count() < 2 || exchange.preserve_order() {
                return Ok(Transformed::no(plan));
            }
            let merged = Arc::new(OrderedCoalesceExec::in_turn(Arc::clone(input)));
            let exchange = RepartitionExec::try_new(merged, exchange.partitioning().clone())?;
            Ok(Transformed::yes(Arc::new(exchange) as Arc<dyn ExecutionPlan>))
        })
        .data()
    }

    fn name(&self) -> &str {
        "in_turn"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
