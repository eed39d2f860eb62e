//! `Write`: saves a model or an operator in Spark ML's layout.

use ml::persist::{self, Saved};
use spark_connect_proto::ml_command::{Write, write::Type};

use super::{literal, missing, store};
use crate::Result;
use crate::session::Session;

/// # Errors
/// The path exists and is not to be overwritten; the store refuses.
pub async fn run(session: &Session, write: &Write) -> Result<()> {
    if let Some(option) = write.options.keys().next() {
        let feature = format!("option {option} of saving an ML operator");
        return Err(engine::Error::Unsupported { feature }.into());
    }
    let (class, params, saved) = match write.r#type.as_ref().ok_or_else(|| missing("operator or obj_ref of Write"))? {
        Type::Operator(named) => {
            let operator = ml::catalog::operator(&named.name)?;
            let params = ml::Params::new(operator, &named.uid, literal::params(write.params.as_ref())?)?;
            (operator.class, params, Saved::default())
        }
        Type::ObjRef(object) => {
            let cached = session.models.model(&object.id)?;
            let model = &cached.model;
            let params = model.params().with(model.operator(), literal::params(write.params.as_ref())?)?;
            (model.class(), params, model.save()?)
        }
    };
    let (store, prefix) = store::locate(&write.path)?;
    Ok(persist::write_operator(store.as_ref(), &prefix, class, &params, &saved, write.should_overwrite()).await?)
}
