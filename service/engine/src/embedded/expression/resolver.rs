//! The recursion over an expression's kinds.

use std::sync::Arc;

use datafusion::execution::SessionState;
use spark_connect_proto as proto;
use spark_connect_proto::Expression;
use spark_connect_proto::expression::{self as kind, ExprType, cast::CastToType, cast::EvalMode};

use super::cast::Mode;
use super::{Resolved, Scope, Typed, cast, literal};
use crate::embedded::ResolveContext;
use crate::embedded::functions;
use crate::{Conf, Error, Result, data_type};

/// What a variable of a lambda function stands for.
#[derive(Debug, Clone)]
pub struct Variable {
    pub name: String,
    pub value: Typed,
}

/// Resolves expressions of one scope.
#[derive(Clone)]
pub struct Resolver<'a> {
    pub context: &'a ResolveContext,
    pub state: &'a SessionState,
    pub scope: &'a Scope<'a>,
    /// Of the lambda functions around the expression, innermost last.
    pub variables: Vec<Variable>,
    /// Whether the expression stands right under `OVER`.
    pub is_windowed: bool,
}

impl<'a> Resolver<'a> {
    pub fn new(context: &'a ResolveContext, state: &'a SessionState, scope: &'a Scope<'a>) -> Resolver<'a> {
        Resolver { context, state, scope, variables: Vec::new(), is_windowed: false }
    }

    pub fn conf(&self) -> &Conf {
        &self.context.conf
    }

    /// Resolves an expression with the name Spark gives it.
    pub fn named(&self, expression: &Expression) -> Result<Resolved> {
        match &expression.expr_type {
            Some(ExprType::Alias(alias)) => self.alias(alias),
            Some(ExprType::UnresolvedAttribute(attribute)) => self.attribute_column(attribute),
            Some(ExprType::ExpressionString(text)) => self.named(&parse(&text.expression)?),
            Some(ExprType::UnresolvedFunction(call)) => match self.generator(call)? {
                Some(generator) => Ok(generator),
                None => self.unnamed(expression),
            },
            Some(ExprType::CallFunction(call)) => self.named(&called(call)),
            _ => self.unnamed(expression),
        }
    }

    fn unnamed(&self, expression: &Expression) -> Result<Resolved> {
        let typed = self.typed(expression)?;
        let name = automatic_name(expression);
        let field = Arc::new(typed.field.as_ref().clone().with_name(&name));
        Ok(Resolved { name, expr: typed.expr, field, column: None, generator: None })
    }

    fn alias(&self, alias: &kind::Alias) -> Result<Resolved> {
        let mut resolved = self.named(child(&alias.expr)?)?;
        if let Some(generator) = &mut resolved.generator {
            generator.rename(&alias.name)?;
        } else if alias.name.len() != 1 {
            return Err(Error::InvalidPlan { detail: format!("alias with {} names", alias.name.len()) });
        }
        resolved.name = alias.name.first().cloned().unwrap_or_default();
        let mut field = resolved.field.as_ref().clone().with_name(&resolved.name);
        if let Some(metadata) = &alias.metadata {
            field = udt::field::with_column_metadata(field, metadata);
        }
        resolved.field = Arc::new(field);
        resolved.column = None;
        Ok(resolved)
    }

    /// Resolves an expression whose name does not matter.
    pub fn typed(&self, expression: &Expression) -> Result<Typed> {
        let Some(expr_type) = &expression.expr_type else {
            return Err(Error::InvalidPlan { detail: "expression without a kind".into() });
        };
        match expr_type {
            ExprType::Literal(message) => literal::literal(message),
            ExprType::UnresolvedAttribute(attribute) => self.attribute(attribute),
            ExprType::UnresolvedNamedLambdaVariable(variable) => self.variable(variable),
            ExprType::ExpressionString(text) => self.typed(&parse(&text.expression)?),
            ExprType::Alias(alias) => {
                let resolved = self.alias(alias)?;
                Ok(Typed { expr: resolved.expr, field: resolved.field })
            }
            ExprType::Cast(cast) => self.cast(cast),
            ExprType::UnresolvedFunction(call) => functions::resolve(self, call, expression),
            ExprType::CallFunction(call) => self.typed(&called(call)),
            ExprType::Window(window) => self.window(window),
            ExprType::UnresolvedExtractValue(extract) => {
                let container = self.typed(child(&extract.child)?)?;
                let key = self.typed(child(&extract.extraction)?)?;
                self.extract(container, key)
            }
            ExprType::UpdateFields(update) => self.update_fields(update),
            ExprType::SubqueryExpression(subquery) => self.subquery(subquery),
            ExprType::SortOrder(order) => self.typed(child(&order.child)?),
            ExprType::UnresolvedStar(_) => {
                Err(Error::InvalidPlan { detail: "invalid usage of '*' in an expression".into() })
            }
            ExprType::UnresolvedRegex(_) => Err(unsupported("a column pattern inside an expression")),
            ExprType::LambdaFunction(_) => {
                Err(Error::InvalidPlan { detail: "lambda function outside a higher-order function".into() })
            }
            ExprType::NamedArgumentExpression(_) => Err(unsupported("named argument")),
            ExprType::CommonInlineUserDefinedFunction(function) => self.python_call(function),
            ExprType::MergeAction(_) => Err(unsupported("MERGE action")),
            ExprType::TypedAggregateExpression(_) => Err(unsupported("typed aggregate")),
            ExprType::DirectShufflePartitionId(_) => Err(unsupported("direct shuffle partition id")),
            ExprType::Extension(extension) => Err(unsupported(&format!("expression extension {}", extension.type_url))),
        }
    }

    fn variable(&self, variable: &kind::UnresolvedNamedLambdaVariable) -> Result<Typed> {
        self.nested(&variable.name_parts)?.ok_or_else(|| Error::UnresolvedColumn {
            name: variable.name_parts.join("."),
            suggestions: self.variables.iter().map(|variable| variable.name.clone()).collect(),
        })
    }

    /// A lambda variable, or a field inside one.
    pub fn nested(&self, parts: &[String]) -> Result<Option<Typed>> {
        let Some((first, fields)) = parts.split_first() else { return Ok(None) };
        let found = self.variables.iter().rev().find(|variable| self.context.same_name(&variable.name, first));
        let Some(variable) = found else { return Ok(None) };
        let mut value = variable.value.clone();
        for field in fields {
            value = self.field_of(value, field)?;
        }
        Ok(Some(value))
    }

    fn cast(&self, message: &kind::Cast) -> Result<Typed> {
        let value = self.typed(child(&message.expr)?)?;
        let target = match &message.cast_to_type {
            Some(CastToType::Type(target)) => data_type::field_from_proto("", target, true)?,
            Some(CastToType::TypeStr(text)) => data_type::parse_type(text)?,
            None => return Err(Error::InvalidPlan { detail: "cast without a type".into() }),
        };
        let mode = match message.eval_mode() {
            EvalMode::Unspecified => Mode::of(self.conf()),
            EvalMode::Legacy => Mode::Legacy,
            EvalMode::Ansi => Mode::Ansi,
            EvalMode::Try => Mode::Try,
        };
        cast::cast(value, &target, mode, self.conf())
    }
}

/// The name Spark gives a column of this expression.
pub fn automatic_name(expression: &Expression) -> String {
    sql::automatic_name(expression)
}

fn parse(text: &str) -> Result<Expression> {
    Ok(sql::parse_expression(text)?)
}

fn called(call: &proto::CallFunction) -> Expression {
    let function = kind::UnresolvedFunction {
        function_name: call.function_name.clone(),
        arguments: call.arguments.clone(),
        ..Default::default()
    };
    Expression { common: None, expr_type: Some(ExprType::UnresolvedFunction(function)) }
}

/// A child that the message must have.
pub fn child(expression: &Option<Box<Expression>>) -> Result<&Expression> {
    expression.as_deref().ok_or_else(|| Error::InvalidPlan { detail: "expression without its child".into() })
}

pub fn unsupported(feature: &str) -> Error {
    Error::Unsupported { feature: feature.into() }
}
