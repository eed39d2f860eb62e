//! A temporary view of a relation.

use std::sync::Arc;

use spark_connect_proto::CreateDataFrameViewCommand;

use crate::{Error, Result, Session};

pub async fn run(session: &Arc<Session>, command: CreateDataFrameViewCommand) -> Result<()> {
    let message = "spark.connect.CreateDataFrameViewCommand";
    let input = command.input.ok_or(Error::NotSet { message, field: "input" })?;
    let frame = Box::pin(session.engine.resolve(&input, session.as_ref())).await?;
    Ok(session.engine.create_view(&command.name, frame, command.replace, command.is_global)?)
}
