//! Format `parquet`, over DataFusion's own scan.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::config::TableParquetOptions;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::provider_as_source;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use futures::{StreamExt, TryStreamExt};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::ParquetMetaData;

use super::listing::{Files, ListedFile};
use super::options::Options;
use crate::data_type::{SparkType, schema_from_json};
use crate::{Conf, Error, Result};

/// The key under which Spark keeps a file's schema, user-defined types and column metadata included.
pub(super) const SCHEMA_KEY: &str = "org.apache.spark.sql.parquet.row.metadata";

pub(super) async fn read(
    state: &SessionState,
    conf: &Conf,
    files: Files,
    wanted: Option<&Schema>,
    options: &Options,
) -> Result<(LogicalPlan, SchemaRef)> {
    let merges = match options.get("mergeSchema") {
        Some(_) => options.flag("parquet", "mergeSchema", false)?,
        None => conf.get("spark.sql.parquet.mergeSchema").as_deref() == Some("true"),
    };
    let same_name = |left: &str, right: &str| match conf.case_sensitive() {
        true => left == right,
        false => left.eq_ignore_ascii_case(right),
    };
    let telling: Vec<&ListedFile> = files.with_content().take(if merges { usize::MAX } else { 1 }).collect();
    let in_files = merged_schema(state, &files, &telling).await?;
    let (mut file_fields, mut names): (Vec<FieldRef>, Vec<String>) = (Vec::new(), Vec::new());
    let known = in_files.as_ref().map(|schema| schema.fields().clone()).unwrap_or_else(Fields::empty);
    let asked = match (wanted, &in_files) {
        (Some(wanted), _) => wanted.fields(),
        (None, Some(_)) => &known,
        (None, None) => return Err(Error::UnableToInferSchema { format: "Parquet".into() }),
    };
    for field in asked {
        if files.partition_columns.iter().any(|column| same_name(column.name(), field.name())) {
            continue;
        }
        let in_file = known.iter().find(|known| same_name(known.name(), field.name()));
        let name_in_file = in_file.map_or(field.name(), |known| known.name());
        names.push(field.name().clone());
        file_fields.push(Arc::new(nullable(field).with_name(name_in_file)));
    }
    let table_schema = TableSchema::builder(Arc::new(Schema::new(file_fields)))
        .with_table_partition_cols(files.partition_columns.clone())
        .build();
    names.extend(files.partition_columns.iter().map(|column| column.name().clone()));
    let fields = table_schema.table_schema().fields().iter().zip(names);
    let schema: Vec<Field> = fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect();
    let table = ParquetTable { table_schema, files };
    let plan = LogicalPlanBuilder::scan("source", provider_as_source(Arc::new(table)), None)?.build()?;
    Ok((plan, Arc::new(Schema::new(schema))))
}

/// The schemas of files as one: columns by name, in the order they are met.
async fn merged_schema(state: &SessionState, files: &Files, telling: &[&ListedFile]) -> Result<Option<Schema>> {
    let concurrency = state.config_options().execution.meta_fetch_concurrency.get();
    let reads: Vec<_> = telling.iter().map(|file| file_schema(state, files, file)).collect();
    let schemas: Vec<Schema> = futures::stream::iter(reads)
        .buffered(concurrency)
        .try_collect()
        .await?;
    let mut merged: Option<Vec<FieldRef>> = None;
    for schema in schemas {
        let Some(fields) = &mut merged else {
            merged = Some(schema.fields().iter().cloned().collect());
            continue;
        };
        for field in schema.fields() {
            match fields.iter().find(|known| known.name() == field.name()) {
                None => fields.push(field.clone()),
                Some(known) if known.data_type() == field.data_type() => {}
                Some(known) => {
                    return Err(Error::IncompatibleColumnType {
                        operator: "mergeSchema".into(),
                        column: 0,
                        left: format!("{} {}", known.name(), known.data_type()),
                        right: format!("{} {}", field.name(), field.data_type()),
                    });
                }
            }
        }
    }
    Ok(merged.map(Schema::new))
}

/// What a footer says of the file's columns: Spark's own schema, or else what the file's types are to Spark.
async fn file_schema(state: &SessionState, files: &Files, file: &ListedFile) -> Result<Schema> {
    let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
    let metadata = DFParquetMetadata::new(files.store().as_ref(), &file.meta)
        .with_file_metadata_cache(Some(cache))
        .fetch_metadata()
        .await?;
    let schema = schema_of(&metadata)?;
    Ok(Schema::new(schema.fields().iter().map(|field| nullable(field)).collect::<Vec<_>>()))
}

