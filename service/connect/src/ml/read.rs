//! `Read`: loads a model or an operator from Spark ML's layout.

use std::sync::Arc;

use ml::{Kind, Params, persist};
use spark_connect_proto::ml_command::Read;
use spark_connect_proto::ml_command_result::{MlOperatorInfo, ResultType, ml_operator_info::Type};
use spark_connect_proto::{MlOperator, ObjectRef, ml_operator::OperatorType};

use super::cache::CachedModel;
use super::{literal, missing, store};
use crate::Result;
use crate::session::Session;

/// # Errors
/// Nothing is saved at the path; it is another class than was asked for; a file of it is damaged.
pub async fn run(session: &Session, read: &Read) -> Result<ResultType> {
    let named = read.operator.as_ref().ok_or_else(|| missing("operator of Read"))?;
    let operator = ml::catalog::operator(&named.name)?;
    if let Some(model) = crate::model::of_path(session, &read.path).await? {
        return named_model(session, named, model);
    }
    let (store, prefix) = store::locate(&read.path)?;
    let loaded = persist::read_operator(store.as_ref(), &prefix).await?;
    if loaded.class != named.name {
        let detail = format!("expected {}, found {}", named.name, loaded.class);
        return Err(ml::Error::Corrupted { path: format!("{}/metadata", read.path), detail }.into());
    }
    let params = Params::from_json(operator, &loaded.uid, &loaded.explicit)?;
    let (uid, explicit) = (Some(loaded.uid.clone()), Some(literal::ml_params(&params)));
    let target = match (named.r#type(), &operator.kind) {
        (OperatorType::Model, Kind::Estimator(estimator)) => {
            let model = estimator.load(operator, &params, &loaded.saved)?;
            Type::ObjRef(ObjectRef { id: session.models.add_model(CachedModel::new(model, None)) })
        }
        (OperatorType::Model, _) => return Err(ml::Error::OperatorNotSupported { class: named.name.clone() }.into()),
        _ => Type::Name(operator.class.into()),
    };
    let info = MlOperatorInfo { uid, params: explicit, warning_message: None, r#type: Some(target) };
    Ok(ResultType::OperatorInfo(info))
}

/// The estimator's model of a model by name: its features are a column of vectors, as `ml_transform` gives them.
fn named_model(session: &Session, named: &MlOperator, model: Arc<dyn ml::Model>) -> Result<ResultType> {
    if model.class() != named.name {
        let detail = format!("expected {}, found {}", named.name, model.class());
        return Err(ml::Error::Corrupted { path: named.name.clone(), detail }.into());
    }
    let (uid, params) = (Some(model.params().uid.clone()), Some(literal::ml_params(model.params())));
    let target = Type::ObjRef(ObjectRef { id: session.models.add_model(CachedModel::new(model, None)) });
    Ok(ResultType::OperatorInfo(MlOperatorInfo { uid, params, warning_message: None, r#type: Some(target) }))
}
