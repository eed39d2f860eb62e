//! ExecutePlan: starts an operation, and streams its responses.

use std::sync::Arc;

use spark_connect_proto::execute_plan_request::RequestOption;
use spark_connect_proto::execute_plan_request::request_option::RequestOption as Kind;
use spark_connect_proto::command::CommandType;
use spark_connect_proto::ml_command::Command as Ml;
use spark_connect_proto::plan::OpType;
use spark_connect_proto::{ExecutePlanRequest, Plan};

use crate::command::{self, Chunking};
use crate::operation::OperationState;
use crate::response::{ResponseStream, StreamLimits, stream};
use crate::session::{Begun, OperationRequest, SessionRef, Sessions, is_uuid};
use crate::{Error, Operation, Result, Session};

pub async fn answer(sessions: Arc<Sessions>, request: ExecutePlanRequest) -> Result<ResponseStream> {
    let session = sessions.get_or_create(&SessionRef {
        id: &request.session_id,
        user: request.user_context.as_ref(),
        observed: request.client_observed_server_side_session_id.as_deref(),
    })?;
    let id = match request.operation_id {
        None => uuid::Uuid::new_v4().to_string(),
        Some(id) if is_uuid(&id) => id,
        Some(handle) => return Err(Error::MalformedHandle { handle }),
    };
    if let Some(tag) = request.tags.iter().find(|tag| tag.is_empty() || tag.contains(',')) {
        return Err(Error::InvalidTag { tag: tag.clone() });
    }
    let is_reattachable = is_reattachable(&request.request_options);
    let begun =
        session.begin(OperationRequest { id, tags: request.tags, is_reattachable, plan: request.plan.clone() })?;
    let operation = match begun {
        Begun::Repeated(operation) => operation,
        Begun::New(operation) => {
            start(&session, &operation, request.plan, Chunking::of(&request.request_options));
            operation
        }
    };
    let cursor = operation.log.attach(None)?;
    let limits = if is_reattachable { session.stream_limits() } else { StreamLimits::NONE };
    Ok(stream(operation, cursor, limits))
}

fn is_reattachable(options: &[RequestOption]) -> bool {
    options.iter().any(|option| matches!(&option.request_option, Some(Kind::ReattachOptions(o)) if o.reattachable))
}

/// Runs the plan in a task of its own, so that a panic in it is the end of that task only.
fn start(session: &Arc<Session>, operation: &Arc<Operation>, plan: Option<Plan>, chunking: Chunking) {
    let mut running = session.services.metrics.operation(kind(plan.as_ref()));
    let work = command::run(Arc::clone(session), Arc::clone(operation), plan, chunking);
    let work = tokio::spawn(Box::pin(work));
    let (session, operation) = (Arc::clone(session), Arc::clone(operation));
    tokio::spawn(async move {
        operation.supervise(work, |report| session.keep_error(report)).await;
        running.outcome = match operation.state() {
            OperationState::Succeeded => "succeeded",
            OperationState::Cancelled | OperationState::Terminating => "cancelled",
            OperationState::Failed | OperationState::Running => "failed",
        };
        drop(running);
        session.touch();
    });
}

/// What an operation is counted as.
fn kind(plan: Option<&Plan>) -> &'static str {
    let command = match plan.and_then(|plan| plan.op_type.as_ref()) {
        Some(OpType::Root(_)) => return "relation",
        Some(OpType::CompressedOperation(_)) => return "compressed",
        Some(OpType::Command(command)) => command.command_type.as_ref(),
        None => None,
    };
    match command {
        Some(CommandType::MlCommand(command)) => match &command.command {
            Some(Ml::Fit(_)) => "ml_fit",
            Some(Ml::Evaluate(_)) => "ml_evaluate",
            Some(Ml::Fetch(_)) => "ml_fetch",
            _ => "ml_other",
        },
        Some(CommandType::SqlCommand(_)) => "sql",
        Some(CommandType::WriteOperation(_) | CommandType::WriteOperationV2(_)) => "write",
        Some(_) => "command",
        None => "unknown",
    }
}
