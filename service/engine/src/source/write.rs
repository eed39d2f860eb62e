//! Writing relations as files, in the layout Spark writes: a directory of parts and a `_SUCCESS` mark.
//!
//! All files are written beside the data, under `_temporary`, and moved into place when every one is whole. A failed write
//! leaves what was there before.

mod encoder;
mod json_encoder;
mod part;

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlanProperties, execute_stream_partitioned};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use tokio::task::JoinSet;
use uuid::Uuid;

use self::encoder::Encoding;
pub(super) use self::encoder::ValueRules;
pub(super) use self::json_encoder::push_value;
use self::part::{PartLayout, write_part};
use super::listing::store_error;
use super::location::Location;
use super::options::Options;
use super::Format;
use crate::{Conf, Error, Result};

/// What happens when there is something at the path already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SaveMode {
    #[default]
    ErrorIfExists,
    Overwrite,
    Append,
    Ignore,
}

/// Where and how to write.
#[derive(Debug, Clone, Default)]
pub struct WriteSink {
    /// Spark's short name of the format; empty for the session's default.
    pub format: String,
    pub path: String,
    pub mode: SaveMode,
    pub options: Options,
    /// Columns whose values become directories.
    pub partition_by: Vec<String>,
}

/// Runs a plan and writes what it gives: a file for each of its partitions that has rows. `schema` holds Spark's names,
/// types and metadata for the plan's columns, which stand in the same order.
///
/// # Errors
/// [`Error::PathAlreadyExists`], and everything that running the plan may give.
pub async fn write(state: &SessionState, conf: &Conf, plan: LogicalPlan, schema: &Schema, sink: &WriteSink) -> Result<()> {
    let format = Format::parse(&sink.format, conf)?;
    let partition_columns = partition_columns(schema, &sink.partition_by, conf)?;
    refuse_duplicates(schema, conf)?;
    let is_in_file = |column: &usize| !partition_columns.contains(column);
    let file_columns: Vec<usize> = (0..schema.fields().len()).filter(is_in_file).collect();
    let file_fields: Vec<FieldRef> = file_columns.iter().map(|column| schema.fields()[*column].clone()).collect();
    let encoding = Encoding::of(format, &Schema::new(file_fields), &sink.options, conf)?;
    refuse_dynamic_overwrite(sink, conf)?;
    let target = Location::parse(state, &sink.path)?;
    let existed = exists(&target).await?;
    match sink.mode {
        SaveMode::ErrorIfExists if existed => return Err(Error::PathAlreadyExists { path: target.display() }),
        SaveMode::Ignore if existed => return Ok(()),
        _ => {}
    }
    let job = Uuid::new_v4();
    let staging = target.below(&format!("_temporary/{job}"))?;
    let layout = PartLayout {
        encoding,
        file_columns,
        partition_columns,
        schema: Arc::new(schema.clone()),
        conf: conf.clone(),
        rows_max: rows_max(&sink.options, conf)?,
        job,
    };
    let result = match run(state, plan, &staging, Arc::new(layout)).await {
        Ok(files) => commit(&target, &staging, &files, sink.mode).await,
        Err(error) => Err(error),
    };
    clean_up(&target, &staging, existed || result.is_ok()).await;
    result
}

/// Writes all partitions of the plan into the staging directory. Gives the names of the files, relative to it.
async fn run(
    state: &SessionState,
    plan: LogicalPlan,
    staging: &Location,
    layout: Arc<PartLayout>,
) -> Result<Vec<String>> {
    let physical = state.create_physical_plan(&plan).await?;
    if physical.schema().fields().len() != layout.schema.fields().len() {
        return Err(Error::Bug { invariant: "a written plan has the columns of its schema".into() });
    }
    debug_assert!(physical.output_partitioning().partition_count() > 0);
    let streams = execute_stream_partitioned(physical, state.task_ctx())?;
    let mut tasks = JoinSet::new();
    for (partition, stream) in streams.into_iter().enumerate() {
        tasks.spawn(write_part(staging.clone(), layout.clone(), partition, stream));
    }
    let mut files = Vec::new();
    // Dropping the set on an error ends the other tasks.
    while let Some(task) = tasks.join_next().await {
        files.extend(task.map_err(|_| Error::Cancelled)??);
    }
    Ok(files)
}

/// Puts the staged files in place of, or beside, what was there.
async fn commit(target: &Location, staging: &Location, files: &[String], mode: SaveMode) -> Result<()> {
    if mode == SaveMode::Overwrite {
        let old: Vec<Path> = target
            .store
            .list(Some(&target.path))
            .map_ok(|meta| meta.location)
            .try_filter(|path| std::future::ready(!path.prefix_matches(&staging.path)))
            .try_collect()
            .await
            .map_err(store_error)?;
        for path in old {
            target.store.delete(&path).await.map_err(store_error)?;
        }
        if target.local_path().is_some_and(|path| path.is_file()) {
            target.store.delete(&target.path).await.map_err(store_error)?;
        }
    }
    for name in files {
        let (from, to) = (staging.below(name)?, target.below(name)?);
        target.store.rename(&from.path, &to.path).await.map_err(store_error)?;
    }
    let mark = target.below("_SUCCESS")?;
    target.store.put(&mark.path, PutPayload::new()).await.map_err(store_error)?;
    Ok(())
}

