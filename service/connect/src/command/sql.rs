//! SQL text: a query comes back as the relation it is, for the client to go on with; a statement with an effect runs at
//! once, and what it answers comes back as a relation of ready rows.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use engine::data_type::schema_to_json;
use spark_connect_proto::execute_plan_response::{ResponseType, SqlCommandResult};
use spark_connect_proto::expression::{ExprType, Literal};
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, LocalRelation, Relation, Sql, SqlCommand, WithRelations};
use sql::{Parameters, Statement};

use super::record_batches::{ipc_stream, relabel, wire_schema};
use crate::{Error, Operation, Result, Session};

pub async fn run(session: &Arc<Session>, operation: &Arc<Operation>, command: SqlCommand) -> Result<()> {
    let input = input(command)?;
    let sql = text_of(&input)?;
    let statement = sql::parse(&sql.query, &parameters(sql));
    let statement = statement.map_err(|error| Error::Sql(error).in_text(&sql.query))?;
    let answer = match statement {
        // queries stay lazy
        Statement::Query(_) => input,
        Statement::Model(statement) => {
            let around = |query| with_references(query, &input);
            let answer = Box::pin(crate::model::run_statement(session, operation, *statement, &around)).await;
            answer.map_err(|error| error.in_text(&sql.query))?
        }
        _ => operation.unless_cancelled(Box::pin(run_statement(session, &input))).await?,
    };
    operation.send(ResponseType::SqlCommandResult(SqlCommandResult { relation: Some(answer) })).await
}

/// The text of a command, which may stand beside relations that it names.
fn text_of(input: &Relation) -> Result<&Sql> {
    match &input.rel_type {
        Some(RelType::Sql(sql)) => Ok(sql),
        Some(RelType::WithRelations(with)) => match with.root.as_ref().and_then(|root| root.rel_type.as_ref()) {
            Some(RelType::Sql(sql)) => Ok(sql),
            _ => Err(Error::NotSqlText),
        },
        _ => Err(Error::NotSqlText),
    }
}

/// A query of a statement, with the relations that the client sent along with the statement.
fn with_references(query: Relation, input: &Relation) -> Relation {
    let Some(RelType::WithRelations(with)) = &input.rel_type else { return query };
    let with = WithRelations { root: Some(Box::new(query)), references: with.references.clone() };
    Relation { common: None, rel_type: Some(RelType::WithRelations(Box::new(with))) }
}

/// A statement's parameters: literals from older clients, expressions from newer ones.
#[expect(deprecated, reason = "older clients fill these fields")]
fn parameters(message: &Sql) -> Parameters {
    let literal = |literal: &Literal| Expression { common: None, expr_type: Some(ExprType::Literal(literal.clone())) };
    let mut parameters = Parameters::default();
    parameters.named.extend(message.args.iter().map(|(name, value)| (name.clone(), literal(value))));
    parameters.named.extend(message.named_arguments.iter().map(|(name, value)| (name.clone(), value.clone())));
    parameters.positional.extend(message.pos_args.iter().map(literal));
    parameters.positional.extend(message.pos_arguments.iter().cloned());
    parameters
}

/// Resolving a statement runs it.
async fn run_statement(session: &Arc<Session>, input: &Relation) -> Result<Relation> {
    let frame = Box::pin(session.engine.resolve(input, session.as_ref())).await?;
    let record_batches = session.engine.collect(&frame).await?;
    ready(session, &frame.schema(), &record_batches)
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

/// Rows that are ready, as a relation.
pub fn ready(session: &Session, schema: &SchemaRef, record_batches: &[RecordBatch]) -> Result<Relation> {
    let time_zone = session.engine.conf().session_time_zone().name();
    let wire = Arc::new(wire_schema(schema, &time_zone));
    let record_batches: Result<Vec<RecordBatch>> =
        record_batches.iter().map(|record_batch| relabel(record_batch, &wire)).collect();
    let record_batch = concat_batches(&wire, &record_batches?)?;
    let local = LocalRelation { data: Some(ipc_stream(&wire, &record_batch)?), schema: Some(schema_to_json(schema)) };
    Ok(Relation { common: None, rel_type: Some(RelType::LocalRelation(local)) })
}
