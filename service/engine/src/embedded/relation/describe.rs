//! `describe` and `summary`: one row a statistic, all in one pass over the data.

use arrow::datatypes::DataType;
use spark_connect_proto as proto;

use super::Resolution;
use super::message::{aliased, attribute, by_internal_name, call, cast, double, integer, string, try_cast};
use crate::embedded::expression::coercion::is_numeric;
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

const DESCRIBED: [&str; 5] = ["count", "mean", "stddev", "min", "max"];
const SUMMARIZED: [&str; 8] = ["count", "mean", "stddev", "min", "25%", "50%", "75%", "max"];
/// Accuracy of `percentile_approx` that Spark uses here.
const ACCURACY: i32 = 10_000;

impl Resolution<'_> {
    pub(super) async fn describe(&self, message: &proto::StatDescribe, input: Frame) -> Result<Frame> {
        let mut columns = Vec::new();
        for name in &message.cols {
            let resolved = self.plain_expression(&proto::Expression {
                common: None,
                expr_type: Some(proto::expression::ExprType::UnresolvedAttribute(
                    proto::expression::UnresolvedAttribute { unparsed_identifier: name.clone(), ..Default::default() },
                )),
            }, &input, &[])?;
            match resolved.column {
                Some(index) => columns.push(input.columns[index].clone()),
                None => return Err(Error::Unsupported { feature: "describe of a struct's field".into() }),
            }
        }
        if message.cols.is_empty() {
            columns = input.visible().cloned().collect();
        }
        self.statistics(input, columns, &DESCRIBED.map(String::from)).await
    }

    pub(super) async fn summary(&self, message: &proto::StatSummary, input: Frame) -> Result<Frame> {
        let columns = input.visible().cloned().collect();
        let defaults = SUMMARIZED.map(String::from).to_vec();
        let statistics = if message.statistics.is_empty() { &defaults } else { &message.statistics };
        self.statistics(input, columns, statistics).await
    }

    async fn statistics(&self, input: Frame, mut columns: Vec<Column>, statistics: &[String]) -> Result<Frame> {
        columns.retain(|column| is_numeric(column.data_type()) || column.data_type() == &DataType::Utf8);
        // One row with a cell for each statistic of each column.
        let mut cells = Vec::new();
        let mut rows = Vec::new();
        for (row, statistic) in statistics.iter().enumerate() {
            let mut members = vec![string("summary"), string(statistic)];
            for (position, column) in columns.iter().enumerate() {
                let cell = format!("cell {row} {position}");
                cells.push(aliased(cast(cell_of(statistic, column)?, "string"), &cell));
                members.push(string(&column.name));
                members.push(attribute(&cell));
            }
            rows.push(call("named_struct", members));
        }
        let scope = by_internal_name(&input);
        let resolved = self.projection(&cells, &scope, &[]).await?;
        let one_row = self.global_aggregate(input, resolved)?;
        let generated = self.projection(&[call("inline", vec![call("array", rows)])], &one_row, &[]).await?;
        let (frame, generated) = self.generated(one_row, generated)?;
        Ok(self.projected(frame, &generated)?.0)
    }
}

/// A statistic of a column, as Spark computes it.
fn cell_of(statistic: &str, column: &Column) -> Result<proto::Expression> {
    let value = attribute(&column.internal);
    let is_text = column.data_type() == &DataType::Utf8;
    // Text that is a number counts as one.
    let number = || if is_text { try_cast(value.clone(), "double") } else { value.clone() };
    let lower = statistic.to_lowercase();
    Ok(match lower.as_str() {
        "count" => call("count", vec![value]),
        "count_distinct" => {
            let mut distinct = call("count", vec![value]);
            if let Some(proto::expression::ExprType::UnresolvedFunction(call)) = &mut distinct.expr_type {
                call.is_distinct = true;
            }
            distinct
        }
        "approx_count_distinct" => call("approx_count_distinct", vec![value]),
        "mean" => call("avg", vec![number()]),
        "stddev" => call("stddev_samp", vec![number()]),
        "min" => call("min", vec![value]),
        "max" => call("max", vec![value]),
        other => {
            let percent = other.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
            let Some(percent) = percent.filter(|percent| (0.0..=100.0).contains(percent)) else {
                return Err(Error::InvalidPlan { detail: format!("{statistic} is not a recognised statistic") });
            };
            call("percentile_approx", vec![number(), double(percent / 100.0), integer(ACCURACY)])
        }
    })
}