/// Removes the staging directory, and the target too if this write made it and failed. An error here would hide the one
/// that matters, and leaves nothing a reader sees: names with `_` are hidden.
async fn clean_up(target: &Location, staging: &Location, keeps_target: bool) {
    let leftovers: Vec<Path> =
        staging.store.list(Some(&staging.path)).map_ok(|meta| meta.location).try_collect().await.unwrap_or_default();
    for path in leftovers {
        if let Err(error) = staging.store.delete(&path).await {
            tracing::warn!(%path, %error, "could not delete a staged file");
        }
    }
    let (Some(staging), Some(target)) = (staging.local_path(), target.local_path()) else { return };
    if staging.exists()
        && let Err(error) = tokio::fs::remove_dir_all(&staging).await
    {
        tracing::warn!(path = %staging.display(), %error, "could not delete a staging directory");
    }
    // Another write may stage here too: only what is empty goes.
    if let Some(temporary) = staging.parent() {
        let _ = tokio::fs::remove_dir(temporary).await;
    }
    if keeps_target {
        remove_empty_directories(&target).await;
    } else {
        let _ = tokio::fs::remove_dir(&target).await;
    }
}

/// Overwriting empties partition directories that the new data may not have.
async fn remove_empty_directories(target: &std::path::Path) {
    let mut pending = vec![target.to_path_buf()];
    let mut found = Vec::new();
    while let Some(directory) = pending.pop() {
        let Ok(mut entries) = tokio::fs::read_dir(&directory).await else { continue };
        while let Ok(Some(entry)) = entries.next_entry().await {
            if entry.file_type().await.is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
                found.push(entry.path());
            }
        }
    }
    for directory in found.iter().rev() {
        // Fails, as it should, for one that is not empty.
        let _ = tokio::fs::remove_dir(directory).await;
    }
}

async fn exists(target: &Location) -> Result<bool> {
    if let Some(path) = target.local_path() {
        return Ok(path.exists());
    }
    let first = target.store.list(Some(&target.path)).try_next().await.map_err(store_error)?;
    Ok(first.is_some())
}

fn same_name(left: &str, right: &str, conf: &Conf) -> bool {
    if conf.case_sensitive() { left == right } else { left.eq_ignore_ascii_case(right) }
}

/// The positions of the columns that become directories.
fn partition_columns(schema: &Schema, names: &[String], conf: &Conf) -> Result<Vec<usize>> {
    let position = |name: &String| {
        let is_it = |field: &FieldRef| same_name(field.name(), name, conf);
        schema.fields().iter().position(is_it).ok_or_else(|| Error::UnresolvedColumn {
            name: name.clone(),
            suggestions: schema.fields().iter().map(|field| field.name().clone()).collect(),
        })
    };
    let positions = names.iter().map(position).collect::<Result<Vec<usize>>>()?;
    if !positions.is_empty() && positions.len() == schema.fields().len() {
        return Err(Error::InvalidPlan { detail: "cannot use all columns for partition columns".into() });
    }
    Ok(positions)
}

fn refuse_duplicates(schema: &Schema, conf: &Conf) -> Result<()> {
    let is_repeated = |(position, field): &(usize, &FieldRef)| {
        schema.fields().iter().take(*position).any(|other| same_name(other.name(), field.name(), conf))
    };
    match schema.fields().iter().enumerate().find(is_repeated) {
        Some((_, field)) => Err(Error::ColumnAlreadyExists { name: field.name().clone() }),
        None => Ok(()),
    }
}

fn refuse_dynamic_overwrite(sink: &WriteSink, conf: &Conf) -> Result<()> {
    let from_conf = conf.get("spark.sql.sources.partitionOverwriteMode");
    let mode = sink.options.get("partitionOverwriteMode").map(str::to_string).or(from_conf).unwrap_or_default();
    let is_dynamic = mode.eq_ignore_ascii_case("dynamic");
    if is_dynamic && sink.mode == SaveMode::Overwrite && !sink.partition_by.is_empty() {
        return Err(Error::Unsupported { feature: "overwriting partitions dynamically".into() });
    }
    Ok(())
}

/// How many rows a file may have.
fn rows_max(options: &Options, conf: &Conf) -> Result<usize> {
    let from_conf = conf.get("spark.sql.files.maxRecordsPerFile").and_then(|value| value.trim().parse::<i64>().ok());
    let rows = options.number::<i64>("files", "maxRecordsPerFile")?.or(from_conf).unwrap_or(0);
    Ok(usize::try_from(rows).ok().filter(|rows| *rows > 0).unwrap_or(usize::MAX))
}

/// What a format says when a column's type cannot be written.
fn unwritable(format: &str, field: &Field) -> Error {
    let type_name = crate::data_type::sql_name(field);
    Error::Unsupported { feature: format!("writing column {} of type {type_name} to {format}", field.name()) }
}
