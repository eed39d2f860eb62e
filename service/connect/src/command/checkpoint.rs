//! A checkpoint: a relation's rows kept by the server under an id, until the client lets go of it.

use std::sync::Arc;

use spark_connect_proto::execute_plan_response::ResponseType;
use spark_connect_proto::{
    CachedRemoteRelation, CheckpointCommand, CheckpointCommandResult, RemoveCachedRemoteRelationCommand,
};

use crate::{Error, Operation, Result, Session};

pub async fn run(session: &Arc<Session>, operation: &Arc<Operation>, command: CheckpointCommand) -> Result<()> {
    let message = "spark.connect.CheckpointCommand";
    let relation = command.relation.ok_or(Error::NotSet { message, field: "relation" })?;
    let frame = Box::pin(session.engine.resolve(&relation, session.as_ref())).await?;
    let relation_id = Box::pin(session.engine.checkpoint(frame, command.eager)).await?;
    let relation = Some(CachedRemoteRelation { relation_id });
    operation.send(ResponseType::CheckpointCommandResult(CheckpointCommandResult { relation })).await
}

/// An id that is gone already is no error.
pub fn remove(session: &Arc<Session>, command: RemoveCachedRemoteRelationCommand) -> Result<()> {
    let message = "spark.connect.RemoveCachedRemoteRelationCommand";
    let relation = command.relation.ok_or(Error::NotSet { message, field: "relation" })?;
    session.engine.remove_remote(&relation.relation_id);
    Ok(())
}
