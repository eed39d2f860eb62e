//! ReattachExecute: goes on with an operation's responses after the last one the client has.

use std::sync::Arc;

use spark_connect_proto::ReattachExecuteRequest;

use crate::response::{ResponseStream, stream};
use crate::session::{SessionRef, Sessions};
use crate::{Error, Result};

pub async fn answer(sessions: Arc<Sessions>, request: ReattachExecuteRequest) -> Result<ResponseStream> {
    let session = sessions.get(&SessionRef {
        id: &request.session_id,
        user: request.user_context.as_ref(),
        observed: request.client_observed_server_side_session_id.as_deref(),
    })?;
    let operation = session.operation(&request.operation_id)?;
    if !operation.is_reattachable {
        return Err(Error::NotReattachable { id: request.operation_id });
    }
    let cursor = operation.log.attach(request.last_response_id.as_deref())?;
    Ok(stream(operation, cursor, session.stream_limits()))
}
