//! The operations on partitions, run.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};

use super::ordered_coalesce::{OrderedCoalesceExec, in_order};
use super::random::XorShiftRandom;
use super::sampler::Sampler;

/// [`super::PartitionOperation`] over physical expressions.
#[derive(Debug, Clone)]
pub enum PhysicalOperation {
    Sort(LexOrdering),
    Coalesce(usize),
    /// Cuts each batch into this many slices, empty ones included; what [`PhysicalOperation::Deal`] deals.
    Slice(usize),
    Deal(usize),
    Hash(Vec<Arc<dyn PhysicalExpr>>, usize),
    Tail(usize),
    Bernoulli { lower: f64, upper: f64, seed: i64 },
    Poisson { mean: f64, seed: i64 },
    Uniform { schema: SchemaRef, seed: i64 },
}

/// One operation over one input. DataFusion's own operators do some of them, but hidden in here: on the surface its
/// optimizer would take a sort or an exchange that no operator needs out of the plan again.
#[derive(Debug)]
pub struct PartitionExec {
    operation: PhysicalOperation,
    input: Arc<dyn ExecutionPlan>,
    /// What really runs, where that is one of DataFusion's operators.
    inner: Option<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl PartitionExec {
    pub fn try_new(operation: PhysicalOperation, input: Arc<dyn ExecutionPlan>) -> Result<PartitionExec> {
        let num_inputs = input.output_partitioning().partition_count();
        let single = |input: &Arc<dyn ExecutionPlan>| -> Arc<dyn ExecutionPlan> {
            Arc::new(OrderedCoalesceExec::new(Arc::clone(input), None))
        };
        let inner: Option<Arc<dyn ExecutionPlan>> = match &operation {
            PhysicalOperation::Sort(ordering) => Some(Arc::new(
                SortExec::new(ordering.clone(), Arc::clone(&input)).with_preserve_partitioning(true),
            )),
            PhysicalOperation::Deal(num_partitions) => {
                let slices = PartitionExec::try_new(PhysicalOperation::Slice(*num_partitions), single(&input))?;
                let dealt = Partitioning::RoundRobinBatch(*num_partitions);
                Some(Arc::new(RepartitionExec::try_new(Arc::new(slices), dealt)?))
            }
            PhysicalOperation::Hash(keys, num_partitions) => {
                let hashed = Partitioning::Hash(keys.clone(), *num_partitions);
                Some(Arc::new(RepartitionExec::try_new(single(&input), hashed)?))
            }
            _ => None,
        };
        let num_partitions = match &operation {
            PhysicalOperation::Coalesce(num_partitions) => (*num_partitions).clamp(1, num_inputs.max(1)),
            PhysicalOperation::Deal(num_partitions) | PhysicalOperation::Hash(_, num_partitions) => *num_partitions,
            PhysicalOperation::Tail(_) => 1,
            _ => num_inputs,
        };
        let schema = match &operation {
            PhysicalOperation::Uniform { schema, .. } => Arc::clone(schema),
            _ => input.schema(),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(num_partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(PartitionExec { operation, input, inner, properties: Arc::new(properties) })
    }

    /// All input partitions that make up output partition `index` of `num_outputs`.
    fn group(
        &self,
        index: usize,
        num_outputs: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let num_inputs = self.input.output_partitioning().partition_count();
        let members = index * num_inputs / num_outputs..(index + 1) * num_inputs / num_outputs;
        let streams = members.map(|member| self.input.execute(member, Arc::clone(context))).collect::<Result<_>>()?;
        Ok(in_order(self.input.schema(), streams))
    }

    fn sampled(&self, mut sampler: Sampler, input: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let batches = input.map(move |batch| sampler.apply(&batch?));
        Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches))
    }
}

impl DisplayAs for PartitionExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.operation {
            PhysicalOperation::Sort(ordering) => write!(f, "PartitionExec: sort=[{ordering}]"),
            PhysicalOperation::Uniform { seed, .. } => write!(f, "PartitionExec: uniform, seed={seed}"),
            other => write!(f, "PartitionExec: {other:?}"),
        }
    }
}

