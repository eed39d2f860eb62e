//! SQL statements: queries stay lazy, commands run and answer with rows.

use spark_connect_proto::relation::RelType;
use spark_connect_proto::{self as proto, Relation, StorageLevel};
use sql::{ExplainMode, Parameters, Statement};

use super::{CATALOG, Session};
use crate::embedded::functions;
use crate::embedded::relation::{Cells, Resolution, matching, missing, named_table, texts};
use crate::embedded::{Extensions, Frame};
use crate::{Error, Result, data_type};

/// What a statement comes to.
#[derive(Debug, Clone)]
pub enum SqlOutcome {
    /// A query: a relation to resolve when it is used.
    Query(Box<Relation>),
    /// A command that has run, and its answer.
    Command(Box<Frame>),
}

impl Session {
    /// Parses a statement, and runs it if it is a command.
    ///
    /// # Errors
    /// [`Error::Syntax`] and the like for the text, and what goes wrong with the command.
    pub async fn sql(
        &self,
        text: &str,
        parameters: Parameters,
        extensions: &dyn Extensions,
    ) -> Result<SqlOutcome> {
        match sql::parse(text, &parameters)? {
            Statement::Query(relation) => Ok(SqlOutcome::Query(Box::new(relation))),
            command => Ok(SqlOutcome::Command(Box::new(Box::pin(self.command(command, extensions)).await?))),
        }
    }

