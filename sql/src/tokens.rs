//! Text to tokens: sqlparser's tokenizer, then what Spark's lexer does differently.
//!
//! Typed numbers (`1L`, `2BD`), escapes, raw and adjacent strings, `"text"`, numbered `?` and bare `VALUES` rows.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, Whitespace};

use crate::dialect::SparkDialect;
use crate::error::Error;

/// The longest chain of binary operators without a bracket or comma between them.
const OPERATOR_CHAIN_MAX: usize = 20_000;

pub(crate) fn tokenize(text: &str) -> Result<Vec<TokenWithSpan>, Error> {
    let raw = Tokenizer::new(&SparkDialect, text).with_unescape(false).tokenize_with_location().map_err(|e| {
        Error::Syntax {
            near: "end of input".into(),
            line: e.location.line,
            column: e.location.column,
            message: e.message.to_lowercase(),
        }
    })?;
    let tokens = wrap_bare_values(merge(raw));
    check_chains(&tokens)?;
    Ok(tokens)
}

fn merge(raw: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut tokens: Vec<TokenWithSpan> = Vec::with_capacity(raw.len());
    // Where the last token that is no whitespace stands, while it is a string that a next string continues.
    let mut open_string: Option<usize> = None;
    let mut placeholders = 0;
    for TokenWithSpan { token, span } in raw {
        let adjacent = tokens.last().is_some_and(|last| last.span.end == span.start);
        match token {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                let is_raw = adjacent && matches!(tokens.last(), Some(last) if is_raw_prefix(&last.token));
                if is_raw {
                    tokens.pop();
                }
                let value = if is_raw { text } else { unescape(&text) };
                if let Some(TokenWithSpan { token: Token::SingleQuotedString(open), .. }) =
                    open_string.and_then(|at| tokens.get_mut(at))
                {
                    open.push_str(&value);
                    continue;
                }
                open_string = Some(tokens.len());
                tokens.push(TokenWithSpan { token: Token::SingleQuotedString(value), span });
                continue;
            }
            Token::Word(word) if adjacent && word.quote_style.is_none() => {
                if let Some(TokenWithSpan { token: Token::Number(number, false), span: number_span }) =
                    tokens.last_mut()
                {
                    let joined = format!("{number}{}", word.value);
                    let span = Span::new(number_span.start, span.end);
                    let is_suffix = matches!(word.value.to_ascii_uppercase().as_str(), "S" | "Y" | "D" | "F" | "BD");
                    let token = if is_suffix { Token::Number(joined, false) } else { Token::make_word(&joined, None) };
                    tokens.pop();
                    tokens.push(TokenWithSpan { token, span });
                } else {
                    tokens.push(TokenWithSpan { token: Token::Word(word), span });
                }
            }
            Token::Placeholder(text) if text == "?" => {
                let token = Token::Placeholder(format!("?{placeholders}"));
                placeholders += 1;
                tokens.push(TokenWithSpan { token, span });
            }
            // Comments are dropped but for hints, which the parser looks for after SELECT.
            Token::Whitespace(Whitespace::SingleLineComment { .. }) => continue,
            Token::Whitespace(Whitespace::MultiLineComment(ref comment)) if !comment.starts_with('+') => continue,
            Token::Whitespace(_) => {
                tokens.push(TokenWithSpan { token, span });
                continue;
            }
            _ => tokens.push(TokenWithSpan { token, span }),
        }
        open_string = None;
    }
    tokens
}

fn is_raw_prefix(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("r"))
}

