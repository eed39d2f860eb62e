//! Spark's grammar for sqlparser: what differs from the parser's own reading of words and operators.

use std::any::TypeId;

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DateTimeField, Expr, Ident, Interval, ObjectName, TypedString, UnaryOperator,
};
use sqlparser::dialect::{DatabricksDialect, Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// How tightly a predicate such as LIKE or IS NULL binds: less than a comparison, more than NOT.
const PREDICATE: u8 = 17;
const COMPARISON: u8 = 20;
const SHIFT: u8 = 28;
const PLUS_MINUS: u8 = 30;
const TIMES: u8 = 40;
const ACCESS: u8 = 50;

#[derive(Debug)]
pub(crate) struct SparkDialect;

impl Dialect for SparkDialect {
    /// sqlparser asks in places whether the dialect is Databricks', the nearest to Spark's of those it knows.
    fn dialect(&self) -> TypeId {
        TypeId::of::<DatabricksDialect>()
    }
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`'
    }
    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }
    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_'
    }
    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }
    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }
    fn supports_group_by_expr(&self) -> bool {
        true
    }
    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }
    fn supports_lambda_functions(&self) -> bool {
        true
    }
    fn supports_select_wildcard_except(&self) -> bool {
        true
    }
    fn supports_struct_literal(&self) -> bool {
        true
    }
    fn supports_nested_comments(&self) -> bool {
        true
    }
    fn supports_values_as_table_factor(&self) -> bool {
        true
    }
    fn supports_bang_not_operator(&self) -> bool {
        true
    }
    fn supports_select_item_multi_column_alias(&self) -> bool {
        true
    }
    fn supports_cte_without_as(&self) -> bool {
        true
    }
    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }
    fn supports_comment_optimizer_hint(&self) -> bool {
        true
    }
    fn supports_from_first_select(&self) -> bool {
        true
    }
    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }
    fn supports_table_sample_before_alias(&self) -> bool {
        true
    }
    fn supports_order_by_all(&self) -> bool {
        true
    }
    fn supports_comma_separated_trim(&self) -> bool {
        true
    }
    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }
    fn supports_left_associative_joins_without_parens(&self) -> bool {
        true
    }
    fn supports_cross_join_constraint(&self) -> bool {
        true
    }
    fn supports_select_expr_star(&self) -> bool {
        true
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => 100,
            Precedence::DoubleColon | Precedence::Colon => ACCESS,
            Precedence::AtTz => TIMES + 1,
            Precedence::MulDivModOp => TIMES,
            Precedence::PlusMinus => PLUS_MINUS,
            Precedence::Ampersand => 27,
            Precedence::Caret | Precedence::Xor => 26,
            Precedence::Pipe => 25,
            Precedence::Eq => COMPARISON,
            Precedence::Between | Precedence::Like | Precedence::Is => PREDICATE,
            Precedence::PgOther => 16,
            Precedence::UnaryNot => 15,
            Precedence::And => 10,
            Precedence::Or => 5,
        }
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::StringConcat => Some(Ok(PLUS_MINUS)),
            Token::ShiftLeft | Token::ShiftRight => Some(Ok(SHIFT)),
            // Inside an expression these are no operators of Spark's.
            Token::ExclamationMark | Token::Arrow | Token::Tilde => Some(Ok(0)),
            _ => None,
        }
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::Tilde => {
                parser.advance_token();
                Some(
                    parser
                        .parse_subexpr(TIMES)
                        .map(|expr| Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: Box::new(expr) }),
                )
            }
            Token::Word(word) if word.quote_style.is_none() => {
                let name = word.value.to_ascii_uppercase();
                let next = parser.peek_nth_token_ref(1).token.clone();
                match (name.as_str(), next) {
                    ("CAST" | "TRY_CAST", Token::LParen) => Some(parse_cast(parser, name == "TRY_CAST")),
                    (
                        "DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ" | "TIMESTAMP_LTZ" | "TIME",
                        Token::SingleQuotedString(_),
                    ) => {
                        parser.advance_token();
                        Some(parser.parse_value().map(|value| {
                            let data_type = DataType::Custom(ObjectName::from(vec![Ident::new(name)]), vec![]);
                            Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false })
                        }))
                    }
                    (
                        "INTERVAL",
                        Token::SingleQuotedString(_)
                        | Token::Number(..)
                        | Token::Minus
                        | Token::Plus
                        | Token::Placeholder(_),
                    ) => Some(parse_interval(parser)),
                    ("MODEL" | "TABLE", _) => crate::model::arguments::parse(parser, &name),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        if parser.consume_token(&Token::DoubleColon) {
            return Some(type_text(parser).map(|text| cast_to(expr.clone(), text, CastKind::DoubleColon)));
        }
        if parser.parse_keyword(Keyword::DIV) {
            return Some(binary(parser, expr, BinaryOperator::MyIntegerDivide, precedence));
        }
        if parser.peek_token_ref().token == Token::ShiftRight && parser.peek_nth_token_ref(1).token == Token::Gt {
            parser.advance_token();
            parser.advance_token();
            return Some(binary(parser, expr, BinaryOperator::Custom(">>>".into()), SHIFT));
        }
        for (words, negated) in [
            (&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM][..], false),
            (&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM][..], true),
        ] {
            if parser.parse_keywords(words) {
                return Some(parser.parse_subexpr(PREDICATE).map(|right| {
                    let (left, right) = (Box::new(expr.clone()), Box::new(right));
                    if negated { Expr::IsNotDistinctFrom(left, right) } else { Expr::IsDistinctFrom(left, right) }
                }));
            }
        }
        parse_quantified_like(parser, expr)
    }
}

fn binary(parser: &mut Parser<'_>, left: &Expr, op: BinaryOperator, precedence: u8) -> Result<Expr, ParserError> {
    let right = Box::new(parser.parse_subexpr(precedence)?);
    Ok(Expr::BinaryOp { left: Box::new(left.clone()), op, right })
}

/// `a [NOT] LIKE ANY|SOME|ALL ('x', 'y')`.
fn parse_quantified_like(parser: &mut Parser<'_>, expr: &Expr) -> Option<Result<Expr, ParserError>> {
    let negated = matches!(&parser.peek_token_ref().token, Token::Word(w) if w.keyword == Keyword::NOT);
    let at = usize::from(negated);
    let word = |n: usize| match &parser.peek_nth_token_ref(n).token {
        Token::Word(w) if w.quote_style.is_none() => w.keyword,
        _ => Keyword::NoKeyword,
    };
    let compare_op = match (word(at), negated) {
        (Keyword::LIKE, false) => BinaryOperator::PGLikeMatch,
        (Keyword::LIKE, true) => BinaryOperator::PGNotLikeMatch,
        (Keyword::ILIKE, false) => BinaryOperator::PGILikeMatch,
        (Keyword::ILIKE, true) => BinaryOperator::PGNotILikeMatch,
        _ => return None,
    };
    let quantifier = word(at + 1);
    if !matches!(quantifier, Keyword::ANY | Keyword::SOME | Keyword::ALL)
        || parser.peek_nth_token_ref(at + 2).token != Token::LParen
    {
        return None;
    }
    for _ in 0..at + 3 {
        parser.advance_token();
    }
    let patterns = match parser.parse_comma_separated(Parser::parse_expr) {
        Ok(patterns) => patterns,
        Err(error) => return Some(Err(error)),
    };
    if let Err(error) = parser.expect_token(&Token::RParen) {
        return Some(Err(error));
    }
    let (left, right) = (Box::new(expr.clone()), Box::new(Expr::Tuple(patterns)));
    Some(Ok(match quantifier {
        Keyword::ALL => Expr::AllOp { left, compare_op, right },
        _ => Expr::AnyOp { left, compare_op, right, is_some: quantifier == Keyword::SOME },
    }))
}

fn cast_to(expr: Expr, type_text: String, kind: CastKind) -> Expr {
    let data_type = DataType::Custom(ObjectName::from(vec![Ident::new(type_text)]), vec![]);
    Expr::Cast { kind, expr: Box::new(expr), data_type, array: false, format: None }
}

fn parse_cast(parser: &mut Parser<'_>, is_try: bool) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = parser.parse_expr()?;
    parser.expect_keyword(Keyword::AS)?;
    let text = type_text(parser)?;
    parser.expect_token(&Token::RParen)?;
    Ok(cast_to(expr, text, if is_try { CastKind::TryCast } else { CastKind::Cast }))
}

/// The text of a data type, as written but for its spaces: whoever resolves it has the parser for schemas.
pub(crate) fn type_text(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let first = parser.next_token();
    let Token::Word(word) = &first.token else {
        return parser.expected("a data type", first);
    };
    let mut text = word.value.clone();
    if word.keyword == Keyword::INTERVAL {
        // INTERVAL YEAR [TO MONTH] and its kind.
        while let Token::Word(word) = &parser.peek_token_ref().token {
            let upper = word.value.to_ascii_uppercase();
            if !matches!(upper.as_str(), "YEAR" | "MONTH" | "DAY" | "HOUR" | "MINUTE" | "SECOND" | "TO") {
                break;
            }
            text.push(' ');
            text.push_str(&upper.to_ascii_lowercase());
            parser.advance_token();
        }
        return Ok(text);
    }
    if word.keyword == Keyword::TIMESTAMP {
        for (words, written) in [
            (&[Keyword::WITHOUT, Keyword::TIME, Keyword::ZONE][..], "timestamp_ntz"),
            (&[Keyword::WITH, Keyword::TIME, Keyword::ZONE][..], "timestamp"),
        ] {
            if parser.parse_keywords(words) {
                return Ok(written.into());
            }
        }
    }
    if parser.peek_token_ref().token == Token::Neq {
        // `struct<>` reaches the parser as `struct` and an inequality.
        parser.advance_token();
        text.push_str("<>");
        return Ok(text);
    }
    let mut depth = 0i32;
    if !matches!(parser.peek_token_ref().token, Token::LParen | Token::Lt) {
        return Ok(text);
    }
    loop {
        let token = parser.next_token();
        match &token.token {
            Token::LParen | Token::Lt => depth += 1,
            Token::RParen | Token::Gt => depth -= 1,
            Token::ShiftRight => depth -= 2,
            Token::Word(_) | Token::Number(..) | Token::Colon | Token::SingleQuotedString(_) | Token::Minus => {}
            Token::Comma => {}
            _ => return parser.expected("the rest of a data type", token),
        }
        // Words stand apart (`a int`); around brackets and colons no space is needed.
        let needs_space = matches!(token.token, Token::Word(_) | Token::SingleQuotedString(_))
            && text
                .chars()
                .next_back()
                .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '`' | ')' | '>' | '\''));
        if needs_space {
            text.push(' ');
        }
        text.push_str(&token.token.to_string());
        if depth == 0 {
            return Ok(text);
        }
        if depth < 0 {
            return parser.expected("a balanced data type", token);
        }
    }
}

