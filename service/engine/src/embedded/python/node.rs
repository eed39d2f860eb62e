//! The logical node of what runs in Python.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use super::{EvalType, Host, PythonFunction};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PythonOperation {
    /// Appends a column for each call.
    Evaluate(Vec<Evaluation>),
    /// Each partition's batches through one function of batches.
    Map(MapFunction),
    /// Each group of rows through one function.
    Group(GroupFunction),
    /// A row for each group: its keys and the calls' results.
    Aggregate(GroupAggregate),
}

/// A call whose result becomes a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Evaluation {
    /// Innermost first; the last one gives the result.
    pub functions: Vec<Arc<PythonFunction>>,
    pub arguments: Vec<EvaluationArgument>,
    /// The column's name in the plan.
    pub column: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EvaluationArgument {
    pub name: Option<String>,
    pub expr: Expr,
    /// Spark's type of it.
    pub field: FieldRef,
}

impl Evaluation {
    /// The result's type.
    pub fn output(&self) -> Option<&FieldRef> {
        self.functions.last().map(|function| &function.output)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MapFunction {
    pub function: Arc<PythonFunction>,
    /// The input's columns under the names that the function sees.
    pub input: Vec<FieldRef>,
    /// The columns that it gives, under their names in the plan.
    pub output: Vec<FieldRef>,
    /// Whether the tasks start together and can talk to each other.
    pub is_barrier: bool,
}

/// A function of groups. Every input holds whole groups in each partition, groups of all inputs alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupFunction {
    pub function: Arc<PythonFunction>,
    /// One, or two that are grouped together.
    pub relations: Vec<GroupedRelation>,
    /// The columns that it gives, under their names in the plan.
    pub output: Vec<FieldRef>,
}

/// How an input of a function of groups is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupedRelation {
    /// All of the input's columns, under the names that the function sees.
    pub columns: Vec<FieldRef>,
    /// Positions of the grouping keys.
    pub keys: Vec<usize>,
    /// Positions of the columns that the function is given.
    pub values: Vec<usize>,
}

/// Aggregate functions over groups. The input's first columns are the keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupAggregate {
    pub num_keys: usize,
    pub calls: Vec<AggregateCall>,
    /// Spark's types of the columns after the keys.
    pub arguments: Vec<FieldRef>,
    /// Keys and results, under their names in the plan.
    pub output: Vec<FieldRef>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AggregateCall {
    pub function: Arc<PythonFunction>,
    /// Positions among the arguments, with the names of those that are by keyword.
    pub arguments: Vec<(usize, Option<String>)>,
}

#[derive(Debug, Clone)]
pub struct PythonNode {
    pub operation: PythonOperation,
    pub host: Arc<Host>,
    inputs: Vec<LogicalPlan>,
    schema: DFSchemaRef,
}

impl PythonNode {
    pub fn new(operation: PythonOperation, host: Arc<Host>, inputs: Vec<LogicalPlan>) -> Result<PythonNode> {
        let unqualified = |field: &FieldRef| (None, Arc::clone(field));
        let fields = match &operation {
            PythonOperation::Evaluate(evaluations) => {
                let passed_on = inputs.iter().flat_map(|input| input.schema().iter());
                let passed_on = passed_on.map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
                let appended = evaluations.iter().filter_map(|evaluation| {
                    let field = evaluation.output()?.as_ref().clone().with_name(&evaluation.column);
                    Some((None, Arc::new(field)))
                });
                passed_on.chain(appended).collect()
            }
            PythonOperation::Map(map) => map.output.iter().map(unqualified).collect(),
            PythonOperation::Group(group) => group.output.iter().map(unqualified).collect(),
            PythonOperation::Aggregate(aggregate) => aggregate.output.iter().map(unqualified).collect(),
        };
        let schema = Arc::new(DFSchema::new_with_metadata(fields, Default::default())?);
        Ok(PythonNode { operation, host, inputs, schema })
    }

