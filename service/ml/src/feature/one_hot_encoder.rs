//! `OneHotEncoder`: a category's number as a vector with a one in its place.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int32Type, Schema};
use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use train::batch::{Problem, agree};
use train::{RankContext, RankProgram};
use udt::VectorBuilder;

use super::columns;
use crate::evaluation::column;
use crate::ml_attr::{self, AttributeGroup};
use crate::persist::Saved;
use crate::{
    Argument, Attribute, Error, Estimator, FitPlan, Kind, Model, Operator, Param, Params, Result, TransformStep, Value,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.OneHotEncoder",
    model_class: Some("org.apache.spark.ml.feature.OneHotEncoderModel"),
    params,
    kind: Kind::Estimator(&OneHotEncoder),
};

pub static PROGRAM: RankProgram = RankProgram { name: "one_hot_encoder", run };

fn params() -> Vec<Param> {
    let mut params = columns::params();
    params.push(Param::boolean("dropLast", true));
    params.push(Param::one_of("handleInvalid", "error", &["keep", "error"]));
    params
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fitted {
    /// How many categories each column has.
    category_sizes: Vec<i32>,
}

/// `spec` is the sizes that the columns' metadata tells; the data tell the others: the greatest value and one.
fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let known: Vec<Option<i32>> =
        serde_json::from_slice(spec).map_err(|source| train::Error::Spec { program: PROGRAM.name, source })?;
    let mut greatest = vec![-1.0_f64; known.len()];
    let mut local = Ok(());
    'partition: for record_batch in &mut *ctx.partition.record_batches {
        let record_batch = record_batch?;
        for (i, column) in record_batch.columns().iter().enumerate().filter(|(i, _)| known[*i].is_none()) {
            let values = cast(column, &DataType::Float64)?;
            for value in values.as_primitive::<Float64Type>() {
                if let Some(text) = refusal(value, ctx.partition.schema.field(i).name(), i) {
                    local = Err(Problem::data(text));
                    break 'partition;
                }
                greatest[i] = greatest[i].max(value.unwrap_or(-1.0));
            }
        }
    }
    agree(ctx.group, local)?;
    ctx.group.all_reduce(&mut greatest, collective::ReduceOp::Max)?;
    let sizes = known.iter().zip(&greatest).map(|(known, greatest)| known.unwrap_or(*greatest as i32 + 1)).collect();
    super::on_rank_0(PROGRAM.name, ctx, &Fitted { category_sizes: sizes })
}

/// Why a value is no category.
fn refusal(value: Option<f64>, column: &str, index: usize) -> Option<String> {
    match value {
        None => Some(format!(
            "[ROW_VALUE_IS_NULL] Found NULL in a row at the index {index}, expected a non-NULL value. SQLSTATE: 22023"
        )),
        Some(value) if value >= 0.0 && value.fract() == 0.0 && value < f64::from(i32::MAX) => None,
        Some(value) => {
            let value = udt::vector::java_double(value);
            Some(format!("assertion failed: Values from column {column} must be indices, but got {value}."))
        }
    }
}

struct OneHotEncoder;

impl Estimator for OneHotEncoder {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let pairs = columns::pairs(params)?;
        let mut sizes: Vec<Option<i32>> = Vec::new();
        for (input, output) in &pairs {
            let field = column::numeric(schema, input)?;
            columns::check_new(schema, output)?;
            sizes.push(ml_attr::Attribute::of_column(field).and_then(|a| a.num_values()).map(|size| size as i32));
        }
        let spec = serde_json::to_vec(&sizes)
            .map_err(|source| train::Error::Spec { program: PROGRAM.name, source })?;
        Ok(FitPlan { columns: pairs.into_iter().map(|(input, _)| input).collect(), program: PROGRAM.name, spec })
    }

    fn model(&self, operator: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let Fitted { category_sizes } = super::from_rank_0(PROGRAM.name, fitted)?;
        Ok(Arc::new(OneHotEncoderModel { operator, params: params.clone(), category_sizes }))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let corrupted = || Error::Corrupted { path: "data".into(), detail: "categorySizes is no list of integers".into() };
        let column = saved.table("data")?.column_by_name("categorySizes").ok_or_else(corrupted)?;
        let list = column.as_list_opt::<i32>().filter(|rows| rows.len() == 1).map(|rows| rows.value(0));
        let sizes = list.as_ref().and_then(|list| list.as_primitive_opt::<Int32Type>()).ok_or_else(corrupted)?;
        let category_sizes = sizes.values().to_vec();
        Ok(Arc::new(OneHotEncoderModel { operator, params: params.clone(), category_sizes }))
    }
}

struct OneHotEncoderModel {
    operator: &'static Operator,
    params: Params,
    category_sizes: Vec<i32>,
}

/// How one column is encoded.
#[derive(Debug, Clone, Copy)]
struct Encoding {
    num_categories: i32,
    drop_last: bool,
    keep_invalid: bool,
}

impl Encoding {
    /// Elements of the output: invalid values take the place of a last category of their own.
    fn size(&self) -> usize {
        let size = self.num_categories + i32::from(self.keep_invalid) - i32::from(self.drop_last);
        size.max(0) as usize
    }

