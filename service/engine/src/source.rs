//! Files as relations: reading and writing them as Spark's data sources do.
//!
//! Parquet is read by DataFusion's own scan (row groups in parallel, projections and predicates pushed down). The formats
//! of text are read here, because Spark's rules for malformed records, nulls and type inference are its own.

mod binary_file;
mod cells;
mod chunks;
mod csv;
mod csv_syntax;
mod date_pattern;
mod json;
mod json_text;
pub mod json_value;
mod libsvm;
mod listing;
mod location;
mod options;
mod parquet;
mod parse;
mod partitioning;
mod record_scan;
mod text;
mod write;

#[cfg(test)]
mod tests;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;

pub use options::Options;
pub use parse::{parse_date, parse_timestamp};
pub use write::{SaveMode, WriteSink, write};

use crate::{Conf, Error, Result};

/// What to read.
#[derive(Debug, Clone, Default)]
pub struct ReadSource {
    /// Spark's short name of the format; empty for the session's default.
    pub format: String,
    /// The schema the client asks for; inferred when there is none.
    pub schema: Option<Schema>,
    pub options: Options,
    /// Files, directories and patterns. Those in option `path` are read too.
    pub paths: Vec<String>,
}

/// The formats this engine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Parquet,
    Csv,
    Json,
    Text,
    Libsvm,
    BinaryFile,
}

impl Format {
    fn parse(name: &str, conf: &Conf) -> Result<Format> {
        let default = conf.get("spark.sql.sources.default").unwrap_or_else(|| "parquet".into());
        let name = if name.is_empty() { default.as_str() } else { name };
        let lower = name.to_lowercase();
        // Spark's own sources go by the names of their packages and classes too.
        let short = match lower.strip_prefix("org.apache.spark.sql.") {
            Some(class) => {
                let class = class.strip_prefix("execution.datasources.").unwrap_or(class);
                class.split_once('.').map_or(class, |(package, _)| package)
            }
            None => &lower,
        };
        match short {
            "parquet" => Ok(Format::Parquet),
            "csv" => Ok(Format::Csv),
            "json" => Ok(Format::Json),
            "text" => Ok(Format::Text),
            "libsvm" => Ok(Format::Libsvm),
            "binaryfile" => Ok(Format::BinaryFile),
            "orc" | "avro" | "xml" | "jdbc" | "hive" | "image" | "delta" | "iceberg" | "rate" | "socket" | "kafka"
            | "console" | "memory" | "noop" => Err(Error::Unsupported { feature: format!("data source {name}") }),
            _ => Err(Error::DataSourceNotFound { name: name.into() }),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Format::Parquet => "Parquet",
            Format::Csv => "CSV",
            Format::Json => "JSON",
            Format::Text => "Text",
            Format::Libsvm => "libsvm",
            Format::BinaryFile => "binaryFile",
        }
    }
}

/// Plans the reading of files. The schema holds Spark's names and metadata; the plan's columns stand in the same order.
///
/// # Errors
/// [`Error::PathNotFound`], [`Error::DataSourceNotFound`], [`Error::UnableToInferSchema`], [`Error::InvalidOption`] and
/// [`Error::Unsupported`].
pub async fn read(state: &SessionState, conf: &Conf, source: &ReadSource) -> Result<(LogicalPlan, SchemaRef)> {
    let format = Format::parse(&source.format, conf)?;
    let mut paths = source.paths.clone();
    paths.extend(source.options.get("path").map(str::to_string));
    if paths.is_empty() {
        return Err(Error::UnableToInferSchema { format: format.name().into() });
    }
    let files = listing::list(state, conf, &paths, source.schema.as_ref(), &source.options).await?;
    let wanted = source.schema.as_ref();
    match format {
        Format::Parquet => parquet::read(state, conf, files, wanted, &source.options).await,
        Format::Csv => csv::read(state, conf, files, wanted, &source.options).await,
        Format::Json => json::read(state, conf, files, wanted, &source.options).await,
        Format::Text => text::read(state, conf, files, wanted, &source.options).await,
        Format::Libsvm => libsvm::read(state, conf, files, wanted, &source.options).await,
        Format::BinaryFile => binary_file::read(state, conf, files, wanted, &source.options).await,
    }
}
