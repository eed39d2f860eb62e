//! `Delete`, `CleanCache`, `GetCacheInfo`, `GetModelSize`: what the client says of the cache.

use ml::Value;
use spark_connect_proto::ml_command::{Delete, GetModelSize};
use spark_connect_proto::ml_command_result::ResultType;

use super::{literal, missing, objects};
use crate::Result;
use crate::session::Session;

/// Deletes or evicts; the answer names what was there. A summary that is addressed through its model (`id.summary`) goes
/// with the model.
pub fn run(session: &Session, delete: &Delete) -> ResultType {
    let remove = |id: &str| match delete.evict_only() {
        true => session.models.evict(id),
        false => session.models.remove(id),
    };
    let ids: Vec<String> =
        delete.obj_refs.iter().map(|o| o.id.clone()).filter(|id| !id.contains('.') && remove(id)).collect();
    objects(&ids, None, None)
}

pub fn clean(session: &Session) -> ResultType {
    ResultType::Param(literal::from_value(&Value::Int(session.models.clear() as i32)))
}

pub fn info(session: &Session) -> ResultType {
    ResultType::Param(literal::from_value(&Value::strings(&session.models.listing())))
}

/// # Errors
/// [`crate::Error::ObjectNotFound`]
pub fn size(session: &Session, size: &GetModelSize) -> Result<ResultType> {
    let id = &size.model_ref.as_ref().ok_or_else(|| missing("model_ref of GetModelSize"))?.id;
    let bytes = session.models.model(id)?.model.size_bytes();
    Ok(ResultType::Param(literal::from_value(&Value::Long(bytes as i64))))
}
