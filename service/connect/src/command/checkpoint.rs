//! A checkpoint: a relation's rows kept by the server under an id, until the client lets go of it.

use std::sync::Arc;

use futures::StreamExt;
use spark_connect_proto::execute_plan_response::ResponseType;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{
    CachedRemoteRelation, CheckpointCommand, CheckpointCommandResult, Relation, RemoveCachedRemoteRelationCommand,
};

use crate::{Error, Operation, Result, Session};

/// An eager checkpoint computes its rows now, a lazy one when they are first asked for; both keep them in this server,
/// whether the client calls it local or not.
pub async fn run(session: &Arc<Session>, operation: &Arc<Operation>, command: CheckpointCommand) -> Result<()> {
    let message = "spark.connect.CheckpointCommand";
    let relation = command.relation.ok_or(Error::NotSet { message, field: "relation" })?;
    let frame = Box::pin(session.engine.resolve(&relation, session.as_ref())).await?;
    let kept = Kept { session, id: uuid::Uuid::new_v4().to_string(), is_handed_over: false };
    session.engine.put_remote(&kept.id, frame);
    let remote = CachedRemoteRelation { relation_id: kept.id.clone() };
    if command.eager {
        let relation = Relation { common: None, rel_type: Some(RelType::CachedRemoteRelation(remote.clone())) };
        let frame = session.engine.resolve(&relation, session.as_ref()).await?;
        let mut rows = session.engine.run(&frame).await?;
        while let Some(record_batch) = rows.next().await {
            record_batch.map_err(engine::Error::from)?;
        }
    }
    let result = CheckpointCommandResult { relation: Some(remote) };
    operation.send(ResponseType::CheckpointCommandResult(result)).await?;
    kept.hand_over();
    Ok(())
}

/// A checkpoint that goes away again if the client never learns of it.
struct Kept<'a> {
    session: &'a Session,
    id: String,
    is_handed_over: bool,
}

impl Kept<'_> {
    fn hand_over(mut self) {
        self.is_handed_over = true;
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        if !self.is_handed_over {
            self.session.engine.remove_remote(&self.id);
        }
    }
}

/// An id that is gone already is no error.
pub fn remove(session: &Arc<Session>, command: RemoveCachedRemoteRelationCommand) -> Result<()> {
    let message = "spark.connect.RemoveCachedRemoteRelationCommand";
    let relation = command.relation.ok_or(Error::NotSet { message, field: "relation" })?;
    session.engine.remove_remote(&relation.relation_id);
    Ok(())
}
