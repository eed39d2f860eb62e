//! SHOW, DESCRIBE, ALTER, DROP, COMMENT ON, EXPORT, IMPORT, CANCEL, GRANT and REVOKE of models.

use super::{Change, ModelStatement, Word};
use crate::command::Command;
use crate::error::Error;
use crate::statement::Statement;

fn model(statement: ModelStatement) -> Result<Statement, Error> {
    Ok(Statement::Model(Box::new(statement)))
}

impl Command<'_> {
    /// After SHOW; none where it shows something else.
    pub(crate) fn show_models(&mut self) -> Result<Option<Statement>, Error> {
        if self.optional(&["MODELS"]) {
            let (namespace, pattern) = (self.in_namespace()?, self.pattern()?);
            return model(ModelStatement::ShowModels { namespace, pattern }).map(Some);
        }
        if self.optional(&["VERSIONS", "IN", "MODEL"]) {
            return model(ModelStatement::ShowVersions { model: self.model_ref()? }).map(Some);
        }
        if self.optional(&["CREATE", "MODEL"]) {
            let (named, version) = (self.model_ref()?, self.optional_version()?);
            return model(ModelStatement::ShowCreate { model: named, version }).map(Some);
        }
        if self.optional(&["TRAININGS"]) {
            let named = if self.optional(&["IN", "MODEL"]) { Some(self.model_ref()?) } else { None };
            return model(ModelStatement::ShowTrainings { model: named }).map(Some);
        }
        Ok(None)
    }

    /// After DESCRIBE MODEL.
    pub(crate) fn describe_model(&mut self) -> Result<Statement, Error> {
        let extended = self.optional(&["EXTENDED"]);
        let (named, version) = (self.model_ref()?, self.optional_version()?);
        model(ModelStatement::Describe { model: named, version, extended })
    }

    /// After DROP MODEL.
    pub(crate) fn drop_model(&mut self) -> Result<Statement, Error> {
        let if_exists = self.optional(&["IF", "EXISTS"]);
        let (named, version) = (self.model_ref()?, self.optional_version()?);
        model(ModelStatement::Drop { model: named, version, if_exists })
    }

    pub(crate) fn alter_model(&mut self) -> Result<Statement, Error> {
        self.words(&["ALTER", "MODEL"])?;
        let if_exists = self.optional(&["IF", "EXISTS"]);
        let named = self.model_ref()?;
        let change = self.change()?;
        model(ModelStatement::Alter { model: named, if_exists, change })
    }

    fn change(&mut self) -> Result<Change, Error> {
        if self.optional(&["RENAME", "TO"]) {
            return self.model_ref().map(Change::RenameTo);
        }
        if self.optional(&["SET", "TAGS"]) {
            return self.property_list().map(Change::SetTags);
        }
        if self.optional(&["UNSET", "TAGS"]) {
            let if_exists = self.optional(&["IF", "EXISTS"]);
            return Ok(Change::UnsetTags { if_exists, keys: self.key_list()? });
        }
        if self.optional(&["SET", "ALIAS"]) {
            let alias = self.text("ALIAS")?;
            self.words(&["TO"])?;
            return Ok(Change::SetAlias { alias, version: self.version()? });
        }
        if self.optional(&["UNSET", "ALIAS"]) {
            let if_exists = self.optional(&["IF", "EXISTS"]);
            return Ok(Change::UnsetAlias { if_exists, alias: self.text("ALIAS")? });
        }
        if self.optional(&["SET", "DEFAULT"]) {
            return self.version().map(Change::SetDefault);
        }
        let found = self.parser.peek_token();
        self.syntax(|parser| parser.expected("a change of ALTER MODEL", found))
    }

    fn key_list(&mut self) -> Result<Vec<Word>, Error> {
        use sqlparser::tokenizer::Token;
        self.punctuation(&Token::LParen)?;
        let mut keys = vec![self.property_key()?];
        while self.parser.consume_token(&Token::Comma) {
            keys.push(self.property_key()?);
        }
        self.punctuation(&Token::RParen)?;
        Ok(keys)
    }

    pub(crate) fn comment_on_model(&mut self) -> Result<Statement, Error> {
        self.words(&["COMMENT", "ON", "MODEL"])?;
        let named = self.model_ref()?;
        self.words(&["IS"])?;
        let comment = if self.optional(&["NULL"]) { None } else { Some(self.text("COMMENT")?.text) };
        model(ModelStatement::Alter { model: named, if_exists: false, change: Change::Comment(comment) })
    }

    pub(crate) fn export_model(&mut self) -> Result<Statement, Error> {
        self.words(&["EXPORT", "MODEL"])?;
        let (named, version) = (self.model_ref()?, self.optional_version()?);
        self.words(&["TO"])?;
        let path = self.text("EXPORT")?;
        let format = if self.optional(&["USING"]) { Some(self.word()?) } else { None };
        let options = if self.optional(&["OPTIONS"]) { self.property_list()? } else { Vec::new() };
        model(ModelStatement::Export { model: named, version, path, format, options })
    }

    pub(crate) fn import_model(&mut self) -> Result<Statement, Error> {
        self.words(&["IMPORT"])?;
        let place = self.place();
        let replace = self.optional(&["OR", "REPLACE"]);
        self.words(&["MODEL"])?;
        let if_not_exists = self.optional(&["IF", "NOT", "EXISTS"]);
        if replace && if_not_exists {
            return Err(Error::TrainReplaceAndIfNotExists { place });
        }
        let named = self.model_ref()?;
        self.words(&["FROM"])?;
        let path = self.text("IMPORT")?;
        let format = if self.optional(&["USING"]) { Some(self.word()?) } else { None };
        model(ModelStatement::Import { model: named, replace, if_not_exists, path, format })
    }

    pub(crate) fn cancel_training(&mut self) -> Result<Statement, Error> {
        self.words(&["CANCEL", "TRAINING"])?;
        let if_exists = self.optional(&["IF", "EXISTS"]);
        model(ModelStatement::CancelTraining { id: self.text("CANCEL TRAINING")?, if_exists })
    }

    /// GRANT or REVOKE; none where it is of something else than a model.
    pub(crate) fn grant_on_model(&mut self) -> Result<Option<Statement>, Error> {
        for privilege in ["EXECUTE", "MANAGE"] {
            for (verb, preposition) in [("GRANT", "TO"), ("REVOKE", "FROM")] {
                if self.optional(&[verb, privilege, "ON", "MODEL"]) {
                    let named = self.model_ref()?;
                    self.words(&[preposition])?;
                    let (is_revoke, privilege, principal) = (verb == "REVOKE", privilege.into(), self.word()?);
                    return model(ModelStatement::Grant { is_revoke, privilege, model: named, principal }).map(Some);
                }
            }
        }
        Ok(None)
    }
}
