//! GetStatus: how a session's operations stand.

use std::sync::Arc;

use spark_connect_proto::get_status_response::OperationStatus;
use spark_connect_proto::get_status_response::operation_status::OperationState as WireState;
use spark_connect_proto::{GetStatusRequest, GetStatusResponse};

use crate::Result;
use crate::operation::OperationState;
use crate::session::{SessionRef, Sessions};

pub async fn answer(sessions: Arc<Sessions>, request: GetStatusRequest) -> Result<GetStatusResponse> {
    let session = sessions.get(&SessionRef {
        id: &request.session_id,
        user: request.user_context.as_ref(),
        observed: request.client_observed_server_side_session_id.as_deref(),
    })?;
    let states = match &request.operation_status {
        Some(wanted) => session.operation_states(&wanted.operation_ids),
        None => Vec::new(),
    };
    let operation_statuses = states
        .into_iter()
        .map(|(operation_id, state)| OperationStatus {
            operation_id,
            state: wire_state(state) as i32,
            ..OperationStatus::default()
        })
        .collect();
    Ok(GetStatusResponse {
        session_id: request.session_id,
        server_side_session_id: session.server_session_id.clone(),
        operation_statuses,
        extensions: Vec::new(),
    })
}

fn wire_state(state: Option<OperationState>) -> WireState {
    match state {
        None => WireState::Unknown,
        Some(OperationState::Running) => WireState::Running,
        Some(OperationState::Terminating) => WireState::Terminating,
        Some(OperationState::Succeeded) => WireState::Succeeded,
        Some(OperationState::Failed) => WireState::Failed,
        Some(OperationState::Cancelled) => WireState::Cancelled,
    }
}