/// `INTERVAL 1 DAY 2 HOURS`, `INTERVAL '1-2' YEAR TO MONTH` or `INTERVAL '1 day'`, kept as a list of values and units.
fn parse_interval(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.advance_token();
    let mut values = Vec::new();
    let mut last_field = None;
    loop {
        let negative = match parser.peek_token_ref().token {
            Token::Minus => {
                parser.advance_token();
                true
            }
            Token::Plus => {
                parser.advance_token();
                false
            }
            _ => false,
        };
        let value = Expr::Value(parser.parse_value()?);
        values.push(match negative {
            true => Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(value) },
            false => value,
        });
        let Some(unit) = interval_unit(parser) else { break };
        values.push(Expr::Identifier(Ident::new(unit)));
        if parser.parse_keyword(Keyword::TO) {
            let token = parser.peek_token();
            let Some(unit) = interval_unit(parser) else {
                return parser.expected("a unit of time", token);
            };
            last_field = Some(DateTimeField::Custom(Ident::new(unit)));
            break;
        }
        let more = match &parser.peek_token_ref().token {
            Token::Number(..) | Token::SingleQuotedString(_) => true,
            // `INTERVAL 1 DAY - 2` subtracts, `INTERVAL 1 DAY -2 HOURS` goes on.
            Token::Minus | Token::Plus => {
                matches!(parser.peek_nth_token_ref(1).token, Token::Number(..) | Token::SingleQuotedString(_))
                    && matches!(&parser.peek_nth_token_ref(2).token, Token::Word(w) if unit_name(&w.value).is_some())
            }
            _ => false,
        };
        if !more {
            break;
        }
    }
    Ok(Expr::Interval(Interval {
        value: Box::new(Expr::Tuple(values)),
        leading_field: None,
        leading_precision: None,
        last_field,
        fractional_seconds_precision: None,
    }))
}

fn interval_unit(parser: &mut Parser<'_>) -> Option<&'static str> {
    let Token::Word(word) = &parser.peek_token_ref().token else { return None };
    let unit = unit_name(&word.value)?;
    parser.advance_token();
    Some(unit)
}

/// The unit that a word names, in the singular.
pub(crate) fn unit_name(word: &str) -> Option<&'static str> {
    let lower = word.to_ascii_lowercase();
    let singular = lower.strip_suffix('s').unwrap_or(&lower);
    const UNITS: [&str; 9] = ["year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"];
    UNITS.into_iter().find(|unit| *unit == singular)
}
