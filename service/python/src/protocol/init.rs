//! The first message of a task: where it is, what it runs, and under which configuration.

use serde_json::{Map, Value, json};

use super::wire::{START_OF_INIT_MESSAGE, put_bool, put_bytes, put_i32, put_i64, put_text};
use crate::interpreter::Protocol;
use crate::task::{Argument, Function, Place, TableFunction, Task, Work};

/// The message, laid out as the worker's pyspark expects it.
pub fn init_message(task: &Task, protocol: Protocol) -> Vec<u8> {
    let body = body(task);
    match protocol {
        Protocol::Plain => body,
        Protocol::Framed => {
            let mut framed = Vec::with_capacity(body.len() + 8);
            put_i32(&mut framed, START_OF_INIT_MESSAGE);
            put_bytes(&mut framed, &body);
            framed
        }
    }
}

fn body(task: &Task) -> Vec<u8> {
    let mut out = Vec::new();
    put_i32(&mut out, task.place.partition as i32);
    put_text(&mut out, &task.python_version);
    put_text(&mut out, &context(&task.place).to_string());
    put_text(&mut out, &task.files_dir.to_string_lossy());
    put_i32(&mut out, task.includes.len() as i32);
    for include in &task.includes {
        put_text(&mut out, include);
    }
    // no broadcast variables: a Connect client has none
    put_bool(&mut out, false);
    put_i32(&mut out, 0);
    put_i32(&mut out, task.eval_type);
    put_conf(&mut out, &task.conf);
    put_conf(&mut out, &task.eval_conf);
    match task.work.as_ref() {
        Work::Functions(functions) => {
            put_i32(&mut out, functions.len() as i32);
            for function in functions {
                put_function(&mut out, function);
            }
        }
        Work::Table(function) => put_table_function(&mut out, function),
    }
    out
}

/// What `TaskContext` and `BarrierTaskContext` show.
fn context(place: &Place) -> Value {
    let properties: Map<String, Value> =
        place.local_properties.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    json!({
        "isBarrier": place.seat.is_some(),
        "connInfo": place.seat.as_ref().map(|seat| seat.port()),
        "secret": place.seat.as_ref().map(|seat| seat.secret()),
        "stageId": place.stage_id,
        "partitionId": place.partition,
        "attemptNumber": 0,
        "taskAttemptId": place.attempt_id,
        "cpus": 1,
        "cpuAmount": "1",
        "resources": {},
        "localProperties": properties,
    })
}

fn put_conf(out: &mut Vec<u8>, conf: &[(String, String)]) {
    put_i32(out, conf.len() as i32);
    for (key, value) in conf {
        put_text(out, key);
        put_text(out, value);
    }
}

fn put_arguments(out: &mut Vec<u8>, arguments: &[Argument]) {
    put_i32(out, arguments.len() as i32);
    for argument in arguments {
        put_i32(out, argument.offset);
        put_bool(out, argument.name.is_some());
        if let Some(name) = &argument.name {
            put_text(out, name);
        }
    }
}

fn put_function(out: &mut Vec<u8>, function: &Function) {
    put_arguments(out, &function.arguments);
    put_i32(out, function.commands.len() as i32);
    for command in &function.commands {
        put_bytes(out, command);
    }
    // the id under which a profiler would report
    put_i64(out, 0);
}

fn put_table_function(out: &mut Vec<u8>, function: &TableFunction) {
    put_arguments(out, &function.arguments);
    put_i32(out, function.partition_columns.len() as i32);
    for column in &function.partition_columns {
        put_i32(out, *column);
    }
    put_bool(out, function.analyze_result.is_some());
    if let Some(result) = &function.analyze_result {
        put_bytes(out, result);
    }
    put_bytes(out, &function.command);
    put_text(out, &function.return_type);
    put_text(out, &function.name);
}
