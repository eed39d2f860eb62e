//! `df.show()`: a relation of one text.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use spark_connect_proto as proto;

use super::{Resolution, rows_frame, sort};
use crate::embedded::Frame;
use crate::{Result, show};

impl Resolution<'_> {
    pub(super) async fn show_string(&self, message: &proto::ShowString, input: Frame) -> Result<Frame> {
        let num_rows = message.num_rows.max(0);
        let (batches, schema) = self.first_rows(input, num_rows).await?;
        let text = show::show_string(
            &batches,
            &schema,
            num_rows,
            message.truncate,
            message.vertical,
            &self.context.conf,
        )?;
        self.text("show_string", text)
    }

    pub(super) async fn html_string(&self, message: &proto::HtmlString, input: Frame) -> Result<Frame> {
        let num_rows = message.num_rows.max(0);
        let (batches, schema) = self.first_rows(input, num_rows).await?;
        let text = show::html_string(&batches, &schema, num_rows, message.truncate, &self.context.conf)?;
        self.text("html_string", text)
    }

    /// One row more than is shown, to know whether there are more.
    async fn first_rows(&self, input: Frame, num_rows: i32) -> Result<(Vec<RecordBatch>, Schema)> {
        let schema = input.schema();
        let limited = sort::limit(input, 0, Some(num_rows.saturating_add(1)))?;
        let batches = self.session.collect(&limited).await?;
        Ok((batches, schema.as_ref().clone()))
    }

    fn text(&self, name: &str, text: String) -> Result<Frame> {
        let schema = Arc::new(Schema::new(vec![Field::new(name, DataType::Utf8, false)]));
        let column: ArrayRef = Arc::new(StringArray::from(vec![text]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column])?;
        rows_frame(&self.context, schema, vec![batch], 1)
    }
}
