//! `Fetch`: an attribute of a model or a summary, or a method called on it.

use std::sync::Arc;

use ml::{Argument, Attribute, SummaryAttribute, Value};
use spark_connect_proto::Fetch;
use spark_connect_proto::ml_command_result::ResultType;

use super::cache::{CachedModel, CachedSummary, Object};
use super::relation::argument;
use super::{fold, helper, literal, missing, objects};
use crate::operation::Operation;
use crate::session::Session;
use crate::{Error, Result};

/// What a fetch found.
pub enum Fetched {
    Attribute(Attribute),
    /// The predictions of a summary, which are a lazy relation.
    Predictions {
        summary: Arc<CachedSummary>,
        select: Option<Vec<String>>,
    },
    /// The id of a new summary.
    Summary(String),
}

/// Answers a fetch as a command.
///
/// # Errors
/// An unknown object or attribute; an attribute that is a relation, which clients fetch by `MlRelation`.
pub async fn run(session: &Arc<Session>, operation: &Arc<Operation>, request: &Fetch) -> Result<ResultType> {
    let fetched = tokio::select! {
        fetched = fetch(session, request) => fetched?,
        () = operation.cancelled() => return Err(Error::Cancelled),
    };
    match fetched {
        Fetched::Attribute(Attribute::Value(value)) => Ok(ResultType::Param(literal::from_value(&value))),
        Fetched::Attribute(Attribute::Model(model)) => {
            let id = session.models.add_model(CachedModel::new(model, None));
            Ok(objects(&[id], None, None))
        }
        Fetched::Summary(id) => Ok(ResultType::Summary(id)),
        Fetched::Attribute(Attribute::Rows(_)) | Fetched::Predictions { .. } => {
            Err(Error::Engine(engine::Error::InvalidPlan {
                detail: "the attribute is a relation: fetch it as an MlRelation".into(),
            }))
        }
    }
}

/// Finds what a fetch asks for.
pub async fn fetch(session: &Session, request: &Fetch) -> Result<Fetched> {
    let id = &request.obj_ref.as_ref().ok_or_else(|| missing("obj_ref of Fetch"))?.id;
    let mut methods = request.methods.iter();
    let mut method = methods.next().ok_or_else(|| missing("methods of Fetch"))?;
    if id == helper::ID {
        return helper::call(session, method).await;
    }
    let object = session.models.get(id)?;
    let summary = match &object {
        Object::Summary(summary) => Some(Arc::clone(summary)),
        Object::Model(model) if method.method == "summary" => {
            method = methods.next().ok_or_else(|| missing("attribute of the summary"))?;
            Some(model.training_summary(id)?)
        }
        Object::Model(_) => None,
    };
    if let Some(extra) = methods.next() {
        return Err(not_allowed("summary", &extra.method));
    }
    let arguments = method.args.iter().map(argument).collect::<Result<Vec<_>>>()?;
    let relations: Vec<_> = arguments.iter().filter_map(|(_, relation)| *relation).collect();
    let arguments: Vec<Argument> = arguments.into_iter().map(|(argument, _)| argument).collect();
    match (summary, object) {
        (Some(summary), _) => summary_attribute(session, &summary, &method.method, &arguments).await,
        (None, Object::Model(cached)) if method.method == "evaluate" => {
            let summary = cached.model.evaluate().ok_or_else(|| not_allowed(cached.model.class(), "evaluate"))?;
            let relation = relations.first().ok_or_else(|| missing("dataset of evaluate"))?;
            let dataset = session.engine.resolve(relation, session).await?;
            let model = Arc::clone(&cached.model);
            let evaluated = CachedSummary { summary, model, dataset, folding: Default::default() };
            Ok(Fetched::Summary(session.models.add_summary(evaluated)))
        }
        (None, Object::Model(cached)) => model_attribute(&cached, &method.method, &arguments),
        (None, Object::Summary(_)) => Err(Error::Engine(engine::Error::Bug { invariant: "a summary is one".into() })),
    }
}

fn model_attribute(cached: &CachedModel, name: &str, arguments: &[Argument]) -> Result<Fetched> {
    if name == "toString" {
        return Ok(Fetched::Attribute(Attribute::Value(Value::String(cached.model.describe()))));
    }
    Ok(Fetched::Attribute(cached.model.attribute(name, arguments)?))
}

async fn summary_attribute(
    session: &Session,
    cached: &Arc<CachedSummary>,
    name: &str,
    arguments: &[Argument],
) -> Result<Fetched> {
    let known = |attribute| match attribute {
        SummaryAttribute::Ready(attribute) => Some(Fetched::Attribute(attribute)),
        SummaryAttribute::Predictions { select } => Some(Fetched::Predictions { summary: Arc::clone(cached), select }),
        SummaryAttribute::NeedsPredictions => None,
    };
    if let Some(fetched) = known(cached.summary.attribute(name, arguments)?) {
        return Ok(fetched);
    }
    let _one_fold_at_a_time = cached.folding.lock().await;
    if let Some(fetched) = known(cached.summary.attribute(name, arguments)?) {
        return Ok(fetched);
    }
    fold::observe(session, cached).await?;
    known(cached.summary.attribute(name, arguments)?).ok_or_else(|| {
        let invariant = format!("{name} is known once predictions were observed");
        Error::Engine(engine::Error::Bug { invariant })
    })
}

fn not_allowed(class: &str, method: &str) -> Error {
    Error::Ml(ml::Error::AttributeNotAllowed { class: class.into(), method: method.into() })
}
