//! Tables: folders of files in the warehouse, each with a small file that says what is in it.

use std::path::PathBuf;

use super::{CATALOG, DEFAULT_DATABASE, Session};
use crate::source::ReadSource;
use crate::{Error, Result};

/// Hidden from readers of the data by its first character.
const DESCRIPTION_FILE: &str = "_table.json";

/// A table that stands in the warehouse.
#[derive(Debug, Clone)]
pub struct Table {
    pub database: String,
    pub name: String,
    pub format: String,
    pub path: PathBuf,
}

impl Table {
    pub fn source(&self) -> ReadSource {
        ReadSource {
            format: self.format.clone(),
            paths: vec![self.path.display().to_string()],
            ..ReadSource::default()
        }
    }

    pub fn qualifiers(&self) -> Vec<String> {
        vec![CATALOG.to_owned(), self.database.clone(), self.name.clone()]
    }
}

impl Session {
    /// The database and the table that a name in parts means.
    pub(in crate::embedded) fn qualified(&self, parts: &[String]) -> Result<(String, String)> {
        match parts {
            [name] => Ok((self.database.read().clone(), name.to_lowercase())),
            [database, name] => Ok((database.to_lowercase(), name.to_lowercase())),
            [catalog, database, name] if catalog.eq_ignore_ascii_case(CATALOG) => {
                Ok((database.to_lowercase(), name.to_lowercase()))
            }
            _ => Err(Error::TableOrViewNotFound { name: parts.join(".") }),
        }
    }

    /// Where a table is, or would be. A name must not lead out of the warehouse.
    pub(in crate::embedded) fn table_path(&self, database: &str, name: &str) -> Result<PathBuf> {
        let is_plain = |part: &str| {
            !part.is_empty() && !part.starts_with(['.', '_']) && !part.contains(['/', '\\', '\0'])
        };
        if !is_plain(database) || !is_plain(name) {
            return Err(Error::InvalidPlan { detail: format!("{database}.{name} is no valid table name") });
        }
        let warehouse = &self.engine().options().warehouse_dir;
        let folder = if database == DEFAULT_DATABASE { warehouse.clone() } else { warehouse.join(format!("{database}.db")) };
        Ok(folder.join(name))
    }

    /// The table of a name, if it stands.
    pub(in crate::embedded) fn find_table(&self, parts: &[String]) -> Result<Option<Table>> {
        if parts.is_empty() || parts.len() > 3 || parts.iter().any(|part| part.contains('/')) {
            return Ok(None);
        }
        let (database, name) = self.qualified(parts)?;
        let Ok(path) = self.table_path(&database, &name) else { return Ok(None) };
        let file = path.join(DESCRIPTION_FILE);
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Io { path: file.display().to_string(), source }),
        };
        let description: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| Error::InvalidPlan { detail: format!("{}: {error}", file.display()) })?;
        let format = description.get("format").and_then(serde_json::Value::as_str).unwrap_or("parquet").to_owned();
        Ok(Some(Table { database, name, format, path }))
    }

    /// Says what is in a table's folder, which its files are in already.
    pub(in crate::embedded) fn describe_table(&self, table: &Table) -> Result<()> {
        let file = table.path.join(DESCRIPTION_FILE);
        let text = serde_json::json!({ "format": table.format }).to_string();
        std::fs::write(&file, text).map_err(|source| Error::Io { path: file.display().to_string(), source })
    }

    /// Removes a table and its files; whether there was one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn drop_table(&self, parts: &[String]) -> Result<bool> {
        let Some(table) = self.find_table(parts)? else { return Ok(false) };
        std::fs::remove_dir_all(&table.path)
            .map_err(|source| Error::Io { path: table.path.display().to_string(), source })?;
        Ok(true)
    }

    /// The tables of a database, in order.
    pub(in crate::embedded) fn tables(&self, database: &str) -> Result<Vec<Table>> {
        let Some(folder) = self.table_path(database, "any")?.parent().map(PathBuf::from) else { return Ok(Vec::new()) };
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::Io { path: folder.display().to_string(), source }),
        };
        let mut tables = Vec::new();
        for entry in entries.flatten() {
            if let Some(name) = entry.file_name().to_str()
                && let Some(table) = self.find_table(&[database.to_owned(), name.to_owned()])?
            {
                tables.push(table);
            }
        }
        tables.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(tables)
    }

    pub fn has_database(&self, name: &str) -> bool {
        let name = name.strip_prefix(CATALOG).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name);
        let is_folder = || self.engine().options().warehouse_dir.join(format!("{}.db", name.to_lowercase())).is_dir();
        name.eq_ignore_ascii_case(DEFAULT_DATABASE) || (!name.contains('/') && is_folder())
    }

    pub fn current_database(&self) -> String {
        self.database.read().clone()
    }

    /// # Errors
    /// [`Error::SchemaNotFound`].
    pub fn set_current_database(&self, name: &str) -> Result<()> {
        if !self.has_database(name) {
            return Err(Error::SchemaNotFound { name: name.to_owned() });
        }
        *self.database.write() = name.to_lowercase();
        Ok(())
    }
}
