//! An operator's steps in the engine's terms.

use std::sync::Arc;

use arrow::datatypes::Schema;

use crate::Error;

/// Plans an operator's steps over a schema.
///
/// # Errors
/// What the operator says of the schema, carried through the engine.
pub fn steps(
    schema: &Schema,
    plan: impl FnOnce(&Schema) -> ml::Result<Vec<ml::TransformStep>>,
) -> engine::Result<Vec<engine::embedded::TransformStep>> {
    let mut columns: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let planned = plan(schema).map_err(|error| Error::Ml(error).into_engine())?;
    Ok(planned.into_iter().map(|step| in_engine(step, &mut columns)).collect())
}

fn in_engine(step: ml::TransformStep, columns: &mut Vec<String>) -> engine::embedded::TransformStep {
    use engine::embedded::TransformStep;
    match step {
        ml::TransformStep::Append { output, inputs, function } => {
            if !columns.contains(output.name()) {
                columns.push(output.name().clone());
            }
            let name = output.name().clone();
            TransformStep::Append { output, inputs, name, function: column_function(function) }
        }
        ml::TransformStep::Filter { inputs, function } => {
            TransformStep::Filter { inputs, name: "keep".into(), function: column_function(function) }
        }
        ml::TransformStep::Drop { columns: dropped } => {
            columns.retain(|column| !dropped.contains(column));
            TransformStep::Select { columns: columns.clone() }
        }
    }
}

fn column_function(function: ml::ColumnFunction) -> engine::embedded::ColumnFunction {
    Arc::new(move |columns, num_rows| {
        function(columns, num_rows).map_err(|error| Error::Ml(error).into_engine())
    })
}

