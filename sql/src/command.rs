//! Statements that are no queries, told apart by their first words.

use spark_connect_proto::Relation;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::Parameters;
use crate::error::Error;
use crate::identifier::object_parts;
use crate::parser::Source;
use crate::statement::{CreateTable, ExplainMode, FunctionScope, Statement};
use crate::translator::Translator;

/// A statement under way: its tokens and the place in them.
pub(crate) struct Command<'a> {
    pub(crate) source: &'a Source,
    pub(crate) parser: Parser<'static>,
    pub(crate) parameters: &'a Parameters,
}

pub(crate) fn parse_statement(text: &str, parameters: &Parameters) -> Result<Statement, Error> {
    let source = Source::new(text)?;
    let words = source.first_words(3);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // SET takes its value as it stands, tokens or not.
    if let ["SET" | "RESET", ..] = words.as_slice() {
        return set_or_reset(text, &words);
    }
    let mut command = Command { source: &source, parser: source.parser(), parameters };
    let statement = command.statement(text, &words)?;
    source.finish(&mut command.parser)?;
    Ok(statement)
}

impl Command<'_> {
    fn statement(&mut self, text: &str, words: &[&str]) -> Result<Statement, Error> {
        match words {
            // A bracket, or a quoted name that nothing starts with.
            [] | ["SELECT" | "WITH" | "VALUES" | "FROM" | "TABLE", ..] => self.relation().map(Statement::Query),
            ["CREATE", ..] => self.create(),
            ["INSERT", ..] => self.insert(),
            ["DROP", ..] => self.drop(words),
            ["SHOW", ..] => self.show(words),
            ["DESCRIBE" | "DESC", ..] => self.describe(),
            ["USE", ..] => self.use_namespace(),
            ["CACHE", ..] => self.cache(),
            ["UNCACHE", "TABLE", ..] => {
                self.words(&["UNCACHE", "TABLE"])?;
                let if_exists = self.optional(&["IF", "EXISTS"]);
                Ok(Statement::UncacheTable { name: self.name()?, if_exists })
            }
            ["CLEAR", "CACHE", ..] => self.words(&["CLEAR", "CACHE"]).map(|()| Statement::ClearCache),
            ["REFRESH", ..] => {
                self.words(&["REFRESH"])?;
                self.optional(&["TABLE"]);
                Ok(Statement::RefreshTable { name: self.name()? })
            }
            ["EXPLAIN", ..] => self.explain(text),
            ["TRAIN", ..] => self.train_statement(text),
            ["ALTER", "MODEL", ..] => self.alter_model(),
            ["COMMENT", "ON", "MODEL"] => self.comment_on_model(),
            ["EXPORT", "MODEL", ..] => self.export_model(),
            ["IMPORT", "MODEL" | "OR", ..] => self.import_model(),
            ["CANCEL", "TRAINING", ..] => self.cancel_training(),
            ["GRANT" | "REVOKE", first, ..] => match self.grant_on_model()? {
                Some(statement) => Ok(statement),
                None => Err(Error::Unsupported { statement: format!("{} {first}", words[0]) }),
            },
            [first, rest @ ..] if is_spark_statement(first) => {
                let mut statement = vec![*first];
                statement.extend(rest.first());
                Err(Error::Unsupported { statement: statement.join(" ") })
            }
            [..] => {
                let found = self.parser.peek_token();
                self.syntax(|parser| parser.expected("a statement", found))
            }
        }
    }

    pub(crate) fn syntax<T>(&mut self, step: impl FnOnce(&mut Parser<'static>) -> Result<T, ParserError>) -> Result<T, Error> {
        step(&mut self.parser).map_err(|error| self.source.error(error))
    }

    pub(crate) fn peek_word(&self) -> Option<String> {
        match &self.parser.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
            _ => None,
        }
    }

    /// Takes the words if all of them stand here.
    pub(crate) fn optional(&mut self, words: &[&str]) -> bool {
        let all = words.iter().enumerate().all(|(at, expected)| {
            matches!(&self.parser.peek_nth_token_ref(at).token, Token::Word(word)
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
        });
        if all {
            words.iter().for_each(|_| self.parser.advance_token());
        }
        all
    }

    pub(crate) fn words(&mut self, words: &[&str]) -> Result<(), Error> {
        for word in words {
            if !self.optional(&[word]) {
                let found = self.parser.peek_token();
                return self.syntax(|parser| parser.expected(word, found));
            }
        }
        Ok(())
    }

    pub(crate) fn name(&mut self) -> Result<Vec<String>, Error> {
        let name = self.syntax(|parser| parser.parse_object_name(false))?;
        object_parts(&name)
    }

    pub(crate) fn string(&mut self) -> Result<String, Error> {
        self.syntax(Parser::parse_literal_string)
    }

    fn at_end(&self) -> bool {
        matches!(self.parser.peek_token_ref().token, Token::EOF | Token::SemiColon)
    }

    pub(crate) fn relation(&mut self) -> Result<Relation, Error> {
        let query = self.source.query(&mut self.parser)?;
        Translator::new(self.parameters).query(&query)
    }

    fn column_names(&mut self) -> Result<Vec<String>, Error> {
        if self.parser.peek_token_ref().token != Token::LParen {
            return Ok(Vec::new());
        }
        self.syntax(|parser| {
            parser.advance_token();
            let names = parser.parse_comma_separated(|parser| Ok(parser.parse_identifier()?.value))?;
            parser.expect_token(&Token::RParen)?;
            Ok(names)
        })
    }

    fn create(&mut self) -> Result<Statement, Error> {
        self.words(&["CREATE"])?;
        let replace = self.optional(&["OR", "REPLACE"]);
        let global = self.optional(&["GLOBAL"]);
        let temporary = self.optional(&["TEMPORARY"]) || self.optional(&["TEMP"]);
        if self.optional(&["VIEW"]) {
            if !temporary {
                return Err(Error::Unsupported { statement: "CREATE VIEW".into() });
            }
            let if_not_exists = self.optional(&["IF", "NOT", "EXISTS"]);
            let name = self.name()?;
            let columns = self.column_names()?;
            if let Some(clause @ ("COMMENT" | "USING" | "TBLPROPERTIES")) = self.peek_word().as_deref() {
                return Err(Error::Unsupported { statement: format!("CREATE TEMPORARY VIEW {clause}") });
            }
            self.words(&["AS"])?;
            let query = self.relation()?;
            return Ok(Statement::CreateTempView { name, replace, global, if_not_exists, columns, query });
        }
        let is_database = ["DATABASE", "SCHEMA", "NAMESPACE"].iter().any(|word| self.peek_word().as_deref() == Some(word));
        if is_database && !temporary && !global && !replace {
            return self.create_database();
        }
        if temporary || global || !self.optional(&["TABLE"]) {
            let what = self.peek_word().unwrap_or_default();
            return Err(Error::Unsupported { statement: format!("CREATE {what}").trim_end().to_string() });
        }
        self.create_table(replace).map(Statement::CreateTable)
    }

    fn create_database(&mut self) -> Result<Statement, Error> {
        self.parser.advance_token();
        let if_not_exists = self.optional(&["IF", "NOT", "EXISTS"]);
        let name = self.name()?;
        if self.optional(&["COMMENT"]) {
            self.string()?;
        }
        if let Some(clause) = self.peek_word() {
            return Err(Error::Unsupported { statement: format!("CREATE DATABASE {clause}") });
        }
        Ok(Statement::CreateDatabase { name, if_not_exists })
    }

    fn create_table(&mut self, replace: bool) -> Result<CreateTable, Error> {
        let if_not_exists = self.optional(&["IF", "NOT", "EXISTS"]);
        let mut table = CreateTable { name: self.name()?, if_not_exists, replace, ..CreateTable::default() };
        if self.parser.peek_token_ref().token == Token::LParen {
            table.schema = self.bracketed_text()?;
        }
        loop {
            if self.optional(&["USING"]) {
                table.provider = Some(self.name()?.join("."));
            } else if self.optional(&["OPTIONS"]) {
                table.options = self.properties()?;
            } else if self.optional(&["TBLPROPERTIES"]) {
                table.properties = self.properties()?;
            } else if self.optional(&["PARTITIONED", "BY"]) {
                table.partitioned_by = self.column_names()?;
            } else if self.optional(&["LOCATION"]) {
                table.location = Some(self.string()?);
            } else if self.optional(&["COMMENT"]) {
                table.comment = Some(self.string()?);
            } else {
                break;
            }
        }
        let starts_query = matches!(self.peek_word().as_deref(), Some("SELECT" | "WITH" | "VALUES" | "FROM" | "TABLE"));
        if self.optional(&["AS"]) || starts_query {
            table.query = Some(self.relation()?);
        } else if !self.at_end() {
            let found = self.parser.peek_token();
            return self.syntax(|parser| parser.expected("a clause of CREATE TABLE", found));
        }
        Ok(table)
    }

    /// The text between brackets, words apart: whoever creates the table has the parser for schemas.
    fn bracketed_text(&mut self) -> Result<String, Error> {
        self.syntax(|parser| parser.expect_token(&Token::LParen).map(drop))?;
        let (mut depth, mut text) = (1, String::new());
        loop {
            let token = self.parser.next_token();
            match &token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                Token::EOF => return self.syntax(|parser| parser.expected(")", token)),
                _ => {}
            }
            if depth == 0 {
                return Ok(text);
            }
            let is_word = matches!(token.token, Token::Word(_) | Token::SingleQuotedString(_));
            if is_word && text.chars().next_back().is_some_and(|c| !matches!(c, '(' | '<' | ':' | ' ')) {
                text.push(' ');
            }
            text.push_str(&token.token.to_string());
        }
    }

    /// `(key = 'value', a.b 'value')`.
    fn properties(&mut self) -> Result<Vec<(String, String)>, Error> {
        self.syntax(|parser| {
            parser.expect_token(&Token::LParen)?;
            let pairs = parser.parse_comma_separated(|parser| {
                let key = match parser.peek_token().token {
                    Token::SingleQuotedString(key) => {
                        parser.advance_token();
                        key
                    }
                    _ => parser.parse_object_name(false)?.to_string(),
                };
                let _ = parser.consume_token(&Token::Eq);
                let token = parser.next_token();
                let value = match token.token {
                    Token::SingleQuotedString(value) | Token::Number(value, _) => value,
                    Token::Word(word) => word.value,
                    _ => return parser.expected("a property's value", token),
                };
                Ok((key, value))
            })?;
            parser.expect_token(&Token::RParen)?;
            Ok(pairs)
        })
    }

    fn insert(&mut self) -> Result<Statement, Error> {
        self.words(&["INSERT"])?;
        let overwrite = self.optional(&["OVERWRITE"]);
        if !overwrite {
            self.words(&["INTO"])?;
        }
        self.optional(&["TABLE"]);
        if matches!(self.peek_word().as_deref(), Some("DIRECTORY" | "LOCAL")) {
            return Err(Error::Unsupported { statement: "INSERT OVERWRITE DIRECTORY".into() });
        }
        let name = self.name()?;
        for clause in ["PARTITION", "BY", "REPLACE"] {
            if self.peek_word().as_deref() == Some(clause) {
                return Err(Error::Unsupported { statement: format!("INSERT {clause}") });
            }
        }
        // A bracket opens a list of columns or a query.
        let opens_query = matches!(&self.parser.peek_nth_token_ref(1).token, Token::Word(word)
            if matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES));
        let columns = if opens_query { Vec::new() } else { self.column_names()? };
        let query = self.relation()?;
        Ok(Statement::InsertInto { name, columns, overwrite, query })
    }

    fn drop(&mut self, words: &[&str]) -> Result<Statement, Error> {
        if self.optional(&["DROP", "MODEL"]) {
            return self.drop_model();
        }
        if let Some(&kind @ ("DATABASE" | "SCHEMA" | "NAMESPACE")) = words.get(1) {
            self.words(&["DROP", kind])?;
            let if_exists = self.optional(&["IF", "EXISTS"]);
            let name = self.name()?;
            let cascade = self.optional(&["CASCADE"]);
            if !cascade {
                self.optional(&["RESTRICT"]);
            }
            return Ok(Statement::DropDatabase { name, if_exists, cascade });
        }
        if words.get(1) == Some(&"FUNCTION") || words.get(1..3) == Some(&["TEMPORARY", "FUNCTION"]) {
            self.words(&["DROP"])?;
            self.optional(&["TEMPORARY"]);
            self.words(&["FUNCTION"])?;
            let if_exists = self.optional(&["IF", "EXISTS"]);
            return Ok(Statement::DropFunction { name: self.name()?, if_exists });
        }
        let is_view = words.get(1) == Some(&"VIEW");
        if !is_view && words.get(1) != Some(&"TABLE") {
            return Err(Error::Unsupported { statement: words[..words.len().min(2)].join(" ") });
        }
        self.parser.advance_token();
        self.parser.advance_token();
        let if_exists = self.optional(&["IF", "EXISTS"]);
        let name = self.name()?;
        if is_view {
            return Ok(Statement::DropView { name, if_exists });
        }
        Ok(Statement::DropTable { name, if_exists, purge: self.optional(&["PURGE"]) })
    }

    fn show(&mut self, words: &[&str]) -> Result<Statement, Error> {
        self.words(&["SHOW"])?;
        if let Some(statement) = self.show_models()? {
            return Ok(statement);
        }
        match &words[1..] {
            ["TABLES", ..] => {
                self.words(&["TABLES"])?;
                Ok(Statement::ShowTables { namespace: self.in_namespace()?, pattern: self.pattern()? })
            }
            ["VIEWS", ..] => {
                self.words(&["VIEWS"])?;
                Ok(Statement::ShowViews { namespace: self.in_namespace()?, pattern: self.pattern()? })
            }
            ["COLUMNS", ..] => {
                self.words(&["COLUMNS"])?;
                if !self.optional(&["IN"]) {
                    self.words(&["FROM"])?;
                }
                let table = self.name()?;
                let mut name = self.in_namespace()?;
                name.extend(table);
                Ok(Statement::ShowColumns { name })
            }
            ["DATABASES" | "SCHEMAS" | "NAMESPACES", ..] => {
                self.parser.advance_token();
                Ok(Statement::ShowDatabases { pattern: self.pattern()? })
            }
            ["CATALOGS", ..] => {
                self.words(&["CATALOGS"])?;
                Ok(Statement::ShowCatalogs { pattern: self.pattern()? })
            }
            [.., "FUNCTIONS"] | ["FUNCTIONS", ..] => {
                let scope = match words[1] {
                    "SYSTEM" => FunctionScope::System,
                    "USER" => FunctionScope::User,
                    "ALL" | "FUNCTIONS" => FunctionScope::All,
                    other => return Err(Error::Unsupported { statement: format!("SHOW {other} FUNCTIONS") }),
                };
                if words[1] != "FUNCTIONS" {
                    self.parser.advance_token();
                }
                self.words(&["FUNCTIONS"])?;
                Ok(Statement::ShowFunctions { scope, pattern: self.pattern()? })
            }
            rest => {
                let mut statement = vec!["SHOW"];
                statement.extend(rest.first());
                Err(Error::Unsupported { statement: statement.join(" ") })
            }
        }
    }

    pub(crate) fn in_namespace(&mut self) -> Result<Vec<String>, Error> {
        if self.optional(&["IN"]) || self.optional(&["FROM"]) { self.name() } else { Ok(Vec::new()) }
    }

    pub(crate) fn pattern(&mut self) -> Result<Option<String>, Error> {
        let has_like = self.optional(&["LIKE"]);
        if !has_like && self.at_end() {
            return Ok(None);
        }
        self.string().map(Some)
    }

    fn describe(&mut self) -> Result<Statement, Error> {
        self.parser.advance_token();
        if self.optional(&["FUNCTION"]) {
            let extended = self.optional(&["EXTENDED"]);
            return Ok(Statement::DescribeFunction { name: self.name()?, extended });
        }
        // A table called model is described by DESCRIBE TABLE model, or alone.
        if self.peek_word().as_deref() == Some("MODEL") && matches!(self.parser.peek_nth_token_ref(1).token, Token::Word(_))
        {
            self.words(&["MODEL"])?;
            return self.describe_model();
        }
        let what = self.peek_word();
        if let Some(what @ ("DATABASE" | "SCHEMA" | "NAMESPACE" | "CATALOG")) = what.as_deref() {
            return Err(Error::Unsupported { statement: format!("DESCRIBE {what}") });
        }
        let is_query = self.optional(&["QUERY"]);
        let starts_query = matches!(self.peek_word().as_deref(), Some("SELECT" | "WITH" | "VALUES" | "FROM"));
        if is_query || starts_query {
            return Ok(Statement::DescribeQuery { query: self.relation()? });
        }
        self.optional(&["TABLE"]);
        let extended = self.optional(&["EXTENDED"]) || self.optional(&["FORMATTED"]);
        let name = self.name()?;
        if !self.at_end() {
            return Err(Error::Unsupported { statement: "DESCRIBE of a column or partition".into() });
        }
        Ok(Statement::DescribeTable { name, extended })
    }

    fn use_namespace(&mut self) -> Result<Statement, Error> {
        self.words(&["USE"])?;
        for word in ["DATABASE", "SCHEMA", "NAMESPACE"] {
            if !matches!(self.parser.peek_nth_token_ref(1).token, Token::EOF | Token::SemiColon | Token::Period) {
                self.optional(&[word]);
            }
        }
        Ok(Statement::Use { namespace: self.name()? })
    }

    fn cache(&mut self) -> Result<Statement, Error> {
        self.words(&["CACHE"])?;
        let lazy = self.optional(&["LAZY"]);
        self.words(&["TABLE"])?;
        let name = self.name()?;
        if self.optional(&["OPTIONS"]) {
            return Err(Error::Unsupported { statement: "CACHE TABLE OPTIONS".into() });
        }
        self.optional(&["AS"]);
        let query = if self.at_end() { None } else { Some(self.relation()?) };
        Ok(Statement::CacheTable { name, lazy, query })
    }

    fn explain(&mut self, text: &str) -> Result<Statement, Error> {
        self.words(&["EXPLAIN"])?;
        let mut mode = ExplainMode::Simple;
        for (word, named) in [
            ("EXTENDED", ExplainMode::Extended),
            ("CODEGEN", ExplainMode::Codegen),
            ("COST", ExplainMode::Cost),
            ("FORMATTED", ExplainMode::Formatted),
        ] {
            if self.optional(&[word]) {
                mode = named;
                break;
            }
        }
        // What a training would do is told in one way, whatever the mode.
        let is_logical = self.optional(&["LOGICAL"]);
        if self.peek_word().as_deref() == Some("TRAIN") {
            return self.explain_train(text, mode);
        }
        if is_logical {
            return Err(Error::Unsupported { statement: "EXPLAIN LOGICAL".into() });
        }
        if self
            .peek_word()
            .is_some_and(|word| !matches!(word.as_str(), "SELECT" | "WITH" | "VALUES" | "FROM" | "TABLE"))
        {
            return Err(Error::Unsupported { statement: "EXPLAIN of other than a query".into() });
        }
        Ok(Statement::Explain { mode, query: self.relation()? })
    }
}

