//! Models and transformers: relations whose meaning another crate knows, as column functions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Filter, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use spark_connect_proto as proto;

use super::build::{keep, project};
use super::grow::Grow;
use super::set_operation::shown;
use super::{Outer, Resolution, over, rows_frame};
use crate::embedded::extension::{Extended, TransformInput};
use crate::embedded::{Column, ColumnFunction, Frame, TransformStep};
use crate::{Error, Result};

impl Resolution<'_> {
    pub(super) async fn ml(&self, message: &proto::MlRelation, outer: &Outer) -> Result<Frame> {
        let extended = self.extensions.resolve_ml(self.session, message).await?;
        self.extended(extended, outer).await
    }

    pub(super) async fn extension(&self, message: &prost_types::Any, outer: &Outer) -> Result<Frame> {
        let extended = self.extensions.resolve_extension(self.session, message).await?;
        self.extended(extended, outer).await
    }

    async fn extended(&self, extended: Extended, outer: &Outer) -> Result<Frame> {
        match extended {
            Extended::Frame(frame) => self.renamed(*frame),
            Extended::Rows(batches, schema) => {
                rows_frame(&self.context, schema, batches, self.session.engine().options().target_partitions)
            }
            Extended::Transform { input, plan_transform } => {
                let input = match input {
                    TransformInput::Relation(relation) => Grow(Box::pin(self.relation(&relation, outer))).await?,
                    TransformInput::Frame(frame) => self.renamed(*frame)?,
                };
                let input = shown(input)?;
                let schema = Schema::new(input.schema().fields().clone());
                let mut frame = input;
                for step in plan_transform(&schema)? {
                    frame = self.step(frame, step)?;
                }
                Ok(frame)
            }
        }
    }

    fn step(&self, frame: Frame, step: TransformStep) -> Result<Frame> {
        match step {
            TransformStep::Append { output, inputs, name, function } => {
                let arguments = self.arguments(&frame, &inputs)?;
                let column = self.column(output.name(), Arc::clone(&output));
                let value = call(&column.internal, name, function, output, arguments).alias(&column.internal);
                let position =
                    frame.columns.iter().position(|known| self.context.same_name(&known.name, &column.name));
                let mut exprs: Vec<Expr> = frame.columns.iter().map(Column::expr).collect();
                let mut columns = frame.columns;
                match position {
                    Some(position) => {
                        exprs[position] = value;
                        columns[position] = column;
                    }
                    None => {
                        exprs.push(value);
                        columns.push(column);
                    }
                }
                Ok(Frame { plan: project(frame.plan, exprs)?, columns })
            }
            TransformStep::Filter { inputs, name, function } => {
                let arguments = self.arguments(&frame, &inputs)?;
                let output = Arc::new(arrow::datatypes::Field::new("", DataType::Boolean, true));
                let predicate = call(&self.context.fresh_name(), name, function, output, arguments);
                let filter = Filter::try_new(predicate, Arc::new(frame.plan.clone()))?;
                Ok(over(frame, LogicalPlan::Filter(filter)))
            }
            TransformStep::Select { columns } => {
                let columns = columns.iter().map(|name| self.input(&frame, name)).collect::<Result<_>>()?;
                keep(frame, columns)
            }
        }
    }

    fn arguments(&self, frame: &Frame, inputs: &[String]) -> Result<Vec<Expr>> {
        inputs.iter().map(|name| Ok(self.input(frame, name)?.expr())).collect()
    }

    fn input(&self, frame: &Frame, name: &str) -> Result<Column> {
        let mut found = frame.columns.iter().filter(|column| self.context.same_name(&column.name, name));
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column.clone()),
            (Some(_), Some(_)) => {
                Err(Error::AmbiguousReference { name: name.to_owned(), candidates: vec![name.to_owned(); 2] })
            }
            (None, _) => Err(Error::UnresolvedColumn {
                name: name.to_owned(),
                suggestions: frame.columns.iter().map(|column| column.name.clone()).collect(),
            }),
        }
    }
}

fn call(id: &str, name: String, function: ColumnFunction, output: FieldRef, arguments: Vec<Expr>) -> Expr {
    let step = StepFunction {
        id: id.to_owned(),
        name,
        function,
        output,
        // The function is pure, but may cost a lot a row. As a volatile one the optimizer neither copies it into the
        // filters above it nor into several expressions; that nobody reads its column still takes it out of the plan.
        signature: Signature::variadic_any(Volatility::Volatile),
    };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(step)), arguments))
}

/// A step of a transform as a scalar function. Its identity is the column it makes.
struct StepFunction {
    id: String,
    name: String,
    function: ColumnFunction,
    output: FieldRef,
    signature: Signature,
}

impl fmt::Debug for StepFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepFunction").field("name", &self.name).field("id", &self.id).finish_non_exhaustive()
    }
}

impl PartialEq for StepFunction {
    fn eq(&self, other: &StepFunction) -> bool {
        self.id == other.id
    }
}

impl Eq for StepFunction {}

impl Hash for StepFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl ScalarUDFImpl for StepFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> datafusion::error::Result<DataType> {
        Ok(self.output.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> datafusion::error::Result<FieldRef> {
        Ok(Arc::clone(&self.output))
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> datafusion::error::Result<ColumnarValue> {
        let arguments = call
            .args
            .into_iter()
            .map(|argument| argument.into_array(call.number_rows))
            .collect::<datafusion::error::Result<Vec<ArrayRef>>>()?;
        let result = (self.function)(&arguments, call.number_rows)?;
        if result.len() != call.number_rows || result.data_type() != self.output.data_type() {
            let invariant = format!(
                "{} gives {} rows of {}, promised {} of {}",
                self.name,
                result.len(),
                result.data_type(),
                call.number_rows,
                self.output.data_type()
            );
            return Err(Error::Bug { invariant }.into());
        }
        Ok(ColumnarValue::Array(result))
    }
}
