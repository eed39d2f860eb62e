//! A statement's text with the values of its parameters in place of their markers.

use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::Constant;
use crate::Parameters;

/// Puts values in place of `?` and `:name`. A marker whose value SQL has no literal for stays as it is.
pub(crate) fn bound_text(text: &str, tokens: &[TokenWithSpan], parameters: &Parameters) -> String {
    let offsets = Offsets::new(text);
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut tokens = tokens.iter().enumerate().peekable();
    while let Some((at, token)) = tokens.next() {
        let value = match &token.token {
            Token::Placeholder(marker) => {
                let at = marker.strip_prefix('?').and_then(|at| at.parse::<usize>().ok());
                let value = at.and_then(|at| parameters.positional.get(at));
                value.map(|value| (value, token.span.end))
            }
            Token::Colon => match tokens.peek() {
                Some((next, TokenWithSpan { token: Token::Word(word), span })) if *next == at + 1 => {
                    parameters.named.get(&word.value).map(|value| (value, span.end))
                }
                _ => None,
            },
            _ => None,
        };
        let literal = value.and_then(|(value, end)| Some((Constant::fold(value)?, end)));
        if let (Some((literal, end)), Some(start)) = (literal, offsets.of(token.span.start))
            && let Some(end) = offsets.of(end)
        {
            out.push_str(&text[copied..start]);
            out.push_str(&literal.to_string());
            copied = end;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// Where the lines of a text begin, to find bytes by line and column.
pub(crate) struct Offsets<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Offsets<'a> {
    pub fn new(text: &'a str) -> Offsets<'a> {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Offsets { text, lines: std::iter::once(0).chain(starts).collect() }
    }

    /// The byte at a location.
    pub fn of(&self, at: Location) -> Option<usize> {
        let line = usize::try_from(at.line).ok()?.checked_sub(1)?;
        let column = usize::try_from(at.column).ok()?.checked_sub(1)?;
        let start = *self.lines.get(line)?;
        let rest = self.text.get(start..)?;
        Some(start + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at))
    }
}
