//! A Python node, run: a task in a worker for each partition.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, future, stream};
use parking_lot::Mutex;
use python::{Argument, Function, Input, InputShape, Output, Place, Task, Work};

use super::columns::{from_worker, to_worker, worker_field};
use super::zip::Waiting;
use super::{EvalType, Host, MapFunction, PythonFunction};
use crate::{Error, Result, data_type};

/// [`super::PythonOperation`] over physical expressions.
#[derive(Debug, Clone)]
pub enum PhysicalOperation {
    Evaluate(Evaluate),
    Map(MapFunction),
}

/// Calls of one kind, which one worker evaluates together.
#[derive(Debug, Clone)]
pub struct Evaluate {
    pub eval_type: EvalType,
    /// The distinct arguments of all calls, with Spark's types.
    pub arguments: Vec<(Arc<dyn PhysicalExpr>, FieldRef)>,
    pub calls: Vec<EvaluateCall>,
}

#[derive(Debug, Clone)]
pub struct EvaluateCall {
    pub functions: Vec<Arc<PythonFunction>>,
    /// Positions among the distinct arguments, with the names of those that are by keyword.
    pub arguments: Vec<(usize, Option<String>)>,
}

pub struct PythonExec {
    operation: PhysicalOperation,
    host: Arc<Host>,
    input: Arc<dyn ExecutionPlan>,
    stage_id: i64,
    properties: Arc<PlanProperties>,
}

impl PythonExec {
    pub fn new(
        operation: PhysicalOperation,
        host: Arc<Host>,
        input: Arc<dyn ExecutionPlan>,
        schema: SchemaRef,
    ) -> PythonExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        PythonExec { operation, host, input, stage_id: Host::next_stage(), properties: Arc::new(properties) }
    }

    fn task(&self, partition: usize, functions: &[Arc<PythonFunction>], eval_type: EvalType, work: Work) -> Task {
        let files = &self.host.files;
        let mut includes = files.includes();
        for include in functions.iter().flat_map(|function| &function.includes) {
            if !includes.contains(include) {
                includes.push(include.clone());
            }
        }
        Task {
            session: files.session.clone(),
            python_version: functions.first().map_or_else(String::new, |function| function.python_version.clone()),
            files_dir: files.folder.clone(),
            includes,
            eval_type: eval_type.number(),
            conf: self.host.conf.clone(),
            eval_conf: Vec::new(),
            work: Arc::new(work),
            place: Place {
                stage_id: self.stage_id,
                partition,
                attempt_id: Host::next_attempt(),
                local_properties: self.host.properties.clone(),
                seat: None,
            },
        }
    }

    fn map(&self, map: &MapFunction, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let function = Arc::clone(&map.function);
        let work = Work::Functions(vec![Function {
            commands: vec![function.command.clone()],
            arguments: vec![Argument::at(0)],
        }]);
        let task = self.task(partition, std::slice::from_ref(&function), function.eval_type, work);
        let zone = Arc::clone(&self.host.time_zone);
        let fields: Fields = map.input.iter().map(|field| worker_field(field, &zone)).collect();
        let sent = Arc::new(Schema::new(vec![Field::new("_0", DataType::Struct(fields.clone()), false)]));
        let shape = InputShape::Stream(Arc::clone(&sent));
        let input = self.rows(partition, context)?.map(move |batch| {
            let batch = batch?;
            let columns: Vec<ArrayRef> = batch
                .columns()
                .iter()
                .zip(&fields)
                .map(|(column, field)| to_worker(column, field.data_type()))
                .collect::<Result<_>>()?;
            let rows = StructArray::try_new_with_length(fields.clone(), columns, None, batch.num_rows())?;
            Ok(RecordBatch::try_new(Arc::clone(&sent), vec![Arc::new(rows)])?)
        });
        self.host.files.prepare()?;
        let outputs = self.host.workers.run(task, shape, sendable(input.boxed()));
        let schema = self.schema();
        let batches = outputs.map(move |output| {
            let batch = batch_of(output)?;
            let rows = batch.column(0).as_struct_opt().ok_or_else(|| broken("a map function gave no rows"))?;
            let columns = declared(rows.columns(), schema.fields(), &function.name)?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?)
        });
        Ok(adapted(self.schema(), batches.boxed()))
    }

    fn evaluate(
        &self,
        evaluate: &Evaluate,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let calls = evaluate.calls.iter().map(|call| Function {
            commands: call.functions.iter().map(|function| function.command.clone()).collect(),
            arguments: call
                .arguments
                .iter()
                .map(|(offset, name)| Argument { name: name.clone(), ..Argument::at(*offset) })
                .collect(),
        });
        let functions: Vec<_> = evaluate.calls.iter().flat_map(|call| call.functions.clone()).collect();
        let mut task = self.task(partition, &functions, evaluate.eval_type, Work::Functions(calls.collect()));
        let named: Vec<Field> = evaluate
            .arguments
            .iter()
            .enumerate()
            .map(|(index, (_, field))| field.as_ref().clone().with_name(format!("_{index}")))
            .collect();
        if evaluate.eval_type == EvalType::ArrowBatched {
            let json = data_type::schema_to_json(&Schema::new(named.clone()));
            task.eval_conf.push(("input_type".to_owned(), json));
        }
        let fields: Fields = named.iter().map(|field| worker_field(field, &self.host.time_zone)).collect();
        let sent = Arc::new(Schema::new(fields));
        let shape = InputShape::Stream(Arc::clone(&sent));
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let sent_rows = Arc::clone(&waiting);
        let arguments = evaluate.arguments.clone();
        let input = self.rows(partition, context)?.map(move |batch| {
            let batch = batch?;
            let num_rows = batch.num_rows();
            let columns = arguments.iter().zip(sent.fields()).map(|((expr, _), field)| {
                to_worker(&expr.evaluate(&batch)?.into_array(num_rows)?, field.data_type())
            });
            let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
            sent_rows.lock().push(batch);
            let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&sent), columns, &options)?)
        });
        self.host.files.prepare()?;
        let outputs = self.host.workers.run(task, shape, sendable(input.boxed()));
        let results: Vec<(FieldRef, String)> = evaluate
            .calls
            .iter()
            .filter_map(|call| call.functions.last())
            .map(|function| (Arc::clone(&function.output), function.name.clone()))
            .collect();
        let schema = self.schema();
        let done = Arc::clone(&waiting);
        let batches = outputs.map(move |output| {
            let batch = batch_of(output)?;
            if batch.num_columns() < results.len() {
                return Err(broken("fewer results than calls"));
            }
            let rows = waiting.lock().take(batch.num_rows())?;
            let mut columns = rows.columns().to_vec();
            for (column, (field, name)) in batch.columns().iter().zip(&results) {
                columns.push(from_worker(column, field, name)?);
            }
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?)
        });
        let end = stream::once(future::lazy(move |_| done.lock().finish()));
        let batches = batches.chain(end.filter_map(|end| future::ready(end.err().map(Err))));
        Ok(adapted(self.schema(), batches.boxed()))
    }

    /// The input's batches, cut to what workers take.
    fn rows(&self, partition: usize, context: Arc<TaskContext>) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let rows_max = self.host.batch_rows_max;
        let input = self.input.execute(partition, context)?;
        let cut = input.map_err(Error::from).map_ok(move |batch| {
            let num_rows = batch.num_rows();
            let starts = (0..num_rows).step_by(rows_max);
            let cuts: Vec<Result<RecordBatch>> =
                starts.map(|start| Ok(batch.slice(start, rows_max.min(num_rows - start)))).collect();
            stream::iter(cuts)
        });
        Ok(cut.try_flatten().boxed())
    }
}

