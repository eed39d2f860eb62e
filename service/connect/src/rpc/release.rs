//! ReleaseExecute and ReleaseSession: the client is done with responses, an operation or all of it.

use std::sync::Arc;

use spark_connect_proto::release_execute_request::Release;
use spark_connect_proto::{
    ReleaseExecuteRequest, ReleaseExecuteResponse, ReleaseSessionRequest, ReleaseSessionResponse,
};

use crate::session::{SessionRef, Sessions};
use crate::{Error, Result};

/// Forgets responses, or cancels and forgets the operation. An operation that is gone already is no error: the answer then
/// names none.
pub async fn execute(sessions: Arc<Sessions>, request: ReleaseExecuteRequest) -> Result<ReleaseExecuteResponse> {
    let session = sessions.get(&SessionRef {
        id: &request.session_id,
        user: request.user_context.as_ref(),
        observed: request.client_observed_server_side_session_id.as_deref(),
    })?;
    let operation = session.operation(&request.operation_id).ok();
    if let Some(operation) = &operation {
        if !operation.is_reattachable {
            return Err(Error::NotReattachable { id: request.operation_id });
        }
        match request.release {
            Some(Release::ReleaseAll(_)) => {
                session.drop_operation(&operation.id);
            }
            Some(Release::ReleaseUntil(until)) => operation.log.release_until(&until.response_id),
            None => return Err(Error::NotSet { message: "spark.connect.ReleaseExecuteRequest", field: "release" }),
        }
    }
    Ok(ReleaseExecuteResponse {
        session_id: request.session_id,
        server_side_session_id: session.server_session_id.clone(),
        operation_id: operation.map(|operation| operation.id.clone()),
    })
}

/// Ends the session; releasing one that is gone already is no error.
pub async fn session(sessions: Arc<Sessions>, request: ReleaseSessionRequest) -> Result<ReleaseSessionResponse> {
    let call = SessionRef { id: &request.session_id, user: request.user_context.as_ref(), observed: None };
    let session = sessions.release(&call, request.allow_reconnect)?;
    let server_side_session_id = session.map(|session| session.server_session_id.clone()).unwrap_or_default();
    Ok(ReleaseSessionResponse { session_id: request.session_id, server_side_session_id })
}
