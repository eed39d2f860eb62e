//! Writing: to files, and to tables of the warehouse.

use spark_connect_proto as proto;
use spark_connect_proto::expression::ExprType;
use spark_connect_proto::expression::literal::LiteralType;
use spark_connect_proto::write_operation::SaveMode as SparkSaveMode;
use spark_connect_proto::write_operation::SaveType;
use spark_connect_proto::write_operation::save_table::TableSaveMethod;

use super::sql::{input, quoted};
use super::{Session, Table};
use crate::embedded::expression::parse_name;
use crate::embedded::relation::{Resolution, rows_frame, visible_only};
use crate::embedded::{Extensions, Frame};
use crate::source::{self, Options, SaveMode, WriteSink};
use crate::{Error, Result, data_type};

impl Session {
    /// Runs `df.write`.
    ///
    /// # Errors
    /// [`Error::PathAlreadyExists`] and [`Error::TableOrViewAlreadyExists`] by the mode, [`Error::Unsupported`] for
    /// buckets and clusters, and those of the relation and its rows.
    pub async fn write(&self, operation: &proto::WriteOperation, extensions: &dyn Extensions) -> Result<()> {
        if operation.bucket_by.is_some() || !operation.sort_column_names.is_empty() {
            return Err(Error::Unsupported { feature: "bucketed tables".into() });
        }
        if !operation.clustering_columns.is_empty() {
            return Err(Error::Unsupported { feature: "clustered tables".into() });
        }
        let mode = match operation.mode() {
            SparkSaveMode::Unspecified | SparkSaveMode::ErrorIfExists => SaveMode::ErrorIfExists,
            SparkSaveMode::Append => SaveMode::Append,
            SparkSaveMode::Overwrite => SaveMode::Overwrite,
            SparkSaveMode::Ignore => SaveMode::Ignore,
        };
        let relation = input(&operation.input)?;
        let frame = self.resolve(relation, extensions).await?;
        let options: Options = operation.options.iter().map(|(key, value)| (key, value.clone())).collect();
        let format = operation.source.clone().unwrap_or_default();
        match &operation.save_type {
            Some(SaveType::Table(table)) => {
                let parts = parse_name(&table.table_name)?;
                if table.save_method() == TableSaveMethod::InsertInto {
                    let resolution = Resolution::new(self, extensions);
                    let is_overwrite = mode == SaveMode::Overwrite;
                    return self.insert_into(&parts, &[], is_overwrite, frame, &resolution).await;
                }
                self.save_as_table(&parts, &frame, mode, format, options, operation.partitioning_columns.clone()).await
            }
            Some(SaveType::Path(path)) => {
                let path = path.clone();
                self.write_files(&frame, path, mode, format, options, operation.partitioning_columns.clone()).await
            }
            None => match options.get("path").map(str::to_owned) {
                Some(path) => {
                    self.write_files(&frame, path, mode, format, options, operation.partitioning_columns.clone()).await
                }
                None => Err(Error::InvalidPlan { detail: "write without a path or a table".into() }),
            },
        }
    }

    /// Runs `df.writeTo`. Its tables are those that `saveAsTable` makes.
    ///
    /// # Errors
    /// [`Error::TableOrViewAlreadyExists`] and [`Error::TableOrViewNotFound`] by the mode, [`Error::Unsupported`] for
    /// overwriting what a condition says, for transforms as partitions and for clusters.
    pub async fn write_v2(&self, operation: &proto::WriteOperationV2, extensions: &dyn Extensions) -> Result<()> {
        use proto::write_operation_v2::Mode;
        if !operation.clustering_columns.is_empty() {
            return Err(Error::Unsupported { feature: "clustered tables".into() });
        }
        let parts = parse_name(&operation.table_name)?;
        let frame = self.resolve(input(&operation.input)?, extensions).await?;
        let exists = self.find_table(&parts)?.is_some();
        let is_replacing = match operation.mode() {
            Mode::Create => false,
            Mode::CreateOrReplace => true,
            Mode::Replace if exists => true,
            Mode::Append | Mode::OverwritePartitions if exists => {
                let resolution = Resolution::new(self, extensions);
                let is_overwrite = operation.mode() == Mode::OverwritePartitions;
                return self.insert_by_name(&parts, is_overwrite, frame, &resolution).await;
            }
            Mode::Append | Mode::OverwritePartitions | Mode::Replace => {
                return Err(Error::TableOrViewNotFound { name: parts.join(".") });
            }
            Mode::Overwrite => {
                let is_all = matches!(
                    operation.overwrite_condition.as_ref().and_then(|condition| condition.expr_type.as_ref()),
                    Some(ExprType::Literal(literal)) if literal.literal_type == Some(LiteralType::Boolean(true))
                );
                if !is_all {
                    return Err(Error::Unsupported { feature: "writeTo that overwrites by a condition".into() });
                }
                let resolution = Resolution::new(self, extensions);
                return self.insert_by_name(&parts, true, frame, &resolution).await;
            }
            Mode::Unspecified => return Err(Error::InvalidPlan { detail: "writeTo without a mode".into() }),
        };
        let mut partition_by = Vec::with_capacity(operation.partitioning_columns.len());
        for column in &operation.partitioning_columns {
            match &column.expr_type {
                Some(ExprType::UnresolvedAttribute(column)) => partition_by.push(column.unparsed_identifier.clone()),
                _ => return Err(Error::Unsupported { feature: "partitions by a transform".into() }),
            }
        }
        let mode = if is_replacing { SaveMode::Overwrite } else { SaveMode::ErrorIfExists };
        let options: Options = operation.options.iter().map(|(key, value)| (key, value.clone())).collect();
        let format = operation.provider.clone().unwrap_or_default();
        self.save_as_table(&parts, &frame, mode, format, options, partition_by).await
    }