    async fn command(&self, command: Statement, extensions: &dyn Extensions) -> Result<Frame> {
        let resolution = Resolution::new(self, extensions);
        match command {
            Statement::Query(query) => return self.resolve(&query, extensions).await,
            Statement::CreateTempView { name, replace, global, if_not_exists, columns, query } => {
                let query = if columns.is_empty() { query } else { renamed(query, columns) };
                let frame = self.resolve(&query, extensions).await?;
                match self.create_view(&quoted(&name), frame, replace, global) {
                    Err(Error::TempViewAlreadyExists { .. }) if if_not_exists => {}
                    other => other?,
                }
            }
            Statement::CreateTable(create) => self.create_table(create, extensions).await?,
            Statement::InsertInto { name, columns, overwrite, query } => {
                let frame = self.resolve(&query, extensions).await?;
                self.insert_into(&name, &columns, overwrite, frame, &resolution).await?;
            }
            Statement::DropView { name, if_exists } => {
                let is_global = name.len() > 1;
                let last = name.last().cloned().unwrap_or_default();
                if !self.drop_view(&last, is_global) && !if_exists {
                    return Err(Error::TableOrViewNotFound { name: name.join(".") });
                }
            }
            Statement::DropTable { name, if_exists, purge: _ } => {
                if !self.drop_table(&name)? && !if_exists {
                    return Err(Error::TableOrViewNotFound { name: name.join(".") });
                }
            }
            Statement::CreateDatabase { name, if_not_exists } => self.create_database(&name, if_not_exists)?,
            Statement::DropDatabase { name, if_exists, cascade } => self.drop_database(&name, if_exists, cascade)?,
            // No function is a user's own.
            Statement::DropFunction { if_exists: true, .. } => {}
            Statement::DropFunction { name, if_exists: false } => {
                return Err(Error::UnresolvedRoutine { name: name.join(".") });
            }
            Statement::ShowTables { namespace, pattern } => {
                let rows = shown(resolution.table_names(namespace.last().map(String::as_str))?, pattern);
                return resolution.answer([
                    ("namespace", texts(rows.iter().map(|row| row.1.clone()).collect())),
                    ("tableName", texts(rows.iter().map(|row| row.0.clone()).collect())),
                    ("isTemporary", Cells::Flags(rows.iter().map(|row| row.2).collect())),
                ]);
            }
            Statement::ShowViews { namespace, pattern } => {
                let rows = shown(resolution.table_names(namespace.last().map(String::as_str))?, pattern);
                let rows: Vec<_> = rows.into_iter().filter(|row| row.2).collect();
                return resolution.answer([
                    ("namespace", texts(rows.iter().map(|row| row.1.clone()).collect())),
                    ("viewName", texts(rows.iter().map(|row| row.0.clone()).collect())),
                    ("isTemporary", Cells::Flags(vec![true; rows.len()])),
                ]);
            }
            Statement::ShowColumns { name } => {
                let frame = resolution.table(&quoted(&name)).await?;
                let names = frame.visible().map(|column| column.name.clone()).collect();
                return resolution.answer([("col_name", texts(names))]);
            }
            Statement::ShowDatabases { pattern } => {
                let names = matching(self.databases()?, pattern.as_deref());
                return resolution.answer([("namespace", texts(names))]);
            }
            Statement::ShowFunctions { scope: _, pattern } => {
                let mut names: Vec<String> = functions::names().map(str::to_owned).collect();
                names.sort();
                return resolution.answer([("function", texts(matching(names, pattern.as_deref())))]);
            }
            Statement::ShowCatalogs { pattern } => {
                let names = matching(vec![CATALOG.to_owned()], pattern.as_deref());
                return resolution.answer([("catalog", texts(names))]);
            }
            Statement::DescribeTable { name, extended: _ } => {
                let frame = resolution.table(&quoted(&name)).await?;
                return described(&resolution, &frame);
            }
            Statement::DescribeQuery { query } => {
                let frame = self.resolve(&query, extensions).await?;
                return described(&resolution, &frame);
            }
            Statement::DescribeFunction { name, .. } => {
                let name = name.join(".");
                let text = if functions::names().any(|known| known.eq_ignore_ascii_case(&name)) {
                    format!("Function: {}", name.to_lowercase())
                } else {
                    return Err(Error::UnresolvedRoutine { name });
                };
                return resolution.answer([("function_desc", texts(vec![text]))]);
            }
            Statement::Set { key, value } => return self.set_command(&resolution, key, value),
            Statement::Reset { key } => match key {
                Some(key) => self.unset_conf(&key)?,
                None => {
                    let keys: Vec<String> = self.conf().explicit().map(|(key, _)| key.to_owned()).collect();
                    let conf = self.conf();
                    for key in keys.iter().filter(|key| conf.is_modifiable(key)) {
                        self.unset_conf(key)?;
                    }
                }
            },
            Statement::Use { namespace } => match namespace.as_slice() {
                [one] if one.eq_ignore_ascii_case(CATALOG) => {}
                [database] => self.set_current_database(database)?,
                [catalog, database] if catalog.eq_ignore_ascii_case(CATALOG) => self.set_current_database(database)?,
                _ => return Err(Error::SchemaNotFound { name: namespace.join(".") }),
            },
            Statement::CacheTable { name, lazy, query } => {
                let name = quoted(&name);
                if let Some(query) = query {
                    let frame = self.resolve(&query, extensions).await?;
                    self.create_view(&name, frame, false, false)?;
                }
                let relation = named_table(&name);
                self.persist(&relation, memory_and_disk());
                if !lazy {
                    let frame = self.resolve(&relation, extensions).await?;
                    self.collect(&frame).await?;
                }
            }
            Statement::UncacheTable { name, if_exists } => {
                let relation = named_table(&quoted(&name));
                if !if_exists && resolution.place(&name)?.is_none() {
                    return Err(Error::TableOrViewNotFound { name: name.join(".") });
                }
                self.unpersist(&relation);
            }
            Statement::ClearCache => self.unpersist_all(),
            Statement::Model(_) => {
                let feature = "a statement about models inside a relation".into();
                return Err(Error::Unsupported { feature });
            }
            // Files are listed anew each time a table is read.
            Statement::RefreshTable { .. } => {}
            Statement::Explain { mode, query } => {
                let frame = self.resolve(&query, extensions).await?;
                let mode = match mode {
                    ExplainMode::Simple => "simple",
                    ExplainMode::Extended => "extended",
                    ExplainMode::Codegen => "codegen",
                    ExplainMode::Cost => "cost",
                    ExplainMode::Formatted => "formatted",
                };
                let text = self.explain(&frame, mode).await?;
                return resolution.answer([("plan", texts(vec![text]))]);
            }
        }
        resolution.nothing()
    }

