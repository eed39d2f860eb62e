//! Types as DDL text: `a INT, b ARRAY<DOUBLE> NOT NULL COMMENT 'x'`.

use std::sync::Arc;

use arrow::datatypes::{Field, Fields, Schema};
use serde_json::json;
use udt::field::with_column_metadata;

use super::name::{decimal, interval_of_units};
use super::spark_type::SparkType;
use crate::{Error, Result};

/// Parses a list of columns.
///
/// # Errors
/// [`Error::InvalidDataType`] for text that is no list of columns, [`Error::Unsupported`] for types this engine lacks.
pub fn parse_ddl(text: &str) -> Result<Schema> {
    let mut parser = Parser::new(text)?;
    let fields = if parser.peek().is_none() { Fields::empty() } else { parser.fields()? };
    parser.end()?;
    Ok(Schema::new(fields))
}

/// Parses a lone type, such as `array<double>`. The field has no name and is nullable.
pub fn parse_type(text: &str) -> Result<Field> {
    let mut parser = Parser::new(text)?;
    let field = parser.data_type()?;
    parser.end()?;
    Ok(field)
}

/// Parses what `DDLParse` may hold: a list of columns (then a struct), or else a lone type.
pub fn parse_ddl_or_type(text: &str) -> Result<Field> {
    match parse_ddl(text) {
        Ok(schema) => Ok(SparkType::Struct(schema.fields()).field("", true)),
        Err(unsupported @ Error::Unsupported { .. }) => Err(unsupported),
        Err(not_columns) => parse_type(text).map_err(|error| match error {
            Error::Unsupported { .. } => error,
            _ => not_columns,
        }),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A bare word.
    Word(String),
    /// A name in backticks.
    Quoted(String),
    Text(String),
    Number(String),
    Symbol(char),
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

/// Deeper types than any real schema has are refused before they exhaust the stack.
const DEPTH_MAX: usize = 200;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>> {
        let tokens = tokenize(text).map_err(|message| invalid(text, message))?;
        Ok(Parser { text, tokens, next: 0, depth: 0 })
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(invalid(self.text, message.into()))
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        self.next += usize::from(is_next);
        is_next
    }

    fn take_symbol(&mut self, symbol: char) -> bool {
        let is_next = self.peek() == Some(&Token::Symbol(symbol));
        self.next += usize::from(is_next);
        is_next
    }

    fn expect_symbol(&mut self, symbol: char) -> Result<()> {
        if self.take_symbol(symbol) { Ok(()) } else { self.error(format!("expected '{symbol}' {}", self.found())) }
    }

    fn found(&self) -> String {
        match self.peek() {
            None => "at the end".into(),
            Some(Token::Word(word) | Token::Quoted(word) | Token::Text(word) | Token::Number(word)) => {
                format!("before '{word}'")
            }
            Some(Token::Symbol(symbol)) => format!("before '{symbol}'"),
        }
    }

    fn end(&self) -> Result<()> {
        if self.peek().is_none() { Ok(()) } else { self.error(format!("unexpected text {}", self.found())) }
    }

    fn name(&mut self) -> Result<String> {
        match self.peek() {
            Some(Token::Word(name) | Token::Quoted(name)) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => self.error(format!("expected a name {}", self.found())),
        }
    }

    fn number(&mut self) -> Result<i64> {
        let is_negative = self.take_symbol('-');
        match self.peek() {
            Some(Token::Number(digits)) => match digits.parse::<i64>() {
                Ok(number) => {
                    self.next += 1;
                    Ok(if is_negative { -number } else { number })
                }
                Err(error) => self.error(error.to_string()),
            },
            _ => self.error(format!("expected a number {}", self.found())),
        }
    }

    fn fields(&mut self) -> Result<Fields> {
        let mut fields = vec![self.column()?];
        while self.take_symbol(',') {
            fields.push(self.column()?);
        }
        Ok(Fields::from(fields))
    }

    /// `name [:] type [NOT NULL] [COMMENT 'text']`
    fn column(&mut self) -> Result<Field> {
        let name = self.name()?;
        self.take_symbol(':');
        let mut field = self.data_type()?.with_name(name);
        if self.take_word("not") {
            if !self.take_word("null") {
                return self.error(format!("expected NULL {}", self.found()));
            }
            field = field.with_nullable(false);
        }
        if self.take_word("comment") {
            let Some(Token::Text(comment)) = self.peek() else {
                return self.error(format!("expected a text {}", self.found()));
            };
            let metadata = json!({ "comment": comment }).to_string();
            self.next += 1;
            field = with_column_metadata(field, &metadata);
        }
        if self.is_word("default") || self.is_word("generated") {
            return Err(Error::Unsupported { feature: format!("column default in '{}'", self.text) });
        }
        Ok(field)
    }

    fn data_type(&mut self) -> Result<Field> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.error(format!("types nest deeper than {DEPTH_MAX}"));
        }
        let Some(Token::Word(word)) = self.peek() else {
            return self.error(format!("expected a type {}", self.found()));
        };
        let word = word.to_lowercase();
        self.next += 1;
        let field = match word.as_str() {
            "array" => self.array()?,
            "map" => self.map()?,
            "struct" => self.structure()?,
            _ => self.atomic(&word)?.field("", true),
        };
        self.depth -= 1;
        Ok(field)
    }

    fn array(&mut self) -> Result<Field> {
        self.expect_symbol('<')?;
        let element = Arc::new(self.data_type()?.with_name("element"));
        self.expect_symbol('>')?;
        Ok(SparkType::Array(&element).field("", true))
    }

    fn map(&mut self) -> Result<Field> {
        self.expect_symbol('<')?;
        let key = Arc::new(self.data_type()?);
        self.expect_symbol(',')?;
        let value = Arc::new(self.data_type()?);
        self.expect_symbol('>')?;
        Ok(SparkType::Map { key: &key, value: &value }.field("", true))
    }

    fn structure(&mut self) -> Result<Field> {
        self.expect_symbol('<')?;
        let fields = if self.peek() == Some(&Token::Symbol('>')) { Fields::empty() } else { self.fields()? };
        self.expect_symbol('>')?;
        Ok(SparkType::Struct(&fields).field("", true))
    }

    fn atomic(&mut self, word: &str) -> Result<SparkType<'static>> {
        Ok(match word {
            "void" | "null" => SparkType::Null,
            "boolean" => SparkType::Boolean,
            "tinyint" | "byte" => SparkType::Byte,
            "smallint" | "short" => SparkType::Short,
            "int" | "integer" => SparkType::Integer,
            "bigint" | "long" => SparkType::Long,
            "float" | "real" => SparkType::Float,
            "double" => SparkType::Double,
            "binary" => SparkType::Binary,
            "date" => SparkType::Date,
            "timestamp" => self.timestamp(),
            "timestamp_ltz" => SparkType::Timestamp,
            "timestamp_ntz" => SparkType::TimestampNtz,
            "string" => self.string()?,
            "decimal" | "dec" | "numeric" => self.decimal()?,
            "char" | "character" => SparkType::Char(self.length(word)?),
            "varchar" => SparkType::Varchar(self.length(word)?),
            "time" => self.time()?,
            "interval" => self.interval()?,
            "variant" | "geometry" | "geography" => {
                return Err(Error::Unsupported { feature: format!("type {word}") });
            }
            _ => return self.error(format!("no such type '{word}'")),
        })
    }

    /// `timestamp [with local time zone | without time zone]`
    fn timestamp(&mut self) -> SparkType<'static> {
        let start = self.next;
        let is_ntz = self.take_word("without") && self.take_word("time") && self.take_word("zone");
        if is_ntz {
            return SparkType::TimestampNtz;
        }
        self.next = start;
        let is_ltz =
            self.take_word("with") && self.take_word("local") && self.take_word("time") && self.take_word("zone");
        if !is_ltz {
            self.next = start;
        }
        SparkType::Timestamp
    }

    fn string(&mut self) -> Result<SparkType<'static>> {
        if !self.take_word("collate") {
            return Ok(SparkType::String);
        }
        let collation = self.name()?;
        if collation.eq_ignore_ascii_case("utf8_binary") {
            return Ok(SparkType::String);
        }
        Err(Error::Unsupported { feature: format!("collation {collation}") })
    }

    fn decimal(&mut self) -> Result<SparkType<'static>> {
        let (mut precision, mut scale) = (10, 0);
        if self.take_symbol('(') {
            precision = self.number()?;
            if self.take_symbol(',') {
                scale = self.number()?;
            }
            self.expect_symbol(')')?;
        }
        match decimal(precision, scale) {
            Some(spark_type) => Ok(spark_type),
            None => self.error(format!("decimal({precision},{scale}) is out of bounds")),
        }
    }

    fn length(&mut self, word: &str) -> Result<u32> {
        self.expect_symbol('(')?;
        let length = self.number()?;
        self.expect_symbol(')')?;
        match u32::try_from(length) {
            Ok(length) if length > 0 => Ok(length),
            _ => self.error(format!("{word}({length}) is out of bounds")),
        }
    }

    fn time(&mut self) -> Result<SparkType<'static>> {
        let mut precision = 6;
        if self.take_symbol('(') {
            precision = self.number()?;
            self.expect_symbol(')')?;
        }
        match u8::try_from(precision) {
            Ok(precision @ 0..=6) => Ok(SparkType::Time { precision }),
            _ => self.error(format!("time({precision}) is out of bounds")),
        }
    }

    fn interval(&mut self) -> Result<SparkType<'static>> {
        let Some(Token::Word(start)) = self.peek().cloned() else { return Ok(SparkType::CalendarInterval) };
        if interval_of_units(&start, &start).is_none() {
            return Ok(SparkType::CalendarInterval);
        }
        self.next += 1;
        let end = if self.take_word("to") { self.name()? } else { start.clone() };
        match interval_of_units(&start, &end) {
            Some(spark_type) => Ok(spark_type),
            None => self.error(format!("no such interval '{start} to {end}'")),
        }
    }
}

