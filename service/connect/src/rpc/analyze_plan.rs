//! AnalyzePlan: what can be said of a plan without running it, and the few things beside that Spark put here.

mod semantics;

use std::sync::Arc;

use engine::data_type::{
    field_to_proto, parse_ddl_or_type, schema_from_json, schema_to_proto, simple_string, tree_string,
};
use spark_connect_proto::analyze_plan_request::explain::ExplainMode;
use spark_connect_proto::analyze_plan_request::{self as request, Analyze};
use spark_connect_proto::analyze_plan_response::{self as response, Result as Answer};
use spark_connect_proto::{AnalyzePlanRequest, AnalyzePlanResponse, Plan, Relation, StorageLevel};

use crate::session::{SessionRef, Sessions};
use crate::{Error, Result, Session, plan};

/// The version of the protocol's messages that this server is built from. Clients of later versions ask for it too, to
/// leave out what an older server would not know.
const SPARK_VERSION: &str = "4.2.0";

pub async fn answer(sessions: Arc<Sessions>, request: AnalyzePlanRequest) -> Result<AnalyzePlanResponse> {
    let session = sessions.get_or_create(&SessionRef {
        id: &request.session_id,
        user: request.user_context.as_ref(),
        observed: request.client_observed_server_side_session_id.as_deref(),
    })?;
    let message = "spark.connect.AnalyzePlanRequest";
    let analyze = request.analyze.ok_or(Error::NotSet { message, field: "analyze" })?;
    let result = Box::pin(analyze_plan(&session, analyze)).await?;
    Ok(AnalyzePlanResponse {
        session_id: request.session_id,
        server_side_session_id: session.server_session_id.clone(),
        result: Some(result),
    })
}

async fn analyze_plan(session: &Arc<Session>, analyze: Analyze) -> Result<Answer> {
    Ok(match analyze {
        Analyze::Schema(message) => Answer::Schema(schema(session, message.plan).await?),
        Analyze::Explain(message) => Answer::Explain(explain(session, message).await?),
        Analyze::TreeString(message) => Answer::TreeString(tree(session, message).await?),
        Analyze::IsLocal(message) => Answer::IsLocal(is_local(session, message.plan)?),
        Analyze::IsStreaming(message) => {
            // There are no streaming relations; the plan must still be one that resolves.
            resolve(session, message.plan).await?;
            Answer::IsStreaming(response::IsStreaming { is_streaming: false })
        }
        Analyze::InputFiles(message) => {
            resolve(session, message.plan).await?;
            return Err(Error::Unsupported { feature: "inputFiles".to_string() });
        }
        Analyze::SparkVersion(_) => Answer::SparkVersion(response::SparkVersion { version: SPARK_VERSION.to_string() }),
        Analyze::DdlParse(message) => {
            let field = parse_ddl_or_type(&message.ddl_string)?;
            Answer::DdlParse(response::DdlParse { parsed: Some(field_to_proto(&field)) })
        }
        Analyze::SameSemantics(message) => Answer::SameSemantics(same_semantics(session, message)?),
        Analyze::SemanticHash(message) => {
            let relation = relation(session, message.plan)?;
            Answer::SemanticHash(response::SemanticHash { result: semantics::hash(&relation) })
        }
        Analyze::Persist(message) => {
            let relation = set(message.relation, "spark.connect.AnalyzePlanRequest.Persist")?;
            let level = message.storage_level.unwrap_or_else(memory_and_disk);
            session.engine.persist(&relation, level);
            Answer::Persist(response::Persist {})
        }
        Analyze::Unpersist(message) => {
            let relation = set(message.relation, "spark.connect.AnalyzePlanRequest.Unpersist")?;
            session.engine.unpersist(&relation);
            Answer::Unpersist(response::Unpersist {})
        }
        Analyze::GetStorageLevel(message) => {
            let relation = set(message.relation, "spark.connect.AnalyzePlanRequest.GetStorageLevel")?;
            let storage_level = session.engine.storage_level(&relation);
            Answer::GetStorageLevel(response::GetStorageLevel { storage_level: Some(storage_level) })
        }
        Analyze::JsonToDdl(message) => Answer::JsonToDdl(json_to_ddl(&message.json_string)?),
    })
}

