//! Interrupt: cancels running operations, all of a session's, those of a tag, or one.

use std::sync::Arc;

use spark_connect_proto::interrupt_request::{Interrupt, InterruptType};
use spark_connect_proto::{InterruptRequest, InterruptResponse};

use crate::session::{SessionRef, Sessions};
use crate::{Error, Result};

pub async fn answer(sessions: Arc<Sessions>, request: InterruptRequest) -> Result<InterruptResponse> {
    let session = sessions.get_or_create(&SessionRef {
        id: &request.session_id,
        user: request.user_context.as_ref(),
        observed: request.client_observed_server_side_session_id.as_deref(),
    })?;
    let interrupted_ids = match (InterruptType::try_from(request.interrupt_type), request.interrupt) {
        (Ok(InterruptType::All), _) => session.interrupt(|_| true),
        (Ok(InterruptType::Tag), Some(Interrupt::OperationTag(tag))) if !tag.is_empty() => {
            session.interrupt(|operation| operation.tags.contains(&tag))
        }
        (Ok(InterruptType::Tag), _) => return Err(Error::InterruptWithoutTag),
        (Ok(InterruptType::OperationId), Some(Interrupt::OperationId(id))) if !id.is_empty() => {
            session.interrupt(|operation| operation.id == id)
        }
        (Ok(InterruptType::OperationId), _) => return Err(Error::InterruptWithoutOperation),
        (Ok(InterruptType::Unspecified) | Err(_), _) => {
            let enumeration = "spark.connect.InterruptRequest.InterruptType";
            return Err(Error::UnknownEnumValue { enumeration, number: request.interrupt_type });
        }
    };
    Ok(InterruptResponse {
        session_id: request.session_id,
        server_side_session_id: session.server_session_id.clone(),
        interrupted_ids,
    })
}
