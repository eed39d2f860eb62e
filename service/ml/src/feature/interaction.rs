//! `Interaction`: the products of the elements of several columns, categories as vectors with a one in their place.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use udt::vector::is_smaller_sparse;
use udt::{VectorArray, VectorBuilder};

use super::columns::check_new;
use crate::evaluation::column;
use crate::ml_attr::{Attribute, AttributeGroup, AttributeKind};
use crate::{Error, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.Interaction",
    model_class: None,
    params,
    kind: Kind::Transformer(&Interaction),
};

fn params() -> Vec<Param> {
    vec![Param::unset("inputCols", ParamType::StringArray), Param::output_col()]
}

struct Interaction;

/// One element of an input column.
struct Element {
    /// For a category, how many there are; `None` for a number.
    num_values: Option<usize>,
    /// What its outputs are called: one a category, one for a number.
    names: Vec<String>,
}

impl Transformer for Interaction {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (inputs, output) = (params.strings("inputCols")?, params.string("outputCol")?);
        check_new(schema, output)?;
        let read = |name: &String| elements(column::field(schema, name)?);
        let elements = inputs.iter().map(read).collect::<Result<Vec<Vec<Element>>>>()?;
        let mut names = vec![String::new()];
        for (i, column) in elements.iter().enumerate() {
            let separator = if i == 0 { "" } else { ":" };
            let own: Vec<&String> = column.iter().flat_map(|element| &element.names).collect();
            names = names.iter().flat_map(|left| own.iter().map(move |own| format!("{left}{separator}{own}"))).collect();
        }
        let group = AttributeGroup::Attributes(names.iter().map(|name| Attribute::numeric().with_name(name)).collect());
        Ok(vec![TransformStep::Append {
            output: Arc::new(group.mark(udt::field::vector_field(output))),
            inputs,
            function: Arc::new(move |columns, num_rows| interact(columns, num_rows, &elements)),
        }])
    }
}

fn refused(message: &str) -> Error {
    Error::InvalidData { class: String::new(), message: message.into() }
}

fn elements(field: &Field) -> Result<Vec<Element>> {
    let element = |attribute: &Attribute, name: String| {
        if attribute.kind != AttributeKind::Nominal {
            return Ok(Element { num_values: None, names: vec![name] });
        }
        let num_values = attribute.num_values().map(|count| count.max(1));
        let num_values = num_values.ok_or_else(|| refused("Nominal features must have attr numValues defined."))?;
        let levels = attribute.values().filter(|levels| levels.len() == num_values);
        let levels = levels.unwrap_or_else(|| (0..num_values).map(|i| i.to_string()).collect());
        let names = levels.into_iter().map(|level| format!("{name}_{level}")).collect();
        Ok(Element { num_values: Some(num_values), names })
    };
    if udt::field::is_vector(field) {
        let AttributeGroup::Attributes(attributes) = AttributeGroup::of_column(field) else {
            return Err(refused("Vector attributes must be defined for interaction."));
        };
        let name = |(i, attribute): (usize, &Attribute)| {
            let own = attribute.name().map_or_else(|| i.to_string(), String::from);
            element(attribute, format!("{}_{own}", field.name()))
        };
        return attributes.iter().enumerate().map(name).collect();
    }
    if !(field.data_type().is_numeric() || field.data_type() == &DataType::Boolean) {
        return Err(column::wrong_type(field.name(), "numeric", field));
    }
    let attribute = Attribute::of_column(field).unwrap_or_else(Attribute::numeric);
    Ok(vec![element(&attribute, field.name().clone())?])
}

/// One input column of a batch.
enum Input {
    Numbers(Float64Array),
    Vectors(VectorArray),
}

impl Input {
    fn read(column: &ArrayRef) -> Result<Input> {
        if matches!(column.data_type(), DataType::Struct(_)) {
            return Ok(Input::Vectors(VectorArray::try_new(column.as_ref())?));
        }
        Ok(Input::Numbers(cast(column, &DataType::Float64)?.as_primitive::<Float64Type>().clone()))
    }

    /// A row's values that are not zero, and their places among the column's outputs.
    fn terms(&self, row: usize, elements: &[Element]) -> Result<Vec<(usize, f64)>> {
        let null = || Error::InvalidRow { message: "Values to interact cannot be null.".into() };
        let values = match self {
            Input::Numbers(numbers) if numbers.is_valid(row) => vec![numbers.value(row)],
            Input::Vectors(vectors) if !vectors.is_null(row) => vectors.row(row)?.to_vector().to_dense(),
            _ => return Err(null()),
        };
        super::vectors::check_size(values.len(), elements.len())?;
        let (mut terms, mut first) = (Vec::new(), 0);
        for (value, element) in values.into_iter().zip(elements) {
            match element.num_values {
                None if value != 0.0 => terms.push((first, value)),
                None => {}
                Some(count) if value >= 0.0 && value.fract() == 0.0 && value < count as f64 => {
                    terms.push((first + value as usize, 1.0));
                }
                Some(count) => {
                    let value = udt::vector::java_double(value);
                    let message = format!("requirement failed: expected one of {count} categories, but got {value}");
                    return Err(Error::InvalidRow { message });
                }
            }
            first += element.names.len();
        }
        Ok(terms)
    }
}

fn interact(columns: &[ArrayRef], num_rows: usize, elements: &[Vec<Element>]) -> Result<ArrayRef> {
    let inputs = columns.iter().map(Input::read).collect::<Result<Vec<Input>>>()?;
    let widths: Vec<usize> =
        elements.iter().map(|column| column.iter().map(|element| element.names.len()).sum()).collect();
    let size: usize = widths.iter().product();
    let mut builder = VectorBuilder::default();
    for row in 0..num_rows {
        let mut terms = vec![(0, 1.0)];
        for ((input, elements), width) in inputs.iter().zip(elements).zip(&widths) {
            let own = input.terms(row, elements)?;
            let times = |(place, value): &(usize, f64)| -> Vec<(usize, f64)> {
                own.iter().map(|(own_place, own)| (place * width + own_place, value * own)).collect()
            };
            terms = terms.iter().flat_map(times).collect();
        }
        let (places, values): (Vec<i32>, Vec<f64>) =
            terms.into_iter().filter(|(_, value)| *value != 0.0).map(|(place, value)| (place as i32, value)).unzip();
        if is_smaller_sparse(values.len(), size) {
            builder.append_sparse(size, &places, &values);
        } else {
            let mut dense = vec![0.0; size];
            places.iter().zip(&values).for_each(|(place, value)| dense[*place as usize] = *value);
            builder.append_dense(&dense);
        }
    }
    Ok(builder.finish())
}
