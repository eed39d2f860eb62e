//! Generators in projections: the list of rows they resolve to is unnested below.

use std::sync::Arc;

use arrow::array::{Array, AsArray, make_array};
use arrow::buffer::NullBuffer;
use datafusion::common::{Column as PlanColumn, NullHandling, UnnestOptions};
use datafusion::logical_expr::{LogicalPlan, Unnest};

use super::Resolution;
use super::build::project;
use super::columns::passed_on;
use crate::embedded::expression::{Generator, Resolved, Typed};
use crate::embedded::functions::kernel::Kernel;
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

impl Resolution<'_> {
    /// Unnests the generator among the expressions, if there is one; its columns then stand in its place.
    pub(super) fn generated(&self, input: Frame, resolved: Vec<Resolved>) -> Result<(Frame, Vec<Resolved>)> {
        let mut generators = resolved.iter().filter(|resolved| resolved.generator.is_some());
        let Some(first) = generators.next().cloned() else { return Ok((input, resolved)) };
        if generators.next().is_some() {
            return Err(Error::Unsupported { feature: "more than one generator in one projection".into() });
        }
        let Some(generator) = &first.generator else { return Ok((input, resolved)) };
        let first_new = input.columns.len();
        let frame = self.unnested(input, &first, generator)?;
        let mut out = Vec::with_capacity(resolved.len());
        for resolved in resolved {
            if resolved.generator.is_none() {
                out.push(resolved);
            } else {
                let new = frame.columns.iter().enumerate().skip(first_new);
                out.extend(new.map(|(index, column)| passed_on(index, column)));
            }
        }
        Ok((frame, out))
    }

    /// The input's columns and those of the generator, a row for each of its rows.
    pub(super) fn unnested(&self, input: Frame, rows: &Resolved, generator: &Generator) -> Result<Frame> {
        let list = self.context.fresh_name();
        let mut exprs: Vec<_> = input.columns.iter().map(Column::expr).collect();
        exprs.push(rows.expr.clone().alias(&list));
        let plan = project(input.plan, exprs)?;
        let options = UnnestOptions::new().with_null_handling(NullHandling::Drop);
        let element = PlanColumn::new_unqualified(&list);
        let unnest = Unnest::try_new(Arc::new(plan), vec![element.clone()], options)?;
        let mut columns = input.columns;
        let mut exprs: Vec<_> = columns.iter().map(Column::expr).collect();
        for (index, field) in generator.columns.iter().enumerate() {
            let element = Typed {
                expr: datafusion::logical_expr::Expr::Column(element.clone()),
                field: Arc::clone(&rows.field),
            };
            let kernel = Kernel {
                output: Arc::clone(field),
                ..Kernel::new(format!("generated {index}"), field.data_type().clone(), field.is_nullable())
            };
            let value = kernel.call(vec![element], move |arguments, _| {
                let rows = arguments[0].as_struct();
                let column = rows.column(index);
                match rows.nulls() {
                    None => Ok(Arc::clone(column)),
                    nulls => {
                        let nulls = NullBuffer::union(nulls, column.nulls());
                        let data = column.to_data().into_builder().nulls(nulls).build()?;
                        Ok(make_array(data))
                    }
                }
            });
            let column = self.column(field.name(), Arc::clone(field));
            exprs.push(value.expr.alias(&column.internal));
            columns.push(column);
        }
        Ok(Frame { plan: project(LogicalPlan::Unnest(unnest), exprs)?, columns })
    }
}
