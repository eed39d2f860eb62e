//! `(key = value, ..)`: OPTIONS, TAGS and RESOURCES, whose values are constant expressions.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::{Constant, Place, Property, Word};
use crate::command::Command;
use crate::error::Error;
use crate::translator::Translator;

impl Command<'_> {
    /// Where the next token stands.
    pub(crate) fn place(&self) -> Place {
        Place::of(self.parser.peek_token_ref().span)
    }

    /// Where the last token that was taken stands.
    pub(crate) fn last_place(&self) -> Place {
        let mut at = self.parser.get_current_index();
        while at > 0 && matches!(self.parser.token_at(at).token, Token::Whitespace(_)) {
            at -= 1;
        }
        Place::of(self.parser.token_at(at).span)
    }

    pub(crate) fn punctuation(&mut self, token: &Token) -> Result<(), Error> {
        self.syntax(|parser| parser.expect_token(token).map(drop))
    }

    pub(crate) fn is_next(&self, token: &Token) -> bool {
        &self.parser.peek_token_ref().token == token
    }

    /// One identifier.
    pub(crate) fn word(&mut self) -> Result<Word, Error> {
        let place = self.place();
        let text = self.syntax(Parser::parse_identifier)?.value;
        Ok(Word { text, place })
    }

    /// Identifiers in brackets, with commas between them.
    pub(crate) fn word_list(&mut self) -> Result<Vec<Word>, Error> {
        self.punctuation(&Token::LParen)?;
        let mut words = vec![self.word()?];
        while self.parser.consume_token(&Token::Comma) {
            words.push(self.word()?);
        }
        self.punctuation(&Token::RParen)?;
        Ok(words)
    }

    /// A text literal or a parameter that is a text.
    pub(crate) fn text(&mut self, what: &'static str) -> Result<Word, Error> {
        let place = self.place();
        match self.operand()? {
            Constant::Text(text) => Ok(Word { text, place: place.to(self.last_place()) }),
            other => Err(Error::NotAConstant { what, expected: "STRING", found: other.type_name(), place }),
        }
    }

    /// An integer literal or a parameter that is one.
    pub(crate) fn integer(&mut self, what: &'static str) -> Result<(i64, Place), Error> {
        let place = self.place();
        match self.operand()? {
            Constant::Integer(value) => Ok((value, place.to(self.last_place()))),
            other => Err(Error::NotAConstant { what, expected: "INT", found: other.type_name(), place }),
        }
    }

    /// A number or a parameter that is one.
    pub(crate) fn number(&mut self, what: &'static str) -> Result<f64, Error> {
        let place = self.place();
        let value = self.operand()?;
        let found = value.type_name();
        value.as_double().ok_or(Error::NotAConstant { what, expected: "DOUBLE", found, place })
    }

    /// A literal or a parameter, without an operator.
    pub(crate) fn operand(&mut self) -> Result<Constant, Error> {
        let place = self.place();
        let is_operand = matches!(
            self.parser.peek_token_ref().token,
            Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) | Token::Colon | Token::Minus
        );
        if !is_operand {
            let found = self.parser.peek_token();
            return self.syntax(|parser| parser.expected("a literal or a parameter", found));
        }
        let expr = self.syntax(Parser::parse_prefix)?;
        let expression = Translator::new(self.parameters).expression(&expr)?;
        Constant::fold(&expression).ok_or_else(|| Error::OptionNotFoldable {
            key: String::new(),
            expression: expr.to_string(),
            place: place.to(self.last_place()),
        })
    }

    /// An expression that folds to a constant, up to a comma or bracket; `precedence` is sqlparser's.
    pub(crate) fn foldable(&mut self, key: &Word, precedence: u8) -> Result<(Constant, Place), Error> {
        let place = self.place();
        if matches!(self.parser.peek_token_ref().token, Token::Comma | Token::RParen | Token::EOF) {
            return Err(Error::OptionWithoutValue { key: key.text.clone(), place: key.place });
        }
        let expr = self.syntax(|parser| parser.parse_subexpr(precedence))?;
        let place = place.to(self.last_place());
        let not_foldable =
            || Error::OptionNotFoldable { key: key.text.clone(), expression: self.source.slice(place, &expr), place };
        let mut translator = Translator::new(self.parameters);
        let expression = match translator.expression(&expr) {
            Err(Error::UnsupportedSyntax { .. }) => return Err(not_foldable()),
            other => other?,
        };
        match Constant::fold(&expression) {
            Some(constant) if translator.references.is_empty() => Ok((constant, place)),
            _ => Err(not_foldable()),
        }
    }

    /// A key: identifiers with dots between them, or a text.
    pub(crate) fn property_key(&mut self) -> Result<Word, Error> {
        let place = self.place();
        if matches!(self.parser.peek_token_ref().token, Token::SingleQuotedString(_)) {
            return Ok(Word { text: self.string()?, place });
        }
        let mut text = self.word()?.text;
        while self.parser.consume_token(&Token::Period) {
            text.push('.');
            text.push_str(&self.word()?.text);
        }
        Ok(Word { text, place: place.to(self.last_place()) })
    }

    /// `(key [=] value, ..)`, each key once.
    pub(crate) fn property_list(&mut self) -> Result<Vec<Property>, Error> {
        self.punctuation(&Token::LParen)?;
        let mut properties: Vec<Property> = Vec::new();
        loop {
            let key = self.property_key()?;
            let _ = self.parser.consume_token(&Token::Eq);
            let (value, place) = self.foldable(&key, 0)?;
            if properties.iter().any(|known| known.key.text.eq_ignore_ascii_case(&key.text)) {
                return Err(Error::DuplicateKey { key: key.text, place: key.place });
            }
            properties.push(Property { key, value, place });
            if !self.parser.consume_token(&Token::Comma) {
                break;
            }
        }
        self.punctuation(&Token::RParen)?;
        Ok(properties)
    }
}
