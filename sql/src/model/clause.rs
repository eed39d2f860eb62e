//! The clauses of TRAIN MODEL: any order, each once, up to AS.

use sqlparser::tokenizer::Token;

use super::{Features, Place, Resources, Split, Train, WarmStart};
use crate::command::Command;
use crate::error::Error;

/// Fractions are written in decimal, so their sum is 1 up to rounding.
const SUM_TOLERANCE: f64 = 1e-9;

impl Command<'_> {
    /// Reads clauses up to and including AS.
    pub(crate) fn clauses(&mut self, train: &mut Train) -> Result<(), Error> {
        let mut seen: Vec<&'static str> = Vec::new();
        let mut split_and_validate = Vec::new();
        loop {
            let place = self.place();
            if self.optional(&["AS"]) {
                break;
            }
            let Some(clause) = self.clause(train)? else {
                let found = self.parser.peek_token();
                return self.syntax(|parser| parser.expected("AS or a clause of TRAIN MODEL", found));
            };
            if seen.contains(&clause) {
                return Err(Error::DuplicateClause { clause, place });
            }
            seen.push(clause);
            if clause == "SPLIT" || clause == "VALIDATE" {
                split_and_validate.push(place);
            }
        }
        match (&train.split, &train.validate, split_and_validate.last()) {
            (Some(split), Some(_), Some(place)) if !matches!(split, Split::None { .. }) => {
                Err(Error::SplitConflict { place: *place })
            }
            _ => Ok(()),
        }
    }

    /// Reads one clause; its name, or none where no clause begins. What is there already is not overwritten silently: the
    /// caller refuses the second.
    fn clause(&mut self, train: &mut Train) -> Result<Option<&'static str>, Error> {
        let Some(word) = self.peek_word() else { return Ok(None) };
        let start = self.place();
        match word.as_str() {
            "LABEL" => {
                self.words(&["LABEL"])?;
                train.label = Some(self.word()?);
                Ok(Some("LABEL"))
            }
            "WEIGHT" => {
                self.words(&["WEIGHT"])?;
                train.weight = Some(self.word()?);
                Ok(Some("WEIGHT"))
            }
            "FEATURES" => {
                self.words(&["FEATURES"])?;
                train.features = Some(self.features()?);
                Ok(Some("FEATURES"))
            }
            "OPTIONS" => {
                self.words(&["OPTIONS"])?;
                train.options = self.property_list()?;
                Ok(Some("OPTIONS"))
            }
            "TRANSFORM" => {
                self.words(&["TRANSFORM"])?;
                train.transform = Some(self.transform_items()?);
                Ok(Some("TRANSFORM"))
            }
            "NO" | "SPLIT" => {
                train.split = Some(self.split()?);
                Ok(Some("SPLIT"))
            }
            "VALIDATE" => {
                self.words(&["VALIDATE", "ON"])?;
                self.punctuation(&Token::LParen)?;
                train.validate = Some(self.relation()?);
                self.punctuation(&Token::RParen)?;
                Ok(Some("VALIDATE"))
            }
            "TUNE" => {
                train.tune = Some(self.tune()?);
                Ok(Some("TUNE"))
            }
            "WITH" => {
                train.resources = Some(self.resources()?);
                Ok(Some("WITH"))
            }
            "WARM" => {
                self.words(&["WARM", "START", "FROM", "MODEL"])?;
                let (model, version) = (self.model_ref()?, self.optional_version()?);
                train.warm_start = Some(WarmStart { model, version, place: start.to(self.last_place()) });
                Ok(Some("WARM START"))
            }
            "ALIAS" => {
                self.words(&["ALIAS"])?;
                train.alias = Some(self.text("ALIAS")?);
                Ok(Some("ALIAS"))
            }
            "KEEP" => {
                self.words(&["KEEP", "DEFAULT"])?;
                train.keep_default = true;
                Ok(Some("KEEP DEFAULT"))
            }
            "TAGS" => {
                self.words(&["TAGS"])?;
                train.tags = self.property_list()?;
                Ok(Some("TAGS"))
            }
            "COMMENT" => {
                self.words(&["COMMENT"])?;
                train.comment = Some(self.text("COMMENT")?.text);
                Ok(Some("COMMENT"))
            }
            "NOWAIT" => {
                self.words(&["NOWAIT"])?;
                train.nowait = true;
                Ok(Some("NOWAIT"))
            }
            _ => Ok(None),
        }
    }

    fn features(&mut self) -> Result<Features, Error> {
        if self.parser.peek_nth_token_ref(1).token != Token::Mul {
            return self.word_list().map(Features::Named);
        }
        self.punctuation(&Token::LParen)?;
        self.punctuation(&Token::Mul)?;
        let except = if self.optional(&["EXCEPT"]) { self.word_list()? } else { Vec::new() };
        self.punctuation(&Token::RParen)?;
        Ok(Features::AllExcept(except))
    }

    fn split(&mut self) -> Result<Split, Error> {
        let start = self.place();
        if self.optional(&["NO", "SPLIT"]) {
            return Ok(Split::None { place: start.to(self.last_place()) });
        }
        self.words(&["SPLIT"])?;
        if self.optional(&["RANDOM"]) {
            let fractions = self.fractions()?;
            let by = if self.optional(&["BY"]) { self.word_list()? } else { Vec::new() };
            let is_stratified = self.optional(&["STRATIFIED"]);
            let seed = if self.optional(&["SEED"]) { Some(self.integer("SEED")?.0) } else { None };
            let place = start.to(self.last_place());
            return Ok(Split::Random { fractions, by, is_stratified, seed, place });
        }
        if self.optional(&["SEQUENTIAL"]) {
            self.words(&["ON"])?;
            let column = self.word()?;
            let fractions = self.fractions()?;
            return Ok(Split::Sequential { column, fractions, place: start.to(self.last_place()) });
        }
        if self.optional(&["BY", "COLUMN"]) {
            let column = self.word()?;
            return Ok(Split::Column { column, place: start.to(self.last_place()) });
        }
        let found = self.parser.peek_token();
        self.syntax(|parser| parser.expected("RANDOM, SEQUENTIAL ON or BY COLUMN", found))
    }

    /// `(train, validation[, test])`.
    fn fractions(&mut self) -> Result<Vec<f64>, Error> {
        let start = self.place();
        self.punctuation(&Token::LParen)?;
        let mut fractions = vec![self.number("SPLIT")?];
        while self.parser.consume_token(&Token::Comma) {
            fractions.push(self.number("SPLIT")?);
        }
        self.punctuation(&Token::RParen)?;
        let sum: f64 = fractions.iter().sum();
        let is_sound = matches!(fractions.len(), 2 | 3)
            && fractions.iter().all(|fraction| *fraction > 0.0 && *fraction < 1.0)
            && (sum - 1.0).abs() <= SUM_TOLERANCE;
        if is_sound {
            return Ok(fractions);
        }
        Err(Error::SplitFractions { found: shown(&fractions), place: start.to(self.last_place()) })
    }

    fn resources(&mut self) -> Result<Resources, Error> {
        self.words(&["WITH"])?;
        if self.optional(&["RESOURCES"]) {
            return self.property_list().map(Resources::Named);
        }
        let (number, place): (i64, Place) = self.integer("WORKERS")?;
        if !self.optional(&["WORKERS"]) {
            self.words(&["WORKER"])?;
        }
        Ok(Resources::Workers { number, place })
    }
}

fn shown(fractions: &[f64]) -> String {
    let fractions: Vec<String> = fractions.iter().map(|fraction| format!("{fraction}")).collect();
    format!("({})", fractions.join(", "))
}