/// Whether Spark has a statement that starts so, for an error that says more than that the syntax is wrong.
fn is_spark_statement(word: &str) -> bool {
    const STARTS: &[&str] = &[
        "ADD", "ALTER", "ANALYZE", "BEGIN", "CALL", "COMMENT", "DECLARE", "DELETE", "EXECUTE", "EXPORT", "GRANT",
        "IMPORT", "LIST", "LOAD", "LOCK", "MAP", "MERGE", "MSCK", "REDUCE", "REPAIR", "REPLACE", "REVOKE", "TRUNCATE",
        "UNLOCK", "UPDATE",
    ];
    STARTS.contains(&word)
}

/// `SET`, `SET key`, `SET key = value`, `SET TIME ZONE ..` and `RESET [key]`, over the text as it stands.
fn set_or_reset(text: &str, words: &[&str]) -> Result<Statement, Error> {
    let trimmed = without_comments(text);
    let trimmed = trimmed.trim().trim_end_matches(';').trim();
    let rest = trimmed.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim());
    if words.first() == Some(&"RESET") {
        let key = (!rest.is_empty()).then(|| unquoted(rest));
        return Ok(Statement::Reset { key });
    }
    match words.get(1) {
        Some(kind @ (&"VAR" | &"VARIABLE" | &"ROLE" | &"CATALOG")) if words.len() > 2 || !rest.contains('=') => {
            return Err(Error::Unsupported { statement: format!("SET {kind}") });
        }
        Some(&"TIME") if words.get(2) == Some(&"ZONE") => {
            let zone = rest.split_whitespace().skip(2).collect::<Vec<_>>().join(" ");
            if zone.to_ascii_uppercase().starts_with("INTERVAL") || zone.is_empty() {
                return Err(Error::Unsupported { statement: "SET TIME ZONE INTERVAL".into() });
            }
            let value = Some(unquoted(&zone));
            return Ok(Statement::Set { key: Some("spark.sql.session.timeZone".into()), value });
        }
        _ => {}
    }
    if rest.is_empty() || rest == "-v" {
        return Ok(Statement::Set { key: None, value: None });
    }
    Ok(match rest.split_once('=') {
        Some((key, value)) => Statement::Set { key: Some(unquoted(key.trim())), value: Some(value.trim().to_string()) },
        None => Statement::Set { key: Some(unquoted(rest)), value: None },
    })
}

/// The text without the comments in front of it.
fn without_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let after = if rest.starts_with("--") {
            rest.split_once('\n').map(|(_, after)| after)
        } else if rest.starts_with("/*") {
            rest.split_once("*/").map(|(_, after)| after)
        } else {
            return rest;
        };
        rest = after.unwrap_or("").trim_start();
    }
}

fn unquoted(text: &str) -> String {
    for quote in ['`', '\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner.to_string();
        }
    }
    text.to_string()
}
