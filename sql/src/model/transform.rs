//! `TRANSFORM (..)`: stages by name, and row-wise expressions.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::TransformItem;
use crate::command::Command;
use crate::error::Error;
use crate::translator::Translator;

impl Command<'_> {
    pub(crate) fn transform_items(&mut self) -> Result<Vec<TransformItem>, Error> {
        self.punctuation(&Token::LParen)?;
        let mut items = vec![self.transform_item()?];
        while self.parser.consume_token(&Token::Comma) {
            items.push(self.transform_item()?);
        }
        self.punctuation(&Token::RParen)?;
        Ok(items)
    }

    fn transform_item(&mut self) -> Result<TransformItem, Error> {
        let start = self.place();
        if self.parser.consume_token(&Token::Mul) {
            let except = if self.optional(&["EXCEPT"]) { self.word_list()? } else { Vec::new() };
            return Ok(TransformItem::Star { except, place: start.to(self.last_place()) });
        }
        let expr = self.syntax(Parser::parse_expr)?;
        let place = start.to(self.last_place());
        let text = self.source.slice(place, &expr);
        let mut translator = Translator::new(self.parameters);
        let expression = translator.expression(&expr)?;
        if !translator.references.is_empty() {
            return Err(Error::TransformNotRowwise { expression: text, place });
        }
        let alias = if self.optional(&["AS"]) { Some(self.word()?) } else { None };
        Ok(TransformItem::Expression { expression: Box::new(expression), text, alias, place })
    }
}
