//! `MinMaxScaler`: brings each element of a vector into one range.

use std::sync::Arc;

use arrow::datatypes::Schema;
use serde::{Deserialize, Serialize};
use train::{RankContext, RankProgram};
use udt::Vector;

use super::columns::check_new;
use super::{extremes, vectors};
use crate::evaluation::column;
use crate::ml_attr::AttributeGroup;
use crate::persist::Saved;
use crate::{
    Argument, Attribute, Check, Error, Estimator, FitPlan, Kind, Model, Operator, Param, ParamType, Params, Result,
    TransformStep,
};

pub static OPERATOR: Operator = Operator {
    class: "org.apache.spark.ml.feature.MinMaxScaler",
    model_class: Some("org.apache.spark.ml.feature.MinMaxScalerModel"),
    params,
    kind: Kind::Estimator(&MinMaxScaler),
};

pub static PROGRAM: RankProgram = RankProgram { name: "min_max_scaler", run };

fn params() -> Vec<Param> {
    vec![
        Param::unset("inputCol", ParamType::String),
        Param::double("max", 1.0, Check::Any),
        Param::double("min", 0.0, Check::Any),
        Param::output_col(),
    ]
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fitted {
    #[serde(with = "crate::linear::bits::many")]
    min: Vec<f64>,
    #[serde(with = "crate::linear::bits::many")]
    max: Vec<f64>,
}

fn run(_: &[u8], ctx: &mut RankContext<'_>) -> train::Result<Vec<u8>> {
    let extremes::Extremes { min, max } = extremes::over_all_ranks(ctx)?;
    super::on_rank_0(PROGRAM.name, ctx, &Fitted { min, max })
}

struct MinMaxScaler;

/// The range that params ask for.
fn range(params: &Params) -> Result<(f64, f64)> {
    let (min, max) = (params.double("min")?, params.double("max")?);
    if min < max {
        return Ok((min, max));
    }
    let shown = udt::vector::java_double;
    let message = format!(
        "requirement failed: The specified min({}) is larger or equal to max({})",
        shown(min),
        shown(max)
    );
    Err(Error::InvalidData { class: String::new(), message })
}

impl Estimator for MinMaxScaler {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let input = params.string("inputCol")?;
        range(params)?;
        column::vector(schema, input)?;
        check_new(schema, params.string("outputCol")?)?;
        Ok(FitPlan { columns: vec![input.into()], program: PROGRAM.name, spec: Vec::new() })
    }

    fn model(&self, operator: &'static Operator, params: &Params, _: &Schema, fitted: &[u8]) -> Result<Arc<dyn Model>> {
        let fitted = super::from_rank_0(PROGRAM.name, fitted)?;
        Ok(Arc::new(MinMaxScalerModel { operator, params: params.clone(), fitted }))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        let fitted = Fitted { min: vectors::load(saved, "originalMin")?, max: vectors::load(saved, "originalMax")? };
        Ok(Arc::new(MinMaxScalerModel { operator, params: params.clone(), fitted }))
    }
}

struct MinMaxScalerModel {
    operator: &'static Operator,
    params: Params,
    fitted: Fitted,
}

impl Model for MinMaxScalerModel {
    fn operator(&self) -> &'static Operator {
        self.operator
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn transform(&self, params: &Params, schema: &Schema) -> Result<Vec<TransformStep>> {
        let (input, output) = (params.string("inputCol")?, params.string("outputCol")?);
        let (min, max) = range(params)?;
        column::vector(schema, input)?;
        check_new(schema, output)?;
        let shift = self.fitted.min.clone();
        let factor = |(low, high): (&f64, &f64)| if high == low { 0.0 } else { (max - min) / (high - low) };
        let scale: Vec<f64> = self.fitted.min.iter().zip(&self.fitted.max).map(factor).collect();
        // an element that never changes stands in the middle
        let rescale = move |i: usize, v: f64| match scale[i] {
            0.0 if !v.is_nan() => (min + max) / 2.0,
            scale => (v - shift[i]) * scale + min,
        };
        let width = self.fitted.min.len();
        Ok(vec![TransformStep::Append {
            output: Arc::new(AttributeGroup::Size(width).mark(udt::field::vector_field(output))),
            inputs: vec![input.into()],
            function: Arc::new(move |columns, _| {
                vectors::map(&columns[0], |vector, builder| {
                    let mut values = vector.to_vector().to_dense();
                    vectors::check_size(values.len(), width)?;
                    values.iter_mut().enumerate().for_each(|(i, v)| *v = rescale(i, *v));
                    builder.append_vector(&Vector::Dense(values).compressed());
                    Ok(())
                })
            }),
        }])
    }

    fn attribute(&self, name: &str, _: &[Argument]) -> Result<Attribute> {
        match name {
            "originalMin" => Ok(Attribute::Value(vectors::compressed(&self.fitted.min))),
            "originalMax" => Ok(Attribute::Value(vectors::compressed(&self.fitted.max))),
            _ => Err(Error::AttributeNotAllowed { class: self.class().into(), method: name.into() }),
        }
    }

    fn describe(&self) -> String {
        let bound = |name| udt::vector::java_double(self.params.double(name).unwrap_or_default());
        let (uid, width) = (&self.params.uid, self.fitted.min.len());
        format!("MinMaxScalerModel: uid={uid}, numFeatures={width}, min={}, max={}", bound("min"), bound("max"))
    }

    fn size_bytes(&self) -> usize {
        16 * self.fitted.min.len() + 256
    }

    fn save(&self) -> Result<Saved> {
        vectors::save(&[("originalMin", &self.fitted.min), ("originalMax", &self.fitted.max)])
    }
}
