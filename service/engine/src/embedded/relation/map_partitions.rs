//! `mapInPandas` and `mapInArrow`: a Python function of each partition's batches.

use std::sync::Arc;

use spark_connect_proto as proto;

use super::set_operation::shown;
use super::{Resolution, missing};
use crate::embedded::python::{EvalType, MapFunction, PythonFunction, PythonNode, PythonOperation};
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

impl Resolution<'_> {
    pub(super) fn map_partitions(&self, message: &proto::MapPartitions, input: Frame) -> Result<Frame> {
        let function = message.func.as_ref().ok_or_else(|| missing("function"))?;
        let function = PythonFunction::from_proto(function)?;
        let host = self.context.python()?;
        if !matches!(function.eval_type, EvalType::MapPandasIter | EvalType::MapArrowIter) {
            return Err(Error::InvalidPlan { detail: format!("{} is no function of batches", function.name) });
        }
        // Profile 0 is the one that every session has.
        if message.profile_id.is_some_and(|profile| profile != 0) {
            return Err(Error::Unsupported { feature: "resource profiles".into() });
        }
        let input = shown(input)?;
        let columns = self.columns_of(&function)?;
        let map = MapFunction {
            input: input.schema().fields().iter().cloned().collect(),
            output: internal_fields(&columns),
            function: Arc::new(function),
            is_barrier: message.is_barrier.unwrap_or(false),
        };
        Ok(Frame { plan: PythonNode::plan(PythonOperation::Map(map), host, vec![input.plan])?, columns })
    }

    /// The columns of the rows that a function gives.
    pub(super) fn columns_of(&self, function: &PythonFunction) -> Result<Vec<Column>> {
        match function.output.data_type() {
            arrow::datatypes::DataType::Struct(fields) => {
                Ok(fields.iter().map(|field| self.column(field.name(), Arc::clone(field))).collect())
            }
            _ => Err(Error::InvalidPlan { detail: format!("{} gives no rows", function.name) }),
        }
    }
}

/// The columns' fields under their names in the plan.
pub(super) fn internal_fields(columns: &[Column]) -> Vec<arrow::datatypes::FieldRef> {
    let renamed = columns.iter().map(|column| Arc::new(column.field.as_ref().clone().with_name(&column.internal)));
    renamed.collect()
}
