//! Databases: folders of the warehouse whose names end in `.db`.

use std::io::ErrorKind;
use std::path::PathBuf;

use super::{CATALOG, DEFAULT_DATABASE, Session};
use crate::{Error, Result};

const SUFFIX: &str = ".db";

impl Session {
    /// The databases there are, in order.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn databases(&self) -> Result<Vec<String>> {
        let warehouse = &self.engine().options().warehouse_dir;
        let mut names = vec![DEFAULT_DATABASE.to_owned()];
        match std::fs::read_dir(warehouse) {
            Ok(entries) => {
                let names_of_folders = entries.flatten().filter(|entry| entry.path().is_dir()).filter_map(|entry| {
                    entry.file_name().to_str()?.strip_suffix(SUFFIX).map(str::to_owned)
                });
                names.extend(names_of_folders);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(Error::Io { path: warehouse.display().to_string(), source }),
        }
        names.sort();
        Ok(names)
    }

    /// # Errors
    /// [`Error::SchemaAlreadyExists`] and [`Error::Io`].
    pub fn create_database(&self, parts: &[String], if_not_exists: bool) -> Result<()> {
        let (name, folder) = self.database_folder(parts)?;
        if self.has_database(&name) {
            return if if_not_exists { Ok(()) } else { Err(Error::SchemaAlreadyExists { name }) };
        }
        std::fs::create_dir_all(&folder).map_err(|source| Error::Io { path: folder.display().to_string(), source })
    }

    /// # Errors
    /// [`Error::SchemaNotFound`], [`Error::SchemaNotEmpty`] where tables are in it and are to stay, and [`Error::Io`].
    pub fn drop_database(&self, parts: &[String], if_exists: bool, cascade: bool) -> Result<()> {
        let (name, folder) = self.database_folder(parts)?;
        if name == DEFAULT_DATABASE {
            return Err(Error::Unsupported { feature: "DROP DATABASE of the default database".into() });
        }
        if !self.has_database(&name) {
            return if if_exists { Ok(()) } else { Err(Error::SchemaNotFound { name }) };
        }
        if !cascade && !self.tables(&name)?.is_empty() {
            return Err(Error::SchemaNotEmpty { name });
        }
        std::fs::remove_dir_all(&folder).map_err(|source| Error::Io { path: folder.display().to_string(), source })
    }

    fn database_folder(&self, parts: &[String]) -> Result<(String, PathBuf)> {
        let name = match parts {
            [name] => name.to_lowercase(),
            [catalog, name] if catalog.eq_ignore_ascii_case(CATALOG) => name.to_lowercase(),
            _ => return Err(Error::SchemaNotFound { name: parts.join(".") }),
        };
        // Checks the name as well.
        self.table_path(&name, "any")?;
        let folder = self.engine().options().warehouse_dir.join(format!("{name}{SUFFIX}"));
        Ok((name, folder))
    }
}
