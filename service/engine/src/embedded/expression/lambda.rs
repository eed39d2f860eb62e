//! Lambda functions over the elements of arrays and maps.
//!
//! The body is resolved with its variables as columns of fresh names and compiled, when the function is resolved, to a
//! DataFusion physical expression over those and over the columns it captures. Elements of all rows are evaluated at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column as PlanColumn, DFSchema};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use spark_connect_proto::Expression;
use spark_connect_proto::expression::ExprType;

use super::resolver::{Variable, child};
use super::{Resolver, Typed};
use crate::{Error, Result};

/// A lambda function, ready to run.
#[derive(Clone)]
pub struct Lambda {
    /// The body's type.
    pub field: FieldRef,
    /// The columns the body reads besides its variables: further arguments of the function.
    pub captured: Vec<Typed>,
    /// The body as text with positions for names: equal for equal lambdas.
    pub identity: String,
    body: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
}

impl Lambda {
    /// Evaluates the body for `num_rows` values of its variables and of the captured columns.
    pub fn run(&self, variables: &[ArrayRef], captured: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        let columns: Vec<ArrayRef> = variables.iter().chain(captured).cloned().collect();
        let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        Ok(self.body.evaluate(&batch)?.into_array(num_rows)?)
    }
}

impl Resolver<'_> {
    /// Resolves a lambda function whose variables have these types; it may take fewer.
    pub fn lambda(&self, expression: &Expression, variables: &[FieldRef]) -> Result<Lambda> {
        let Some(ExprType::LambdaFunction(lambda)) = &expression.expr_type else {
            return Err(Error::InvalidPlan { detail: "a lambda function is expected".into() });
        };
        if lambda.arguments.len() > variables.len() || lambda.arguments.is_empty() {
            return Err(Error::InvalidPlan {
                detail: format!(
                    "lambda function has {} arguments, expected {}",
                    lambda.arguments.len(),
                    variables.len()
                ),
            });
        }
        let mut inner = self.clone();
        inner.is_windowed = false;
        let mut names = Vec::with_capacity(variables.len());
        for (position, field) in variables.iter().enumerate() {
            let internal = self.context.fresh_name();
            names.push(internal.clone());
            let Some(argument) = lambda.arguments.get(position) else { continue };
            let expr = Expr::Column(PlanColumn::new_unqualified(internal));
            inner
                .variables
                .push(Variable { name: argument.name_parts.join("."), value: Typed { expr, field: field.clone() } });
        }
        let body = inner.typed(child(&lambda.function)?)?;
        self.compiled(body, &names, variables)
    }

    fn compiled(&self, body: Typed, names: &[String], variables: &[FieldRef]) -> Result<Lambda> {
        let mut captured: BTreeMap<String, Typed> = BTreeMap::new();
        let mut refused = None;
        body.expr.apply(|node| {
            match node {
                Expr::Column(column) if !names.contains(&column.name) && !captured.contains_key(&column.name) => {
                    if let Some(value) = self.captured_column(&column.name) {
                        captured.insert(column.name.clone(), value);
                    } else {
                        refused = Some("a lambda function over an unknown column");
                    }
                }
                Expr::OuterReferenceColumn(_, _) | Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) => {
                    refused = Some("a subquery in a lambda function");
                }
                Expr::AggregateFunction(_) | Expr::WindowFunction(_) => {
                    refused = Some("an aggregate or window function in a lambda function");
                }
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if let Some(feature) = refused {
            return Err(Error::Unsupported { feature: feature.into() });
        }
        let variable_fields =
            names.iter().zip(variables).map(|(name, field)| field.as_ref().clone().with_name(name).with_nullable(true));
        let captured_fields =
            captured.iter().map(|(name, value)| value.field.as_ref().clone().with_name(name).with_nullable(true));
        let fields: Vec<Field> = variable_fields.chain(captured_fields).collect();
        let schema = Arc::new(Schema::new(fields));
        let plan_schema = DFSchema::try_from(schema.clone())?;
        let mut identity = format!("{:?}", body.expr);
        for (position, name) in names.iter().enumerate() {
            identity = identity.replace(name.as_str(), &format!("%{position}"));
        }
        let physical = self.state.create_physical_expr(body.expr, &plan_schema)?;
        Ok(Lambda { field: body.field, captured: captured.into_values().collect(), identity, body: physical, schema })
    }

    /// A column of the frame, or a variable of a lambda function around this one.
    fn captured_column(&self, internal: &str) -> Option<Typed> {
        let columns = &self.scope.frame.columns;
        if let Some(column) = columns.iter().find(|column| column.internal == internal) {
            return Some(Typed { expr: column.expr(), field: column.field.clone() });
        }
        let is_it =
            |variable: &&Variable| matches!(&variable.value.expr, Expr::Column(column) if column.name == internal);
        self.variables.iter().find(is_it).map(|variable| variable.value.clone())
    }
}

/// Each row's captured value repeated for each of its elements.
pub fn repeated(captured: &[ArrayRef], rows: &arrow::array::UInt64Array) -> Result<Vec<ArrayRef>> {
    captured.iter().map(|column| Ok(arrow::compute::take(column.as_ref(), rows, None)?)).collect()
}

/// The row each element belongs to.
pub fn rows_of_elements(offsets: &[i32]) -> arrow::array::UInt64Array {
    let mut rows = Vec::with_capacity((offsets[offsets.len() - 1] - offsets[0]) as usize);
    for (row, range) in offsets.windows(2).enumerate() {
        rows.extend(std::iter::repeat_n(row as u64, (range[1] - range[0]) as usize));
    }
    rows.into()
}
