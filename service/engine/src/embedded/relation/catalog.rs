//! `spark.catalog`: what there is, as rows.

use spark_connect_proto as proto;
use spark_connect_proto::catalog::CatType;
use spark_connect_proto::{Relation, StorageLevel};

use super::answer::{Cells, texts};
use super::{Resolution, missing};
use crate::embedded::Frame;
use crate::embedded::expression::parse_name;
use crate::embedded::functions;
use crate::embedded::session::CATALOG;
use crate::{Error, Result, data_type};

impl Resolution<'_> {
    pub(super) async fn catalog(&self, message: &proto::Catalog) -> Result<Frame> {
        let kind = message.cat_type.as_ref().ok_or_else(|| missing("catalog operation"))?;
        let session = self.session;
        match kind {
            CatType::CurrentDatabase(_) => self.text_value(session.current_database()),
            CatType::SetCurrentDatabase(set) => {
                session.set_current_database(&set.db_name)?;
                self.nothing()
            }
            CatType::CurrentCatalog(_) => self.text_value(CATALOG.to_owned()),
            CatType::SetCurrentCatalog(set) if set.catalog_name.eq_ignore_ascii_case(CATALOG) => self.nothing(),
            CatType::SetCurrentCatalog(set) => {
                Err(Error::Unsupported { feature: format!("catalog {}", set.catalog_name) })
            }
            CatType::ListCatalogs(list) => {
                let names = matching(vec![CATALOG.to_owned()], list.pattern.as_deref());
                let none = vec![None; names.len()];
                self.answer([("name", texts(names)), ("description", Cells::Text(none))])
            }
            CatType::ListDatabases(list) => {
                self.databases(matching(session.databases()?, list.pattern.as_deref()))
            }
            CatType::GetDatabase(get) if session.has_database(&get.db_name) => self.databases(vec![get.db_name.clone()]),
            CatType::GetDatabase(get) => Err(Error::SchemaNotFound { name: get.db_name.clone() }),
            CatType::DatabaseExists(exists) => self.flag_value(session.has_database(&exists.db_name)),
            CatType::ListTables(list) => {
                let names = self.table_names(list.db_name.as_deref())?;
                let kept = matching(names.iter().map(|(name, _)| name.clone()).collect(), list.pattern.as_deref());
                self.table_rows(names.into_iter().filter(|(name, _)| kept.contains(name)).collect())
            }
            CatType::GetTable(get) => {
                let parts = full_name(&get.table_name, get.db_name.as_deref())?;
                match self.place(&parts)? {
                    Some(place) => self.table_rows(vec![(parts.last().cloned().unwrap_or_default(), place)]),
                    None => Err(Error::TableOrViewNotFound { name: parts.join(".") }),
                }
            }
            CatType::TableExists(exists) => {
                let parts = full_name(&exists.table_name, exists.db_name.as_deref())?;
                self.flag_value(self.place(&parts)?.is_some())
            }
            CatType::ListColumns(list) => {
                let parts = full_name(&list.table_name, list.db_name.as_deref())?;
                let quoted: Vec<String> = parts.iter().map(|part| format!("`{}`", part.replace('`', "``"))).collect();
                self.column_rows(&self.table(&quoted.join(".")).await?)
            }
            CatType::ListFunctions(list) => {
                let mut names: Vec<String> = functions::names().map(str::to_owned).collect();
                names.sort();
                self.function_rows(matching(names, list.pattern.as_deref()))
            }
            CatType::GetFunction(get) if is_function(&get.function_name) => {
                self.function_rows(vec![get.function_name.to_lowercase()])
            }
            CatType::GetFunction(get) => Err(Error::UnresolvedRoutine { name: get.function_name.clone() }),
            CatType::FunctionExists(exists) => self.flag_value(is_function(&exists.function_name)),
            CatType::DropTempView(drop) => self.flag_value(session.drop_view(&drop.view_name, false)),
            CatType::DropGlobalTempView(drop) => self.flag_value(session.drop_view(&drop.view_name, true)),
            CatType::IsCached(cached) => {
                if self.place(&parse_name(&cached.table_name)?)?.is_none() {
                    return Err(Error::TableOrViewNotFound { name: cached.table_name.clone() });
                }
                let level = session.storage_level(&named_table(&cached.table_name));
                self.flag_value(level.use_memory || level.use_disk)
            }
            CatType::CacheTable(cache) => {
                self.table(&cache.table_name).await?;
                let both = StorageLevel {
                    use_disk: true,
                    use_memory: true,
                    deserialized: true,
                    replication: 1,
                    ..StorageLevel::default()
                };
                session.persist(&named_table(&cache.table_name), cache.storage_level.unwrap_or(both));
                self.nothing()
            }
            CatType::UncacheTable(uncache) => {
                if self.place(&parse_name(&uncache.table_name)?)?.is_none() {
                    return Err(Error::TableOrViewNotFound { name: uncache.table_name.clone() });
                }
                session.unpersist(&named_table(&uncache.table_name));
                self.nothing()
            }
            CatType::ClearCache(_) => {
                session.unpersist_all();
                self.nothing()
            }
            // Files are listed anew each time a table is read.
            CatType::RefreshTable(_) | CatType::RefreshByPath(_) => self.nothing(),
            other => {
                let text = format!("{other:?}");
                let name = text.split('(').next().unwrap_or_default().to_owned();
                Err(Error::Unsupported { feature: format!("catalog operation {name}") })
            }
        }
    }

    /// Where a name leads: its namespace, and whether it is temporary.
    pub(in crate::embedded) fn place(&self, parts: &[String]) -> Result<Option<(Vec<String>, bool)>> {
        if let Some((_, qualifiers)) = self.session.view(parts) {
            let namespace = qualifiers.split_last().map(|(_, namespace)| namespace.to_vec()).unwrap_or_default();
            return Ok(Some((namespace, true)));
        }
        Ok(self.session.find_table(parts)?.map(|table| (vec![table.database], false)))
    }

    pub(in crate::embedded) fn table_names(&self, database: Option<&str>) -> Result<Vec<(String, (Vec<String>, bool))>> {
        let session = self.session;
        let current = session.current_database();
        let database = database.unwrap_or(&current);
        let global = session.global_database();
        let mut names = Vec::new();
        if database.eq_ignore_ascii_case(&global) {
            names.extend(session.view_names(true).into_iter().map(|name| (name, (vec![global.clone()], true))));
        } else {
            if !session.has_database(database) {
                return Err(Error::SchemaNotFound { name: database.to_owned() });
            }
            let tables = session.tables(&database.to_lowercase())?;
            names.extend(tables.into_iter().map(|table| (table.name, (vec![table.database], false))));
        }
        names.extend(session.view_names(false).into_iter().map(|name| (name, (Vec::new(), true))));
        Ok(names)
    }

    fn table_rows(&self, tables: Vec<(String, (Vec<String>, bool))>) -> Result<Frame> {
        let catalogs = tables.iter().map(|(_, (_, is_temporary))| (!is_temporary).then(|| CATALOG.to_owned()));
        let namespaces = tables.iter().map(|(_, (namespace, _))| Some(namespace.clone()));
        let kinds = tables.iter().map(|(_, (_, is_temporary))| if *is_temporary { "TEMPORARY" } else { "MANAGED" });
        self.answer([
            ("name", texts(tables.iter().map(|(name, _)| name.clone()).collect())),
            ("catalog", Cells::Text(catalogs.collect())),
            ("namespace", Cells::Texts(namespaces.collect())),
            ("description", Cells::Text(vec![None; tables.len()])),
            ("tableType", texts(kinds.map(str::to_owned).collect())),
            ("isTemporary", Cells::Flags(tables.iter().map(|(_, (_, is_temporary))| *is_temporary).collect())),
        ])
    }

    fn column_rows(&self, frame: &Frame) -> Result<Frame> {
        let columns: Vec<_> = frame.visible().collect();
        let no = || Cells::Flags(vec![false; columns.len()]);
        self.answer([
            ("name", texts(columns.iter().map(|column| column.name.clone()).collect())),
            ("description", Cells::Text(vec![None; columns.len()])),
            ("dataType", texts(columns.iter().map(|column| data_type::simple_string(&column.field)).collect())),
            ("nullable", Cells::Flags(columns.iter().map(|column| column.field.is_nullable()).collect())),
            ("isPartition", no()),
            ("isBucket", no()),
            ("isCluster", no()),
        ])
    }

    fn function_rows(&self, names: Vec<String>) -> Result<Frame> {
        let count = names.len();
        self.answer([
            ("name", texts(names)),
            ("catalog", Cells::Text(vec![None; count])),
            ("namespace", Cells::Texts(vec![None; count])),
            ("description", Cells::Text(vec![None; count])),
            ("className", texts(vec![String::new(); count])),
            ("isTemporary", Cells::Flags(vec![true; count])),
        ])
    }

    fn databases(&self, names: Vec<String>) -> Result<Frame> {
        let count = names.len();
        let location = self.session.engine().options().warehouse_dir.display().to_string();
        self.answer([
            ("name", texts(names)),
            ("catalog", texts(vec![CATALOG.to_owned(); count])),
            ("description", texts(vec!["default database".to_owned(); count])),
            ("locationUri", texts(vec![location; count])),
        ])
    }

    fn text_value(&self, value: String) -> Result<Frame> {
        self.answer([("value", texts(vec![value]))])
    }

    fn flag_value(&self, value: bool) -> Result<Frame> {
        self.answer([("value", Cells::Flags(vec![value]))])
    }
}