/// Input as a worker takes it. An error of ours travels through.
fn sendable(input: BoxStream<'static, Result<RecordBatch>>) -> BoxStream<'static, python::Result<Input>> {
    let input = input.map(|batch| match batch {
        Ok(batch) => Ok(Input::Batch(batch)),
        Err(error) => Err(python::Error::Input { source: Box::new(error) }),
    });
    input.boxed()
}

fn batch_of(output: python::Result<Output>) -> Result<RecordBatch> {
    match output? {
        Output::Batch(batch) => Ok(batch),
        Output::Pickled(_) => Err(broken("pickled rows where Arrow was expected")),
    }
}

/// The first columns under the types that were declared for them; more are left out, as Spark does.
fn declared(found: &[ArrayRef], fields: &Fields, function: &str) -> Result<Vec<ArrayRef>> {
    if found.len() < fields.len() {
        return Err(Error::ArrowTypeMismatch {
            operation: function.to_owned(),
            expected: format!("{} columns", fields.len()),
            found: format!("{} columns", found.len()),
        });
    }
    found.iter().zip(fields).map(|(column, field)| from_worker(column, field, function)).collect()
}

fn broken(detail: &str) -> Error {
    Error::Python { source: python::Error::Protocol { detail: detail.to_owned() } }
}

fn adapted(schema: SchemaRef, batches: BoxStream<'static, Result<RecordBatch>>) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(schema, batches.map_err(Into::into)))
}

impl fmt::Debug for PythonExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonExec").field("operation", &self.operation).finish_non_exhaustive()
    }
}

impl DisplayAs for PythonExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = match &self.operation {
            PhysicalOperation::Evaluate(evaluate) => evaluate
                .calls
                .iter()
                .flat_map(|call| &call.functions)
                .map(|function| function.name.as_str())
                .collect(),
            PhysicalOperation::Map(map) => vec![&map.function.name],
        };
        write!(f, "PythonExec: [{}]", names.join(", "))
    }
}

impl ExecutionPlan for PythonExec {
    fn name(&self) -> &str {
        "PythonExec"
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
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        let mut next = TreeNodeRecursion::Continue;
        if let PhysicalOperation::Evaluate(evaluate) = &self.operation {
            for (argument, _) in &evaluate.arguments {
                next = next.visit_sibling(|| f(argument))?;
            }
        }
        Ok(next)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let input = children.swap_remove(0);
        Ok(Arc::new(PythonExec::new(self.operation.clone(), Arc::clone(&self.host), input, self.schema())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> PlanResult<SendableRecordBatchStream> {
        let stream = match &self.operation {
            PhysicalOperation::Evaluate(evaluate) => self.evaluate(evaluate, partition, context)?,
            PhysicalOperation::Map(map) => self.map(map, partition, context)?,
        };
        Ok(stream)
    }
}