fn tokenize(text: &str) -> std::result::Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(first) = chars.next() {
        match first {
            c if c.is_whitespace() => {}
            '`' => {
                let mut name = String::new();
                loop {
                    match chars.next() {
                        Some('`') if chars.next_if_eq(&'`').is_some() => name.push('`'),
                        Some('`') => break,
                        Some(c) => name.push(c),
                        None => return Err("a backtick is not closed".into()),
                    }
                }
                tokens.push(Token::Quoted(name));
            }
            quote @ ('\'' | '"') => {
                let mut content = String::new();
                loop {
                    match chars.next() {
                        Some(c) if c == quote && chars.next_if_eq(&quote).is_some() => content.push(quote),
                        Some(c) if c == quote => break,
                        Some('\\') => content.extend(chars.next().map(unescaped)),
                        Some(c) => content.push(c),
                        None => return Err("a text is not closed".into()),
                    }
                }
                tokens.push(Token::Text(content));
            }
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                let is_number = word.chars().all(|c| c.is_ascii_digit());
                tokens.push(if is_number { Token::Number(word) } else { Token::Word(word) });
            }
            '<' | '>' | '(' | ')' | ',' | ':' | '-' => tokens.push(Token::Symbol(first)),
            other => return Err(format!("unexpected character '{other}'")),
        }
    }
    Ok(tokens)
}

fn unescaped(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        '0' => '\0',
        other => other,
    }
}

fn invalid(text: &str, message: impl Into<String>) -> Error {
    Error::InvalidDataType { text: text.into(), message: message.into() }
}
