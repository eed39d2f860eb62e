//! A relation's rows: the schema, then record batches as they come, then that all is done.

use std::sync::Arc;

use engine::data_type::schema_to_proto;
use futures::StreamExt;
use spark_connect_proto::execute_plan_response::execution_progress::StageInfo;
use spark_connect_proto::execute_plan_response::{ExecutionProgress, ResponseType};
use spark_connect_proto::{ExecutePlanResponse, Relation};

use super::Chunking;
use super::record_batches::{Encoder, Limits};
use crate::{Operation, Result, Session};

pub async fn run(
    session: &Arc<Session>,
    operation: &Arc<Operation>,
    relation: &Relation,
    chunking: Chunking,
) -> Result<()> {
    let frame = Box::pin(session.engine.resolve(relation, session.as_ref())).await?;
    let schema = Some(schema_to_proto(&frame.schema()));
    operation.log.push(ExecutePlanResponse { schema, ..operation.envelope() }).await?;

    let mut rows = session.engine.run(&frame).await?;
    let mut encoder = Encoder::new(&rows.schema(), limits(session, chunking))?;
    let mut num_rows = 0;
    while let Some(record_batch) = rows.next().await {
        let record_batch = record_batch.map_err(engine::Error::from)?;
        num_rows += record_batch.num_rows();
        for message in encoder.push(record_batch)? {
            operation.send(ResponseType::ArrowBatch(message)).await?;
        }
    }
    for message in encoder.finish()? {
        operation.send(ResponseType::ArrowBatch(message)).await?;
    }
    tracing::debug!(operation_id = operation.id, num_rows, "relation ran");
    operation.progress(done());
    Ok(())
}

fn limits(session: &Session, chunking: Chunking) -> Limits {
    let conf = session.engine.conf();
    let rows_max = conf.get("spark.sql.execution.arrow.maxRecordsPerBatch").and_then(|value| value.trim().parse().ok());
    Limits::new(rows_max, chunking, conf.session_time_zone().name())
}

fn done() -> ExecutionProgress {
    let stage = StageInfo { stage_id: 0, num_tasks: 1, num_completed_tasks: 1, input_bytes_read: 0, done: true };
    ExecutionProgress { stages: vec![stage], num_inflight_tasks: 0 }
}
