//! `df.stat`: statistics of one or two columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{concat, filter};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{LogicalPlanBuilder, lit};
use spark_connect_proto as proto;
use std::collections::BTreeMap;

use super::Resolution;
use super::message::{aliased, attribute, by_internal_name, call, cast, double, integer};
use crate::embedded::expression::coercion::is_numeric;
use crate::embedded::{Column, Frame};
use crate::{Error, Result, show};

/// The rank error of `percentile_approx` is one over its accuracy; this is the accuracy for an error of zero.
const ACCURACY_MAX: f64 = 1_000_000_000.0;

impl Resolution<'_> {
    pub(super) async fn cov(&self, message: &proto::StatCov, input: Frame) -> Result<Frame> {
        self.of_two("covar_samp", "cov", &message.col1, &message.col2, input).await
    }

    pub(super) async fn corr(&self, message: &proto::StatCorr, input: Frame) -> Result<Frame> {
        match message.method.as_deref() {
            None | Some("pearson") => self.of_two("corr", "corr", &message.col1, &message.col2, input).await,
            Some(other) => Err(Error::Unsupported { feature: format!("correlation method {other}") }),
        }
    }

    async fn of_two(&self, function: &str, name: &str, one: &str, two: &str, input: Frame) -> Result<Frame> {
        let (one, two) = (self.stat_column(&input, one, true)?, self.stat_column(&input, two, true)?);
        let argument = |column: &Column| cast(attribute(&column.internal), "double");
        let value = aliased(call(function, vec![argument(&one), argument(&two)]), name);
        let resolved = self.projection(&[value], &by_internal_name(&input), &[]).await?;
        self.global_aggregate(input, resolved)
    }

    pub(super) async fn approx_quantile(
        &self,
        message: &proto::StatApproxQuantile,
        input: Frame,
    ) -> Result<Frame> {
        if let Some(wrong) = message.probabilities.iter().find(|probability| !(0.0..=1.0).contains(*probability)) {
            return Err(Error::InvalidPlan { detail: format!("probability {wrong} is not between 0 and 1") });
        }
        if message.relative_error.is_nan() || message.relative_error < 0.0 {
            return Err(Error::InvalidPlan { detail: format!("relative error {}", message.relative_error) });
        }
        let accuracy = (1.0 / message.relative_error).clamp(1.0, ACCURACY_MAX) as i32;
        let probabilities = call("array", message.probabilities.iter().map(|value| double(*value)).collect());
        let mut cells = Vec::new();
        for name in &message.cols {
            let column = self.stat_column(&input, name, true)?;
            // A null is left out, and so is what is no number.
            let value = cast(attribute(&column.internal), "double");
            let number = call("nanvl", vec![value, super::message::try_cast(super::message::string(""), "double")]);
            let quantiles = call("percentile_approx", vec![number, probabilities.clone(), integer(accuracy)]);
            let none = cast(call("array", Vec::new()), "array<double>");
            cells.push(call("coalesce", vec![quantiles, none]));
        }
        let value = aliased(call("array", cells), "approx_quantile");
        let resolved = self.projection(&[value], &by_internal_name(&input), &[]).await?;
        self.global_aggregate(input, resolved)
    }

    pub(super) async fn crosstab(&self, message: &proto::StatCrosstab, input: Frame) -> Result<Frame> {
        let one = self.stat_column(&input, &message.col1, false)?;
        let two = self.stat_column(&input, &message.col2, false)?;
        let number = self.context.fresh_name();
        let plan = LogicalPlanBuilder::from(input.plan)
            .aggregate([one.expr(), two.expr()], [count(lit(1_i64)).alias(&number)])?
            .build()?;
        let counted = self.column("count", Arc::new(Field::new("count", DataType::Int64, false)));
        let counted = Column { internal: number, ..counted };
        let frame = Frame { plan, columns: vec![one.clone(), two.clone(), counted] };
        let mut counts: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
        let mut titles: BTreeMap<String, ()> = BTreeMap::new();
        for batch in self.session.collect(&frame).await? {
            let texts = |index: usize, column: &Column| {
                show::string_column(batch.column(index), &column.field, &self.context.conf)
            };
            let (left, right) = (texts(0, &one)?, texts(1, &two)?);
            let numbers = batch.column(2).as_primitive::<Int64Type>();
            let text = |array: &StringArray, row: usize| {
                if array.is_null(row) { "null".to_owned() } else { array.value(row).to_owned() }
            };
            for row in 0..batch.num_rows() {
                titles.insert(text(&right, row), ());
                *counts.entry(text(&left, row)).or_default().entry(text(&right, row)).or_default() +=
                    numbers.value(row);
            }
        }
        let mut fields = vec![Field::new(format!("{}_{}", message.col1, message.col2), DataType::Utf8, true)];
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(counts.keys().map(Some).collect::<StringArray>())];
        for title in titles.keys() {
            fields.push(Field::new(title, DataType::Int64, true));
            let cells = counts.values().map(|row| row.get(title).copied().unwrap_or_default());
            arrays.push(Arc::new(cells.collect::<Vec<i64>>().into_iter().collect::<Int64Array>()));
        }
        self.ready(fields, arrays)
    }

    pub(super) async fn freq_items(&self, message: &proto::StatFreqItems, input: Frame) -> Result<Frame> {
        let support = message.support.unwrap_or(0.01);
        if !(1e-4..=1.0).contains(&support) {
            return Err(Error::InvalidPlan { detail: format!("support {support} is not between 1e-4 and 1") });
        }
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for name in &message.cols {
            let column = self.stat_column(&input, name, false)?;
            let number = self.context.fresh_name();
            let plan = LogicalPlanBuilder::from(input.plan.clone())
                .aggregate([column.expr()], [count(lit(1_i64)).alias(&number)])?
                .build()?;
            let counted = self.column("count", Arc::new(Field::new("count", DataType::Int64, false)));
            let frame = Frame { plan, columns: vec![column.clone(), Column { internal: number, ..counted }] };
            let batches = self.session.collect(&frame).await?;
            let total: i64 = batches.iter().flat_map(|batch| batch.column(1).as_primitive::<Int64Type>().values()).sum();
            let mut frequent: Vec<ArrayRef> = vec![arrow::array::new_empty_array(column.data_type())];
            for batch in &batches {
                let numbers = batch.column(1).as_primitive::<Int64Type>();
                let keep = numbers.values().iter().map(|number| Some(*number as f64 > support * total as f64));
                frequent.push(filter(batch.column(0), &keep.collect())?);
            }
            let items = concat(&frequent.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
            let element = Arc::new(column.field.as_ref().clone().with_name("element").with_nullable(true));
            let offsets = OffsetBuffer::from_lengths([items.len()]);
            let list = ListArray::try_new(Arc::clone(&element), offsets, items, None)?;
            fields.push(Field::new(format!("{name}_freqItems"), DataType::List(element), false));
            arrays.push(Arc::new(list));
        }
        self.ready(fields, arrays)
    }

    /// A frame of computed rows.
    fn ready(&self, fields: Vec<Field>, arrays: Vec<ArrayRef>) -> Result<Frame> {
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        super::rows_frame(&self.context, schema, vec![batch], 1)
    }

    fn stat_column(&self, input: &Frame, name: &str, must_be_numeric: bool) -> Result<Column> {
        let reference = proto::expression::UnresolvedAttribute {
            unparsed_identifier: name.to_owned(),
            ..Default::default()
        };
        let reference = proto::Expression {
            common: None,
            expr_type: Some(proto::expression::ExprType::UnresolvedAttribute(reference)),
        };
        let resolved = self.plain_expression(&reference, input, &[])?;
        let Some(index) = resolved.column else {
            return Err(Error::Unsupported { feature: "statistics of a struct's field".into() });
        };
        if must_be_numeric && !is_numeric(resolved.field.data_type()) {
            return Err(Error::InvalidPlan {
                detail: format!(
                    "column {name} must be numeric, but is {}",
                    crate::data_type::simple_string(&resolved.field)
                ),
            });
        }
        Ok(input.columns[index].clone())
    }
}
