//! `FeatureHasher`: columns of numbers and categories in one sparse vector, at places that hashes give.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Schema};
use udt::VectorBuilder;

use super::columns::check_new;
use super::{murmur3, string_indexer};
use crate::evaluation::column;
use crate::ml_attr::AttributeGroup;
use crate::{Check, Error, Kind, Operator, Param, ParamType, Params, Result, TransformStep, Transformer};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.FeatureHasher",
    model_class: None,
    params,
    kind: Kind::Transformer(&FeatureHasher),
};

fn params() -> Vec<Param> {
    vec![
        Param::unset("categoricalCols", ParamType::StringArray),
        Param::unset("inputCols", ParamType::StringArray),
        Param::int("numFeatures", 1 << 18, Check::Above(0.0)),
        Param::output_col(),
    ]
}

struct FeatureHasher;

/// How a column is read.
struct Input {
    name: String,
    is_category: bool,
}

impl Transformer for FeatureHasher {
    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (names, output) = (params.strings("inputCols")?, params.string("outputCol")?);
        let categories = params.strings("categoricalCols").unwrap_or_default();
        check_new(schema, output)?;
        let mut inputs = Vec::new();
        for name in &names {
            let field = column::field(schema, name)?;
            let is_number = field.data_type().is_numeric();
            let is_text = matches!(
                field.data_type(),
                DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
            );
            if !(is_number || is_text) {
                let found = column::spark_class(field);
                let message = format!(
                    "requirement failed: FeatureHasher requires columns to be of NumericType, BooleanType or StringType. \
                     Column {name} was {found}"
                );
                return Err(Error::InvalidData { class: String::new(), message });
            }
            inputs.push(Input { name: name.clone(), is_category: is_text || categories.contains(name) });
        }
        let size = params.int("numFeatures")? as usize;
        Ok(vec![TransformStep::Append {
            output: Arc::new(AttributeGroup::Size(size).mark(udt::field::vector_field(output))),
            inputs: names,
            function: Arc::new(move |columns, num_rows| hashed(columns, num_rows, &inputs, size)),
        }])
    }
}

/// A column's values: numbers at the place of the column's name, categories each at its own.
enum Column {
    Numbers { place: usize, values: Float64Array },
    Categories { prefix: String, values: StringArray },
}

fn hashed(columns: &[ArrayRef], num_rows: usize, inputs: &[Input], size: usize) -> Result<ArrayRef> {
    let read = |(column, input): (&ArrayRef, &Input)| -> Result<Column> {
        if input.is_category {
            let prefix = format!("{}=", input.name);
            return Ok(Column::Categories { prefix, values: string_indexer::texts(column)? });
        }
        let values = cast(column, &DataType::Float64)?.as_primitive::<Float64Type>().clone();
        Ok(Column::Numbers { place: murmur3::index(&input.name, size), values })
    };
    let columns = columns.iter().zip(inputs).map(read).collect::<Result<Vec<Column>>>()?;
    let mut builder = VectorBuilder::default();
    for row in 0..num_rows {
        let mut sums: BTreeMap<i32, f64> = BTreeMap::new();
        for column in &columns {
            let (place, value) = match column {
                Column::Numbers { place, values } if values.is_valid(row) => (*place, values.value(row)),
                Column::Categories { prefix, values } if values.is_valid(row) => {
                    (murmur3::index(&format!("{prefix}{}", values.value(row)), size), 1.0)
                }
                _ => continue,
            };
            *sums.entry(place as i32).or_insert(0.0) += value;
        }
        let (indices, sums): (Vec<i32>, Vec<f64>) = sums.into_iter().unzip();
        builder.append_sparse(size, &indices, &sums);
    }
    Ok(builder.finish())
}
