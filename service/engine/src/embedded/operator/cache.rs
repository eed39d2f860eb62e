//! A persisted relation: its partitions are kept the first time they are read to the end.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::DFSchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use uuid::Uuid;

/// The rows that are kept, by how many partitions the plan had and which one it is.
#[derive(Default)]
pub struct Store {
    partitions: Mutex<HashMap<(usize, usize), Kept>>,
}

struct Kept {
    batches: Vec<RecordBatch>,
    /// Counts the rows against the engine's memory as long as they are kept.
    reservation: MemoryReservation,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} partitions", self.partitions.lock().len())
    }
}

/// Reads its input once, and from memory after that.
#[derive(Debug, Clone)]
pub struct CacheNode {
    id: Uuid,
    input: LogicalPlan,
    store: Arc<Store>,
}

impl CacheNode {
    pub fn plan(input: LogicalPlan) -> LogicalPlan {
        let node = CacheNode { id: Uuid::new_v4(), input, store: Arc::default() };
        LogicalPlan::Extension(Extension { node: Arc::new(node) })
    }

    pub(super) fn exec(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(CacheExec::new(Arc::clone(&self.store), input))
    }
}

impl PartialEq for CacheNode {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.input == other.input
    }
}

impl Eq for CacheNode {}

impl Hash for CacheNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl PartialOrd for CacheNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for CacheNode {
    fn name(&self) -> &str {
        "InMemoryRelation"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InMemoryRelation")
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.pop().ok_or_else(|| DataFusionError::Internal("a cache node has one input".to_owned()))?;
        Ok(CacheNode { input, ..self.clone() })
    }

    /// All of them: what is kept must serve every later reader.
    fn necessary_children_exprs(&self, _: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![(0..self.input.schema().fields().len()).collect()])
    }
}

#[derive(Debug)]
struct CacheExec {
    store: Arc<Store>,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl CacheExec {
    fn new(store: Arc<Store>, input: Arc<dyn ExecutionPlan>) -> CacheExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        CacheExec { store, input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for CacheExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheExec: {:?}", self.store)
    }
}

impl ExecutionPlan for CacheExec {
    fn name(&self) -> &str {
        "CacheExec"
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
        Ok(Arc::new(CacheExec::new(Arc::clone(&self.store), children.swap_remove(0))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let key = (self.properties.partitioning.partition_count(), partition);
        if let Some(kept) = self.store.partitions.lock().get(&key) {
            let batches = stream::iter(kept.batches.clone().into_iter().map(Ok));
            return Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)));
        }
        let reservation = MemoryConsumer::new("persisted relation").register(context.memory_pool());
        let input = self.input.execute(partition, context)?;
        let store = Arc::clone(&self.store);
        // What does not fit is read anew each time.
        let kept = Some(Kept { batches: Vec::new(), reservation: reservation });
        let batches = stream::unfold((input, kept), move |(mut input, mut kept)| {
            let store = Arc::clone(&store);
            async move {
                match input.next().await {
                    Some(Ok(batch)) => {
                        let fits = kept.as_mut().is_some_and(|kept| {
                            kept.batches.push(batch.clone());
                            kept.reservation.try_grow(batch.get_array_memory_size()).is_ok()
                        });
                        Some((Ok(batch), (input, kept.filter(|_| fits))))
                    }
                    Some(Err(error)) => Some((Err(error), (input, None))),
                    None => {
                        if let Some(kept) = kept {
                            store.partitions.lock().insert(key, kept);
                        }
                        None
                    }
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
