//! A relation's rows written to files or a table.

use std::sync::Arc;

use spark_connect_proto::{WriteOperation, WriteOperationV2};

use crate::{Result, Session};

pub async fn run(session: &Arc<Session>, command: WriteOperation) -> Result<()> {
    Ok(Box::pin(session.engine.write(&command, session.as_ref())).await?)
}

pub async fn run_v2(session: &Arc<Session>, command: WriteOperationV2) -> Result<()> {
    Ok(Box::pin(session.engine.write_v2(&command, session.as_ref())).await?)
}
