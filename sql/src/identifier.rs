//! Names: quoting the parts of a name for a message, and reading them back.

use spark_connect_proto::Expression;
use spark_connect_proto::expression::ExprType;
use spark_connect_proto::expression::literal::LiteralType;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use crate::error::{Error, unsupported};

/// Quotes a part with backticks where a parser would not read it back as one plain identifier.
pub(crate) fn quote_part(part: &str) -> String {
    let plain = part.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { part.to_string() } else { format!("`{}`", part.replace('`', "``")) }
}

/// Joins parts to the `unparsed_identifier` of a message.
pub(crate) fn quote_parts<S: AsRef<str>>(parts: &[S]) -> String {
    parts.iter().map(|part| quote_part(part.as_ref())).collect::<Vec<_>>().join(".")
}

/// Splits an `unparsed_identifier` into its parts, without their backticks.
///
/// A text with unbalanced backticks comes back as one part: a client may send any string as a name.
pub fn split_identifier(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '`' if quoted && chars.peek() == Some(&'`') => {
                chars.next();
                part.push('`');
            }
            '`' => quoted = !quoted,
            '.' if !quoted => parts.push(std::mem::take(&mut part)),
            _ => part.push(c),
        }
    }
    if quoted {
        return vec![text.to_string()];
    }
    parts.push(part);
    parts
}

/// The parts of a name in the syntax tree.
pub(crate) fn object_parts(name: &ObjectName) -> Result<Vec<String>, Error> {
    name.0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(ident) => Ok(ident.value.clone()),
            other => unsupported(format!("the name {other}")),
        })
        .collect()
}

pub(crate) fn ident_values(idents: &[Ident]) -> Vec<String> {
    idents.iter().map(|ident| ident.value.clone()).collect()
}

/// The text of an expression that is a literal one, or a concatenation of such.
pub(crate) fn constant_text(expression: &Expression) -> Option<String> {
    match expression.expr_type.as_ref()? {
        ExprType::Literal(literal) => match literal.literal_type.as_ref()? {
            LiteralType::String(text) => Some(text.clone()),
            _ => None,
        },
        ExprType::UnresolvedFunction(call) if call.function_name == "concat" => {
            call.arguments.iter().map(constant_text).collect()
        }
        _ => None,
    }
}
