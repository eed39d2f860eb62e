//! Texts to syntax trees: limits, leftovers after the end, and sqlparser's errors as this crate's.

use sqlparser::ast::{Expr, Query};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::DEPTH_MAX;
use crate::dialect::SparkDialect;
use crate::error::Error;
use crate::model::Place;
use crate::tokens::{near, tokenize};

/// A text being parsed, with its tokens kept for error messages.
pub(crate) struct Source {
    text: String,
    tokens: Vec<TokenWithSpan>,
}

/// The stack of a parsing thread; deep enough for [`DEPTH_MAX`] levels of the largest frames there are.
const STACK_BYTES: usize = 256 << 20;

/// Runs a step with a stack of its own, so that a caller's small one does not decide what can be parsed.
pub(crate) fn with_stack<T: Send>(step: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("sql-parser".into()).stack_size(STACK_BYTES);
        match builder.spawn_scoped(scope, step) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => Err(Error::NoThread { reason: error.to_string() }),
        }
    })
}

impl Source {
    pub fn new(text: &str) -> Result<Self, Error> {
        let tokens = tokenize(text)?;
        if tokens.iter().all(|token| matches!(token.token, Token::Whitespace(_) | Token::SemiColon | Token::EOF)) {
            return Err(Error::Empty);
        }
        Ok(Source { text: text.to_string(), tokens })
    }

    pub fn tokens(&self) -> &[TokenWithSpan] {
        &self.tokens
    }

    /// The text at a place of one line; for other places the expression as it is printed.
    pub fn slice(&self, place: Place, expr: &Expr) -> String {
        let line = usize::try_from(place.line).ok().and_then(|line| self.text.lines().nth(line.checked_sub(1)?));
        let (from, length) = (place.column.saturating_sub(1) as usize, place.length as usize);
        let text: Option<String> = line.map(|line| line.chars().skip(from).take(length).collect());
        text.filter(|text| place.length > 1 && !text.is_empty()).unwrap_or_else(|| expr.to_string())
    }

    pub fn parser(&self) -> Parser<'static> {
        Parser::new(&SparkDialect).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(self.tokens.clone())
    }

    /// The first words in capitals, for a look at what kind of statement this is.
    pub fn first_words(&self, count: usize) -> Vec<String> {
        self.tokens
            .iter()
            .filter(|token| !matches!(token.token, Token::Whitespace(_)))
            .map_while(|token| match &token.token {
                Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
                _ => None,
            })
            .take(count)
            .collect()
    }

    /// Refuses whatever follows the end of a statement, but for semicolons.
    pub fn finish(&self, parser: &mut Parser<'_>) -> Result<(), Error> {
        while parser.consume_token(&Token::SemiColon) {}
        match parser.peek_token() {
            TokenWithSpan { token: Token::EOF, .. } => Ok(()),
            TokenWithSpan { token, span } => Err(Error::Syntax {
                near: format!("'{token}'"),
                line: span.start.line,
                column: span.start.column,
                message: "unexpected after the end of the statement".into(),
            }),
        }
    }

    /// The error of this crate for one of sqlparser's, which keeps its place in its text.
    pub fn error(&self, error: ParserError) -> Error {
        let text = match error {
            ParserError::RecursionLimitExceeded => return Error::TooDeep { limit: DEPTH_MAX },
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        };
        let (message, place) = match text.rsplit_once(" at Line: ") {
            Some((message, place)) => (message, Some(place)),
            None => (text.as_str(), None),
        };
        let place = place.and_then(|place| {
            let (line, column) = place.split_once(", Column: ")?;
            Some(Location { line: line.trim().parse().ok()?, column: column.trim().parse().ok()? })
        });
        let at =
            place.or_else(|| self.tokens.last().map(|token| token.span.end)).unwrap_or(Location { line: 0, column: 0 });
        Error::Syntax {
            near: if message.ends_with("found: EOF") { "end of input".into() } else { near(&self.tokens, at) },
            line: at.line,
            column: at.column,
            message: lower_first(message),
        }
    }

    pub fn query(&self, parser: &mut Parser<'_>) -> Result<Box<Query>, Error> {
        parser.parse_query().map_err(|error| self.error(error))
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// The hints in a comment after SELECT: names and calls, with commas between them or without.
pub(crate) fn parse_hints(text: &str) -> Result<Vec<Expr>, Error> {
    let source = Source::new(text)?;
    let mut parser = source.parser();
    let mut hints = Vec::new();
    while parser.peek_token_ref().token != Token::EOF {
        hints.push(parser.parse_prefix().map_err(|error| source.error(error))?);
        let _ = parser.consume_token(&Token::Comma);
    }
    Ok(hints)
}