fn is_function(name: &str) -> bool {
    functions::names().any(|known| known.eq_ignore_ascii_case(name))
}

fn full_name(name: &str, database: Option<&str>) -> Result<Vec<String>> {
    let mut parts = parse_name(name)?;
    if let Some(database) = database.filter(|database| !database.is_empty()) {
        parts.insert(0, database.to_owned());
    }
    Ok(parts)
}

pub fn named_table(name: &str) -> Relation {
    let table = proto::read::NamedTable { unparsed_identifier: name.to_owned(), ..Default::default() };
    let read = proto::Read { is_streaming: false, read_type: Some(proto::read::ReadType::NamedTable(table)) };
    Relation { common: None, rel_type: Some(proto::relation::RelType::Read(read)) }
}

/// The names that one of the alternatives of a pattern such as `a*|b` matches.
pub fn matching(names: Vec<String>, pattern: Option<&str>) -> Vec<String> {
    let Some(pattern) = pattern else { return names };
    let alternatives: Vec<regex::Regex> = pattern
        .split('|')
        .filter_map(|part| {
            let escaped = regex::escape(part.trim()).replace("\\*", ".*");
            regex::Regex::new(&format!("(?i)^{escaped}$")).ok()
        })
        .collect();
    names.into_iter().filter(|name| alternatives.iter().any(|pattern| pattern.is_match(name))).collect()
}
