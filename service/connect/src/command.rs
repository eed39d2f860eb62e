//! What a plan does: a relation's rows, or the effect of a command.

mod checkpoint;
mod record_batches;
mod relation;
mod resources;
pub(crate) mod sql;
mod view;
mod write;

use std::sync::Arc;

use spark_connect_proto::command::CommandType;
use spark_connect_proto::execute_plan_request::RequestOption;
use spark_connect_proto::execute_plan_request::request_option::RequestOption as Kind;
use spark_connect_proto::execute_plan_response::ResponseType;
use spark_connect_proto::{Command, Plan};

use crate::plan::{self, Request};
use crate::{Error, Operation, Result, Session};

/// Whether and how record batches too large for one message are cut.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chunking {
    pub is_allowed: bool,
    pub preferred_bytes: Option<i64>,
}

impl Chunking {
    pub fn of(options: &[RequestOption]) -> Chunking {
        options
            .iter()
            .find_map(|option| match &option.request_option {
                Some(Kind::ResultChunkingOptions(options)) => Some(Chunking {
                    is_allowed: options.allow_arrow_batch_chunking,
                    preferred_bytes: options.preferred_arrow_chunk_size,
                }),
                _ => None,
            })
            .unwrap_or_default()
    }
}

/// Runs a plan to its end; its results go to the operation's responses.
///
/// # Errors
/// What the plan's parts say; [`Error::Cancelled`] soon after the operation is cancelled.
pub async fn run(
    session: Arc<Session>,
    operation: Arc<Operation>,
    plan: Option<Plan>,
    chunking: Chunking,
) -> Result<()> {
    match plan::request(plan, session.options().plan_bytes_max)? {
        Request::Relation(relation) => {
            operation.unless_cancelled(relation::run(&session, &operation, &relation, chunking)).await
        }
        Request::Command(command) => run_command(&session, &operation, *command).await,
    }
}

async fn run_command(session: &Arc<Session>, operation: &Arc<Operation>, command: Command) -> Result<()> {
    let command =
        command.command_type.ok_or(Error::NotSet { message: "spark.connect.Command", field: "command_type" })?;
    match command {
        // It watches for the cancellation itself, to end its gang in order.
        CommandType::MlCommand(command) => {
            let result = Box::pin(crate::ml::run_command(session, operation, &command)).await?;
            operation.send(ResponseType::MlCommandResult(result)).await
        }
        // So does it: training is one of its statements.
        CommandType::SqlCommand(command) => Box::pin(sql::run(session, operation, command)).await,
        command => operation.unless_cancelled(Box::pin(run_other(session, operation, command))).await,
    }
}

async fn run_other(session: &Arc<Session>, operation: &Arc<Operation>, command: CommandType) -> Result<()> {
    let unsupported = |feature: &str| Err(Error::Unsupported { feature: feature.to_string() });
    match command {
        CommandType::CreateDataframeView(command) => view::run(session, command).await,
        CommandType::WriteOperation(command) => write::run(session, command).await,
        CommandType::WriteOperationV2(command) => write::run_v2(session, command).await,
        CommandType::GetResourcesCommand(_) => resources::run(operation).await,
        CommandType::CheckpointCommand(command) => checkpoint::run(session, operation, command).await,
        CommandType::RemoveCachedRemoteRelationCommand(command) => checkpoint::remove(session, command),
        CommandType::Extension(extension) => Err(Error::NoHandlerForExtension { type_url: extension.type_url }),
        CommandType::RegisterFunction(_) => unsupported("user-defined functions"),
        CommandType::RegisterTableFunction(_) => unsupported("user-defined table functions"),
        CommandType::RegisterDataSource(_) => unsupported("data sources in Python"),
        CommandType::WriteStreamOperationStart(_)
        | CommandType::StreamingQueryCommand(_)
        | CommandType::StreamingQueryManagerCommand(_)
        | CommandType::StreamingQueryListenerBusCommand(_) => unsupported("structured streaming"),
        CommandType::CreateResourceProfileCommand(_) => unsupported("resource profiles"),
        CommandType::MergeIntoTableCommand(_) => unsupported("MERGE INTO"),
        CommandType::ExecuteExternalCommand(_) => unsupported("external commands"),
        CommandType::PipelineCommand(_) => unsupported("declarative pipelines"),
        CommandType::MlCommand(_) | CommandType::SqlCommand(_) => {
            Err(Error::Bug { invariant: "ML and SQL commands are run by their own arms" })
        }
    }
}
