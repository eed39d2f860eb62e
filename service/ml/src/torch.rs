//! `TorchEstimator`: a TorchScript module of the user's own, trained across ranks.
//!
//! Spark has no such operator; `connect-client/python` has its client half. The estimator plans, [`program`] trains on
//! every rank, [`model`] infers.

mod model;
mod packed;
mod params;
mod program;

use std::sync::Arc;

use arrow::datatypes::Schema;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use train::network::{ColumnKind, LossKind, ScriptModule};

use crate::evaluation::column;
use crate::linear::params::check_outputs;
use crate::persist::Saved;
use crate::{Error, Estimator, FitPlan, Kind, Model, Operator, Params, Result};

use model::TorchModel;
pub use program::PROGRAM;
use program::{Fitted, Spec};

pub static OPERATOR: Operator = Operator {
    class: "phalanx.torch.TorchEstimator",
    model_class: Some("phalanx.torch.TorchModel"),
    params: params::params,
    kind: Kind::Estimator(&Torch),
};

/// What a gang's messages carry.
const MODULE_BYTES_MAX: usize = 60 << 20;

struct Torch;

impl Estimator for Torch {
    fn plan_fit(&self, params: &Params, schema: &Schema) -> Result<FitPlan> {
        let options = params::options(params)?;
        let module = script(params, "module")?;
        ScriptModule::load(&module)?;
        let loss_module = match options.loss {
            LossKind::Scripted => script(params, "lossModule")?,
            _ => Vec::new(),
        };
        if module.len() + loss_module.len() > MODULE_BYTES_MAX {
            let feature = format!("a module of more than {} MiB, found {}", MODULE_BYTES_MAX >> 20, module.len() >> 20);
            return Err(Error::Unsupported { feature });
        }
        check_outputs(params, schema, outputs(options.loss))?;
        let inputs = inputs(params, schema)?;
        let label = params.string("labelCol")?;
        let label_kind = match options.loss.takes_classes() {
            true => column::numeric(schema, label).map(|_| ColumnKind::Class)?,
            false => label_kind(schema, label, options.loss)?,
        };
        let mut columns = params.strings("inputCols")?;
        columns.push(label.to_string());
        let spec = Spec { columns: columns.clone(), inputs, label: label_kind, options };
        let header =
            serde_json::to_vec(&spec).map_err(|source| train::Error::Spec { program: PROGRAM.name, source })?;
        Ok(FitPlan { columns, program: PROGRAM.name, spec: packed::pack(&[&header, &module, &loss_module]) })
    }

    fn num_ranks(&self, params: &Params) -> Result<Option<usize>> {
        Ok(params.int("numWorkers").ok().map(|num_workers| num_workers as usize))
    }

    fn model(
        &self,
        operator: &'static Operator,
        params: &Params,
        _schema: &Schema,
        fitted: &[u8],
    ) -> Result<Arc<dyn Model>> {
        let parts = packed::unpack(fitted);
        let [header, module] = parts.as_deref().unwrap_or_default() else {
            return Err(Error::Bug { invariant: "rank 0 returns what it learnt and the module".into() });
        };
        let fitted: Fitted =
            serde_json::from_slice(header).map_err(|source| train::Error::Spec { program: PROGRAM.name, source })?;
        // what was trained from and with is not needed again, and may be large
        let params = params.without(&["module", "lossModule"]);
        Ok(Arc::new(TorchModel::new(operator, params, fitted, module.to_vec())?))
    }

    fn load(&self, operator: &'static Operator, params: &Params, saved: &Saved) -> Result<Arc<dyn Model>> {
        Ok(Arc::new(TorchModel::load(operator, params, saved)?))
    }
}

/// The bytes of a TorchScript module, which a param holds in base64.
fn script(params: &Params, name: &str) -> Result<Vec<u8>> {
    BASE64_STANDARD.decode(params.string(name)?).map_err(|source| Error::InvalidParam {
        operator: params.uid.clone(),
        param: name.into(),
        value: "<text>".into(),
        detail: format!(", expected TorchScript in base64: {source}"),
    })
}

/// What tensors the input columns become.
///
/// # Errors
/// No inputs; columns that are missing, or of types that no tensor is made of.
fn inputs(params: &Params, schema: &Schema) -> Result<Vec<ColumnKind>> {
    let names = params.strings("inputCols")?;
    if names.is_empty() {
        let (operator, param) = (params.uid.clone(), String::from("inputCols"));
        return Err(Error::InvalidParam { operator, param, value: "[]".into(), detail: ", expected a column".into() });
    }
    names.iter().map(|name| column_kind(schema, name)).collect()
}

fn column_kind(schema: &Schema, name: &str) -> Result<ColumnKind> {
    let field = column::field(schema, name)?;
    ColumnKind::of(field.data_type(), udt::field::is_vector(field))
        .ok_or_else(|| column::wrong_type(name, "numeric, boolean, vector or array of numbers", field))
}

/// A label that is no class is a number, or several; a scripted loss gets it as it is.
fn label_kind(schema: &Schema, name: &str, loss: LossKind) -> Result<ColumnKind> {
    Ok(match column_kind(schema, name)? {
        ColumnKind::Integer if loss != LossKind::Scripted => ColumnKind::Number,
        ColumnKind::Integers if loss != LossKind::Scripted => ColumnKind::Numbers,
        kind => kind,
    })
}

/// The params that name the columns which a model appends.
fn outputs(loss: LossKind) -> &'static [&'static str] {
    match loss {
        LossKind::CrossEntropy | LossKind::NegativeLogLikelihood | LossKind::BinaryCrossEntropy => {
            &["rawPredictionCol", "probabilityCol", "predictionCol"]
        }
        _ => &["predictionCol"],
    }
}