impl ExecutionPlan for PartitionExec {
    fn name(&self) -> &str {
        "PartitionExec"
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
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut next = TreeNodeRecursion::Continue;
        match &self.operation {
            PhysicalOperation::Sort(ordering) => {
                for sort in ordering {
                    next = next.visit_sibling(|| f(&sort.expr))?;
                }
            }
            PhysicalOperation::Hash(keys, _) => {
                for key in keys {
                    next = next.visit_sibling(|| f(key))?;
                }
            }
            _ => {}
        }
        Ok(next)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(PartitionExec::try_new(self.operation.clone(), children.swap_remove(0))?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if let Some(inner) = &self.inner {
            return inner.execute(partition, context);
        }
        let num_outputs = self.properties.partitioning.partition_count();
        // Spark seeds each partition with the seed plus its index.
        let random = |seed: i64| XorShiftRandom::new(seed.wrapping_add(partition as i64));
        match &self.operation {
            PhysicalOperation::Slice(num_slices) => {
                let num_slices = *num_slices;
                let slices = self
                    .input
                    .execute(partition, context)?
                    .map_ok(move |batch| stream::iter(slices(&batch, num_slices).into_iter().map(Ok)))
                    .try_flatten();
                Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), slices)))
            }
            PhysicalOperation::Tail(num_rows) => {
                let input = self.group(0, 1, &context)?;
                let tail = stream::once(tail(input, *num_rows)).map_ok(|kept| stream::iter(kept.into_iter().map(Ok)));
                Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), tail.try_flatten())))
            }
            PhysicalOperation::Bernoulli { lower, upper, seed } => {
                let sampler = Sampler::Bernoulli { random: random(*seed), lower: *lower, upper: *upper };
                Ok(self.sampled(sampler, self.input.execute(partition, context)?))
            }
            PhysicalOperation::Poisson { mean, seed } => {
                let sampler = Sampler::Poisson { random: random(*seed), mean: *mean };
                Ok(self.sampled(sampler, self.input.execute(partition, context)?))
            }
            PhysicalOperation::Uniform { seed, schema } => {
                let sampler = Sampler::Uniform { random: random(*seed), schema: Arc::clone(schema) };
                Ok(self.sampled(sampler, self.input.execute(partition, context)?))
            }
            PhysicalOperation::Coalesce(_)
            | PhysicalOperation::Sort(_)
            | PhysicalOperation::Deal(_)
            | PhysicalOperation::Hash(..) => self.group(partition, num_outputs, &context),
        }
    }
}

/// Cuts a batch into exactly `num_slices` slices whose sizes differ by at most one row.
pub fn slices(batch: &RecordBatch, num_slices: usize) -> Vec<RecordBatch> {
    let num_rows = batch.num_rows();
    (0..num_slices)
        .map(|slice| {
            let start = slice * num_rows / num_slices;
            let end = (slice + 1) * num_rows / num_slices;
            batch.slice(start, end - start)
        })
        .collect()
}

/// The batches that hold the last `num_rows` rows.
async fn tail(mut input: SendableRecordBatchStream, num_rows: usize) -> Result<Vec<RecordBatch>> {
    let mut kept: VecDeque<RecordBatch> = VecDeque::new();
    let mut num_kept = 0;
    while let Some(batch) = input.try_next().await? {
        num_kept += batch.num_rows();
        kept.push_back(batch);
        while kept.front().is_some_and(|oldest| num_kept - oldest.num_rows() >= num_rows) {
            num_kept -= kept.pop_front().map_or(0, |oldest| oldest.num_rows());
        }
    }
    if let Some(oldest) = kept.front_mut() {
        let surplus = num_kept - num_kept.min(num_rows);
        *oldest = oldest.slice(surplus, oldest.num_rows() - surplus);
    }
    Ok(kept.into())
}
