//! The logical node of the operations on partitions, and how it is planned.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use async_trait::async_trait;
use datafusion::catalog::Session as PlanningSession;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, SortExpr, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::cache::CacheNode;
use super::fence::FenceNode;
use super::partition_exec::{PartitionExec, PhysicalOperation};
use crate::embedded::python::PythonNode;

/// What is done to the partitions of the input. Bounds and means are bits, so that nodes can be compared and hashed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionOperation {
    /// Sorts each partition for itself.
    Sort(Vec<SortExpr>),
    /// Puts neighbouring partitions together until there are no more than this many.
    Coalesce(usize),
    /// Deals the rows out evenly.
    Deal(usize),
    /// Puts rows with equal keys into the same partition.
    Hash(Vec<Expr>, usize),
    /// The last rows of the whole relation.
    Tail(usize),
    /// Keeps rows by chance.
    Bernoulli { lower_bits: u64, upper_bits: u64, seed: i64 },
    /// Repeats rows by chance.
    Poisson { mean_bits: u64, seed: i64 },
    /// Appends a column of uniform deviates of this name.
    Uniform { column: String, seed: i64 },
}

#[derive(Debug, Clone)]
pub struct PartitionNode {
    operation: PartitionOperation,
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl PartitionNode {
    pub fn new(operation: PartitionOperation, input: LogicalPlan) -> Result<PartitionNode> {
        let schema = match &operation {
            PartitionOperation::Uniform { column, .. } => {
                let deviate = Arc::new(Field::new(column, DataType::Float64, false));
                let mut fields: Vec<_> =
                    input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect();
                fields.push((None, deviate));
                Arc::new(DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?)
            }
            _ => Arc::clone(input.schema()),
        };
        Ok(PartitionNode { operation, input, schema })
    }

    /// The plan that does `operation` to `input`.
    pub fn plan(operation: PartitionOperation, input: LogicalPlan) -> Result<LogicalPlan> {
        let node = PartitionNode::new(operation, input)?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }
}

impl PartialEq for PartitionNode {
    fn eq(&self, other: &Self) -> bool {
        self.operation == other.operation && self.input == other.input
    }
}

impl Eq for PartitionNode {}

impl Hash for PartitionNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.operation.hash(state);
        self.input.hash(state);
    }
}

impl PartialOrd for PartitionNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for PartitionNode {
    fn name(&self) -> &str {
        "Partition"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        match &self.operation {
            PartitionOperation::Sort(order) => order.iter().map(|sort| sort.expr.clone()).collect(),
            PartitionOperation::Hash(keys, _) => keys.clone(),
            _ => vec![],
        }
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Partition: {:?}", self.operation)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let operation = match &self.operation {
            PartitionOperation::Sort(order) => PartitionOperation::Sort(
                order.iter().zip(exprs).map(|(sort, expr)| SortExpr { expr, ..sort.clone() }).collect(),
            ),
            PartitionOperation::Hash(_, num_partitions) => PartitionOperation::Hash(exprs, *num_partitions),
            other => other.clone(),
        };
        let input = inputs
            .pop()
            .ok_or_else(|| DataFusionError::Internal("a partition node has one input".to_owned()))?;
        PartitionNode::new(operation, input)
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let schema = self.input.schema();
        let mut needed: Vec<usize> =
            output_columns.iter().copied().filter(|index| *index < schema.fields().len()).collect();
        for expr in UserDefinedLogicalNodeCore::expressions(self) {
            needed.extend(expr.column_refs().into_iter().filter_map(|column| schema.maybe_index_of_column(column)));
        }
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}

/// Whether the rows of a plan depend on how many partitions it runs in.
pub fn is_position_dependent(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        let is_partition_node = matches!(node, LogicalPlan::Extension(extension)
            if extension.node.as_any().is::<PartitionNode>()
                || extension.node.as_any().is::<CacheNode>()
                || extension.node.as_any().is::<PythonNode>());
        found |= is_partition_node || node.expressions().iter().any(Expr::is_volatile);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// DataFusion's planner, which also knows [`PartitionNode`].
#[derive(Debug)]
pub struct SparkQueryPlanner;

#[async_trait]
impl QueryPlanner for SparkQueryPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn PlanningSession,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(PartitionPlanner)]);
        planner.create_physical_plan(plan, session).await
    }
}

struct PartitionPlanner;

#[async_trait]
impl ExtensionPlanner for PartitionPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn PlanningSession,
        planning_context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let (true, [input]) = (node.as_any().is::<FenceNode>(), physical_inputs) {
            return Ok(Some(Arc::clone(input)));
        }
        if let (Some(node), [input]) = (node.as_any().downcast_ref::<CacheNode>(), physical_inputs) {
            return Ok(Some(node.exec(Arc::clone(input))));
        }
        if let Some(node) = node.as_any().downcast_ref::<PythonNode>()
            && let Some(schema) = node.input_schema()
        {
            let physical = |expr: &Expr| planner.create_physical_expr(expr, schema, session, planning_context);
            return Ok(Some(node.physical(physical_inputs.to_vec(), &physical)?));
        }
        let (Some(node), [input]) = (node.as_any().downcast_ref::<PartitionNode>(), physical_inputs) else {
            return Ok(None);
        };
        let physical =
            |expr: &Expr| planner.create_physical_expr(expr, node.input.schema(), session, planning_context);
        let operation = match &node.operation {
            PartitionOperation::Sort(order) => {
                let sorts = order
                    .iter()
                    .map(|sort| {
                        let options =
                            arrow::compute::SortOptions { descending: !sort.asc, nulls_first: sort.nulls_first };
                        Ok(PhysicalSortExpr::new(physical(&sort.expr)?, options))
                    })
                    .collect::<Result<Vec<_>>>()?;
                match LexOrdering::new(sorts) {
                    Some(ordering) => PhysicalOperation::Sort(ordering),
                    None => return Ok(Some(Arc::clone(input))),
                }
            }
            PartitionOperation::Coalesce(num_partitions) => PhysicalOperation::Coalesce(*num_partitions),
            PartitionOperation::Deal(num_partitions) => PhysicalOperation::Deal(*num_partitions),
            PartitionOperation::Hash(keys, num_partitions) => {
                PhysicalOperation::Hash(keys.iter().map(physical).collect::<Result<_>>()?, *num_partitions)
            }
            PartitionOperation::Tail(num_rows) => PhysicalOperation::Tail(*num_rows),
            PartitionOperation::Bernoulli { lower_bits, upper_bits, seed } => PhysicalOperation::Bernoulli {
                lower: f64::from_bits(*lower_bits),
                upper: f64::from_bits(*upper_bits),
                seed: *seed,
            },
            PartitionOperation::Poisson { mean_bits, seed } => {
                PhysicalOperation::Poisson { mean: f64::from_bits(*mean_bits), seed: *seed }
            }
            PartitionOperation::Uniform { seed, .. } => {
                PhysicalOperation::Uniform { schema: Arc::new(node.schema.as_arrow().clone()), seed: *seed }
            }
        };
        Ok(Some(Arc::new(PartitionExec::try_new(operation, Arc::clone(input))?)))
    }
}
