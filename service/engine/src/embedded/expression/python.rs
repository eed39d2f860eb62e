//! Calls of the functions that clients pickle.

use spark_connect_proto as proto;
use spark_connect_proto::expression::ExprType;

use super::resolver::child;
use super::{Resolver, Typed};
use crate::embedded::python::{PythonCall, PythonFunction};
use crate::{Error, Result};

impl Resolver<'_> {
    pub(super) fn python_call(&self, message: &proto::CommonInlineUserDefinedFunction) -> Result<Typed> {
        let function = PythonFunction::from_proto(message)?;
        self.call_of_python(function, &message.arguments, message.is_distinct)
    }

    /// A call of a function with these arguments.
    pub fn call_of_python(
        &self,
        function: PythonFunction,
        arguments: &[proto::Expression],
        is_distinct: bool,
    ) -> Result<Typed> {
        let host = self.context.python()?;
        let name = &function.name;
        if is_distinct {
            return Err(Error::Unsupported { feature: format!("DISTINCT in a call of the Python function {name}") });
        }
        if !function.eval_type.is_scalar() && !function.eval_type.is_aggregate() {
            return Err(Error::Unsupported { feature: format!("the Python function {name} as a value of each row") });
        }
        if !self.variables.is_empty() {
            return Err(Error::Unsupported { feature: format!("the Python function {name} in a lambda function") });
        }
        let inner = Resolver { is_windowed: false, ..self.clone() };
        let mut resolved = Vec::with_capacity(arguments.len());
        for argument in arguments {
            resolved.push(match &argument.expr_type {
                Some(ExprType::NamedArgumentExpression(named)) => {
                    (Some(named.key.clone()), inner.typed(child(&named.value)?)?)
                }
                _ => (None, inner.typed(argument)?),
            });
        }
        Ok(PythonCall::typed(function, host, resolved))
    }
}