    pub fn plan(operation: PythonOperation, host: Arc<Host>, inputs: Vec<LogicalPlan>) -> Result<LogicalPlan> {
        let node = PythonNode::new(operation, host, inputs)?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }

    /// The input that the arguments of calls are over.
    pub fn input_schema(&self) -> Option<&DFSchemaRef> {
        self.inputs.first().map(|input| input.schema())
    }

    fn functions(&self) -> Vec<&PythonFunction> {
        match &self.operation {
            PythonOperation::Evaluate(evaluations) => {
                evaluations.iter().flat_map(|evaluation| &evaluation.functions).map(Arc::as_ref).collect()
            }
            PythonOperation::Map(map) => vec![&map.function],
            PythonOperation::Group(group) => vec![&group.function],
            PythonOperation::Aggregate(aggregate) => {
                aggregate.calls.iter().map(|call| call.function.as_ref()).collect()
            }
        }
    }

    fn title(&self) -> &'static str {
        match &self.operation {
            PythonOperation::Evaluate(_) => "ArrowEvalPython",
            PythonOperation::Map(map) if map.function.eval_type == EvalType::MapPandasIter => "MapInPandas",
            PythonOperation::Map(_) => "MapInArrow",
            PythonOperation::Group(group) => match group.function.eval_type {
                EvalType::GroupedMapPandas | EvalType::GroupedMapPandasIter => "FlatMapGroupsInPandas",
                EvalType::CogroupedMapPandas => "FlatMapCoGroupsInPandas",
                EvalType::CogroupedMapArrow => "FlatMapCoGroupsInArrow",
                _ => "FlatMapGroupsInArrow",
            },
            PythonOperation::Aggregate(_) => "ArrowAggregatePython",
        }
    }
}

impl PartialEq for PythonNode {
    fn eq(&self, other: &Self) -> bool {
        self.operation == other.operation && self.inputs == other.inputs
    }
}

impl Eq for PythonNode {}

impl Hash for PythonNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.operation.hash(state);
        self.inputs.hash(state);
    }
}

impl PartialOrd for PythonNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for PythonNode {
    fn name(&self) -> &str {
        self.title()
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.inputs.iter().collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        match &self.operation {
            PythonOperation::Evaluate(evaluations) => {
                let arguments = evaluations.iter().flat_map(|evaluation| &evaluation.arguments);
                arguments.map(|argument| argument.expr.clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A filter on a result must stay above; one on other columns may go below.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let all = || self.schema.fields().iter().map(|field: &Arc<Field>| field.name().clone()).collect();
        match &self.operation {
            PythonOperation::Evaluate(evaluations)
                if evaluations.iter().all(|evaluation| evaluation.functions.iter().all(|f| f.is_deterministic)) =>
            {
                evaluations.iter().map(|evaluation| evaluation.column.clone()).collect()
            }
            _ => all(),
        }
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.functions().into_iter().map(|function| function.name.as_str()).collect();
        write!(f, "{} [{}]", self.title(), names.join(", "))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut operation = self.operation.clone();
        if let PythonOperation::Evaluate(evaluations) = &mut operation {
            let arguments = evaluations.iter_mut().flat_map(|evaluation| &mut evaluation.arguments);
            for (argument, expr) in arguments.zip(exprs) {
                argument.expr = expr;
            }
        }
        PythonNode::new(operation, Arc::clone(&self.host), inputs)
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let needed = self.inputs.iter().map(|input| {
            let schema = input.schema();
            let num_columns = schema.fields().len();
            if !matches!(self.operation, PythonOperation::Evaluate(_)) {
                return (0..num_columns).collect();
            }
            let mut needed: Vec<usize> = output_columns.iter().copied().filter(|index| *index < num_columns).collect();
            for expr in UserDefinedLogicalNodeCore::expressions(self) {
                let columns = expr.column_refs();
                needed.extend(columns.into_iter().filter_map(|column| schema.maybe_index_of_column(column)));
            }
            needed.sort_unstable();
            needed.dedup();
            needed
        });
        Some(needed.collect())
    }
}
