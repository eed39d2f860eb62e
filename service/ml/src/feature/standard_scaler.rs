//! `StandardScaler`: scales each element of a vector to unit deviation, and to mean zero if asked.

use std::sync::Arc;

use arrow::datatypes::Schema;
use serde::{Deserialize, Serialize};
use train::{RankContext, RankProgram};
use udt::Vector;

use super::columns::check_new;
use super::vectors;
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
    #[serde(with = "crate::linear::bits::many")]
    mean: Vec<f64>,
    #[serde(with = "crate::linear::bits::many")]
    std: Vec<f64>,
}

fn run(_: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let moments = vectors::moments(ctx)?;
    super::on_rank_0(PROGRAM.name, ctx, &Fitted { mean: moments.mean(), std: moments.standard_deviation() })
}

struct StandardScaler;

impl Estimator for StandardScaler {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let input = params.string("inputCol")?;
        column::vector(schema, input)?;
        check_new(schema, params.string("outputCol")?)?;
        Ok(FitPlan { columns: vec![input.into()], program: PROGRAM.name, spec: Vec::new() })
    }

    fn model(&self, operator: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let fitted = super::from_rank_0(PROGRAM.name, fitted)?;
        Ok(Arc::new(StandardScalerModel { operator, params: params.clone(), fitted: Arc::new(fitted) }))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let fitted = Arc::new(Fitted { mean: vectors::load(saved, "mean")?, std: vectors::load(saved, "std")? });
        Ok(Arc::new(StandardScalerModel { operator, params: params.clone(), fitted }))
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
        column::vector(schema, input)?;
        check_new(schema, output)?;
        let with_std = params.boolean("withStd")?;
        let shift = params.boolean("withMean")?.then(|| self.fitted.mean.clone());
        let factor = |std: &f64| if !with_std { 1.0 } else if *std == 0.0 { 0.0 } else { 1.0 / std };
        let scale: Vec<f64> = self.fitted.std.iter().map(factor).collect();
        let field = AttributeGroup::Size(scale.len()).mark(udt::field::vector_field(output));
        Ok(vec![TransformStep::Append {
            output: Arc::new(field),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| vectors::scaled(&columns[0], shift.as_deref(), &scale)),
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
        vectors::save(&[("std", &self.fitted.std), ("mean", &self.fitted.mean)])
    }
}
