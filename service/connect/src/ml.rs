//! Spark ML's commands and relations, answered for one session.
//!
//! `MlCommand` enters by [`run_command`], a model's output as a relation by the session's
//! [`Extensions`](engine::embedded::Extensions). Each arm of either message is a file of `ml/`. What an operator does is
//! the crate `ml`'s business; here are the object ids, the session's cache, and the way to a gang and back.

mod cache;
mod delete;
mod evaluate;
mod fetch;
pub(crate) mod fit;
mod fold;
mod helper;
mod literal;
mod rank_data;
mod read;
mod relation;
mod restart;
pub(crate) mod store;
pub(crate) mod transform;
mod watch;
mod write;

use std::sync::Arc;

use spark_connect_proto::ml_command::Command;
use spark_connect_proto::ml_command_result::{MlOperatorInfo, ResultType};
use spark_connect_proto::{MlCommand, MlCommandResult};

pub use cache::ModelCache;
pub use rank_data::PartitionAddress;

use crate::operation::Operation;
use crate::session::Session;
use crate::{Error, Result};

/// Runs an ML command and gives its result.
///
/// # Errors
/// What the operator, the dataset or the gang refuses; [`Error::ObjectNotFound`] for an id that is not in the cache.
pub async fn run_command(
    session: &Arc<Session>,
    operation: &Arc<Operation>,
    command: &MlCommand,
) -> Result<MlCommandResult> {
    let command = command.command.as_ref().ok_or_else(|| missing("command of MlCommand"))?;
    let result = match command {
        Command::Fit(fit) => Some(fit::run(session, operation, fit).await?),
        Command::Fetch(fetch) => Some(fetch::run(session, operation, fetch).await?),
        Command::Delete(delete) => Some(delete::run(session, delete)),
        Command::Write(write) => {
            write::run(session, write).await?;
            None
        }
        Command::Read(read) => Some(read::run(session, read).await?),
        Command::Evaluate(evaluate) => Some(evaluate::run(session, operation, evaluate).await?),
        Command::CleanCache(_) => Some(delete::clean(session)),
        Command::GetCacheInfo(_) => Some(delete::info(session)),
        Command::CreateSummary(create) => {
            evaluate::restore_summary(session, create).await?;
            None
        }
        Command::GetModelSize(size) => Some(delete::size(session, size)?),
    };
    Ok(MlCommandResult { result_type: result })
}

/// A required part of a message is not there.
fn missing(part: &str) -> Error {
    Error::Engine(engine::Error::InvalidPlan { detail: format!("the {part} is missing") })
}

/// The answer that names objects of the cache. Clients log a warning that comes with it.
fn objects(ids: &[String], uid: Option<String>, warning_message: Option<String>) -> ResultType {
    use spark_connect_proto::ObjectRef;
    use spark_connect_proto::ml_command_result::ml_operator_info::Type;
    ResultType::OperatorInfo(MlOperatorInfo {
        r#type: Some(Type::ObjRef(ObjectRef { id: ids.join(",") })),
        uid,
        params: None,
        warning_message,
    })
}
