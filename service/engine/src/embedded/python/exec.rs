//! A Python node, run: a task in a worker for each partition.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::row::OwnedRow;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as PlanResult;
use datafusion::execution::memory_pool::MemoryConsumer;
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
use python::{Argument, Function, Input, InputShape, Place, StageTask, Task, Work};

use super::columns::{from_worker, to_worker, worker_field};
use super::group::{Grouped, Keys, key_types, sorted_keys};
use super::stage::Stage;
use super::zip::Waiting;
use super::{EvalType, GroupAggregate, GroupFunction, Host, MapFunction, PythonFunction};
use crate::{Error, Result, data_type};

/// Results of so many groups that are ready become one batch.
const GROUPS_JOINED_MAX: usize = 1024;

/// A task with its rows.
type MapTask = (Task, InputShape, BoxStream<'static, python::Result<Input>>);

/// A key, and its rows in each input.
type Group = (OwnedRow, Vec<Vec<RecordBatch>>);

/// [`super::PythonOperation`] over physical expressions.
#[derive(Debug, Clone)]
pub enum PhysicalOperation {
    Evaluate(Evaluate),
    Map(MapFunction),
    Group(GroupFunction),
    Aggregate(GroupAggregate),
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
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    stage_id: i64,
    /// Of a barrier stage that has started: what partitions that nobody has asked for yet will get.
    barrier: Mutex<Option<Stage>>,
    properties: Arc<PlanProperties>,
}

impl PythonExec {
    pub fn new(
        operation: PhysicalOperation,
        host: Arc<Host>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
        schema: SchemaRef,
    ) -> PythonExec {
        let num_partitions = inputs.first().map_or(1, |input| input.output_partitioning().partition_count());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(num_partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let stage_id = Host::next_stage();
        PythonExec { operation, host, inputs, stage_id, barrier: Mutex::default(), properties: Arc::new(properties) }
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

    /// The rows of one partition of a barrier stage. All of its tasks run when the first partition is read, and there are
    /// rows when all of them are done.
    fn barrier(
        &self,
        map: &MapFunction,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut slot = self.barrier.lock();
        let has_run = slot.as_ref().is_some_and(|stage| stage.is_taken(partition));
        if slot.is_none() || has_run {
            let num_partitions = self.properties.partitioning.partition_count();
            let tasks = (0..num_partitions).map(|partition| {
                let (task, shape, input) = self.map_task(map, partition, context)?;
                Ok(StageTask { task, shape, input })
            });
            let tasks = tasks.collect::<Result<Vec<_>>>()?;
            let reservation = MemoryConsumer::new("barrier stage").register(context.memory_pool());
            *slot = Some(Stage::new(self.host.workers.clone(), &map.function.name, tasks, reservation));
        }
        let rows = slot.as_mut().and_then(|stage| stage.take(partition));
        // From here on the partitions' readers alone keep the tasks alive.
        if slot.as_ref().is_some_and(Stage::is_all_taken) {
            *slot = None;
        }
        let rows = rows.ok_or_else(|| Error::Bug { invariant: "a partition of a stage is read once".into() })?;
        Ok(self.rows_of(rows, Arc::clone(&map.function)))
    }

    fn map(
        &self,
        map: &MapFunction,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (task, shape, input) = self.map_task(map, partition, context)?;
        let outputs = self.host.workers.run(task, shape, input);
        Ok(self.rows_of(outputs.boxed(), Arc::clone(&map.function)))
    }

    fn map_task(&self, map: &MapFunction, partition: usize, context: &Arc<TaskContext>) -> Result<MapTask> {
        let function = Arc::clone(&map.function);
        let work = Work::Functions(vec![Function {
            commands: vec![function.command.clone()],
            arguments: vec![Argument::at(0)],
        }]);
        let task = self.task(partition, std::slice::from_ref(&function), function.eval_type, work);
        let zone = Arc::clone(&self.host.time_zone);
        let fields: Fields = map.input.iter().map(|field| worker_field(field, &zone)).collect();
        let sent = Arc::new(Schema::new(vec![Field::new("_0", DataType::Struct(fields), false)]));
        let shape = InputShape::Stream(Arc::clone(&sent));
        let input = self.rows(0, partition, context)?.map(move |batch| for_worker(&batch?, &sent, true));
        self.host.files.prepare()?;
        Ok((task, shape, fallible(input.map_ok(Input::Batch).boxed())))
    }

    /// What a function of batches or groups gives: rows as one struct.
    fn rows_of(
        &self,
        outputs: BoxStream<'static, python::Result<RecordBatch>>,
        function: Arc<PythonFunction>,
    ) -> SendableRecordBatchStream {
        let schema = self.schema();
        let batches = outputs.map(move |output| {
            let batch = output?;
            let rows = batch.columns().first().and_then(|column| column.as_struct_opt());
            let rows = rows.ok_or_else(|| broken("a function of batches gave no rows"))?;
            let columns = declared(rows.columns(), schema.fields(), &function.name)?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?)
        });
        adapted(self.schema(), batches.boxed())
    }

    fn group(
        &self,
        group: &GroupFunction,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let function = Arc::clone(&group.function);
        // For each relation: how many numbers follow, how many of them are keys, keys, values.
        let offsets = group.relations.iter().flat_map(|relation| {
            let length = 1 + relation.keys.len() + relation.values.len();
            let positions = relation.keys.iter().chain(&relation.values).copied();
            [length, relation.keys.len()].into_iter().chain(positions)
        });
        let work = Work::Functions(vec![Function {
            commands: vec![function.command.clone()],
            arguments: offsets.map(Argument::at).collect(),
        }]);
        let task = self.task(partition, std::slice::from_ref(&function), function.eval_type, work);
        // Some kinds take the columns as one struct.
        let is_nested = matches!(function.eval_type, EvalType::GroupedMapArrow | EvalType::GroupedMapArrowIter);
        let zone = &self.host.time_zone;
        let schemas: Vec<SchemaRef> = group
            .relations
            .iter()
            .map(|relation| {
                let fields: Fields = relation.columns.iter().map(|field| worker_field(field, zone)).collect();
                let fields = if is_nested {
                    Fields::from(vec![Field::new("_0", DataType::Struct(fields), false)])
                } else {
                    fields
                };
                Arc::new(Schema::new(fields))
            })
            .collect();
        let sent = schemas.clone();
        let keys = group.relations.iter().map(|relation| relation.keys.clone()).collect();
        let groups = self.groups(keys, partition, context)?.map(move |group| {
            let (_, relations) = group?;
            let relations = relations.iter().zip(&sent).map(|(batches, schema)| {
                if batches.is_empty() {
                    // The function is given an empty table of the right columns.
                    return Ok(vec![RecordBatch::new_empty(Arc::clone(schema))]);
                }
                batches.iter().map(|batch| for_worker(batch, schema, is_nested)).collect::<Result<Vec<_>>>()
            });
            Ok(Input::Group(relations.collect::<Result<_>>()?))
        });
        self.host.files.prepare()?;
        let outputs = self.host.workers.run(task, InputShape::Groups(schemas), fallible(groups.boxed()));
        Ok(self.rows_of(outputs.boxed(), function))
    }

    fn aggregate(
        &self,
        aggregate: &GroupAggregate,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let functions: Vec<_> = aggregate.calls.iter().map(|call| Arc::clone(&call.function)).collect();
        let eval_type = functions.first().map_or(EvalType::GroupedAggPandas, |function| function.eval_type);
        let work = aggregate.calls.iter().map(|call| Function {
            commands: vec![call.function.command.clone()],
            arguments: arguments(&call.arguments),
        });
        let task = self.task(partition, &functions, eval_type, Work::Functions(work.collect()));
        let named = aggregate.arguments.iter().enumerate().map(|(index, field)| {
            worker_field(&field.as_ref().clone().with_name(format!("_{index}")), &self.host.time_zone)
        });
        let sent = Arc::new(Schema::new(named.collect::<Fields>()));
        let shape = InputShape::Groups(vec![Arc::clone(&sent)]);
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let (sent_keys, num_keys) = (Arc::clone(&waiting), aggregate.num_keys);
        let groups = self.groups(vec![(0..num_keys).collect()], partition, context)?.map(move |group| {
            let (_, relations) = group?;
            let batches = relations.into_iter().next().unwrap_or_default();
            let Some(first) = batches.first() else { return Err(broken("a group without rows")) };
            let keys: Vec<usize> = (0..num_keys).collect();
            sent_keys.lock().push(first.slice(0, 1).project(&keys)?);
            let columns: Vec<usize> = (num_keys..first.num_columns()).collect();
            let batches = batches.iter().map(|batch| for_worker(&batch.project(&columns)?, &sent, false));
            Ok(Input::Group(vec![batches.collect::<Result<_>>()?]))
        });
        self.host.files.prepare()?;
        let outputs = self.host.workers.run(task, shape, fallible(groups.boxed()));
        let results = functions.iter().map(|function| (Arc::clone(&function.output), function.name.clone()));
        let batches = self.with_results(outputs.boxed(), waiting, results.collect());
        // A worker gives a batch for each group.
        let schema = self.schema();
        let joined = batches.ready_chunks(GROUPS_JOINED_MAX).map(move |batches| {
            let batches = batches.into_iter().collect::<PlanResult<Vec<_>>>()?;
            Ok(arrow::compute::concat_batches(&schema, &batches)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), joined)))
    }

    /// The groups of all inputs, by the positions of their keys, in the order of the keys.
    fn groups(
        &self,
        positions: Vec<Vec<usize>>,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<Group>>> {
        let types = self.inputs.iter().zip(&positions).map(|(input, positions)| {
            let schema = input.schema();
            positions.iter().map(|position| schema.field(*position).data_type().clone()).collect()
        });
        let keys = Keys::new(key_types(&types.collect::<Vec<_>>())?)?;
        let rows_max = self.host.batch_rows_max;
        let mut reading = Vec::with_capacity(self.inputs.len());
        for (index, positions) in positions.into_iter().enumerate() {
            let reservation = MemoryConsumer::new("Python groups").register(context.memory_pool());
            reading.push((self.rows(index, partition, context)?, positions, reservation));
        }
        let read = async move {
            let mut relations = Vec::with_capacity(reading.len());
            for (rows, positions, reservation) in reading {
                relations.push(Grouped::read(rows, &keys, &positions, reservation).await?);
            }
            let keys = sorted_keys(&relations);
            let groups = keys.into_iter().map(move |key| {
                let group = relations.iter().map(|relation| relation.group(&key, rows_max));
                let group = group.collect::<Result<_>>()?;
                Ok((key, group))
            });
            Ok::<_, Error>(stream::iter(groups))
        };
        Ok(stream::once(read).try_flatten().boxed())
    }

    fn evaluate(
        &self,
        evaluate: &Evaluate,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let calls = evaluate.calls.iter().map(|call| Function {
            commands: call.functions.iter().map(|function| function.command.clone()).collect(),
            arguments: arguments(&call.arguments),
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
        let input = self.rows(0, partition, context)?.map(move |batch| {
            let batch = batch?;
            let num_rows = batch.num_rows();
            let columns = arguments
                .iter()
                .zip(sent.fields())
                .map(|((expr, _), field)| to_worker(&expr.evaluate(&batch)?.into_array(num_rows)?, field.data_type()));
            let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
            sent_rows.lock().push(batch);
            let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&sent), columns, &options)?)
        });
        self.host.files.prepare()?;
        let outputs = self.host.workers.run(task, shape, fallible(input.map_ok(Input::Batch).boxed()));
        let results: Vec<(FieldRef, String)> = evaluate
            .calls
            .iter()
            .filter_map(|call| call.functions.last())
            .map(|function| (Arc::clone(&function.output), function.name.clone()))
            .collect();
        Ok(self.with_results(outputs.boxed(), waiting, results))
    }

    /// Rows that wait, with the results that come for them.
    fn with_results(
        &self,
        outputs: BoxStream<'static, python::Result<RecordBatch>>,
        waiting: Arc<Mutex<Waiting>>,
        results: Vec<(FieldRef, String)>,
    ) -> SendableRecordBatchStream {
        let schema = self.schema();
        let done = Arc::clone(&waiting);
        let batches = outputs.map(move |output| {
            let batch = output?;
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
        adapted(self.schema(), batches.boxed())
    }

    /// The input's batches, cut to what workers take.
    fn rows(
        &self,
        input: usize,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let rows_max = self.host.batch_rows_max;
        let input = self.inputs[input].execute(partition, Arc::clone(context))?;
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

/// Positions as the protocol has them.
fn arguments(positions: &[(usize, Option<String>)]) -> Vec<Argument> {
    positions.iter().map(|(offset, name)| Argument { name: name.clone(), ..Argument::at(*offset) }).collect()
}

/// A batch under a worker's types; its columns as one struct where the worker wants that.
fn for_worker(batch: &RecordBatch, schema: &SchemaRef, is_nested: bool) -> Result<RecordBatch> {
    let nested = match schema.fields().first().map(|field| field.data_type()) {
        Some(DataType::Struct(fields)) if is_nested => Some(fields),
        _ => None,
    };
    let fields = nested.unwrap_or(schema.fields());
    let columns = batch.columns().iter().zip(fields).map(|(column, field)| to_worker(column, field.data_type()));
    let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
    let columns: Vec<ArrayRef> = match nested {
        Some(fields) => {
            vec![Arc::new(StructArray::try_new_with_length(fields.clone(), columns, None, batch.num_rows())?)]
        }
        None => columns,
    };
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// Input as a worker takes it. An error of ours travels through.
fn fallible(input: BoxStream<'static, Result<Input>>) -> BoxStream<'static, python::Result<Input>> {
    input.map_err(|error| python::Error::Input { source: Box::new(error) }).boxed()
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
            PhysicalOperation::Evaluate(evaluate) => {
                evaluate.calls.iter().flat_map(|call| &call.functions).map(|function| function.name.as_str()).collect()
            }
            PhysicalOperation::Map(map) => vec![&map.function.name],
            PhysicalOperation::Group(group) => vec![&group.function.name],
            PhysicalOperation::Aggregate(aggregate) => {
                aggregate.calls.iter().map(|call| call.function.name.as_str()).collect()
            }
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
        self.inputs.iter().collect()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
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

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(PythonExec::new(self.operation.clone(), Arc::clone(&self.host), children, self.schema())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> PlanResult<SendableRecordBatchStream> {
        let stream = match &self.operation {
            PhysicalOperation::Evaluate(evaluate) => self.evaluate(evaluate, partition, &context)?,
            PhysicalOperation::Map(map) if map.is_barrier => self.barrier(map, partition, &context)?,
            PhysicalOperation::Map(map) => self.map(map, partition, &context)?,
            PhysicalOperation::Group(group) => self.group(group, partition, &context)?,
            PhysicalOperation::Aggregate(aggregate) => self.aggregate(aggregate, partition, &context)?,
        };
        Ok(stream)
    }
}