    /// Writes rows into a table whose columns have the names of theirs, in any order.
    async fn insert_by_name(
        &self,
        name: &[String],
        is_overwrite: bool,
        frame: Frame,
        resolution: &Resolution<'_>,
    ) -> Result<()> {
        let columns: Vec<String> = frame.visible().map(|column| column.name.clone()).collect();
        self.insert_into(name, &columns, is_overwrite, frame, resolution).await
    }

    async fn write_files(
        &self,
        frame: &Frame,
        path: String,
        mode: SaveMode,
        format: String,
        options: Options,
        partition_by: Vec<String>,
    ) -> Result<()> {
        let sink = WriteSink { format, path, mode, options, partition_by };
        let plan = visible_only(frame.clone())?.plan;
        source::write(&self.state(), &self.conf(), plan, &frame.schema(), &sink).await
    }

    async fn save_as_table(
        &self,
        parts: &[String],
        frame: &Frame,
        mode: SaveMode,
        format: String,
        options: Options,
        partition_by: Vec<String>,
    ) -> Result<()> {
        let existing = self.find_table(parts)?;
        match (&existing, mode) {
            (Some(_), SaveMode::Ignore) => return Ok(()),
            (Some(_), SaveMode::ErrorIfExists) => {
                return Err(Error::TableOrViewAlreadyExists { name: parts.join(".") });
            }
            _ => {}
        }
        let (database, name) = self.qualified(parts)?;
        if !self.has_database(&database) {
            return Err(Error::SchemaNotFound { name: database });
        }
        let path = self.table_path(&database, &name)?;
        let format = match (&existing, format.is_empty()) {
            (Some(table), _) if mode == SaveMode::Append => table.format.clone(),
            (_, true) => self.conf().get("spark.sql.sources.default").unwrap_or_else(|| "parquet".to_owned()),
            (_, false) => format,
        };
        // A folder without a description is left over from a write that failed.
        let mode = if existing.is_none() { SaveMode::Overwrite } else { mode };
        let table = Table { database, name, format: format.clone(), path: path.clone() };
        self.write_files(frame, path.display().to_string(), mode, format, options, partition_by).await?;
        self.describe_table(&table)
    }

    pub(super) async fn create_table(&self, create: sql::CreateTable, extensions: &dyn Extensions) -> Result<()> {
        if create.location.is_some() {
            return Err(Error::Unsupported { feature: "CREATE TABLE with LOCATION".into() });
        }
        if create.if_not_exists && self.find_table(&create.name)?.is_some() {
            return Ok(());
        }
        let frame = match &create.query {
            Some(query) => self.resolve(query, extensions).await?,
            None => {
                let schema = std::sync::Arc::new(data_type::parse_ddl(&create.schema)?);
                let resolution = Resolution::new(self, extensions);
                rows_frame(&resolution.context, schema, Vec::new(), 1)?
            }
        };
        let mode = if create.replace { SaveMode::Overwrite } else { SaveMode::ErrorIfExists };
        let options: Options = create.options.into_iter().collect();
        let format = create.provider.unwrap_or_default();
        self.save_as_table(&create.name, &frame, mode, format, options, create.partitioned_by).await
    }

    /// Appends rows to a table, or puts them in the place of its rows; by position, or by the names of `columns`.
    pub(super) async fn insert_into(
        &self,
        name: &[String],
        columns: &[String],
        is_overwrite: bool,
        frame: Frame,
        resolution: &Resolution<'_>,
    ) -> Result<()> {
        let Some(table) = self.find_table(name)? else {
            return Err(Error::TableOrViewNotFound { name: name.join(".") });
        };
        let target = resolution.table(&quoted(name)).await?;
        let schema = target.schema();
        let mut frame = frame;
        let names: Vec<String> = if columns.is_empty() {
            schema.fields().iter().map(|field| field.name().clone()).collect()
        } else {
            columns.to_vec()
        };
        let found = frame.visible().count();
        if found != names.len() {
            return Err(Error::NumColumnsMismatch { operator: "INSERT".into(), left: names.len(), right: found });
        }
        let visible = frame.columns.iter_mut().filter(|column| !column.is_hidden);
        for (column, name) in visible.zip(&names) {
            column.name.clone_from(name);
        }
        let nullable: Vec<_> =
            schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let to_schema = proto::ToSchema {
            input: None,
            schema: Some(data_type::schema_to_proto(&arrow::datatypes::Schema::new(nullable))),
        };
        let frame = resolution.to_schema(&to_schema, frame)?;
        let mode = if is_overwrite { SaveMode::Overwrite } else { SaveMode::Append };
        let path = table.path.display().to_string();
        self.write_files(&frame, path, mode, table.format.clone(), Options::default(), Vec::new()).await?;
        self.describe_table(&table)
    }
}
