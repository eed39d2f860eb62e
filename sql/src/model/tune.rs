//! `TUNE BY`: what is searched and how.

use sqlparser::tokenizer::Token;

use super::{Dimension, Domain, EarlyStop, Metric, Search, StopRule, Tune};
use crate::command::Command;
use crate::error::Error;

/// Binds tighter than AND and the predicates, so that a bound of BETWEEN ends before the AND.
const BOUND_PRECEDENCE: u8 = 20;

impl Command<'_> {
    pub(crate) fn tune(&mut self) -> Result<Tune, Error> {
        let start = self.place();
        self.words(&["TUNE", "BY"])?;
        let search = if self.optional(&["GRID"]) {
            Search::Grid
        } else if self.optional(&["RANDOM"]) {
            Search::Random
        } else if self.optional(&["BAYES"]) {
            Search::Bayes
        } else {
            let found = self.parser.peek_token();
            return self.syntax(|parser| parser.expected("GRID, RANDOM or BAYES", found));
        };
        self.punctuation(&Token::LParen)?;
        let mut dimensions = vec![self.dimension(search)?];
        while self.parser.consume_token(&Token::Comma) {
            let dimension = self.dimension(search)?;
            if dimensions.iter().any(|known: &Dimension| known.key.text.eq_ignore_ascii_case(&dimension.key.text)) {
                return Err(Error::DuplicateKey { key: dimension.key.text, place: dimension.key.place });
            }
            dimensions.push(dimension);
        }
        self.punctuation(&Token::RParen)?;
        let mut tune = Tune {
            search,
            dimensions,
            metric: None,
            trials: None,
            folds: None,
            parallelism: None,
            seed: None,
            early_stop: None,
            place: start.to(self.last_place()),
        };
        let mut seen = Vec::new();
        loop {
            let place = self.place();
            let Some(option) = self.tune_option(&mut tune)? else { return Ok(tune) };
            if seen.contains(&option) {
                return Err(Error::DuplicateClause { clause: option, place });
            }
            seen.push(option);
        }
    }

    fn dimension(&mut self, search: Search) -> Result<Dimension, Error> {
        let key = self.property_key()?;
        if self.optional(&["IN"]) {
            self.punctuation(&Token::LParen)?;
            let mut values = vec![self.foldable(&key, 0)?.0];
            while self.parser.consume_token(&Token::Comma) {
                values.push(self.foldable(&key, 0)?.0);
            }
            self.punctuation(&Token::RParen)?;
            return Ok(Dimension { key, domain: Domain::OneOf(values) });
        }
        self.words(&["BETWEEN"])?;
        let (low, low_place) = self.foldable(&key, BOUND_PRECEDENCE)?;
        self.words(&["AND"])?;
        let (high, high_place) = self.foldable(&key, BOUND_PRECEDENCE)?;
        let is_log = self.optional(&["LOG"]);
        let place = low_place.to(high_place);
        if search == Search::Grid {
            return Err(Error::RangeInGrid { key: key.text, place: key.place.to(place) });
        }
        match (low.as_double(), high.as_double()) {
            (Some(from), Some(to)) if from < to && (!is_log || from > 0.0) => {
                Ok(Dimension { key, domain: Domain::Between { low, high, is_log } })
            }
            _ => Err(Error::TuneRange { key: key.text, low: low.to_string(), high: high.to_string(), place }),
        }
    }

    fn tune_option(&mut self, tune: &mut Tune) -> Result<Option<&'static str>, Error> {
        let start = self.place();
        for (word, is_maximized) in [("MAXIMIZE", true), ("MINIMIZE", false)] {
            if self.optional(&[word]) {
                tune.metric = Some(Metric { name: self.word()?, is_maximized });
                return Ok(Some("MAXIMIZE or MINIMIZE"));
            }
        }
        if self.optional(&["TRIALS"]) {
            tune.trials = Some(self.integer("TRIALS")?);
            return Ok(Some("TRIALS"));
        }
        if self.optional(&["FOLDS"]) {
            tune.folds = Some(self.integer("FOLDS")?);
            return Ok(Some("FOLDS"));
        }
        if self.optional(&["PARALLELISM"]) {
            tune.parallelism = Some(self.integer("PARALLELISM")?);
            return Ok(Some("PARALLELISM"));
        }
        if self.optional(&["SEED"]) {
            tune.seed = Some(self.integer("SEED")?.0);
            return Ok(Some("SEED"));
        }
        if !self.optional(&["EARLY", "STOP"]) {
            return Ok(None);
        }
        let rule = if self.optional(&["ASHA"]) {
            StopRule::Asha
        } else {
            self.words(&["MEDIAN"])?;
            StopRule::Median
        };
        let place = start.to(self.last_place());
        let options = if self.is_next(&Token::LParen) { self.property_list()? } else { Vec::new() };
        tune.early_stop = Some(EarlyStop { rule, options, place });
        Ok(Some("EARLY STOP"))
    }
}
