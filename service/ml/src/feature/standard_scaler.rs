//! `StandardScaler`: scales each element of a vector to unit deviation, and to mean zero if asked.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use train::{RankContext, RankProgram};
use udt::{Vector, VectorArray, VectorBuilder, VectorRow};

use super::columns::check_new;
use super::moments;
use crate::evaluation::column;
use crate::ml_attr::AttributeGroup;
use crate::persist::Saved;
use crate::{
    Argument, Attribute, Error, Estimator, FitPlan, Kind, Model, Operator, Param, ParamType, Params, Result,
    TransformStep, Value,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.StandardScaler",
    model_class: Some("org.apache.spark.ml.feature.StandardScalerModel"),
    params,
    kind: Kind::Estimator(&StandardScaler),
};

pub static PROGRAM: RankProgram = RankProgram { name: "standard_scaler", run };

fn params() -> Vec<Param> {
    vec![
        Param::unset("inputCol", ParamType::String),
        Param::output_col(),
        Param::boolean("withMean", false),
        Param::boolean("withStd", true),
    ]
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fitted {
    mean: Vec<f64>,
    std: Vec<f64>,
}

fn run(_: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let moments = moments::over_all_ranks(PROGRAM.name, ctx)?;
    super::on_rank_0(PROGRAM.name, ctx, &Fitted { mean: moments.mean(), std: moments.std() })
}

struct StandardScaler;

impl Estimator for StandardScaler {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let input = params.string("inputCol")?;
        vector_field(schema, input)?;
        check_new(schema, params.string("outputCol")?)?;
        Ok(FitPlan { columns: vec![input.into()], program: PROGRAM.name, spec: Vec::new() })
    }

    fn model(&self, operator: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let fitted = super::from_rank_0(PROGRAM.name, fitted)?;
        Ok(Arc::new(StandardScalerModel { operator, params: params.clone(), fitted: Arc::new(fitted) }))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let table = saved.table("data")?;
        let vector = |name: &str| -> Result<Vec<f64>> {
            let missing = || Error::Corrupted { path: "data".into(), detail: format!("column {name} is missing") };
            let column = table.column_by_name(name).ok_or_else(missing)?;
            Ok(VectorArray::try_new(column.as_ref())?.row(0)?.to_vector().to_dense())
        };
        let fitted = Arc::new(Fitted { mean: vector("mean")?, std: vector("std")? });
        Ok(Arc::new(StandardScalerModel { operator, params: params.clone(), fitted }))
    }
}

/// The field of a vector column.
fn vector_field<'a>(schema: &'a Schema, name: &str) -> Result<&'a Field> {
    let field = column::field(schema, name)?;
    match udt::field::is_vector(field) {
        true => Ok(field),
        false => Err(column::wrong_type(name, "vector", field)),
    }
}

struct StandardScalerModel {
    operator: &'static Operator,
    params: Params,
    fitted: Arc<Fitted>,
}

impl Model for StandardScalerModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        vector_field(schema, input)?;
        check_new(schema, output)?;
        let with_std = params.boolean("withStd")?;
        let shift = params.boolean("withMean")?.then(|| self.fitted.mean.clone());
        let factor = |std: &f64| if !with_std { 1.0 } else if *std == 0.0 { 0.0 } else { 1.0 / std };
        let scale: Vec<f64> = self.fitted.std.iter().map(factor).collect();
        let field = AttributeGroup::Size(scale.len()).mark(udt::field::vector_field(output));
        Ok(vec![TransformStep::Append {
            output: Arc::new(field),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| scaled(&columns[0], shift.as_deref(), &scale)),
        }])
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        let vector = |values: &[f64]| Attribute::Value(Value::Vector(Vector::Dense(values.to_vec())));
        match name {
            "mean" => Ok(vector(&self.fitted.mean)),
            "std" => Ok(vector(&self.fitted.std)),
            _ => Err(Error::AttributeNotAllowed { class: self.class().into(), method: name.into() }),
        }
    }

    fn describe(&self) -> String {
        let flag = |name| self.params.boolean(name).unwrap_or_default();
        format!(
            "StandardScalerModel: uid={}, numFeatures={}, withMean={}, withStd={}",
            self.params.uid,
            self.fitted.mean.len(),
            flag("withMean"),
            flag("withStd")
        )
    }

    fn size_bytes(&self) -> usize {
        16 * self.fitted.mean.len() + 256
    }

    fn save(&self) -> Result<Saved> {
        let column = |values: &[f64]| VectorBuilder::from_dense_rows(values.len(), values.to_vec());
        let schema = Schema::new(vec![udt::field::vector_field("std"), udt::field::vector_field("mean")]);
        let rows = RecordBatch::try_new(Arc::new(schema), vec![column(&self.fitted.std), column(&self.fitted.mean)])?;
        Ok(Saved { metadata: Map::new(), tables: vec![("data".into(), rows)] })
    }
}

/// `(x - shift) * scale`; without a shift, sparse vectors stay sparse.
fn scaled(column: &ArrayRef, shift: Option<&[f64]>, scale: &[f64]) -> Result<ArrayRef> {
    let vectors = VectorArray::try_new(column.as_ref())?;
    let shift_at = |i: usize| shift.map_or(0.0, |shift| shift[i]);
    if let Some((width, values)) = vectors.as_dense_rows() {
        check_size(width, scale.len())?;
        let mut out = Vec::with_capacity(values.len());
        for row in values.chunks_exact(width.max(1)) {
            out.extend(row.iter().enumerate().map(|(i, value)| (value - shift_at(i)) * scale[i]));
        }
        return Ok(VectorBuilder::from_dense_rows(width, out));
    }
    let mut builder = VectorBuilder::default();
    for row in 0..vectors.len() {
        if vectors.is_null(row) {
            builder.append_null();
            continue;
        }
        let vector = vectors.row(row)?;
        check_size(vector.size(), scale.len())?;
        match vector {
            VectorRow::Sparse { size, indices, values } if shift.is_none() => {
                let values: Vec<f64> = indices.iter().zip(values).map(|(i, v)| v * scale[*i as usize]).collect();
                builder.append_sparse(size, indices, &values);
            }
            vector => {
                let dense = vector.to_vector().to_dense();
                let values: Vec<f64> = dense.iter().enumerate().map(|(i, v)| (v - shift_at(i)) * scale[i]).collect();
                builder.append_dense(&values);
            }
        }
    }
    Ok(builder.finish())
}

fn check_size(found: usize, expected: usize) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::InvalidRow { message: format!("expected a vector of size {expected}, found one of size {found}") }),
    }
}
