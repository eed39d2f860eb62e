//! `MODEL m VERSION 3` and `TABLE (query)` in the argument list of a model function.
//!
//! They are no expressions of Spark's, so the dialect hands them here, where they become expressions that only
//! [`super::function`] knows. Only an argument of a call of one of the functions is taken: anywhere else `model` and
//! `table` are names like any other.

use sqlparser::ast::{Expr, Ident};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::is_model_function;

/// No text can quote an identifier with this, so that no user's name is taken for one of the marks.
const MARK: char = '\u{1}';

/// What a marked expression is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument<'a> {
    /// A model by name, and its version.
    Model {
        name: &'a Expr,
        version: Option<&'a Expr>,
    },
    /// A table by name, or a query.
    Table(&'a Expr),
    Other(&'a Expr),
}

impl<'a> Argument<'a> {
    pub fn of(expr: &'a Expr) -> Argument<'a> {
        match expr {
            Expr::Named { expr, name } if name.quote_style == Some(MARK) => {
                match (name.value.as_str(), expr.as_ref()) {
                    ("model", Expr::Tuple(parts)) => match parts.as_slice() {
                        [name] => Argument::Model { name, version: None },
                        [name, version] => Argument::Model { name, version: Some(version) },
                        _ => Argument::Other(expr),
                    },
                    _ => Argument::Table(expr),
                }
            }
            other => Argument::Other(other),
        }
    }
}

fn marked(mark: &str, expr: Expr) -> Expr {
    Expr::Named { expr: Box::new(expr), name: Ident { quote_style: Some(MARK), ..Ident::new(mark) } }
}

/// Reads a `MODEL` or `TABLE` argument, if one begins here.
pub(crate) fn parse(parser: &mut Parser<'_>, word: &str) -> Option<Result<Expr, ParserError>> {
    let next = &parser.peek_nth_token_ref(1).token;
    let is_name = matches!(next, Token::Word(_));
    let begins = match word {
        "MODEL" => is_name,
        "TABLE" => is_name || *next == Token::LParen,
        _ => false,
    };
    if !begins || !is_argument_of_model_function(parser) {
        return None;
    }
    parser.advance_token();
    Some(if word == "MODEL" { model(parser) } else { table(parser) })
}

fn model(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let mut parts = vec![reference(parser)?];
    let is_version = matches!(&parser.peek_token_ref().token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("version"));
    if is_version {
        parser.advance_token();
        if parser.parse_keyword(Keyword::AS) {
            parser.expect_keyword(Keyword::OF)?;
        }
        parts.push(parser.parse_prefix()?);
    }
    Ok(marked("model", Expr::Tuple(parts)))
}

fn table(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    if !parser.consume_token(&Token::LParen) {
        return reference(parser).map(|name| marked("table", name));
    }
    let is_query = parser.peek_token_ref().token == Token::LParen
        || matches!(&parser.peek_token_ref().token, Token::Word(word) if matches!(
            word.keyword,
            Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::FROM | Keyword::TABLE
        ));
    let table = if is_query { Expr::Subquery(parser.parse_query()?) } else { reference(parser)? };
    parser.expect_token(&Token::RParen)?;
    Ok(marked("table", table))
}

/// A name, or `IDENTIFIER(..)`.
fn reference(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let is_call = matches!(&parser.peek_token_ref().token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("identifier"))
        && parser.peek_nth_token_ref(1).token == Token::LParen;
    if is_call {
        return parser.parse_prefix();
    }
    let mut parts = vec![parser.parse_identifier()?];
    while parser.consume_token(&Token::Period) {
        parts.push(parser.parse_identifier()?);
    }
    Ok(Expr::CompoundIdentifier(parts))
}

/// Whether the next token begins an argument of one of the functions, by the tokens before it.
fn is_argument_of_model_function(parser: &Parser<'_>) -> bool {
    let mut before = Backwards { parser, at: parser.get_current_index() + 1 };
    let mut depth = 0usize;
    match before.next() {
        Some(Token::LParen) => return before.is_function_name(),
        Some(Token::Comma) => {}
        Some(Token::RArrow) => match (before.next(), before.next()) {
            (Some(Token::Word(_)), Some(Token::LParen)) => return before.is_function_name(),
            (Some(Token::Word(_)), Some(Token::Comma)) => {}
            _ => return false,
        },
        _ => return false,
    }
    while let Some(token) = before.next() {
        match token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return before.is_function_name(),
            Token::LParen => depth -= 1,
            Token::SemiColon => return false,
            _ => {}
        }
    }
    false
}

/// The tokens before a place, the nearest first.
struct Backwards<'a, 'p> {
    parser: &'a Parser<'p>,
    at: usize,
}

impl<'a> Backwards<'a, '_> {
    fn next(&mut self) -> Option<&'a Token> {
        while self.at > 0 {
            self.at -= 1;
            match &self.parser.token_at(self.at).token {
                Token::Whitespace(_) => {}
                token => return Some(token),
            }
        }
        None
    }

    fn is_function_name(&mut self) -> bool {
        matches!(self.next(), Some(Token::Word(word)) if is_model_function(&word.value))
    }
}
