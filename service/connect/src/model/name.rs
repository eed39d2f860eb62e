//! Names of models as statements write them: resolved against the session's catalog and schema.

use registry::ModelName;
use sql::model::Version;

use super::Refusal;
use crate::{Error, Result, Session};

/// # Errors
/// [`Refusal::InvalidName`] for more parts than a name has, [`engine::Error::SchemaNotFound`] for a schema that is not
/// there, and what the registry says of the name.
pub fn resolve(session: &Session, parts: &[String]) -> Result<ModelName> {
    use engine::embedded::session::CATALOG;
    let (schema, name) = match parts {
        [name] => (session.engine.current_database(), name),
        [schema, name] => (schema.clone(), name),
        [catalog, schema, name] if catalog.eq_ignore_ascii_case(CATALOG) => (schema.clone(), name),
        _ => {
            let found = format!("a model is named `name`, `schema`.`name` or `{CATALOG}`.`schema`.`name`");
            return Err(Refusal::InvalidName { model: parts.join("."), found }.into());
        }
    };
    if !session.engine.has_database(&schema) {
        return Err(Error::Engine(engine::Error::SchemaNotFound { name: schema }));
    }
    Ok(ModelName::new(&schema, name)?)
}

/// A version as the registry looks it up: empty for the default one.
pub fn version_text(version: Option<&Version>) -> String {
    match version {
        None => String::new(),
        Some(Version::Number(number)) => number.to_string(),
        Some(Version::Alias(alias)) => alias.clone(),
    }
}

/// `` `schema`.`name` ``
pub fn quoted(name: &ModelName) -> String {
    format!("`{}`.`{}`", name.schema.replace('`', "``"), name.name.replace('`', "``"))
}
