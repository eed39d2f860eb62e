//! A call of a Python function in an expression, until [`super::extract`] takes it out.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::{Host, PythonFunction};
use crate::Error;
use crate::embedded::expression::Typed;

#[derive(Debug, Clone)]
pub struct PythonCall {
    pub function: Arc<PythonFunction>,
    pub host: Arc<Host>,
    /// Names of keyword arguments, by position.
    pub argument_names: Vec<Option<String>>,
    /// Spark's types of the arguments.
    pub argument_fields: Vec<FieldRef>,
    signature: Signature,
}

impl PythonCall {
    /// The call as an expression.
    pub fn typed(function: PythonFunction, host: Arc<Host>, arguments: Vec<(Option<String>, Typed)>) -> Typed {
        let field = Arc::clone(&function.output);
        let mut call = PythonCall {
            function: Arc::new(function),
            host,
            argument_names: Vec::with_capacity(arguments.len()),
            argument_fields: Vec::with_capacity(arguments.len()),
            // The optimizer must neither copy a call nor evaluate it by itself.
            signature: if arguments.is_empty() {
                Signature::nullary(Volatility::Volatile)
            } else {
                Signature::variadic_any(Volatility::Volatile)
            },
        };
        let mut exprs = Vec::with_capacity(arguments.len());
        for (name, argument) in arguments {
            call.argument_names.push(name);
            call.argument_fields.push(argument.field);
            exprs.push(argument.expr);
        }
        let function = ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(call)), exprs);
        Typed { expr: Expr::ScalarFunction(function), field }
    }

    /// The call that an expression is, with its arguments.
    pub fn of(expr: &Expr) -> Option<(&PythonCall, &[Expr])> {
        match expr {
            Expr::ScalarFunction(function) => {
                let call = function.func.inner().downcast_ref::<PythonCall>()?;
                Some((call, &function.args))
            }
            _ => None,
        }
    }
}

impl PartialEq for PythonCall {
    fn eq(&self, other: &PythonCall) -> bool {
        self.function == other.function
            && self.argument_names == other.argument_names
            && self.argument_fields == other.argument_fields
    }
}

impl Eq for PythonCall {}

impl Hash for PythonCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
        self.argument_names.hash(state);
    }
}

impl ScalarUDFImpl for PythonCall {
    fn name(&self) -> &str {
        &self.function.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> datafusion::error::Result<DataType> {
        Ok(self.function.output.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> datafusion::error::Result<FieldRef> {
        Ok(Arc::clone(&self.function.output))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> datafusion::error::Result<ColumnarValue> {
        // Where a plan has calls that cannot be taken out, such as in a JOIN over both sides.
        let feature = format!("the Python function {} in this place of a query", self.function.name);
        Err(Error::Unsupported { feature }.into())
    }
}
