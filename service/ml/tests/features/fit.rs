//! Params, fits and transforms of the gold file's cases.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use ml::{Error, Estimator, Model, Operator, Params, Result, TransformStep};
use serde_json::{Map, Value as Json, json};

use crate::gang;

/// # Errors
/// The catalogue has no such operator.
pub fn operator(short_name: &str) -> Result<&'static Operator> {
    let found = ml::catalog::OPERATORS.iter().find(|operator| operator.short_name() == short_name);
    found.copied().ok_or_else(|| Error::OperatorNotSupported { class: short_name.into() })
}

/// # Errors
/// What the operator refuses.
pub fn params(operator: &'static Operator, params: &Json) -> Result<Params> {
    // vectors in the form that Spark's metadata gives them
    let convert = |json: &Json| match json.get("dense") {
        Some(values) => json!({"type": 1, "values": values}),
        None => json.clone(),
    };
    let explicit: Map<String, Json> =
        params.as_object().unwrap().iter().map(|(name, json)| (name.clone(), convert(json))).collect();
    Params::from_json(operator, "uid", &explicit)
}

/// Fits on so many ranks; of three, one has no rows.
pub fn fit(
    operator: &'static Operator,
    estimator: &'static dyn Estimator,
    params: &Params,
    rows: &RecordBatch,
    world_size: usize,
) -> Result<Arc<dyn Model>> {
    let schema = rows.schema();
    let plan = estimator.plan_fit(params, &schema)?;
    let program = ml::catalog::program(plan.program).unwrap();
    let columns: Vec<usize> = plan.columns.iter().map(|name| schema.index_of(name).unwrap()).collect();
    let read = rows.project(&columns)?;
    let num_rows = read.num_rows();
    let ends: &[usize] = match world_size {
        1 => &[0, num_rows],
        2 => &[0, num_rows / 3, num_rows],
        _ => &[0, num_rows / 2, num_rows / 2, num_rows],
    };
    let part = |ends: &[usize]| match ends[1] - ends[0] {
        0 => Vec::new(),
        1 => vec![read.slice(ends[0], 1)],
        length => vec![read.slice(ends[0], 1), read.slice(ends[0] + 1, length - 1)],
    };
    let parts = ends.windows(2).map(part).collect();
    let fitted = gang::run(program, &plan.spec, &read.schema(), parts)?;
    estimator.model(operator, params, &schema, &fitted)
}

/// The rows after every step.
pub fn apply(steps: Vec<TransformStep>, mut rows: RecordBatch) -> Result<RecordBatch> {
    for step in steps {
        let columns = |names: &[String]| -> Vec<ArrayRef> {
            let schema = rows.schema();
            let index = |name: &String| schema.fields().iter().position(|f| f.name().eq_ignore_ascii_case(name)).unwrap();
            names.iter().map(|name| rows.column(index(name)).clone()).collect()
        };
        rows = match step {
            TransformStep::Append { output, inputs, function } => {
                let column = function(&columns(&inputs), rows.num_rows())?;
                let fields: Vec<_> = rows.schema().fields().iter().cloned().chain([output]).collect();
                RecordBatch::try_new(Arc::new(Schema::new(fields)), [rows.columns(), &[column]].concat())?
            }
            TransformStep::Filter { inputs, function } => {
                let mask = function(&columns(&inputs), rows.num_rows())?;
                filter_record_batch(&rows, mask.as_boolean())?
            }
            TransformStep::Drop { columns } => {
                let schema = rows.schema();
                let kept: Vec<usize> =
                    (0..rows.num_columns()).filter(|i| !columns.contains(schema.field(*i).name())).collect();
                rows.project(&kept)?
            }
        };
    }
    Ok(rows)
}
