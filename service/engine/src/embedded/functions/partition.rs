//! Functions of the partition a row is in, which DataFusion's scalar functions do not know.
//!
//! A call resolves to a marker. The physical rule [`PartitionAware`] puts each projection and filter that holds markers into
//! a node that, when a partition is executed, gives every marker that partition's state.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions};
use parking_lot::Mutex;

use super::random::{self, XorShift};
use crate::Error;
use crate::embedded::expression::Typed;

type PlanResult<T> = datafusion::common::Result<T>;

/// What a marker stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    PartitionId,
    IncreasingId,
    Uniform { seed: i64 },
    Normal { seed: i64 },
}

/// A call of a function of the partition.
pub fn call(kind: Kind, data_type: DataType) -> Typed {
    let function = PartitionFunction::new(kind, data_type.clone(), None);
    let call = ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), vec![]);
    Typed::new(Expr::ScalarFunction(call), data_type, false)
}

#[derive(Debug)]
struct State {
    partition: usize,
    num_rows: u64,
    source: Option<XorShift>,
}

#[derive(Debug, Clone)]
struct PartitionFunction {
    kind: Kind,
    output: FieldRef,
    signature: Signature,
    /// Set in the expressions of a partition that runs.
    state: Option<Arc<Mutex<State>>>,
}

impl PartitionFunction {
    fn new(kind: Kind, data_type: DataType, partition: Option<usize>) -> PartitionFunction {
        let state = partition.map(|partition| Arc::new(Mutex::new(State { partition, num_rows: 0, source: None })));
        let output = Arc::new(Field::new("", data_type, false));
        PartitionFunction { kind, output, signature: Signature::nullary(Volatility::Volatile), state }
    }
}

impl PartialEq for PartitionFunction {
    fn eq(&self, other: &PartitionFunction) -> bool {
        self.kind == other.kind
    }
}

impl Eq for PartitionFunction {}

impl Hash for PartitionFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl ScalarUDFImpl for PartitionFunction {
    fn name(&self) -> &str {
        match self.kind {
            Kind::PartitionId => "spark_partition_id",
            Kind::IncreasingId => "monotonically_increasing_id",
            Kind::Uniform { .. } => "rand",
            Kind::Normal { .. } => "randn",
        }
    }

    fn schema_name(&self, _: &[Expr]) -> PlanResult<String> {
        Ok(format!("{:?}", self.kind))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlanResult<DataType> {
        Ok(self.output.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> PlanResult<FieldRef> {
        Ok(Arc::new(self.output.as_ref().clone().with_name(self.name())))
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        let Some(state) = &self.state else {
            let feature = format!("{} outside a projection or filter", self.name());
            return Err(Error::Unsupported { feature }.into());
        };
        let mut state = state.lock();
        let (partition, first) = (state.partition, state.num_rows);
        let values = random::values(self.kind, partition, first, &mut state.source, call.number_rows);
        state.num_rows += call.number_rows as u64;
        Ok(ColumnarValue::Array(values))
    }
}

fn marker(expr: &Arc<dyn PhysicalExpr>) -> Option<(&ScalarFunctionExpr, &PartitionFunction)> {
    let any: &dyn std::any::Any = expr.as_ref();
    let call = any.downcast_ref::<ScalarFunctionExpr>()?;
    let function: &dyn std::any::Any = call.fun().inner().as_ref();
    Some((call, function.downcast_ref::<PartitionFunction>()?))
}

fn has_marker(expr: &Arc<dyn PhysicalExpr>) -> PlanResult<bool> {
    expr.exists(|node| Ok(marker(node).is_some()))
}

/// The expression with its markers bound to a partition.
fn bound(
    expr: &Arc<dyn PhysicalExpr>,
    partition: usize,
    config: &Arc<ConfigOptions>,
) -> PlanResult<Arc<dyn PhysicalExpr>> {
    let bound = Arc::clone(expr).transform(|node| {
        let Some((call, function)) = marker(&node) else { return Ok(Transformed::no(node)) };
        let function = PartitionFunction::new(function.kind, function.output.data_type().clone(), Some(partition));
        let name = call.name().to_string();
        let field = Arc::new(function.output.as_ref().clone().with_name(&name));
        let function = Arc::new(ScalarUDF::new_from_impl(function));
        let call = ScalarFunctionExpr::new(&name, function, vec![], field, Arc::clone(config));
        Ok(Transformed::yes(Arc::new(call) as Arc<dyn PhysicalExpr>))
    })?;
    Ok(bound.data)
}

/// Makes markers work: the last physical optimizer rule of a session.
#[derive(Debug, Default)]
pub struct PartitionAware;

impl PhysicalOptimizerRule for PartitionAware {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let config = Arc::new(config.clone());
        let transformed = plan.transform_up(|node| {
            if node.downcast_ref::<PerPartition>().is_some() {
                return Ok(Transformed::no(node));
            }
            let mut has_markers = false;
            if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
                for projected in projection.expr() {
                    has_markers |= has_marker(&projected.expr)?;
                }
            } else if let Some(filter) = node.downcast_ref::<FilterExec>() {
                has_markers = has_marker(filter.predicate())?;
            }
            if !has_markers {
                return Ok(Transformed::no(node));
            }
            Ok(Transformed::yes(
                Arc::new(PerPartition { inner: node, config: Arc::clone(&config) }) as Arc<dyn ExecutionPlan>
            ))
        })?;
        Ok(transformed.data)
    }

    fn name(&self) -> &str {
        "partition_aware"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A projection or filter whose expressions are made anew for each partition.
#[derive(Debug)]
struct PerPartition {
    inner: Arc<dyn ExecutionPlan>,
    config: Arc<ConfigOptions>,
}

impl DisplayAs for PerPartition {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PerPartition({})", self.inner.name())
    }
}

impl ExecutionPlan for PerPartition {
    fn name(&self) -> &str {
        "PerPartition"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.inner.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inner.children()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.inner.maintains_input_order()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        self.inner.apply_expressions(visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let inner = Arc::clone(&self.inner).replace_children(children, options)?;
        Ok(Arc::new(PerPartition { inner, config: Arc::clone(&self.config) }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(datafusion::physical_plan::ChildrenPropertiesMode::Recompute),
        )
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> PlanResult<SendableRecordBatchStream> {
        if let Some(projection) = self.inner.downcast_ref::<ProjectionExec>() {
            let mut projected = Vec::with_capacity(projection.expr().len());
            for own in projection.expr() {
                let expr = bound(&own.expr, partition, &self.config)?;
                projected.push(ProjectionExpr { expr, alias: own.alias.clone() });
            }
            return ProjectionExec::try_new(projected, Arc::clone(projection.input()))?.execute(partition, context);
        }
        if let Some(filter) = self.inner.downcast_ref::<FilterExec>() {
            let predicate = bound(filter.predicate(), partition, &self.config)?;
            return FilterExecBuilder::from(filter).with_predicate(predicate).build()?.execute(partition, context);
        }
        self.inner.execute(partition, context)
    }
}
