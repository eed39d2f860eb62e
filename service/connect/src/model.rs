//! Models by name: what SQL's statements and functions about models do.
//!
//! A statement enters by [`run_statement`]; a function in FROM by the session's
//! [`Extensions`](engine::embedded::Extensions), which asks [`function`]. `TRAIN MODEL` is checked as a whole by [`plan`]
//! before a row is read, and run by [`train`] in a task of its own, so that it outlives its statement where that does not
//! wait. What is kept of a model is [`document`]; where, is the crate `registry`'s business.

mod answer;
mod columns;
mod document;
mod evaluate;
mod explain;
mod fit;
mod function;
mod info;
mod loaded;
mod manage;
mod name;
mod options;
mod plan;
mod predict;
pub(crate) mod refusal;
mod rows;
mod run;
mod show;
mod stage;
mod store;
mod train;
mod transfer;
mod tune;

use std::sync::Arc;

use spark_connect_proto::Relation;
use sql::model::ModelStatement;

pub use function::resolve as resolve_function;
pub use refusal::Refusal;
pub use store::ModelStore;

use crate::{Error, Operation, Result, Session};

/// What paths of models by name begin with.
pub const PATH_SCHEME: &str = "models:";

/// The estimator's model at a path of the form `models:/name`, `models:/name/version` or `models:/name@alias`; none for
/// other paths.
///
/// # Errors
/// What the registry says of the model.
pub async fn of_path(session: &Session, path: &str) -> Result<Option<Arc<dyn ml::Model>>> {
    let Some(rest) = path.strip_prefix(PATH_SCHEME) else { return Ok(None) };
    let (text, version) = match rest.trim_matches('/').rsplit_once('/') {
        Some((name, version)) => (name.to_string(), version.to_string()),
        None => (rest.trim_matches('/').to_string(), String::new()),
    };
    let (parts, alias) = sql::model::model_of_text(&text);
    let version = if version.is_empty() { alias } else { version };
    let loaded = loaded::load(session, &name::resolve(session, &parts)?, &version).await?;
    Ok(Some(loaded.model))
}

/// Runs a statement about models; its answer is a relation of ready rows. `around` puts the relations that the client
/// sent along around a query of the statement.
///
/// # Errors
/// Whatever is wrong with the statement, and what goes wrong with its work.
pub async fn run_statement(
    session: &Arc<Session>,
    operation: &Arc<Operation>,
    statement: ModelStatement,
    around: &(dyn Fn(Relation) -> Relation + Sync),
) -> Result<Relation> {
    match statement {
        // it watches for the cancellation itself, to end its gangs in order
        ModelStatement::Train(train) => run::train(session, operation, *train, around).await,
        other => operation.unless_cancelled(Box::pin(run_other(session, other, around))).await,
    }
}

async fn run_other(
    session: &Arc<Session>,
    statement: ModelStatement,
    around: &(dyn Fn(Relation) -> Relation + Sync),
) -> Result<Relation> {
    match statement {
        ModelStatement::Train(_) => Err(Error::Bug { invariant: "TRAIN MODEL is run by its own arm" }),
        ModelStatement::ExplainTrain { mode: _, train } => explain::explain(session, *train, around).await,
        ModelStatement::ShowModels { namespace, pattern } => {
            show::models(session, &namespace, pattern.as_deref()).await
        }
        ModelStatement::ShowVersions { model } => show::versions(session, &model).await,
        ModelStatement::ShowCreate { model, version } => show::create(session, &model, version.as_ref()).await,
        ModelStatement::ShowTrainings { model } => show::trainings(session, model.as_ref()).await,
        ModelStatement::Describe { model, version, extended } => {
            show::describe(session, &model, version.as_ref(), extended).await
        }
        ModelStatement::Drop { model, version, if_exists } => {
            manage::drop(session, &model, version.as_ref(), if_exists).await
        }
        ModelStatement::Alter { model, if_exists, change } => manage::alter(session, &model, if_exists, &change).await,
        ModelStatement::Export { model, version, path, format, options } => {
            transfer::export(session, &model, version.as_ref(), &path, format.as_ref(), &options).await
        }
        ModelStatement::Import { model, replace, if_not_exists, path, format } => {
            transfer::import(session, &model, replace, if_not_exists, &path, format.as_ref()).await
        }
        ModelStatement::CancelTraining { id, if_exists } => manage::cancel(session, &id, if_exists).await,
        ModelStatement::Grant { .. } => Err(Refusal::NoAuthorizer.into()),
    }
}
