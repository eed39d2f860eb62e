//! `VectorSlicer`: some elements of each vector, by index or by name.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::Schema;
use udt::VectorRow;

use super::columns::check_new;
use super::vectors;
use crate::evaluation::column;
use crate::ml_attr::AttributeGroup;
use crate::{Check, Error, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer, Value};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.VectorSlicer",
    model_class: None,
    params,
    kind: Kind::Transformer(&VectorSlicer),
};

fn params() -> Vec<Param> {
    let none = |element| Some(Value::Array { element, values: Vec::new() });
    let indices = Check::Holds(are_indices, "distinct numbers from 0");
    vec![
        Param::new("indices", ParamType::IntArray, none(ParamType::Int), indices),
        Param::unset("inputCol", ParamType::String),
        Param::new("names", ParamType::StringArray, none(ParamType::String), Check::Holds(are_distinct, "distinct names")),
        Param::output_col(),
    ]
}

fn are_distinct(value: &Value) -> bool {
    let Value::Array { values, .. } = value else { return false };
    values.iter().enumerate().all(|(i, value)| !values[..i].contains(value))
}

fn are_indices(value: &Value) -> bool {
    let Value::Array { values, .. } = value else { return false };
    are_distinct(value) && values.iter().all(|value| matches!(value, Value::Int(index) if *index >= 0))
}

struct VectorSlicer;

fn invalid(message: String) -> Error {
    Error::InvalidData { class: String::new(), message: format!("requirement failed: {message}") }
}

impl Transformer for VectorSlicer {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        let group = AttributeGroup::of_column(column::vector(schema, input)?);
        check_new(schema, output)?;
        let indices = selected(params, &group)?;
        if let Some((size, index)) = group.size().zip(indices.iter().max()).filter(|(size, index)| *index >= size) {
            return Err(invalid(format!("Selected feature index {index} invalid for only {size} input features.")));
        }
        let sliced = match group {
            AttributeGroup::Attributes(attributes) => {
                AttributeGroup::Attributes(indices.iter().map(|index| attributes[*index].clone()).collect())
            }
            _ => AttributeGroup::Size(indices.len()),
        };
        Ok(vec![TransformStep::Append {
            output: Arc::new(sliced.mark(udt::field::vector_field(output))),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| slice(&columns[0], &indices)),
        }])
    }
}

/// The indices, then those of the names.
fn selected(params: &Params, group: &AttributeGroup) -> Result<Vec<usize>> {
    let mut indices = Vec::new();
    if let Some(Value::Array { values, .. }) = params.get("indices") {
        indices.extend(values.iter().filter_map(|v| if let Value::Int(v) = v { Some(*v as usize) } else { None }));
    }
    for name in params.strings("names")? {
        let AttributeGroup::Attributes(attributes) = group else {
            return Err(invalid(format!("the elements of column {} have no names", params.string("inputCol")?)));
        };
        let found = attributes.iter().position(|attribute| attribute.name() == Some(&name));
        let index = found.ok_or_else(|| invalid(format!("no element of the vector is named {name}")))?;
        if indices.contains(&index) {
            return Err(invalid(format!("element {name} is selected by index and by name")));
        }
        indices.push(index);
    }
    if indices.is_empty() {
        return Err(invalid("VectorSlicer requires that at least one feature be selected.".into()));
    }
    Ok(indices)
}

/// The elements at `indices` of each vector, in that order and in the vector's storage. Stored zeros are left out.
fn slice(column: &ArrayRef, indices: &[usize]) -> Result<ArrayRef> {
    let greatest = indices.iter().max().copied().unwrap_or_default();
    vectors::map(column, |row, builder| {
        if greatest >= row.size() {
            let size = row.size();
            let message = format!("requirement failed: Selected feature index {greatest} invalid for only {size} input features.");
            return Err(Error::InvalidRow { message });
        }
        match row {
            VectorRow::Dense(values) => {
                builder.append_dense(&indices.iter().map(|index| values[*index]).collect::<Vec<f64>>());
            }
            VectorRow::Sparse { indices: stored, values, .. } => {
                let value = |index: &usize| stored.binary_search(&(*index as i32)).map_or(0.0, |place| values[place]);
                let sliced = indices.iter().map(value).enumerate().filter(|(_, value)| *value != 0.0);
                let (places, values): (Vec<i32>, Vec<f64>) = sliced.map(|(i, value)| (i as i32, value)).unzip();
                builder.append_sparse(indices.len(), &places, &values);
            }
        }
        Ok(())
    })
}
