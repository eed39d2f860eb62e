//! The helper object: functions that clients call without a model.

use ml::{Argument, Attribute, Value, persist};
use spark_connect_proto::fetch::Method;

use super::fetch::Fetched;
use super::relation::argument;
use super::store;
use crate::session::Session;
use crate::{Error, Result};

/// The id that every client knows it by.
pub const ID: &str = "______ML_CONNECT_HELPER______";

/// # Errors
/// [`ml::Error::AttributeNotAllowed`] for functions the helper has not; [`ml::Error::Unsupported`] for those of Spark that
/// are not there yet.
pub async fn call(_: &Session, method: &Method) -> Result<Fetched> {
    let arguments = method.args.iter().map(|a| Ok(argument(a)?.0)).collect::<Result<Vec<Argument>>>()?;
    let values: Vec<&Value> =
        arguments.iter().filter_map(|a| if let Argument::Value(value) = a { Some(value) } else { None }).collect();
    match (method.method.as_str(), values.as_slice()) {
        ("handleOverwrite", [Value::String(path), Value::Boolean(should_overwrite)]) => {
            handle_overwrite(path, *should_overwrite).await?;
            Ok(value(Value::Boolean(true)))
        }
        ("stringIndexerModelFromLabels", [Value::String(uid), Value::Array { values, .. }]) => {
            let labels = ml::feature::string_indexer::model_from_labels(uid, vec![strings(values)])?;
            Ok(Fetched::Attribute(Attribute::Model(labels)))
        }
        ("stringIndexerModelFromLabelsArray", [Value::String(uid), Value::Array { values, .. }]) => {
            let labels =
                values.iter().map(|v| if let Value::Array { values, .. } = v { strings(values) } else { vec![] });
            let model = ml::feature::string_indexer::model_from_labels(uid, labels.collect())?;
            Ok(Fetched::Attribute(Attribute::Model(model)))
        }
        ("countVectorizerModelFromVocabulary", [Value::String(uid), Value::Array { values, .. }]) => {
            let model = ml::feature::count_vectorizer::model_from_vocabulary(uid, strings(values))?;
            Ok(Fetched::Attribute(Attribute::Model(model)))
        }
        (
            "stopWordsRemoverLoadDefaultStopWords"
            | "stopWordsRemoverGetDefaultOrUS"
            | "chiSquareTest"
            | "correlation"
            | "kolmogorovSmirnovTest"
            | "powerIterationClusteringAssignClusters"
            | "prefixSpanFindFrequentSequentialPatterns",
            _,
        ) => Err(ml::Error::Unsupported { feature: format!("the function {}", method.method) }.into()),
        (other, _) => {
            Err(ml::Error::AttributeNotAllowed { class: "ConnectHelper".into(), method: other.into() }.into())
        }
    }
}

fn value(value: Value) -> Fetched {
    Fetched::Attribute(Attribute::Value(value))
}

fn strings(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(|v| if let Value::String(v) = v { Some(v.clone()) } else { None }).collect()
}

/// Clears the way for a pipeline, whose parts the client then writes one by one.
async fn handle_overwrite(path: &str, should_overwrite: bool) -> Result<()> {
    let (store, prefix) = store::locate(path)?;
    let exists = persist::exists(store.as_ref(), &prefix).await?;
    if exists && !should_overwrite {
        return Err(Error::Ml(ml::Error::PathExists { path: path.into() }));
    }
    if exists {
        persist::delete(store.as_ref(), &prefix).await?;
    }
    Ok(())
}
