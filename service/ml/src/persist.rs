//! Spark ML's save format: `metadata/` with one line of JSON, `data/` and its kin with Parquet.
//!
//! What is written here loads in Spark, and the other way round. Tables are written before the metadata, so that a save
//! that was cut short is no operator at all.

mod schema_json;
mod table;

use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use serde_json::{Map, Value as Json, json};

use crate::{Error, Params, Result};

/// The version that metadata states: the Spark whose layout is written.
pub const SPARK_VERSION: &str = "4.2.0";

/// A saved operator's content beside its class, uid and params.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Saved {
    /// More keys of the metadata's JSON object, such as `numFeatures`.
    pub metadata: Map<String, Json>,
    /// Parquet folders by name (`data`), each with its rows. Schemas carry Spark's user-defined types.
    pub tables: Vec<(String, RecordBatch)>,
}

impl Saved {
    /// The table of a name.
    ///
    /// # Errors
    /// [`Error::Corrupted`] when there is none.
    pub fn table(&self, name: &str) -> Result<&RecordBatch> {
        let found = self.tables.iter().find(|(table, _)| table == name).map(|(_, rows)| rows);
        found.ok_or_else(|| Error::Corrupted { path: name.into(), detail: "the folder is missing".into() })
    }
}

/// What was read back.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub class: String,
    pub uid: String,
    /// `paramMap`: the params that were set explicitly.
    pub explicit: Map<String, Json>,
    pub saved: Saved,
}

/// Writes an operator under `prefix`.
///
/// # Errors
/// [`Error::PathExists`] unless `overwrite`; what the store refuses.
pub async fn write_operator(
    store: &dyn ObjectStore,
    prefix: &Path,
    class: &str,
    params: &Params,
    saved: &Saved,
    overwrite: bool,
) -> Result<()> {
    if exists(store, prefix).await? {
        if !overwrite {
            return Err(Error::PathExists { path: format!("/{prefix}") });
        }
        delete(store, prefix).await?;
    }
    for (name, rows) in &saved.tables {
        let file = format!("part-00000-{}-c000.snappy.parquet", uuid::Uuid::new_v4());
        put(store, &prefix.clone().join(name.as_str()), &file, table::to_parquet(rows)?).await?;
    }
    let mut metadata = json!({
        "class": class,
        "timestamp": chrono::Utc::now().timestamp_millis(),
        "sparkVersion": SPARK_VERSION,
        "uid": params.uid,
        "paramMap": params.explicit_json(),
        "defaultParamMap": params.defaults_json(),
    });
    if let Some(object) = metadata.as_object_mut() {
        object.extend(saved.metadata.clone());
    }
    let file = format!("part-00000-{}-c000.txt", uuid::Uuid::new_v4());
    put(store, &prefix.clone().join("metadata"), &file, format!("{metadata}\n").into()).await
}

/// Writes the one part of a folder, then Spark's mark that the folder is whole.
async fn put(store: &dyn ObjectStore, folder: &Path, file: &str, content: Bytes) -> Result<()> {
    store.put(&folder.clone().join(file), PutPayload::from(content)).await?;
    store.put(&folder.clone().join("_SUCCESS"), PutPayload::new()).await?;
    Ok(())
}

/// Reads what [`write_operator`] or Spark wrote under `prefix`.
///
/// # Errors
/// [`Error::PathNotFound`] when there is no metadata, [`Error::Corrupted`] naming the file that cannot be read.
pub async fn read_operator(store: &dyn ObjectStore, prefix: &Path) -> Result<Loaded> {
    let folder = prefix.clone().join("metadata");
    let parts = parts(store, &folder).await?;
    if parts.is_empty() {
        return Err(Error::PathNotFound { path: format!("file:/{folder}") });
    }
    let mut metadata = None;
    for part in &parts {
        let content = store.get(part).await?.bytes().await?;
        if let Some(line) = content.split(|byte| *byte == b'\n').find(|line| !line.is_empty()) {
            let parsed: Json = serde_json::from_slice(line).map_err(|source| corrupted(part, source.to_string()))?;
            metadata = Some((part.clone(), parsed));
        }
    }
    let Some((part, Json::Object(mut metadata))) = metadata else {
        return Err(corrupted(&folder, "expected one JSON object".into()));
    };
    let mut text = |key: &str| match metadata.remove(key) {
        Some(Json::String(text)) => Ok(text),
        _ => Err(corrupted(&part, format!("{key} is missing"))),
    };
    let (class, uid) = (text("class")?, text("uid")?);
    let explicit = match metadata.remove("paramMap") {
        Some(Json::Object(explicit)) => explicit,
        _ => return Err(corrupted(&part, "paramMap is missing".into())),
    };
    for known in ["timestamp", "sparkVersion", "defaultParamMap"] {
        metadata.remove(known);
    }
    let tables = read_tables(store, prefix).await?;
    Ok(Loaded { class, uid, explicit, saved: Saved { metadata, tables } })
}

/// Every folder beside `metadata` that holds Parquet.
async fn read_tables(store: &dyn ObjectStore, prefix: &Path) -> Result<Vec<(String, RecordBatch)>> {
    let mut tables = Vec::new();
    for folder in store.list_with_delimiter(Some(prefix)).await?.common_prefixes {
        let name = folder.filename().unwrap_or_default().to_string();
        if name == "metadata" {
            continue;
        }
        let mut batches = Vec::new();
        for part in parts(store, &folder).await? {
            let content = store.get(&part).await?.bytes().await?;
            batches.extend(table::from_parquet(content).map_err(|error| corrupted(&part, error.to_string()))?);
        }
        if let Some(first) = batches.first() {
            let rows = arrow::compute::concat_batches(&first.schema(), &batches)?;
            tables.push((name, rows));
        }
    }
    Ok(tables)
}

/// The part files of a folder, in order.
async fn parts(store: &dyn ObjectStore, folder: &Path) -> Result<Vec<Path>> {
    let listed: Vec<_> = match store.list_with_delimiter(Some(folder)).await {
        Ok(listed) => listed.objects,
        Err(object_store::Error::NotFound { .. }) => Vec::new(),
        Err(source) => return Err(source.into()),
    };
    let is_part = |path: &Path| path.filename().is_some_and(|name| name.starts_with("part-"));
    let mut parts: Vec<Path> = listed.into_iter().map(|object| object.location).filter(is_part).collect();
    parts.sort();
    Ok(parts)
}

fn corrupted(path: &Path, detail: String) -> Error {
    Error::Corrupted { path: format!("/{path}"), detail }
}

/// Whether anything is under `prefix`.
///
/// # Errors
/// What the store says.
pub async fn exists(store: &dyn ObjectStore, prefix: &Path) -> Result<bool> {
    match store.list(Some(prefix)).next().await {
        None | Some(Err(object_store::Error::NotFound { .. })) => Ok(false),
        Some(Err(source)) => Err(source.into()),
        Some(Ok(_)) => Ok(true),
    }
}

/// Deletes everything under `prefix`.
///
/// # Errors
/// What the store says.
pub async fn delete(store: &dyn ObjectStore, prefix: &Path) -> Result<()> {
    let objects: Vec<Path> = store.list(Some(prefix)).map_ok(|object| object.location).try_collect().await?;
    for object in objects {
        store.delete(&object).await?;
    }
    Ok(())
}