    fn set_command(
        &self,
        resolution: &Resolution<'_>,
        key: Option<String>,
        value: Option<String>,
    ) -> Result<Frame> {
        let rows: Vec<(String, String)> = match (key, value) {
            (Some(key), Some(value)) => {
                self.set_conf(&key, &value)?;
                vec![(key, value)]
            }
            (Some(key), None) => {
                let value = self.conf().get(&key).unwrap_or_else(|| "<undefined>".to_owned());
                vec![(key, value)]
            }
            _ => self.conf().explicit().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        };
        let (keys, values) = rows.into_iter().unzip();
        resolution.answer([("key", texts(keys)), ("value", texts(values))])
    }
}

impl Resolution<'_> {
    /// SQL text as a relation; a command in it runs now.
    pub(in crate::embedded) async fn sql(
        &self,
        message: &proto::Sql,
        outer: &crate::embedded::relation::Outer,
    ) -> Result<Frame> {
        #[expect(deprecated, reason = "older clients send it")]
        let parameters = parameters(&message.args, &message.pos_args, &message.named_arguments, &message.pos_arguments);
        match sql::parse(&message.query, &parameters)? {
            Statement::Query(query) => {
                crate::embedded::relation::Grow(Box::pin(self.relation(&query, outer))).await
            }
            command => Box::pin(self.session.command(command, self.extensions)).await,
        }
    }
}

/// A statement's parameters as messages carry them: literals from older clients, expressions from newer ones.
pub fn parameters(
    args: &std::collections::HashMap<String, proto::expression::Literal>,
    pos_args: &[proto::expression::Literal],
    named_arguments: &std::collections::HashMap<String, proto::Expression>,
    pos_arguments: &[proto::Expression],
) -> Parameters {
    let literal = |literal: &proto::expression::Literal| proto::Expression {
        common: None,
        expr_type: Some(proto::expression::ExprType::Literal(literal.clone())),
    };
    let mut parameters = Parameters::default();
    parameters.named.extend(args.iter().map(|(name, value)| (name.clone(), literal(value))));
    parameters.named.extend(named_arguments.iter().map(|(name, value)| (name.clone(), value.clone())));
    parameters.positional.extend(pos_args.iter().map(literal));
    parameters.positional.extend(pos_arguments.iter().cloned());
    parameters
}

fn described(resolution: &Resolution<'_>, frame: &Frame) -> Result<Frame> {
    let columns: Vec<_> = frame.visible().collect();
    resolution.answer([
        ("col_name", texts(columns.iter().map(|column| column.name.clone()).collect())),
        ("data_type", texts(columns.iter().map(|column| data_type::simple_string(&column.field)).collect())),
        ("comment", Cells::Text(vec![None; columns.len()])),
    ])
}

/// Name, namespace and whether temporary, of those that the pattern matches.
fn shown(names: Vec<(String, (Vec<String>, bool))>, pattern: Option<String>) -> Vec<(String, String, bool)> {
    let kept = matching(names.iter().map(|(name, _)| name.clone()).collect(), pattern.as_deref());
    names
        .into_iter()
        .filter(|(name, _)| kept.contains(name))
        .map(|(name, (namespace, is_temporary))| (name, namespace.join("."), is_temporary))
        .collect()
}

fn renamed(query: Relation, columns: Vec<String>) -> Relation {
    let to_df = proto::ToDf { input: Some(Box::new(query)), column_names: columns };
    Relation { common: None, rel_type: Some(RelType::ToDf(Box::new(to_df))) }
}

/// A name in parts as one identifier.
pub(super) fn quoted(parts: &[String]) -> String {
    let quoted: Vec<String> = parts.iter().map(|part| format!("`{}`", part.replace('`', "``"))).collect();
    quoted.join(".")
}

fn memory_and_disk() -> StorageLevel {
    StorageLevel { use_disk: true, use_memory: true, deserialized: true, replication: 1, ..StorageLevel::default() }
}

/// The relation that a command's message must have.
pub(super) fn input(relation: &Option<Relation>) -> Result<&Relation> {
    relation.as_ref().ok_or_else(|| missing("input"))
}
