//! Rows turned into columns.

use spark_connect_proto as proto;

use super::{Outer, Resolution};
use crate::embedded::Frame;
use crate::embedded::expression::{Typed, coercion};
use crate::{Error, Result, show};
use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow::compute::{concat, concat_batches, take};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::logical_expr::LogicalPlanBuilder;
use std::sync::Arc;

impl Resolution<'_> {
    pub(super) async fn transpose(
        &self,
        message: &proto::Transpose,
        input: Frame,
        outer: &Outer,
    ) -> Result<Frame> {
        let index = match message.index_columns.as_slice() {
            [] => 0,
            [column] => {
                let resolved = self.expression(column, &input, outer).await?;
                resolved.column.ok_or(Error::Unsupported { feature: "transpose by an expression".into() })?
            }
            _ => return Err(Error::InvalidPlan { detail: "transpose by more than one column".into() }),
        };
        let index_column = input.columns.get(index).cloned();
        let index_column = index_column.ok_or(Error::InvalidPlan { detail: "transpose without columns".into() })?;
        let rest: Vec<_> =
            input.visible().filter(|column| column.internal != index_column.internal).cloned().collect();
        let conf = &self.context.conf;
        let typed: Vec<Typed> =
            rest.iter().map(|column| Typed { expr: column.expr(), field: Arc::clone(&column.field) }).collect();
        let common = coercion::common_type(&typed, conf).unwrap_or(DataType::Utf8);
        let cells = coercion::cast_all(typed, &common, conf)?;
        // Rows in the order of the index, those without one left out.
        let mut exprs = vec![index_column.expr()];
        let mut columns = vec![index_column.clone()];
        for (cell, column) in cells.into_iter().zip(&rest) {
            let new = self.column(&column.name, cell.field);
            exprs.push(cell.expr.alias(&new.internal));
            columns.push(new);
        }
        let values_max = conf.get("spark.sql.transposeMaxValues").and_then(|value| value.parse().ok()).unwrap_or(500);
        let plan = LogicalPlanBuilder::from(input.plan)
            .filter(index_column.expr().is_not_null())?
            .project(exprs)?
            .sort([index_column.expr().sort(true, true)])?
            .limit(0, Some(values_max + 1))?
            .build()?;
        let frame = Frame { plan, columns };
        let schema = frame.schema();
        let batches = self.session.collect(&frame).await?;
        let rows = concat_batches(&batches.first().map_or(schema, RecordBatch::schema), &batches)?;
        if rows.num_rows() > values_max {
            return Err(Error::InvalidPlan { detail: format!("transpose of more than {values_max} rows") });
        }
        let titles = show::string_column(rows.column(0), &index_column.field, conf)?;
        let mut fields = vec![Field::new("key", DataType::Utf8, false)];
        let keys: StringArray = rest.iter().map(|column| Some(column.name.as_str())).collect();
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(keys)];
        for row in 0..rows.num_rows() {
            let row_index = UInt64Array::from(vec![row as u64]);
            let cells = rows.columns()[1..]
                .iter()
                .map(|column| Ok(take(column, &row_index, None)?))
                .collect::<Result<Vec<_>>>()?;
            let cells = cells.iter().map(AsRef::as_ref).collect::<Vec<_>>();
            let column = if cells.is_empty() { arrow::array::new_empty_array(&common) } else { concat(&cells)? };
            fields.push(Field::new(titles.value(row), common.clone(), true));
            arrays.push(column);
        }
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        super::rows_frame(&self.context, schema, vec![batch], 1)
    }
}
