//! A table of a saved operator as one Parquet file.

use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::schema_json::schema_json;
use crate::Result;

/// The footer key in which Spark keeps a table's schema with its user-defined types.
const ROW_METADATA: &str = "org.apache.spark.sql.parquet.row.metadata";

/// # Errors
/// A column of a type that no saved operator has.
pub fn to_parquet(rows: &RecordBatch) -> Result<Bytes> {
    let row_metadata = schema_json(&rows.schema())?.to_string();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![KeyValue::new(ROW_METADATA.into(), row_metadata)]))
        .build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut content = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut content, rows.schema(), options)?;
    writer.write(rows)?;
    writer.close()?;
    Ok(content.into())
}

/// # Errors
/// The content is no whole Parquet file.
pub fn from_parquet(content: Bytes) -> Result<Vec<RecordBatch>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(content)?.build()?;
    Ok(reader.collect::<std::result::Result<Vec<RecordBatch>, arrow::error::ArrowError>>()?)
}
