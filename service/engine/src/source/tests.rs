//! Files read and written, beside what Spark 4.3 gives for the same.

mod reading;
mod writing;

use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::util::pretty::pretty_format_batches;
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::{SessionConfig, SessionContext, SessionState};

use super::*;
use crate::data_type::{SparkType, simple_string};
use crate::show::{Style, styled_column};

fn state() -> SessionState {
    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2)).state()
}

fn options(pairs: &[(&str, &str)]) -> Options {
    pairs.iter().copied().collect()
}

/// What is read: the schema, and the rows as `show` prints their values.
struct Read {
    schema: SchemaRef,
    rows: Vec<Vec<String>>,
}

impl Read {
    fn schema_text(&self) -> String {
        simple_string(&SparkType::Struct(self.schema.fields()).field("", true))
    }
}

async fn rows_of(schema: &Schema, batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .zip(schema.fields())
            .map(|(column, field)| styled_column(column, field, Style::Show, &Conf::new()).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|c| c.iter().nth(row).flatten().unwrap_or("NULL").to_string()).collect());
        }
    }
    rows
}

async fn try_read(path: &Path, format: &str, schema: Option<&str>, pairs: &[(&str, &str)]) -> Result<Read> {
    let source = ReadSource {
        format: format.into(),
        schema: schema.map(|text| crate::data_type::parse_ddl(text).unwrap()),
        options: options(pairs),
        paths: vec![path.to_string_lossy().into_owned()],
    };
    let state = state();
    let (plan, schema) = read(&state, &Conf::new(), &source).await?;
    assert_eq!(plan.schema().fields().len(), schema.fields().len());
    let batches = DataFrame::new(state, plan).collect().await?;
    for batch in &batches {
        for (column, field) in batch.columns().iter().zip(schema.fields()) {
            assert_eq!(column.data_type(), field.data_type(), "{}", pretty_format_batches(&[batch.clone()]).unwrap());
        }
    }
    let rows = rows_of(&schema, &batches).await;
    Ok(Read { schema, rows })
}
