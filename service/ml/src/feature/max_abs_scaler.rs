//! `MaxAbsScaler`: divides each element of a vector by its greatest magnitude.

use std::sync::Arc;

use arrow::datatypes::Schema;
use serde::{Deserialize, Serialize};
use train::{RankContext, RankProgram};

use super::columns::check_new;
use super::{extremes, vectors};
use crate::evaluation::column;
use crate::ml_attr::AttributeGroup;
use crate::persist::Saved;
use crate::{
    Argument, Attribute, Error, Estimator, FitPlan, Kind, Model, Operator, Param, ParamType, Params, Result,
    TransformStep,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.MaxAbsScaler",
    model_class: Some("org.apache.spark.ml.feature.MaxAbsScalerModel"),
    params,
    kind: Kind::Estimator(&MaxAbsScaler),
};

pub static PROGRAM: RankProgram = RankProgram { name: "max_abs_scaler", run };

fn params() -> Vec<Param> {
    vec![
        Param::unset("inputCol", ParamType::String),
        Param::output_col(),
    ]
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fitted {
    #[serde(with = "crate::linear::bits::many")]
    max_abs: Vec<f64>,
}

fn run(_: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let extremes::Extremes { min, max } = extremes::over_all_ranks(ctx)?;
    let max_abs = min.iter().zip(&max).map(|(min, max)| min.abs().max(max.abs())).collect();
    super::on_rank_0(PROGRAM.name, ctx, &Fitted { max_abs })
}

struct MaxAbsScaler;

impl Estimator for MaxAbsScaler {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let input = params.string("inputCol")?;
        column::vector(schema, input)?;
        check_new(schema, params.string("outputCol")?)?;
        Ok(FitPlan { columns: vec![input.into()], program: PROGRAM.name, spec: Vec::new() })
    }

    fn model(&self, operator: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let fitted = super::from_rank_0(PROGRAM.name, fitted)?;
        Ok(Arc::new(MaxAbsScalerModel { operator, params: params.clone(), fitted }))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let fitted = Fitted { max_abs: vectors::load(saved, "maxAbs")? };
        Ok(Arc::new(MaxAbsScalerModel { operator, params: params.clone(), fitted }))
    }
}

struct MaxAbsScalerModel {
    operator: &'static Operator,
    params: Params,
    fitted: Fitted,
}

impl Model for MaxAbsScalerModel {
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
        let factor = |max_abs: &f64| if *max_abs == 0.0 { 1.0 } else { 1.0 / max_abs };
        let scale: Vec<f64> = self.fitted.max_abs.iter().map(factor).collect();
        Ok(vec![TransformStep::Append {
            output: Arc::new(AttributeGroup::Size(scale.len()).mark(udt::field::vector_field(output))),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| vectors::scaled(&columns[0], None, &scale)),
        }])
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        match name {
            "maxAbs" => Ok(Attribute::Value(vectors::compressed(&self.fitted.max_abs))),
            _ => Err(Error::AttributeNotAllowed { class: self.class().into(), method: name.into() }),
        }
    }

    fn describe(&self) -> String {
        format!("MaxAbsScalerModel: uid={}, numFeatures={}", self.params.uid, self.fitted.max_abs.len())
    }

    fn size_bytes(&self) -> usize {
        24 * self.fitted.max_abs.len() + 256
    }

    fn save(&self) -> Result<Saved> {
        vectors::save(&[("maxAbs", &self.fitted.max_abs)])
    }
}