/// Reads Spark's escapes: `\n` and its kind, `\uXXXX`, three octal digits, and a doubled quote.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        at += 1;
        if c != '\\' {
            out.push(c);
            // The tokenizer leaves a doubled quote as it stands; inside a string no single one is left.
            if (c == '\'' || c == '"') && chars.get(at) == Some(&c) {
                at += 1;
            }
            continue;
        }
        let code = |from: usize, digits: usize, radix: u32| {
            let digits: Option<String> = chars.get(from..from + digits).map(|d| d.iter().collect());
            digits.and_then(|d| u32::from_str_radix(&d, radix).ok()).and_then(char::from_u32)
        };
        let Some(&escaped) = chars.get(at) else {
            out.push('\\');
            break;
        };
        if let ('u', Some(c)) = (escaped, code(at + 1, 4, 16)) {
            out.push(c);
            at += 5;
        } else if let ('U', Some(c)) = (escaped, code(at + 1, 8, 16)) {
            out.push(c);
            at += 9;
        } else if let ('0'..='1', Some(c)) = (escaped, code(at, 3, 8)) {
            out.push(c);
            at += 3;
        } else {
            at += 1;
            match escaped {
                '0' => out.push('\0'),
                'b' => out.push('\u{8}'),
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'Z' => out.push('\u{1a}'),
                // LIKE reads these two itself.
                '%' | '_' => out.extend(['\\', escaped]),
                other => out.push(other),
            }
        }
    }
    out
}

/// `VALUES 1, 2` becomes `VALUES (1), (2)`, the only form that sqlparser knows.
fn wrap_bare_values(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        let is_values =
            matches!(&token.token, Token::Word(w) if w.keyword == Keyword::VALUES && w.quote_style.is_none());
        out.push(token);
        if !is_values {
            continue;
        }
        loop {
            while let Some(space) = rest.next_if(|t| matches!(t.token, Token::Whitespace(_))) {
                out.push(space);
            }
            let Some(first) = rest.peek() else { break };
            let starts_row = matches!(
                first.token,
                Token::Number(..) | Token::SingleQuotedString(_) | Token::Minus | Token::Placeholder(_) | Token::Colon
            ) || matches!(&first.token, Token::Word(w)
                if matches!(w.keyword, Keyword::NULL | Keyword::TRUE | Keyword::FALSE | Keyword::DATE | Keyword::TIMESTAMP));
            if !starts_row {
                break;
            }
            let span = Span::new(first.span.start, first.span.start);
            out.push(TokenWithSpan { token: Token::LParen, span });
            // A minus sign, a type's name or a colon is followed by the value that it belongs to.
            while let Some(prefix) = rest.next_if(|t| {
                matches!(t.token, Token::Minus | Token::Colon | Token::Whitespace(_))
                    || matches!(&t.token, Token::Word(w) if matches!(w.keyword, Keyword::DATE | Keyword::TIMESTAMP))
            }) {
                out.push(prefix);
            }
            out.extend(rest.next());
            out.push(TokenWithSpan { token: Token::RParen, span });
            while let Some(space) = rest.next_if(|t| matches!(t.token, Token::Whitespace(_))) {
                out.push(space);
            }
            let Some(comma) = rest.next_if(|t| t.token == Token::Comma) else { break };
            out.push(comma);
        }
    }
    out
}

/// Refuses chains whose syntax tree, one level an operator, would be too deep to walk.
fn check_chains(tokens: &[TokenWithSpan]) -> Result<(), Error> {
    let mut chains = vec![0usize];
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => chains.push(0),
            Token::RParen | Token::RBracket if chains.len() > 1 => {
                chains.pop();
            }
            Token::Comma => {
                if let Some(chain) = chains.last_mut() {
                    *chain = 0;
                }
            }
            Token::Whitespace(_) => {}
            _ => {
                if let Some(chain) = chains.last_mut() {
                    *chain += 1;
                    // An operator comes with its operand, and a predicate such as `a = 1 OR` holds four tokens.
                    if *chain > 4 * OPERATOR_CHAIN_MAX {
                        return Err(Error::TooDeep { limit: OPERATOR_CHAIN_MAX });
                    }
                }
            }
        }
    }
    Ok(())
}

/// The token at a place, as an error message shows it.
pub(crate) fn near(tokens: &[TokenWithSpan], at: Location) -> String {
    tokens
        .iter()
        .find(|token| token.span.start == at && token.token != Token::EOF)
        .map_or_else(|| "end of input".to_string(), |token| format!("'{}'", token.token))
}
