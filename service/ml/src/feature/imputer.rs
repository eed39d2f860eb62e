//! `Imputer`: fills missing numbers with the column's mean, median or mode.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use train::{RankContext, RankProgram};

use super::columns;
use super::quantiles::Sketch;
use crate::evaluation::column;
use crate::persist::Saved;
use crate::{
    Argument, Attribute, Check, Error, Estimator, FitPlan, Kind, Model, Operator, Param, Params, Result, TransformStep,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.Imputer",
    model_class: Some("org.apache.spark.ml.feature.ImputerModel"),
    params,
    kind: Kind::Estimator(&Imputer),
};

pub static PROGRAM: RankProgram = RankProgram { name: "imputer", run };

fn params() -> Vec<Param> {
    let mut params = columns::params();
    params.push(Param::double("missingValue", f64::NAN, Check::Any));
    params.push(Param::double("relativeError", 0.001, Check::Within(0.0, 1.0)));
    params.push(Param::one_of("strategy", "mean", &["mean", "median", "mode"]));
    params
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Spec {
    columns: Vec<String>,
    strategy: String,
    /// `None` stands for NaN, which JSON has not.
    missing_value: Option<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fitted {
    #[serde(with = "crate::linear::bits::many")]
    surrogates: Vec<f64>,
}

/// What one rank knows of a column.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Part {
    count: u64,
    #[serde(with = "crate::linear::bits")]
    mean: f64,
    /// For the median.
    sketch: Sketch,
    /// For the mode: distinct values by their bits, ascending, with how often each occurs.
    points: Vec<(u64, u64)>,
}

fn is_missing(value: f64, missing_value: f64) -> bool {
    value == missing_value || (value.is_nan() && missing_value.is_nan())
}

fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let program = PROGRAM.name;
    let spec: Spec = serde_json::from_slice(spec).map_err(|source| train::Error::Spec { program, source })?;
    let missing_value = spec.missing_value.unwrap_or(f64::NAN);
    let mut parts = vec![Part::default(); spec.columns.len()];
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); spec.columns.len()];
    for record_batch in &mut *ctx.partition.record_batches {
        for (i, column) in record_batch?.columns().iter().enumerate() {
            let column = cast(column, &DataType::Float64)?;
            let present = column.as_primitive::<Float64Type>().iter().flatten();
            for value in present.filter(|v| !v.is_nan() && !is_missing(*v, missing_value)) {
                parts[i].count += 1;
                parts[i].mean += (value - parts[i].mean) / parts[i].count as f64;
                if spec.strategy != "mean" {
                    values[i].push(value);
                }
            }
        }
    }
    for (part, values) in parts.iter_mut().zip(values) {
        match spec.strategy.as_str() {
            "mode" => part.points = distinct(values),
            _ => part.sketch = Sketch::of(values),
        }
    }
    let gathered = super::gather(program, ctx, &parts)?;
    let surrogate = |i: usize| surrogate(&spec, i, gathered.iter().map(|parts| &parts[i]));
    let surrogates = (0..spec.columns.len()).map(surrogate).collect::<train::Result<Vec<f64>>>()?;
    super::on_rank_0(program, ctx, &Fitted { surrogates })
}

fn distinct(mut values: Vec<f64>) -> Vec<(u64, u64)> {
    let mut points: Vec<(u64, u64)> = Vec::new();
    values.sort_unstable_by(f64::total_cmp);
    for value in values {
        match points.last_mut() {
            Some((bits, count)) if f64::from_bits(*bits) == value => *count += 1,
            _ => points.push((value.to_bits(), 1)),
        }
    }
    points
}

fn surrogate<'a>(spec: &Spec, index: usize, parts: impl Iterator<Item = &'a Part> + Clone) -> train::Result<f64> {
    let count: u64 = parts.clone().map(|part| part.count).sum();
    if count == 0 {
        let missing = spec.missing_value.map_or("NaN".into(), udt::vector::java_double);
        let message = format!(
            "surrogate cannot be computed. All the values in {} are Null, Nan or missingValue({missing})",
            spec.columns[index]
        );
        return Err(train::Error::InvalidData { class: "INVALID_TRAINING_DATA.ALL_MISSING", message });
    }
    Ok(match spec.strategy.as_str() {
        "median" => Sketch::merged(parts.map(|part| &part.sketch)).quantile(0.5).unwrap_or(f64::NAN),
        "mode" => {
            let mut totals: BTreeMap<u64, u64> = BTreeMap::new();
            for (value, count) in parts.flat_map(|part| &part.points) {
                *totals.entry(*value).or_insert(0) += count;
            }
            // the smallest of the most frequent values
            let most = totals.values().max().copied().unwrap_or(0);
            let modes = totals.iter().filter(|(_, count)| **count == most).map(|(bits, _)| f64::from_bits(*bits));
            modes.min_by(f64::total_cmp).unwrap_or(f64::NAN)
        }
        _ => parts.map(|part| part.mean * (part.count as f64 / count as f64)).sum(),
    })
}

struct Imputer;

