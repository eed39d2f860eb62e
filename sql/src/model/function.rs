//! `ml_predict` and its kin in FROM: what they say as a message that a relation carries as its extension.

use prost::Message;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Relation};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr};

use super::Constant;
use super::arguments::Argument;
use crate::error::{Error, unsupported};
use crate::expression::brief;
use crate::identifier::{constant_text, ident_values, split_identifier};
use crate::message::relation;
use crate::translator::Translator;

/// What the `Any` of a relation's extension names.
pub const TYPE_URL: &str = "type.googleapis.com/phalanx.ModelFunction";

/// A call of a model function.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelFunction {
    /// In lower case.
    #[prost(string, tag = "1")]
    pub function: String,
    /// The model's name in parts.
    #[prost(string, repeated, tag = "2")]
    pub model: Vec<String>,
    /// A number or an alias; empty: the default version.
    #[prost(string, tag = "3")]
    pub version: String,
    #[prost(message, optional, boxed, tag = "4")]
    pub input: Option<Box<Relation>>,
    #[prost(message, repeated, tag = "5")]
    pub arguments: Vec<NamedArgument>,
}

/// `name => value`; the value folds to a constant.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NamedArgument {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<Expression>,
}

/// A function, whether it reads a table, and the other parameters it has.
struct Signature {
    name: &'static str,
    input: Input,
    parameters: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Required,
    Optional,
    None,
}

const fn signature(name: &'static str, input: Input, parameters: &'static [&'static str]) -> Signature {
    Signature { name, input, parameters }
}

const SIGNATURES: &[Signature] = &[
    signature("ml_predict", Input::Required, &["on_invalid", "prediction_col", "probability_col", "threshold"]),
    signature("ml_transform", Input::Required, &[]),
    signature("ml_explain_predict", Input::Required, &["prediction_col", "probability_col", "threshold"]),
    signature("ml_evaluate", Input::Optional, &["threshold"]),
    signature("ml_training_info", Input::None, &[]),
    signature("ml_trial_info", Input::None, &[]),
    signature("ml_feature_info", Input::None, &[]),
    signature("ml_weights", Input::None, &[]),
    signature("ml_confusion_matrix", Input::None, &[]),
];

fn find(name: &str) -> Option<&'static Signature> {
    SIGNATURES.iter().find(|signature| signature.name.eq_ignore_ascii_case(name))
}

pub fn is_model_function(name: &str) -> bool {
    find(name).is_some()
}

/// `db.m@3` in its parts: the name, and what follows the last `@` outside backticks.
pub fn model_of_text(text: &str) -> (Vec<String>, String) {
    let mut is_quoted = false;
    let mut at = None;
    for (position, character) in text.char_indices() {
        match character {
            '`' => is_quoted = !is_quoted,
            '@' if !is_quoted => at = Some(position),
            _ => {}
        }
    }
    match at {
        Some(at) => (split_identifier(&text[..at]), text[at + 1..].to_string()),
        None => (split_identifier(text), String::new()),
    }
}

