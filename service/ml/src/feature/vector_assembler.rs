//! `VectorAssembler`: columns of numbers and vectors side by side in one vector.
//!
//! As Spark's, but that the metadata of the output has no attributes when an input vector's size is not in its metadata:
//! Spark reads the first row for it, and a transform here reads nothing.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use udt::vector::is_smaller_sparse;
use udt::{VectorArray, VectorBuilder};

use crate::evaluation::column;
use crate::ml_attr::{Attribute, AttributeGroup};
use crate::{Error, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.VectorAssembler",
    model_class: None,
    params,
    kind: Kind::Transformer(&VectorAssembler),
};

fn params() -> Vec<Param> {
    vec![
        Param::one_of("handleInvalid", "error", &["skip", "error", "keep"]),
        Param::unset("inputCols", ParamType::StringArray),
        Param::output_col(),
    ]
}

struct VectorAssembler;

/// What becomes of a null or a NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Invalid {
    Error,
    /// The row was filtered out before.
    Skip,
    Keep,
}

impl Transformer for VectorAssembler {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let inputs = params.strings("inputCols")?;
        let output = params.string("outputCol")?;
        if schema.fields().iter().any(|field| field.name() == output) {
            return Err(Error::OutputColumnExists { name: output.into() });
        }
        let fields = inputs.iter().map(|name| input_field(schema, name)).collect::<Result<Vec<&Field>>>()?;
        let invalid = match params.string("handleInvalid")? {
            "skip" => Invalid::Skip,
            "keep" => Invalid::Keep,
            _ => Invalid::Error,
        };
        let widths: Vec<Option<usize>> = fields.iter().map(|field| width(field)).collect();
        if let (Invalid::Keep, Some(unknown)) = (invalid, widths.iter().position(Option::is_none)) {
            let message = format!(
                "Can not infer column lengths with handleInvalid = \"keep\". Consider using VectorSizeHint to add \
                 metadata for columns: [{}].",
                inputs[unknown]
            );
            return Err(Error::InvalidData { class: String::new(), message });
        }
        let mut steps = Vec::new();
        if invalid == Invalid::Skip {
            let function = Arc::new(|columns: &[ArrayRef], num_rows: usize| complete_rows(columns, num_rows));
            steps.push(TransformStep::Filter { inputs: inputs.clone(), function });
        }
        let field = group(&inputs, &fields).mark(udt::field::vector_field(output));
        steps.push(TransformStep::Append {
            output: Arc::new(field),
            inputs,
            function: Arc::new(move |columns, num_rows| assemble(columns, num_rows, &widths, invalid)),
        });
        Ok(steps)
    }
}

fn input_field<'a>(schema: &'a Schema, name: &str) -> Result<&'a Field> {
    let field = column::field(schema, name)?;
    let is_number = field.data_type().is_numeric() || field.data_type() == &DataType::Boolean;
    if is_number || udt::field::is_vector(field) {
        return Ok(field);
    }
    let message = format!("Data type {} of column {name} is not supported.", column::simple_type(field));
    Err(Error::InvalidData { class: String::new(), message })
}

/// How many elements a column gives, if its schema tells.
fn width(field: &Field) -> Option<usize> {
    if udt::field::is_vector(field) { AttributeGroup::of_column(field).size() } else { Some(1) }
}

fn group(inputs: &[String], fields: &[&Field]) -> AttributeGroup {
    let mut attributes = Vec::new();
    for (name, field) in inputs.iter().zip(fields) {
        if !udt::field::is_vector(field) {
            attributes.push(Attribute::of_column(field).unwrap_or_else(Attribute::numeric).with_name(name));
            continue;
        }
        match AttributeGroup::of_column(field) {
            AttributeGroup::Unknown => return AttributeGroup::Unknown,
            AttributeGroup::Size(size) => {
                attributes.extend((0..size).map(|i| Attribute::numeric().with_name(&format!("{name}_{i}"))));
            }
            AttributeGroup::Attributes(elements) => {
                attributes.extend(elements.into_iter().enumerate().map(|(i, element)| {
                    let element_name = element.name().map_or_else(|| i.to_string(), String::from);
                    element.with_name(&format!("{name}_{element_name}"))
                }));
            }
        }
    }
    AttributeGroup::Attributes(attributes)
}

/// True for rows without a null, and without a NaN in a number column.
fn complete_rows(columns: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
    let mut keep = vec![true; num_rows];
    for column in columns {
        let doubles = column.as_primitive_opt::<Float64Type>();
        let floats = column.as_primitive_opt::<arrow::datatypes::Float32Type>();
        for (row, keep) in keep.iter_mut().enumerate() {
            let is_nan = doubles.is_some_and(|c| c.value(row).is_nan()) || floats.is_some_and(|c| c.value(row).is_nan());
            *keep &= column.is_valid(row) && !is_nan;
        }
    }
    Ok(Arc::new(BooleanArray::from(keep)))
}

/// One input column of a batch.
enum Input {
    Numbers(Float64Array),
    Vectors(VectorArray),
}

