//! SQL text: a query comes back as the relation it is, for the client to go on with; a statement with an effect runs at
//! once, and what it answers comes back as a relation of ready rows.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use engine::data_type::schema_to_json;
use spark_connect_proto::execute_plan_response::{ResponseType, SqlCommandResult};
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{LocalRelation, Relation, Sql, SqlCommand};

use super::record_batches::{ipc_stream, wire_schema};
use crate::{Error, Operation, Result, Session};

pub async fn run(session: &Arc<Session>, operation: &Arc<Operation>, command: SqlCommand) -> Result<()> {
    let input = input(command)?;
    let answer = match session.engine.statement(&input, session.as_ref()).await? {
        None => input,
        Some((schema, record_batches)) => ready(session, &schema, &record_batches)?,
    };
    operation.send(ResponseType::SqlCommandResult(SqlCommandResult { relation: Some(answer) })).await
}

/// The relation that holds the text; clients before 4.0 send the text itself.
#[expect(deprecated, reason = "older clients fill these fields")]
fn input(command: SqlCommand) -> Result<Relation> {
    let input = match command.input {
        Some(input) => input,
        None if command.sql.is_empty() => {
            return Err(Error::NotSet { message: "spark.connect.SqlCommand", field: "input" });
        }
        None => {
            let sql = Sql {
                query: command.sql,
                args: command.args,
                pos_args: command.pos_args,
                named_arguments: command.named_arguments,
                pos_arguments: command.pos_arguments,
            };
            Relation { common: None, rel_type: Some(RelType::Sql(sql)) }
        }
    };
    Ok(input)
}

fn ready(session: &Session, schema: &SchemaRef, record_batches: &[RecordBatch]) -> Result<Relation> {
    let record_batch = concat_batches(schema, record_batches)?;
    let time_zone = session.engine.conf().session_time_zone().name();
    let wire = Arc::new(wire_schema(schema, &time_zone));
    let columns: Result<Vec<_>, _> = record_batch
        .columns()
        .iter()
        .zip(wire.fields())
        .map(|(column, field)| arrow::compute::cast(column, field.data_type()))
        .collect();
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(record_batch.num_rows()));
    let record_batch = RecordBatch::try_new_with_options(Arc::clone(&wire), columns?, &options)?;
    let local = LocalRelation { data: Some(ipc_stream(&wire, &record_batch)?), schema: Some(schema_to_json(schema)) };
    Ok(Relation { common: None, rel_type: Some(RelType::LocalRelation(local)) })
}
