//! Tables, views and files.

use spark_connect_proto as proto;
use spark_connect_proto::read::ReadType;

use super::build::source_frame;
use super::message::call;
use super::{Outer, Resolution, missing, one_row};
use crate::embedded::Frame;
use crate::embedded::expression::parse_name;
use crate::source::{self, ReadSource};
use crate::{Error, Result, data_type};

impl Resolution<'_> {
    pub(super) async fn read(&self, message: &proto::Read) -> Result<Frame> {
        if message.is_streaming {
            return Err(Error::Unsupported { feature: "streaming".into() });
        }
        match message.read_type.as_ref().ok_or_else(|| missing("source"))? {
            ReadType::NamedTable(table) => self.table(&table.unparsed_identifier).await,
            ReadType::DataSource(read) => {
                if !read.predicates.is_empty() {
                    return Err(Error::Unsupported { feature: "data source jdbc".into() });
                }
                let schema = match read.schema.as_deref().filter(|schema| !schema.is_empty()) {
                    Some(text) => Some(data_type::schema_from_text(text)?),
                    None => None,
                };
                self.files(ReadSource {
                    format: read.format.clone().unwrap_or_default(),
                    schema,
                    options: read.options.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
                    paths: read.paths.clone(),
                })
                .await
            }
        }
    }

    async fn files(&self, read: ReadSource) -> Result<Frame> {
        let (plan, schema) = source::read(&self.state, &self.context.conf, &read).await?;
        source_frame(&self.context, plan, &schema)
    }

    /// A view or table by its name.
    pub(in crate::embedded) async fn table(&self, identifier: &str) -> Result<Frame> {
        let parts = parse_name(identifier)?;
        if let [name] = parts.as_slice()
            && let Some(frame) = self.named_reference(name)
        {
            return frame;
        }
        if let Some((frame, qualifiers)) = self.session.view(&parts) {
            let mut frame = self.renamed(frame)?;
            for column in &mut frame.columns {
                column.plan_ids.clear();
                column.qualifiers.clone_from(&qualifiers);
            }
            return Ok(frame);
        }
        if let Some(table) = self.session.find_table(&parts)? {
            let mut frame = self.files(table.source()).await?;
            for column in &mut frame.columns {
                column.qualifiers.clone_from(&table.qualifiers());
            }
            return Ok(frame);
        }
        // parquet.`/a/path`
        if let [format, path] = parts.as_slice()
            && (path.contains('/') || path.contains(':'))
        {
            let read = ReadSource { format: format.clone(), paths: vec![path.clone()], ..ReadSource::default() };
            return self.files(read).await;
        }
        Err(Error::TableOrViewNotFound { name: parts.join(".") })
    }

    /// A function in the place of a table.
    pub(super) async fn table_function(
        &self,
        message: &proto::UnresolvedTableValuedFunction,
        outer: &Outer,
    ) -> Result<Frame> {
        let name = message.function_name.to_lowercase();
        if name == "range" {
            return self.range_function(&message.arguments);
        }
        let one_row = one_row();
        let call = call(&message.function_name, message.arguments.clone());
        let resolved = self.projection(&[call], &one_row, outer).await?;
        if resolved.iter().all(|resolved| resolved.generator.is_none()) {
            return Err(Error::Unsupported { feature: format!("table-valued function {name}") });
        }
        let (frame, resolved) = self.generated(one_row, resolved)?;
        Ok(self.projected(frame, &resolved)?.0)
    }

    fn range_function(&self, arguments: &[proto::Expression]) -> Result<Frame> {
        let mut numbers = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let resolved = self.plain_expression(argument, &one_row(), &[])?;
            let number = match &resolved.expr {
                datafusion::logical_expr::Expr::Literal(value, _) => {
                    let long = value.cast_to(&arrow::datatypes::DataType::Int64)?;
                    match long {
                        datafusion::common::ScalarValue::Int64(Some(number)) => number,
                        _ => return Err(Error::InvalidPlan { detail: "range of null".into() }),
                    }
                }
                _ => return Err(Error::Unsupported { feature: "range of an expression".into() }),
            };
            numbers.push(number);
        }
        let (start, end, step, num_partitions) = match numbers.as_slice() {
            [end] => (0, *end, 1, None),
            [start, end] => (*start, *end, 1, None),
            [start, end, step] => (*start, *end, *step, None),
            [start, end, step, partitions] => (*start, *end, *step, i32::try_from(*partitions).ok()),
            _ => {
                return Err(Error::WrongNumArgs {
                    name: "range".into(),
                    expected: "[1, 2, 3, 4]".into(),
                    found: numbers.len(),
                });
            }
        };
        self.range(&proto::Range { start: Some(start), end, step, num_partitions })
    }
}
