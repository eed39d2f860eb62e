//! CloneSession: a new session with the configuration, views and artifacts of another.

use std::sync::Arc;

use spark_connect_proto::{CloneSessionRequest, CloneSessionResponse};

use crate::Result;
use crate::session::{SessionRef, Sessions};

pub async fn answer(sessions: Arc<Sessions>, request: CloneSessionRequest) -> Result<CloneSessionResponse> {
    let source = sessions.get(&SessionRef {
        id: &request.session_id,
        user: request.user_context.as_ref(),
        observed: request.client_observed_server_side_session_id.as_deref(),
    })?;
    let id = request.new_session_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let clone = sessions.insert_clone(&source, id)?;
    Ok(CloneSessionResponse {
        session_id: request.session_id,
        server_side_session_id: source.server_session_id.clone(),
        new_session_id: clone.id.clone(),
        new_server_side_session_id: clone.server_session_id.clone(),
    })
}
