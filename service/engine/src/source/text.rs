//! Format `text`: a line a row, or a file a row.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use object_store::ObjectMeta;

use super::chunks::{Chunk, Framing, lines};
use super::listing::Files;
use super::options::Options;
use super::record_scan::{RecordFormat, batch_of, plan};
use crate::{Conf, Error, Result};

#[derive(Debug)]
struct Text {
    schema: SchemaRef,
    is_whole_file: bool,
    separator: Option<Vec<u8>>,
}

pub(super) async fn read(
    _state: &SessionState,
    _conf: &Conf,
    files: Files,
    wanted: Option<&Schema>,
    options: &Options,
) -> Result<(LogicalPlan, SchemaRef)> {
    options.require_utf8("text")?;
    let mut schema = Schema::new(vec![Field::new("value", DataType::Utf8, true)]);
    if let Some(wanted) = wanted {
        let is_partition = |name: &str| files.partition_columns.iter().any(|column| column.name() == name);
        let own: Vec<_> = wanted.fields().iter().filter(|field| !is_partition(field.name())).cloned().collect();
        if own.len() != 1 || own[0].data_type() != &DataType::Utf8 {
            return Err(Error::InvalidPlan { detail: "text files have one column of strings".into() });
        }
        schema = Schema::new(own);
    }
    let text = Text {
        schema: Arc::new(schema),
        is_whole_file: options.flag("text", "wholetext", false)?,
        separator: options.get("lineSep").filter(|separator| *separator != "\n").map(|s| s.as_bytes().to_vec()),
    };
    plan(Arc::new(text), files)
}

impl RecordFormat for Text {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn framing(&self) -> Framing {
        if self.is_whole_file || self.separator.is_some() { Framing::WholeFile } else { Framing::Lines }
    }

    fn decode(&self, chunk: &Chunk, _file: &ObjectMeta, projection: &[usize]) -> Result<RecordBatch> {
        let mut builder = StringBuilder::with_capacity(1024, chunk.text.len());
        let mut num_rows = 0;
        if self.is_whole_file {
            builder.append_value(String::from_utf8_lossy(&chunk.text));
            num_rows = 1;
        } else {
            for line in lines(&chunk.text, self.separator.as_deref()) {
                builder.append_value(String::from_utf8_lossy(line));
                num_rows += 1;
            }
        }
        let column: ArrayRef = Arc::new(builder.finish());
        batch_of(&self.schema, projection, projection.iter().map(|_| column.clone()).collect(), num_rows)
    }
}
