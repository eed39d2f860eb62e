//! Config: reads and writes a session's configuration.

use std::sync::Arc;

use spark_connect_proto::config_request::operation::OpType;
use spark_connect_proto::config_request::{Get, GetAll, GetOption, GetWithDefault, IsModifiable, Set, Unset};
use spark_connect_proto::{ConfigRequest, ConfigResponse, KeyValue};

use crate::session::{SessionRef, Sessions};
use crate::{Error, Result, Session};

/// Keys of Spark that mean nothing over Spark Connect; setting one is answered with a warning.
const UNSUPPORTED: &[&str] = &["spark.sql.execution.arrow.pyspark.fallback.enabled"];

/// Pairs and warnings.
type Answer = (Vec<KeyValue>, Vec<String>);

pub async fn answer(sessions: Arc<Sessions>, request: ConfigRequest) -> Result<ConfigResponse> {
    let session = sessions.get_or_create(&SessionRef {
        id: &request.session_id,
        user: request.user_context.as_ref(),
        observed: request.client_observed_server_side_session_id.as_deref(),
    })?;
    let operation = request.operation.and_then(|operation| operation.op_type);
    let operation =
        operation.ok_or(Error::NotSet { message: "spark.connect.ConfigRequest.Operation", field: "op_type" })?;
    let (pairs, warnings) = match operation {
        OpType::Set(message) => set(&session, message)?,
        OpType::Get(message) => get(&session, message)?,
        OpType::GetWithDefault(message) => get_with_default(&session, message),
        OpType::GetOption(message) => get_option(&session, message),
        OpType::GetAll(message) => get_all(&session, &message),
        OpType::Unset(message) => unset(&session, message)?,
        OpType::IsModifiable(message) => is_modifiable(&session, message),
    };
    Ok(ConfigResponse {
        session_id: request.session_id,
        server_side_session_id: session.server_session_id.clone(),
        pairs,
        warnings,
    })
}

fn pair(key: String, value: Option<String>) -> KeyValue {
    KeyValue { key, value }
}

fn warnings<'a>(keys: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    keys.into_iter()
        .filter(|key| UNSUPPORTED.contains(&key.as_str()))
        .map(|key| format!("The SQL config '{key}' is NOT supported in Spark Connect"))
        .collect()
}

/// Sets pair by pair; `silent` skips those that cannot be set, as sessions do with the options they are made with.
fn set(session: &Session, message: Set) -> Result<Answer> {
    let is_silent = message.silent.unwrap_or(false);
    let warnings = warnings(message.pairs.iter().map(|pair| &pair.key));
    for KeyValue { key, value } in message.pairs {
        let value = value.ok_or(Error::NotSet { message: "spark.connect.KeyValue", field: "value" })?;
        match session.engine.set_conf(&key, &value) {
            Err(error) if !is_silent => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    Ok((Vec::new(), warnings))
}

fn unset(session: &Session, message: Unset) -> Result<Answer> {
    for key in &message.keys {
        session.engine.unset_conf(key)?;
    }
    Ok((Vec::new(), warnings(&message.keys)))
}

fn get(session: &Session, message: Get) -> Result<Answer> {
    let conf = session.engine.conf();
    let warnings = warnings(&message.keys);
    let pairs: Result<Vec<KeyValue>> = message
        .keys
        .into_iter()
        .map(|key| match conf.get(&key) {
            Some(value) => Ok(pair(key, Some(value))),
            None => Err(Error::ConfNotFound { key }),
        })
        .collect();
    Ok((pairs?, warnings))
}

fn get_with_default(session: &Session, message: GetWithDefault) -> Answer {
    let conf = session.engine.conf();
    let warnings = warnings(message.pairs.iter().map(|pair| &pair.key));
    let pairs = message.pairs.into_iter().map(|KeyValue { key, value }| {
        let value = conf.get(&key).or(value);
        pair(key, value)
    });
    (pairs.collect(), warnings)
}

fn get_option(session: &Session, message: GetOption) -> Answer {
    let conf = session.engine.conf();
    let warnings = warnings(&message.keys);
    let pairs = message.keys.into_iter().map(|key| {
        let value = conf.get(&key);
        pair(key, value)
    });
    (pairs.collect(), warnings)
}

/// The keys that were set; those of a prefix come without it.
fn get_all(session: &Session, message: &GetAll) -> Answer {
    let conf = session.engine.conf();
    let prefix = message.prefix.as_deref().unwrap_or_default();
    let pairs: Vec<KeyValue> = conf
        .explicit()
        .filter_map(|(key, value)| Some(pair(key.strip_prefix(prefix)?.to_string(), Some(value.to_string()))))
        .collect();
    (pairs, Vec::new())
}

fn is_modifiable(session: &Session, message: IsModifiable) -> Answer {
    let conf = session.engine.conf();
    let warnings = warnings(&message.keys);
    let pairs = message.keys.into_iter().map(|key| {
        let value = conf.is_modifiable(&key).to_string();
        pair(key, Some(value))
    });
    (pairs.collect(), warnings)
}
