//! FetchErrorDetails: the whole of an error whose status had to be short.

use std::sync::Arc;

use spark_connect_proto::{FetchErrorDetailsRequest, FetchErrorDetailsResponse};

use crate::Result;
use crate::session::{SessionRef, Sessions};

/// An error that is no longer kept gives an answer without one, and the client shows the short form.
pub async fn answer(sessions: Arc<Sessions>, request: FetchErrorDetailsRequest) -> Result<FetchErrorDetailsResponse> {
    let session = sessions.get_or_create(&SessionRef {
        id: &request.session_id,
        user: request.user_context.as_ref(),
        observed: request.client_observed_server_side_session_id.as_deref(),
    })?;
    let report = session.error(&request.error_id);
    Ok(FetchErrorDetailsResponse {
        session_id: request.session_id,
        server_side_session_id: session.server_session_id.clone(),
        root_error_idx: report.as_ref().map(|_| 0),
        errors: report.map(|report| report.details()).unwrap_or_default(),
    })
}
