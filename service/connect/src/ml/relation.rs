//! `MlRelation`: a model's output, or rows fetched from it, as a relation of the session.

use std::sync::Arc;

use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use engine::embedded::extension::{Extended, PlanTransform, TransformInput};
use engine::embedded::{Extensions, Frame};
use ml::{Argument, Attribute, Kind, TransformStep};
use spark_connect_proto::ml_relation::{MlType, Transform, transform::Operator};
use spark_connect_proto::{MlRelation, Relation, relation::RelType};

use super::cache::CachedSummary;
use super::fetch::{Fetched, fetch};
use super::{literal, missing, transform};
use crate::session::Session;
use crate::{Error, Result};

#[async_trait]
impl Extensions for Session {
    async fn resolve_ml(&self, _: &engine::embedded::Session, relation: &MlRelation) -> engine::Result<Extended> {
        let resolved = match &relation.ml_type {
            Some(MlType::Transform(transform)) => plan(self, transform),
            Some(MlType::Fetch(request)) => rows(self, request, relation.model_summary_dataset.as_deref()).await,
            None => Err(missing("kind of MlRelation")),
        };
        resolved.map_err(Error::into_engine)
    }

    async fn resolve_extension(
        &self,
        _: &engine::embedded::Session,
        extension: &prost_types::Any,
    ) -> engine::Result<Extended> {
        Box::pin(crate::model::resolve_function(self, extension)).await.map_err(Error::into_engine)
    }
}

fn plan(session: &Session, transform: &Transform) -> Result<Extended> {
    let input = transform.input.clone().ok_or_else(|| missing("input of a transform"))?;
    let changes = literal::params(transform.params.as_ref())?;
    let plan_transform: PlanTransform = match transform.operator.as_ref() {
        Some(Operator::ObjRef(object)) => {
            let cached = session.models.model(&object.id)?;
            let params = cached.model.params().with(cached.model.operator(), changes)?;
            Box::new(move |schema| transform::steps(schema, |schema| cached.model.transform(&params, schema)))
        }
        Some(Operator::Transformer(named)) => {
            let operator = ml::catalog::operator(&named.name)?;
            let Kind::Transformer(transformer) = operator.kind else {
                return Err(ml::Error::OperatorNotSupported { class: named.name.clone() }.into());
            };
            let params = ml::Params::new(operator, &named.uid, changes)?;
            Box::new(move |schema| transform::steps(schema, |schema| transformer.transform(&params, schema)))
        }
        None => return Err(missing("operator of a transform")),
    };
    Ok(Extended::Transform { input: TransformInput::Relation(input), plan_transform })
}

/// A fetched attribute that is a relation. A summary that was lost is made again from the dataset the client sends along.
async fn rows(
    session: &Session,
    request: &spark_connect_proto::Fetch,
    summary_dataset: Option<&Relation>,
) -> Result<Extended> {
    let fetched = match fetch(session, request).await {
        Err(Error::SummaryLost { id }) if summary_dataset.is_some() => {
            super::evaluate::restore(session, &id, summary_dataset).await?;
            fetch(session, request).await?
        }
        fetched => fetched?,
    };
    match fetched {
        Fetched::Attribute(Attribute::Rows(record_batch)) => ready(record_batch),
        Fetched::Predictions { summary, select } => Ok(predictions_of(&summary, select)),
        Fetched::Attribute(_) | Fetched::Summary(_) | Fetched::Deferred(_) => {
            Err(Error::Engine(engine::Error::InvalidPlan { detail: "the fetched attribute is not a relation".into() }))
        }
    }
}

fn ready(record_batch: RecordBatch) -> Result<Extended> {
    let schema = record_batch.schema();
    Ok(Extended::Rows(vec![record_batch], schema))
}

/// The model's output on a summary's dataset.
fn predictions_of(cached: &Arc<CachedSummary>, select: Option<Vec<String>>) -> Extended {
    let (dataset, model) = (cached.dataset.clone(), Arc::clone(&cached.model));
    let plan_transform: PlanTransform = Box::new(move |schema: &Schema| {
        let mut steps = transform::steps(schema, |schema| {
            let present = |name: &str| schema.fields().iter().any(|field| field.name() == name);
            let steps = model.transform(model.params(), schema)?;
            // a dataset that already carries the output columns is a summary over the model's own output
            let is_output = steps.iter().all(|step| match step {
                TransformStep::Append { output, .. } => present(output.name()),
                TransformStep::Filter { .. } | TransformStep::Drop { .. } => true,
            });
            Ok(if is_output { Vec::new() } else { steps })
        })?;
        if let Some(columns) = select {
            steps.push(engine::embedded::TransformStep::Select { columns });
        }
        Ok(steps)
    });
    Extended::Transform { input: TransformInput::Frame(Box::new(dataset)), plan_transform }
}

/// Resolves a summary's predictions to a frame.
pub async fn predictions(session: &Session, cached: &Arc<CachedSummary>) -> Result<Frame> {
    struct Predictions<'a>(&'a Arc<CachedSummary>);

    #[async_trait]
    impl Extensions for Predictions<'_> {
        async fn resolve_ml(&self, _: &engine::embedded::Session, _: &MlRelation) -> engine::Result<Extended> {
            Ok(predictions_of(self.0, None))
        }
    }

    let relation = Relation { common: None, rel_type: Some(RelType::MlRelation(Box::default())) };
    Ok(session.engine.resolve(&relation, &Predictions(cached)).await?)
}

/// What an argument of a fetch is to the operator.
pub fn argument(
    argument: &spark_connect_proto::fetch::method::Args,
) -> Result<(Argument, Option<&Relation>)> {
    use spark_connect_proto::fetch::method::args::ArgsType;
    match argument.args_type.as_ref() {
        Some(ArgsType::Param(value)) => Ok((Argument::Value(literal::to_value(value)?), None)),
        Some(ArgsType::Input(relation)) => Ok((Argument::Relation, Some(relation))),
        None => Err(missing("argument of a fetch")),
    }
}