fn set(relation: Option<Relation>, message: &'static str) -> Result<Relation> {
    relation.ok_or(Error::NotSet { message, field: "relation" })
}

fn relation(session: &Session, plan: Option<Plan>) -> Result<Relation> {
    plan::relation(plan, session.options().plan_bytes_max)
}

async fn resolve(session: &Arc<Session>, plan: Option<Plan>) -> Result<engine::embedded::Frame> {
    let relation = relation(session, plan)?;
    Ok(Box::pin(session.engine.resolve(&relation, session.as_ref())).await?)
}

async fn schema(session: &Arc<Session>, plan: Option<Plan>) -> Result<response::Schema> {
    let frame = resolve(session, plan).await?;
    Ok(response::Schema { schema: Some(schema_to_proto(&frame.schema())) })
}

async fn tree(session: &Arc<Session>, message: request::TreeString) -> Result<response::TreeString> {
    let frame = resolve(session, message.plan).await?;
    Ok(response::TreeString { tree_string: tree_string(&frame.schema(), message.level) })
}

/// The plan as DataFusion shows it: unlike the rest, this text is not Spark's, because the plan is not.
async fn explain(session: &Arc<Session>, message: request::Explain) -> Result<response::Explain> {
    let frame = resolve(session, message.plan).await?;
    let mode = match ExplainMode::try_from(message.explain_mode) {
        Ok(ExplainMode::Simple) => "simple",
        Ok(ExplainMode::Extended) => "extended",
        Ok(ExplainMode::Codegen) => "codegen",
        Ok(ExplainMode::Cost) => "cost",
        Ok(ExplainMode::Formatted) => "formatted",
        Ok(ExplainMode::Unspecified) | Err(_) => {
            let enumeration = "spark.connect.AnalyzePlanRequest.Explain.ExplainMode";
            return Err(Error::UnknownEnumValue { enumeration, number: message.explain_mode });
        }
    };
    Ok(response::Explain { explain_string: session.engine.explain(&frame, mode).await? })
}

/// Whether the rows came with the plan.
fn is_local(session: &Arc<Session>, plan: Option<Plan>) -> Result<response::IsLocal> {
    use spark_connect_proto::relation::RelType;
    let relation = relation(session, plan)?;
    let is_local = matches!(
        relation.rel_type,
        Some(RelType::LocalRelation(_) | RelType::CachedLocalRelation(_) | RelType::ChunkedCachedLocalRelation(_))
    );
    Ok(response::IsLocal { is_local })
}

fn same_semantics(session: &Session, message: request::SameSemantics) -> Result<response::SameSemantics> {
    let target = relation(session, message.target_plan)?;
    let other = relation(session, message.other_plan)?;
    Ok(response::SameSemantics { result: semantics::are_same(&target, &other) })
}

/// Spark's DDL of a schema: names in backticks where they are no plain words.
fn json_to_ddl(json: &str) -> Result<response::JsonToDdl> {
    let schema = schema_from_json(json)?;
    let columns: Vec<String> = schema
        .fields()
        .iter()
        .map(|field| {
            let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
            format!("{} {}{not_null}", ddl_name(field.name()), simple_string(field).to_uppercase())
        })
        .collect();
    Ok(response::JsonToDdl { ddl_string: columns.join(",") })
}

fn ddl_name(name: &str) -> String {
    let is_plain =
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && name.chars().any(|c| !c.is_ascii_digit());
    if is_plain { name.to_string() } else { format!("`{}`", name.replace('`', "``")) }
}

/// Spark's `MEMORY_AND_DISK_DESER`, the level of `cache()`.
fn memory_and_disk() -> StorageLevel {
    StorageLevel { use_disk: true, use_memory: true, use_off_heap: false, deserialized: true, replication: 1 }
}
