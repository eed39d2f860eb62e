//! `RobustScaler`: scales each element of a vector by its range between quantiles, around its median if asked.

use std::sync::Arc;

use arrow::datatypes::Schema;
use serde::{Deserialize, Serialize};
use train::{RankContext, RankProgram};

use super::columns::check_new;
use super::quantiles::Sketch;
use super::vectors;
use crate::evaluation::column;
use crate::ml_attr::AttributeGroup;
use crate::persist::Saved;
use crate::{
    Argument, Attribute, Check, Error, Estimator, FitPlan, Kind, Model, Operator, Param, ParamType, Params, Result,
    TransformStep,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.RobustScaler",
    model_class: Some("org.apache.spark.ml.feature.RobustScalerModel"),
    params,
    kind: Kind::Estimator(&RobustScaler),
};

pub static PROGRAM: RankProgram = RankProgram { name: "robust_scaler", run };

fn params() -> Vec<Param> {
    vec![
        Param::unset("inputCol", ParamType::String),
        Param::double("lower", 0.25, Check::Within(0.0, 1.0)),
        Param::output_col(),
        Param::double("relativeError", 0.001, Check::Within(0.0, 1.0)),
        Param::double("upper", 0.75, Check::Within(0.0, 1.0)),
        Param::boolean("withCentering", false),
        Param::boolean("withScaling", true),
    ]
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fitted {
    #[serde(with = "crate::linear::bits::many")]
    range: Vec<f64>,
    #[serde(with = "crate::linear::bits::many")]
    median: Vec<f64>,
}

/// `spec` is the lower and the upper quantile.
fn run(spec: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let program = PROGRAM.name;
    let (lower, upper): (f64, f64) =
        serde_json::from_slice(spec).map_err(|source| train::Error::Spec { program, source })?;
    let mut values: Vec<Vec<f64>> = Vec::new();
    let width = vectors::visit(ctx, |width, vectors| {
        values.resize(width, Vec::new());
        for row in 0..vectors.len() {
            let row = vectors.row(row)?.to_vector().to_dense();
            values.iter_mut().zip(row).filter(|(_, v)| !v.is_nan()).for_each(|(values, v)| values.push(v));
        }
        Ok(())
    })?;
    values.resize(width, Vec::new());
    let sketches: Vec<Sketch> = values.into_iter().map(Sketch::of).collect();
    let parts = super::gather(program, ctx, &sketches)?;
    let mut fitted = Fitted { range: Vec::new(), median: Vec::new() };
    for i in 0..width {
        let sketch = Sketch::merged(parts.iter().map(|part| &part[i]));
        let at = |probability| sketch.quantile(probability).unwrap_or(f64::NAN);
        fitted.range.push(at(upper) - at(lower));
        fitted.median.push(at(0.5));
    }
    super::on_rank_0(program, ctx, &fitted)
}

struct RobustScaler;

impl Estimator for RobustScaler {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let input = params.string("inputCol")?;
        column::vector(schema, input)?;
        check_new(schema, params.string("outputCol")?)?;
        let (lower, upper) = (params.double("lower")?, params.double("upper")?);
        if lower >= upper {
            let message = format!("requirement failed: lower({lower}) must be less than upper({upper})");
            return Err(Error::InvalidData { class: String::new(), message });
        }
        let spec = serde_json::to_vec(&(lower, upper))
            .map_err(|source| train::Error::Spec { program: PROGRAM.name, source })?;
        Ok(FitPlan { columns: vec![input.into()], program: PROGRAM.name, spec })
    }

    fn model(&self, operator: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let fitted = super::from_rank_0(PROGRAM.name, fitted)?;
        Ok(Arc::new(RobustScalerModel { operator, params: params.clone(), fitted }))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let fitted = Fitted { range: vectors::load(saved, "range")?, median: vectors::load(saved, "median")? };
        Ok(Arc::new(RobustScalerModel { operator, params: params.clone(), fitted }))
    }
}

struct RobustScalerModel {
    operator: &'static Operator,
    params: Params,
    fitted: Fitted,
}

impl Model for RobustScalerModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        column::vector(schema, input)?;
        check_new(schema, output)?;
        let with_scaling = params.boolean("withScaling")?;
        let shift = params.boolean("withCentering")?.then(|| self.fitted.median.clone());
        let factor = |range: &f64| if !with_scaling { 1.0 } else if *range == 0.0 { 0.0 } else { 1.0 / range };
        let scale: Vec<f64> = self.fitted.range.iter().map(factor).collect();
        Ok(vec![TransformStep::Append {
            output: Arc::new(AttributeGroup::Size(scale.len()).mark(udt::field::vector_field(output))),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| vectors::scaled(&columns[0], shift.as_deref(), &scale)),
        }])
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        match name {
            "range" => Ok(Attribute::Value(vectors::compressed(&self.fitted.range))),
            "median" => Ok(Attribute::Value(vectors::compressed(&self.fitted.median))),
            _ => Err(Error::AttributeNotAllowed { class: self.class().into(), method: name.into() }),
        }
    }

    fn describe(&self) -> String {
        let flag = |name| self.params.boolean(name).unwrap_or_default();
        format!(
            "RobustScalerModel: uid={}, numFeatures={}, withCentering={}, withScaling={}",
            self.params.uid,
            self.fitted.range.len(),
            flag("withCentering"),
            flag("withScaling")
        )
    }

    fn size_bytes(&self) -> usize {
        24 * self.fitted.range.len() + 256
    }

    fn save(&self) -> Result<Saved> {
        vectors::save(&[("range", &self.fitted.range), ("median", &self.fitted.median)])
    }
}