    fn group(&self, input: &Field) -> Result<AttributeGroup> {
        let levels = ml_attr::Attribute::of_column(input).and_then(|attribute| attribute.values());
        let mut names = match levels {
            Some(levels) if levels.len() == self.num_categories as usize => levels,
            _ => (0..self.num_categories).map(|i| i.to_string()).collect(),
        };
        if self.keep_invalid {
            names.push("invalidValues".into());
        }
        names.truncate(self.size());
        if names.iter().any(String::is_empty) {
            let message = "requirement failed: Cannot have an empty string for name.".into();
            return Err(Error::InvalidData { class: String::new(), message });
        }
        let attributes = names.iter().map(|name| ml_attr::Attribute::binary().with_name(name)).collect();
        Ok(AttributeGroup::Attributes(attributes))
    }

    fn encode(&self, column: &ArrayRef, name: &str) -> Result<ArrayRef> {
        let values = cast(column, &DataType::Float64)?;
        let (size, mut builder) = (self.size(), VectorBuilder::with_capacity(column.len(), 1));
        for value in values.as_primitive::<Float64Type>() {
            let Some(value) = value else {
                builder.append_null();
                continue;
            };
            let index = self.index(value, name)?;
            if index < size {
                builder.append_sparse(size, &[index as i32], &[1.0]);
            } else {
                builder.append_sparse(size, &[], &[]);
            }
        }
        Ok(builder.finish())
    }

    fn index(&self, value: f64, name: &str) -> Result<usize> {
        let shown = udt::vector::java_double(value);
        match value {
            value if value >= 0.0 && value < f64::from(self.num_categories) => {
                if value.fract() == 0.0 {
                    return Ok(value as usize);
                }
                let message = format!("column {name} has {shown}, OneHotEncoder needs integer values");
                Err(Error::InvalidRow { message })
            }
            _ if self.keep_invalid => Ok(self.num_categories as usize),
            value if value < 0.0 => Err(Error::InvalidRow {
                message: format!(
                    "Negative value: {shown}. Input can't be negative. To handle invalid values, set Param handleInvalid \
                     to keep."
                ),
            }),
            _ => Err(Error::InvalidRow {
                message: format!("Unseen value: {shown}. To handle unseen values, set Param handleInvalid to keep."),
            }),
        }
    }
}

impl Model for OneHotEncoderModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (drop_last, keep_invalid) = (params.boolean("dropLast")?, params.string("handleInvalid")? == "keep");
        let pairs = columns::pairs(params)?;
        let mut steps = Vec::new();
        for ((input, output), size) in pairs.into_iter().zip(&self.category_sizes) {
            let field = column::numeric(schema, &input)?;
            columns::check_new(schema, &output)?;
            let encoding = Encoding { num_categories: *size, drop_last, keep_invalid };
            let stated = ml_attr::Attribute::of_column(field).and_then(|attribute| attribute.num_values());
            if let Some(stated) = stated.filter(|stated| *stated > *size as usize) {
                let message = format!(
                    "OneHotEncoderModel expected {size} categorical values for input column {input}, but the input column \
                     had metadata specifying {stated} values."
                );
                return Err(Error::InvalidData { class: String::new(), message });
            }
            let output = encoding.group(field)?.mark(udt::field::vector_field(&output));
            let name = input.clone();
            steps.push(TransformStep::Append {
                output: Arc::new(output),
                inputs: vec![input],
                function: Arc::new(move |columns, _| encoding.encode(&columns[0], &name)),
            });
        }
        Ok(steps)
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        match name {
            "categorySizes" => Ok(Attribute::Value(Value::ints(&self.category_sizes))),
            _ => Err(Error::AttributeNotAllowed { class: self.class().into(), method: name.into() }),
        }
    }

    fn describe(&self) -> String {
        format!(
            "OneHotEncoderModel: uid={}, dropLast={}, handleInvalid={}{}",
            self.params.uid,
            self.params.boolean("dropLast").unwrap_or(true),
            self.params.string("handleInvalid").unwrap_or_default(),
            columns::describe(&self.params)
        )
    }

    fn size_bytes(&self) -> usize {
        256 + 4 * self.category_sizes.len()
    }

    fn save(&self) -> Result<Saved> {
        let element = Arc::new(Field::new("element", DataType::Int32, false));
        let offsets = arrow::buffer::OffsetBuffer::from_lengths([self.category_sizes.len()]);
        let values = Arc::new(Int32Array::from(self.category_sizes.clone()));
        let list = arrow::array::ListArray::new(Arc::clone(&element), offsets, values, None);
        let schema = Schema::new(vec![Field::new("categorySizes", DataType::List(element), true)]);
        let rows = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(list)])?;
        Ok(Saved { metadata: Map::new(), tables: vec![("data".into(), rows)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_follows_from_what_is_dropped_and_kept() {
        let size = |drop_last, keep_invalid| Encoding { num_categories: 3, drop_last, keep_invalid }.size();
        assert_eq!([size(true, false), size(false, false), size(true, true), size(false, true)], [2, 3, 3, 4]);
    }

    #[test]
    fn a_value_that_is_no_category_is_named() {
        let encoding = Encoding { num_categories: 3, drop_last: true, keep_invalid: false };
        let message = encoding.index(7.0, "c").unwrap_err().to_string();
        assert!(message.contains("Unseen value: 7.0"), "{message}");
        assert_eq!(Encoding { keep_invalid: true, ..encoding }.index(9.0, "c").unwrap(), 3);
    }
}