impl Input {
    /// Whether a number is NaN. Spark lets NaN inside vectors pass.
    fn has_nan(&self) -> bool {
        matches!(self, Input::Numbers(numbers) if numbers.values().iter().any(|value| value.is_nan()))
    }
}

fn assemble(columns: &[ArrayRef], num_rows: usize, widths: &[Option<usize>], invalid: Invalid) -> Result<ArrayRef> {
    let inputs = columns.iter().map(input).collect::<Result<Vec<Input>>>()?;
    match dense_rows(&inputs, num_rows, invalid)? {
        Some(column) => Ok(column),
        None => rows(&inputs, num_rows, widths, invalid),
    }
}

fn input(column: &ArrayRef) -> Result<Input> {
    if matches!(column.data_type(), DataType::Struct(_)) {
        return Ok(Input::Vectors(VectorArray::try_new(column.as_ref())?));
    }
    let doubles = cast(column, &DataType::Float64)?;
    Ok(Input::Numbers(doubles.as_primitive::<Float64Type>().clone()))
}

/// The columns in one pass, when each is complete and dense and no row is worth sparse storage.
fn dense_rows(inputs: &[Input], num_rows: usize, invalid: Invalid) -> Result<Option<ArrayRef>> {
    let mut parts: Vec<(usize, &[f64])> = Vec::with_capacity(inputs.len());
    for input in inputs {
        match input {
            Input::Numbers(numbers) if numbers.null_count() == 0 => parts.push((1, numbers.values())),
            Input::Vectors(vectors) => match vectors.as_dense_rows() {
                Some(part) => parts.push(part),
                None => return Ok(None),
            },
            Input::Numbers(_) => return Ok(None),
        }
    }
    let width: usize = parts.iter().map(|(width, _)| width).sum();
    if width == 0 || num_rows == 0 {
        return Ok(None);
    }
    if invalid != Invalid::Keep && inputs.iter().any(Input::has_nan) {
        return Err(invalid_value("NaN"));
    }
    let mut values = vec![0.0; num_rows * width];
    // a block of rows is written while it is in the cache, whatever the number of columns
    const ROWS: usize = 256;
    let mut is_dense = true;
    for first in (0..num_rows).step_by(ROWS) {
        let last = num_rows.min(first + ROWS);
        let mut offset = 0;
        for (part_width, part) in &parts {
            let rows = part[first * part_width..last * part_width].chunks_exact(*part_width);
            for (row, part_row) in rows.enumerate() {
                let start = (first + row) * width + offset;
                values[start..start + part_width].copy_from_slice(part_row);
            }
            offset += part_width;
        }
        is_dense &= values[first * width..last * width].chunks_exact(width).all(|row| {
            let num_nonzeros = row.iter().filter(|value| **value != 0.0).count();
            !is_smaller_sparse(num_nonzeros, width)
        });
        if !is_dense {
            return Ok(None);
        }
    }
    Ok(Some(VectorBuilder::from_dense_rows(width, values)))
}

/// Row by row, each in the storage that takes less.
fn rows(inputs: &[Input], num_rows: usize, widths: &[Option<usize>], invalid: Invalid) -> Result<ArrayRef> {
    let mut builder = VectorBuilder::default();
    let (mut indices, mut values): (Vec<i32>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut dense = Vec::new();
    for row in 0..num_rows {
        indices.clear();
        values.clear();
        let mut size = 0;
        for (input, width) in inputs.iter().zip(widths) {
            let mut push = |index: usize, value: f64| {
                if value != 0.0 {
                    indices.push((size + index) as i32);
                    values.push(value);
                }
            };
            size += match input {
                Input::Numbers(numbers) if numbers.is_valid(row) => {
                    if invalid != Invalid::Keep && numbers.value(row).is_nan() {
                        return Err(invalid_value("NaN"));
                    }
                    push(0, numbers.value(row));
                    1
                }
                Input::Vectors(vectors) if !vectors.is_null(row) => {
                    let vector = vectors.row(row)?;
                    vector.for_each(&mut push);
                    vector.size()
                }
                _ if invalid == Invalid::Keep => {
                    let missing = width.unwrap_or(1);
                    (0..missing).for_each(|index| push(index, f64::NAN));
                    missing
                }
                _ => return Err(invalid_value("null")),
            };
        }
        if is_smaller_sparse(values.len(), size) {
            builder.append_sparse(size, &indices, &values);
        } else {
            dense.clear();
            dense.resize(size, 0.0);
            indices.iter().zip(&values).for_each(|(index, value)| dense[*index as usize] = *value);
            builder.append_dense(&dense);
        }
    }
    Ok(builder.finish())
}

fn invalid_value(what: &str) -> Error {
    let plural = if what == "null" { "nulls" } else { "NaNs" };
    Error::InvalidRow {
        message: format!(
            "Encountered {what} while assembling a row with handleInvalid = \"error\". Consider\nremoving {plural} from \
             dataset or using handleInvalid = \"keep\" or \"skip\"."
        ),
    }
}
