//! Fits in this process: every rank of a gang is a thread.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use collective::{Group, Listener, Membership, Options};
use ml::{
    Argument, Attribute, Kind, Model, Operator, ParamType, Params, Summary, SummaryAttribute, TransformStep, Value,
};
use serde_json::Value as Json;
use train::checkpoint::Never;
use train::progress::Silent;
use train::{Partition, RankContext};
use udt::{Matrix, Vector};

use crate::gold::{Case, Data, doubles};

/// A gang of threads.
pub fn groups(world_size: usize) -> Vec<Group> {
    if world_size == 1 {
        return vec![Group::single()];
    }
    let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let listeners: Vec<Listener> = (0..world_size).map(|_| Listener::bind(localhost).unwrap()).collect();
    let addresses: Vec<_> = listeners.iter().map(|listener| listener.address().clone()).collect();
    let joins: Vec<_> = listeners
        .into_iter()
        .enumerate()
        .map(|(rank, listener)| {
            let membership = Membership {
                job_id: "test".into(),
                generation: 1,
                rank,
                world_size,
                secret: [7; 32],
                addresses: addresses.clone(),
            };
            std::thread::spawn(move || listener.join(&Options::default(), membership).unwrap())
        })
        .collect();
    joins.into_iter().map(|join| join.join().unwrap()).collect()
}

pub fn operator(short_name: &str) -> &'static Operator {
    ml::catalog::OPERATORS.iter().find(|operator| operator.short_name() == short_name).unwrap()
}

pub fn params_of(operator: &'static Operator, params: &Json) -> Params {
    let specs = (operator.params)();
    let supplied: BTreeMap<String, Value> = params
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, json)| {
            let param = specs.iter().find(|param| param.name == name).unwrap();
            (name.clone(), value_of(param.param_type, json))
        })
        .collect();
    Params::new(operator, "uid", supplied).unwrap()
}

fn value_of(param_type: ParamType, json: &Json) -> Value {
    match param_type {
        ParamType::Boolean => Value::Boolean(json.as_bool().unwrap()),
        ParamType::Int => Value::Int(json.as_i64().unwrap() as i32),
        ParamType::Double => Value::Double(json.as_f64().unwrap()),
        ParamType::DoubleArray => Value::doubles(&doubles(json)),
        ParamType::Vector => Value::Vector(Vector::Dense(doubles(json))),
        ParamType::Matrix => {
            let rows: Vec<Vec<f64>> = json.as_array().unwrap().iter().map(doubles).collect();
            Value::Matrix(Matrix::from_rows(rows.len(), rows[0].len(), rows.concat()))
        }
        _ => Value::String(json.as_str().unwrap().into()),
    }
}

/// Fits a case's data on so many ranks.
pub fn fit(short_name: &str, case: &Case, data: &Data, world_size: usize) -> ml::Result<Arc<dyn Model>> {
    let num_rows = data.num_rows();
    // unequal parts, of two batches each; of four ranks, one has no rows
    let ends: Vec<usize> = match world_size {
        1 => vec![0, num_rows],
        2 => vec![0, num_rows / 3, num_rows],
        _ => vec![0, num_rows / 5, num_rows / 5, num_rows / 2, num_rows],
    };
    let parts = ends
        .windows(2)
        .map(|part| {
            let middle = (part[0] + part[1]) / 2;
            vec![data.batch(part[0]..middle), data.batch(middle..part[1])]
        })
        .collect();
    fit_batches(short_name, &case.params, &Data::schema(), parts)
}

/// Fits record batches, a rank for every part.
pub fn fit_batches(
    short_name: &str,
    params: &Json,
    schema: &SchemaRef,
    parts: Vec<Vec<RecordBatch>>,
) -> ml::Result<Arc<dyn Model>> {
    let operator = operator(short_name);
    let Kind::Estimator(estimator) = operator.kind else { panic!("{short_name} cannot be fitted") };
    let params = params_of(operator, params);
    let plan = estimator.plan_fit(&params, schema)?;
    let program = ml::catalog::program(plan.program).unwrap();
    let columns: Vec<usize> = plan.columns.iter().map(|name| schema.index_of(name).unwrap()).collect();
    let plan = &plan;
    let outcomes: Vec<train::Result<Vec<u8>>> = std::thread::scope(|scope| {
        let ranks: Vec<_> = groups(parts.len())
            .into_iter()
            .zip(parts)
            .map(|(group, batches)| {
                let columns = columns.clone();
                scope.spawn(move || {
                    let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), |batch| batch.schema());
                    let project = |batch: RecordBatch| -> train::Result<RecordBatch> { Ok(batch.project(&columns)?) };
                    let mut batches = batches.into_iter().map(project);
                    let partition = Partition { schema, record_batches: &mut batches };
                    (program.run)(&plan.spec, &mut RankContext { group: &group, partition, progress: &Silent, checkpoints: &Never })
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    let mut fitted = Vec::new();
    for outcome in outcomes {
        let bytes = outcome?;
        if !bytes.is_empty() {
            fitted = bytes;
        }
    }
    estimator.model(operator, &params, schema, &fitted)
}

/// The rows with the columns that a model appends.
pub fn append_columns(model: &Arc<dyn Model>, rows: &RecordBatch) -> RecordBatch {
    let mut rows = rows.clone();
    for step in model.transform(model.params(), &rows.schema()).unwrap() {
        let TransformStep::Append { output, inputs, function } = step else { panic!("expected columns only") };
        let inputs: Vec<_> = inputs.iter().map(|name| rows.column_by_name(name).unwrap().clone()).collect();
        let column = function(&inputs, rows.num_rows()).unwrap();
        let mut fields: Vec<_> = rows.schema().fields().iter().cloned().collect();
        fields.push(output);
        let columns = rows.columns().iter().cloned().chain([column]).collect();
        rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    }
    rows
}

/// A summary that has seen the predictions, in two parts.
pub fn observed(summary: Arc<dyn Summary>, predictions: &RecordBatch) -> Arc<dyn Summary> {
    let columns: Vec<usize> =
        summary.columns().iter().map(|name| predictions.schema().index_of(name).unwrap()).collect();
    let predictions = predictions.project(&columns).unwrap();
    let half = predictions.num_rows() / 2;
    let mut first = summary.accumulator().unwrap();
    let mut second = summary.accumulator().unwrap();
    first.update(&predictions.slice(0, half)).unwrap();
    second.update(&predictions.slice(half, predictions.num_rows() - half)).unwrap();
    first.merge(second).unwrap();
    summary.observe(first).unwrap();
    summary
}

/// A summary's number or numbers; a curve's row after row.
pub fn measure(summary: &Arc<dyn Summary>, name: &str, arguments: &[Argument]) -> Vec<f64> {
    let SummaryAttribute::Ready(attribute) = summary.attribute(name, arguments).unwrap() else {
        panic!("{name} is not ready")
    };
    let double = |value: &Value| match value {
        Value::Double(v) => *v,
        Value::Int(v) => f64::from(*v),
        Value::Long(v) => *v as f64,
        other => panic!("{name} is {other}"),
    };
    match attribute {
        Attribute::Value(Value::Array { values, .. }) => values.iter().map(double).collect(),
        Attribute::Value(value) => vec![double(&value)],
        Attribute::Rows(rows) => {
            let columns: Vec<_> =
                rows.columns().iter().map(|column| column.as_primitive::<Float64Type>().values().to_vec()).collect();
            (0..rows.num_rows())
                .flat_map(|row| columns.iter().map(move |column| column[row]).collect::<Vec<f64>>())
                .collect()
        }
        Attribute::Model(_) => panic!("{name} is a model"),
    }
}
