//! `ml_predict` and its kin in FROM: a relation's extension to what the engine runs.

use std::sync::Arc;

use arrow::array::RecordBatch;
use engine::embedded::extension::{Extended, PlanTransform, TransformInput};
use prost::Message;
use sql::model::{Constant, ModelFunction, TYPE_URL};

use super::loaded::{Loaded, load};
use super::predict::{self, Arguments};
use super::stage::projection;
use super::{Refusal, info, name};
use crate::ml::transform::steps;
use crate::{Error, Result, Session};

/// # Errors
/// An extension that is not ours; what is wrong with the call or the model.
pub async fn resolve(session: &Session, extension: &prost_types::Any) -> Result<Extended> {
    if extension.type_url != TYPE_URL {
        return Err(Error::NoHandlerForExtension { type_url: extension.type_url.clone() });
    }
    let unreadable = |error: prost::DecodeError| Error::UnreadablePlan { detail: error.to_string() };
    let call = ModelFunction::decode(extension.value.as_slice()).map_err(unreadable)?;
    let model = name::resolve(session, &call.model)?;
    let loaded = load(session, &model, &call.version).await?;
    let arguments = constants(&call)?;
    match call.function.as_str() {
        "ml_predict" => predict(session, loaded, &call, &arguments),
        "ml_transform" => transform(session, loaded, &call),
        "ml_evaluate" => ready(info::evaluate(session, &loaded, call.input.as_deref(), &arguments).await?),
        "ml_training_info" => ready(info::trainings(&loaded)?),
        "ml_trial_info" => ready(info::trials(&loaded)?),
        "ml_feature_info" => ready(info::features(&loaded)?),
        "ml_weights" => ready(info::weights(&loaded)?),
        "ml_confusion_matrix" => ready(info::confusion(&loaded)?),
        other => {
            Err(Refusal::UnsupportedOperation { what: format!("{other} of `{}`", loaded.document.estimator) }.into())
        }
    }
}

fn constants(call: &ModelFunction) -> Result<Vec<(String, Constant)>> {
    let fold = |argument: &sql::model::NamedArgument| {
        let value = argument.value.as_ref().and_then(Constant::fold);
        let value = value.ok_or(Error::Bug { invariant: "arguments of model functions are constants" })?;
        Ok((argument.name.clone(), value))
    };
    call.arguments.iter().map(fold).collect()
}

fn ready(batch: RecordBatch) -> Result<Extended> {
    let schema = batch.schema();
    Ok(Extended::Rows(vec![batch], schema))
}

/// The call's input, with TRANSFORM's expressions behind its columns.
fn input(call: &ModelFunction, loaded: &Loaded) -> Result<TransformInput> {
    let input = call.input.clone().ok_or(Error::Bug { invariant: "the parser asks for the input" })?;
    let transform = loaded.document.transform.as_ref();
    let projected = transform.map(|transform| transform.projected.as_slice()).unwrap_or_default();
    Ok(TransformInput::Relation(Box::new(projection(*input, projected)?)))
}

fn predict(
    session: &Session,
    loaded: Loaded,
    call: &ModelFunction,
    arguments: &[(String, Constant)],
) -> Result<Extended> {
    let arguments = Arguments::new(arguments)?;
    let is_case_sensitive = session.engine.conf().case_sensitive();
    let input = input(call, &loaded)?;
    let loaded = Arc::new(loaded);
    let plan_transform: PlanTransform = Box::new(move |schema| {
        // what is wrong with the input keeps its own class
        let planned = predict::steps(&loaded, &arguments, schema, is_case_sensitive).map_err(Error::into_engine)?;
        steps(schema, |_| Ok(planned))
    });
    Ok(Extended::Transform { input, plan_transform })
}

fn transform(session: &Session, loaded: Loaded, call: &ModelFunction) -> Result<Extended> {
    let input = input(call, &loaded)?;
    let is_case_sensitive = session.engine.conf().case_sensitive();
    let plan_transform: PlanTransform = Box::new(move |schema| {
        let planned = predict::transform_steps(&loaded, schema, is_case_sensitive).map_err(Error::into_engine)?;
        steps(schema, |_| Ok(planned))
    });
    Ok(Extended::Transform { input, plan_transform })
}