impl Estimator for Imputer {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let mut columns = Vec::new();
        for (input, output) in columns::pairs(params)? {
            column::numeric(schema, &input)?;
            columns::check_new(schema, &output)?;
            columns.push(input);
        }
        let missing_value = Some(params.double("missingValue")?).filter(|value| !value.is_nan());
        let spec = Spec { columns: columns.clone(), strategy: params.string("strategy")?.into(), missing_value };
        let spec = serde_json::to_vec(&spec).map_err(|source| train::Error::Spec { program: PROGRAM.name, source })?;
        Ok(FitPlan { columns, program: PROGRAM.name, spec })
    }

    fn model(&self, operator: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let Fitted { surrogates: values } = super::from_rank_0(PROGRAM.name, fitted)?;
        let inputs = columns::pairs(params)?.into_iter().map(|(input, _)| input);
        let surrogates = inputs.zip(values).collect();
        Ok(Arc::new(ImputerModel { operator, params: params.clone(), surrogates }))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let table = saved.table("data")?;
        let schema = table.schema();
        let surrogate = |(field, column): (&Arc<Field>, &ArrayRef)| -> Result<(String, f64)> {
            let detail = format!("column {} has no value", field.name());
            let values = cast(column, &DataType::Float64)?;
            let value = values.as_primitive::<Float64Type>().iter().next().flatten();
            Ok((field.name().clone(), value.ok_or(Error::Corrupted { path: "data".into(), detail })?))
        };
        let surrogates = schema.fields().iter().zip(table.columns()).map(surrogate).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ImputerModel { operator, params: params.clone(), surrogates }))
    }
}

struct ImputerModel {
    operator: &'static Operator,
    params: Params,
    surrogates: Vec<(String, f64)>,
}

impl ImputerModel {
    fn rows(&self) -> Result<RecordBatch> {
        let fields: Vec<Field> =
            self.surrogates.iter().map(|(name, _)| Field::new(name, DataType::Float64, true)).collect();
        let column = |value: f64| Arc::new(Float64Array::from(vec![value])) as ArrayRef;
        let columns = self.surrogates.iter().map(|(_, value)| column(*value)).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}

impl Model for ImputerModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let missing_value = params.double("missingValue")?;
        let mut steps = Vec::new();
        for (input, output) in columns::pairs(params)? {
            let field = column::numeric(schema, &input)?;
            columns::check_new(schema, &output)?;
            let surrogate = self.surrogates.iter().find(|(name, _)| *name == input).map(|(_, value)| *value);
            let surrogate = surrogate.ok_or_else(|| Error::ColumnNotFound {
                name: input.clone(),
                available: self.surrogates.iter().map(|(name, _)| name.clone()).collect(),
            })?;
            let data_type = field.data_type().clone();
            steps.push(TransformStep::Append {
                output: Arc::new(Field::new(&output, data_type.clone(), true)),
                inputs: vec![input],
                function: Arc::new(move |columns, _| imputed(&columns[0], surrogate, missing_value, &data_type)),
            });
        }
        Ok(steps)
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        match name {
            "surrogateDF" => Ok(Attribute::Rows(self.rows()?)),
            _ => Err(Error::AttributeNotAllowed { class: self.class().into(), method: name.into() }),
        }
    }

    fn describe(&self) -> String {
        let missing_value = self.params.double("missingValue").unwrap_or(f64::NAN);
        format!(
            "ImputerModel: uid={}, strategy={}, missingValue={}{}",
            self.params.uid,
            self.params.string("strategy").unwrap_or_default(),
            udt::vector::java_double(missing_value),
            columns::describe(&self.params)
        )
    }

    fn size_bytes(&self) -> usize {
        256 + 32 * self.surrogates.len()
    }

    fn save(&self) -> Result<Saved> {
        Ok(Saved { metadata: Map::new(), tables: vec![("data".into(), self.rows()?)] })
    }
}

/// The column with its missing values filled, of its own type.
fn imputed(column: &ArrayRef, surrogate: f64, missing_value: f64, data_type: &DataType) -> Result<ArrayRef> {
    let doubles = cast(column, &DataType::Float64)?;
    let fill = |value: Option<f64>| value.filter(|value| !is_missing(*value, missing_value)).unwrap_or(surrogate);
    let filled: Float64Array = doubles.as_primitive::<Float64Type>().iter().map(|value| Some(fill(value))).collect();
    // whole numbers are cut, as Spark's cast does
    if data_type.is_integer() {
        let cut: Float64Array = filled.unary(f64::trunc);
        return Ok(cast(&cut, data_type)?);
    }
    Ok(cast(&filled, data_type)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(strategy: &str, ranks: &[&[f64]]) -> f64 {
        let spec = Spec { columns: vec!["x".into()], strategy: strategy.into(), missing_value: None };
        let part = |values: &&[f64]| Part {
            count: values.len() as u64,
            mean: if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 },
            sketch: Sketch::of(values.to_vec()),
            points: distinct(values.to_vec()),
        };
        let parts: Vec<Part> = ranks.iter().map(part).collect();
        surrogate(&spec, 0, parts.iter()).unwrap()
    }

    #[test]
    fn surrogates_are_over_all_ranks() {
        assert_eq!(fitted("mean", &[&[1.0, 2.0], &[], &[6.0]]), 3.0);
        assert_eq!(fitted("median", &[&[4.0, 1.0], &[3.0, 2.0]]), 2.0);
        assert_eq!(fitted("mode", &[&[5.0, 1.0, 5.0], &[1.0, 9.0]]), 1.0);
    }

    #[test]
    fn a_column_without_a_value_is_named() {
        let spec = Spec { columns: vec!["x".into()], strategy: "mean".into(), missing_value: None };
        let message = surrogate(&spec, 0, [Part::default()].iter()).unwrap_err().to_string();
        assert!(message.contains("in x are Null, Nan or missingValue(NaN)"), "{message}");
    }
}
