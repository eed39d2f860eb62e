//! `TRAIN MODEL`, and the names of models in any statement.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::{ModelRef, ModelStatement, Train, Version, Word, bound_text};
use crate::command::Command;
use crate::error::Error;
use crate::identifier::split_identifier;
use crate::statement::{ExplainMode, Statement};
use crate::translator::Translator;

impl Command<'_> {
    pub(crate) fn train_statement(&mut self, text: &str) -> Result<Statement, Error> {
        let train = self.train(text)?;
        Ok(Statement::Model(Box::new(ModelStatement::Train(Box::new(train)))))
    }

    /// After EXPLAIN and its mode.
    pub(crate) fn explain_train(&mut self, text: &str, mode: ExplainMode) -> Result<Statement, Error> {
        let train = Box::new(self.train(text)?);
        Ok(Statement::Model(Box::new(ModelStatement::ExplainTrain { mode, train })))
    }

    fn train(&mut self, text: &str) -> Result<Train, Error> {
        self.words(&["TRAIN"])?;
        let replace_place = self.place();
        let replace = self.optional(&["OR", "REPLACE"]);
        let replace_place = replace_place.to(self.last_place());
        self.words(&["MODEL"])?;
        let if_not_exists = self.optional(&["IF", "NOT", "EXISTS"]);
        if replace && if_not_exists {
            return Err(Error::TrainReplaceAndIfNotExists { place: replace_place });
        }
        let model = self.model_ref()?;
        self.words(&["USING"])?;
        let estimator = self.dotted_word()?;
        let mut train = Train {
            model,
            replace,
            if_not_exists,
            estimator,
            label: None,
            weight: None,
            features: None,
            options: Vec::new(),
            transform: None,
            split: None,
            validate: None,
            tune: None,
            resources: None,
            warm_start: None,
            alias: None,
            keep_default: false,
            tags: Vec::new(),
            comment: None,
            nowait: false,
            query: Default::default(),
            text: bound_text(text, self.source.tokens(), self.parameters),
        };
        self.clauses(&mut train)?;
        train.query = self.relation()?;
        Ok(train)
    }

    /// Identifiers with dots between them, as one word.
    pub(crate) fn dotted_word(&mut self) -> Result<Word, Error> {
        let place = self.place();
        let text = self.name()?.join(".");
        Ok(Word { text, place: place.to(self.last_place()) })
    }

    /// A model's name: `m`, `db.m`, `cat.db.m` or `IDENTIFIER(..)`.
    pub(crate) fn model_ref(&mut self) -> Result<ModelRef, Error> {
        let place = self.place();
        if self.peek_word().as_deref() == Some("IDENTIFIER") && self.parser.peek_nth_token_ref(1).token == Token::LParen
        {
            self.parser.advance_token();
            let parts = self.identifier_call()?;
            return Ok(ModelRef { parts, place: place.to(self.last_place()) });
        }
        let parts = self.name()?;
        let place = place.to(self.last_place());
        if self.is_next(&Token::Minus) {
            let mut name = parts.last().cloned().unwrap_or_default();
            while self.parser.consume_token(&Token::Minus) {
                name.push('-');
                if let Token::Word(word) = &self.parser.peek_token_ref().token {
                    name.push_str(&word.value);
                    self.parser.advance_token();
                }
            }
            return Err(Error::InvalidIdentifier { name, place: place.to(self.last_place()) });
        }
        if parts.len() > 3 || parts.iter().any(String::is_empty) {
            return Err(Error::InvalidIdentifier { name: parts.join("."), place });
        }
        Ok(ModelRef { parts, place })
    }

    /// `(text)` after IDENTIFIER: the parts of the name that the text is.
    fn identifier_call(&mut self) -> Result<Vec<String>, Error> {
        self.punctuation(&Token::LParen)?;
        let place = self.place();
        let expr = self.syntax(Parser::parse_expr)?;
        self.punctuation(&Token::RParen)?;
        let expression = Translator::new(self.parameters).expression(&expr)?;
        crate::identifier::constant_text(&expression).map(|text| split_identifier(&text)).ok_or_else(|| {
            Error::NotAConstant { what: "IDENTIFIER", expected: "STRING", found: expr.to_string(), place }
        })
    }

    /// `VERSION [AS OF] 3` or `VERSION 'alias'`, if it stands here.
    pub(crate) fn optional_version(&mut self) -> Result<Option<Version>, Error> {
        if !self.optional(&["VERSION"]) {
            return Ok(None);
        }
        self.optional(&["AS", "OF"]);
        let place = self.place();
        match self.operand()? {
            super::Constant::Integer(number) => Ok(Some(Version::Number(number))),
            super::Constant::Text(alias) => Ok(Some(Version::Alias(alias))),
            other => {
                Err(Error::NotAConstant { what: "VERSION", expected: "INT or STRING", found: other.type_name(), place })
            }
        }
    }

    pub(crate) fn version(&mut self) -> Result<Version, Error> {
        match self.optional_version()? {
            Some(version) => Ok(version),
            None => {
                let found = self.parser.peek_token();
                self.syntax(|parser| parser.expected("VERSION", found))
            }
        }
    }
}