impl Translator<'_> {
    /// A call in FROM of one of the functions; the name is known to be one.
    pub(crate) fn model_function(&mut self, name: &str, args: &[FunctionArg]) -> Result<Relation, Error> {
        let Some(signature) = find(name) else { return unsupported(format!("the table function {name}")) };
        let mut call = ModelFunction { function: signature.name.into(), ..ModelFunction::default() };
        for (position, argument) in args.iter().enumerate() {
            let (name, expr) = match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => (None, expr),
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                    (Some(name.value.to_ascii_lowercase()), expr)
                }
                other => {
                    let shown = brief(&other.to_string());
                    return unsupported(format!("the argument {shown} of the table function {name}"));
                }
            };
            self.model_argument(&mut call, signature, name.as_deref(), position, expr)?;
        }
        let missing = |parameter: &'static str, index: usize| Error::RequiredParameter {
            routine: signature.name,
            parameter,
            index,
        };
        if call.model.is_empty() {
            return Err(missing("model", 0));
        }
        if signature.input == Input::Required && call.input.is_none() {
            return Err(missing("input", 1));
        }
        let any = prost_types::Any { type_url: TYPE_URL.into(), value: call.encode_to_vec() };
        Ok(relation(RelType::Extension(any)))
    }

    fn model_argument(
        &mut self,
        call: &mut ModelFunction,
        signature: &'static Signature,
        name: Option<&str>,
        position: usize,
        expr: &Expr,
    ) -> Result<(), Error> {
        let twice = |parameter: &str| Error::ParameterTwice { routine: signature.name, parameter: parameter.into() };
        match (Argument::of(expr), name, position) {
            (Argument::Model { name, version }, None, 0) | (Argument::Model { name, version }, Some("model"), _) => {
                if !call.model.is_empty() {
                    return Err(twice("model"));
                }
                call.model = self.reference_parts(name, "MODEL")?;
                call.version = match version {
                    None => String::new(),
                    Some(version) => match Constant::fold(&self.expression(version)?) {
                        Some(Constant::Integer(number)) => number.to_string(),
                        Some(Constant::Text(alias)) => alias,
                        _ => return Err(not_a_text(version, "VERSION")),
                    },
                };
                Ok(())
            }
            (Argument::Other(expr), None, 0) | (Argument::Other(expr), Some("model"), _) => {
                if !call.model.is_empty() {
                    return Err(twice("model"));
                }
                let text = constant_text(&self.expression(expr)?).ok_or_else(|| not_a_text(expr, "model"))?;
                (call.model, call.version) = model_of_text(&text);
                Ok(())
            }
            (Argument::Table(table), None, 1) | (Argument::Table(table), Some("input"), _)
                if signature.input != Input::None =>
            {
                if call.input.is_some() {
                    return Err(twice("input"));
                }
                call.input = Some(Box::new(self.table_argument(table)?));
                Ok(())
            }
            (Argument::Other(expr), Some(name), _) if signature.parameters.contains(&name) => {
                if call.arguments.iter().any(|known| known.name == name) {
                    return Err(twice(name));
                }
                let value = self.expression(expr)?;
                if Constant::fold(&value).is_none() {
                    return Err(not_a_text(expr, "a model function's parameter"));
                }
                call.arguments.push(NamedArgument { name: name.into(), value: Some(value) });
                Ok(())
            }
            (_, Some(name), _) if !matches!(name, "model" | "input") || signature.input == Input::None => {
                Err(Error::UnrecognizedParameter {
                    routine: signature.name,
                    parameter: name.to_string(),
                    known: signature.parameters.to_vec(),
                })
            }
            (Argument::Table(_), None, _) if signature.input == Input::None => Err(Error::UnrecognizedParameter {
                routine: signature.name,
                parameter: "input".into(),
                known: signature.parameters.to_vec(),
            }),
            (_, None, 1) => Err(Error::RequiredParameter { routine: signature.name, parameter: "input", index: 1 }),
            _ => unsupported(format!("the argument {} of {}", brief(&expr.to_string()), signature.name)),
        }
    }

    /// The relation of `TABLE t` or `TABLE (query)`.
    fn table_argument(&mut self, table: &Expr) -> Result<Relation, Error> {
        match table {
            Expr::Subquery(query) => {
                let outer = std::mem::take(&mut self.references);
                let plan = self.query(query);
                self.references = outer;
                plan
            }
            name => {
                let parts = self.reference_parts(name, "TABLE")?;
                self.table(&parts)
            }
        }
    }

    /// The parts of a name, or of the text in `IDENTIFIER(..)`.
    fn reference_parts(&mut self, name: &Expr, what: &'static str) -> Result<Vec<String>, Error> {
        match name {
            Expr::CompoundIdentifier(parts) => Ok(ident_values(parts)),
            Expr::Function(call) => match &call.args {
                sqlparser::ast::FunctionArguments::List(list) => match list.args.as_slice() {
                    [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => {
                        let text = constant_text(&self.expression(expr)?).ok_or_else(|| not_a_text(expr, what))?;
                        Ok(split_identifier(&text))
                    }
                    _ => Err(not_a_text(name, what)),
                },
                _ => Err(not_a_text(name, what)),
            },
            other => Err(not_a_text(other, what)),
        }
    }
}

fn not_a_text(expr: &Expr, clause: &'static str) -> Error {
    Error::NotAConstantString { expression: brief(&expr.to_string()), clause }
}