fn schema_of(metadata: &ParquetMetaData) -> Result<Schema> {
    let file = metadata.file_metadata();
    let pairs = file.key_value_metadata();
    let spark = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == SCHEMA_KEY)?.value.as_ref());
    if let Some(json) = spark {
        return schema_from_json(json);
    }
    let arrow = parquet_to_arrow_schema(file.schema_descr(), pairs).map_err(|error| Error::Arrow {
        source: arrow::error::ArrowError::from(error),
    })?;
    let fields: Vec<Field> = arrow.fields().iter().map(|field| canonical(field)).collect();
    Ok(Schema::new(fields))
}

/// A field in the Arrow type that this engine holds its Spark type in.
fn canonical(field: &Field) -> Field {
    let spark_type = SparkType::of(field);
    let plain = match spark_type {
        SparkType::Array(element) => {
            let element = Arc::new(canonical(element));
            SparkType::Array(&element).field(field.name(), field.is_nullable())
        }
        SparkType::Map { key, value } => {
            let (key, value) = (Arc::new(canonical(key)), Arc::new(canonical(value)));
            SparkType::Map { key: &key, value: &value }.field(field.name(), field.is_nullable())
        }
        SparkType::Struct(fields) => {
            let fields: Fields = fields.iter().map(|field| canonical(field)).collect();
            SparkType::Struct(&fields).field(field.name(), field.is_nullable())
        }
        atomic => atomic.field(field.name(), field.is_nullable()),
    };
    let mut metadata = field.metadata().clone();
    metadata.retain(|key, _| key.starts_with("spark."));
    metadata.extend(plain.metadata().clone());
    plain.with_metadata(metadata)
}

/// A field that may be null, in all its parts: files promise nothing. User-defined types keep their form.
fn nullable(field: &Field) -> Field {
    let data_type = match SparkType::of(field) {
        SparkType::Array(element) => SparkType::Array(&Arc::new(nullable(element))).arrow_type(),
        SparkType::Map { key, value } => {
            SparkType::Map { key: &Arc::new(nullable(key)), value: &Arc::new(nullable(value)) }.arrow_type()
        }
        SparkType::Struct(fields) => DataType::Struct(fields.iter().map(|field| nullable(field)).collect()),
        _ => field.data_type().clone(),
    };
    field.clone().with_data_type(data_type).with_nullable(true)
}

#[derive(Debug)]
struct ParquetTable {
    table_schema: TableSchema,
    files: Files,
}

impl ParquetTable {
    /// Files with what their footers tell: counts and bounds let the optimizer answer and prune.
    async fn partitioned_files(
        &self,
        state: &dyn Session,
        format: &ParquetFormat,
    ) -> datafusion::error::Result<Vec<PartitionedFile>> {
        let collects = state.config().collect_statistics();
        let concurrency = state.config_options().execution.meta_fetch_concurrency.get();
        let files: Vec<ListedFile> = self.files.with_content().cloned().collect();
        let planned = files.into_iter().map(|file| async move {
            let planned =
                PartitionedFile::new_from_meta(file.meta.clone()).with_partition_values(file.partition_values);
            if !collects {
                return Ok::<_, datafusion::error::DataFusionError>(planned);
            }
            let file_schema = self.table_schema.file_schema().clone();
            let statistics = format.infer_stats(state, self.files.store(), file_schema, &file.meta).await?;
            Ok(planned.with_statistics(Arc::new(statistics)))
        });
        futures::stream::iter(planned).buffered(concurrency).try_collect().await
    }
}

#[async_trait]
impl TableProvider for ParquetTable {
    fn schema(&self) -> SchemaRef {
        self.table_schema.table_schema().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
        let format = ParquetFormat::default().with_options(scan_options(state));
        let files = self.partitioned_files(state, &format).await?;
        let schema = self.table_schema.table_schema();
        if files.is_empty() {
            let projected = match projection {
                Some(projection) => Arc::new(schema.project(projection)?),
                None => schema.clone(),
            };
            return Ok(Arc::new(EmptyExec::new(projected)));
        }
        let known: Vec<&Statistics> = files.iter().filter_map(|file| file.statistics.as_deref()).collect();
        let statistics = match known.len() == files.len() {
            true => Statistics::try_merge_iter(known, schema)?,
            false => Statistics::new_unknown(schema),
        };
        let groups = FileGroup::new(files).split_files(state.config().target_partitions().max(1));
        let source = format.file_source(self.table_schema.clone());
        let config = FileScanConfigBuilder::new(self.files.location.url.clone(), source)
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        format.create_physical_plan(state, config).await
    }
}

/// The session's options, with what Spark's types need: INT96 holds instants in microseconds, and fields keep their marks.
fn scan_options(state: &dyn Session) -> TableParquetOptions {
    let mut options = state.default_table_options().parquet;
    options.global.skip_metadata = false;
    options.global.schema_force_view_types = false;
    options.global.coerce_int96 = Some("us".into());
    options.global.coerce_int96_tz = Some("UTC".into());
    options
}
