//! What a model is at one time: its versions, which of them is the default, aliases, tags and who trains it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::reservation::Reservation;
use crate::{Error, ModelName, Result};

/// The layout that is written. A greater one is refused.
pub(crate) const FORMAT: u32 = 1;

/// One version of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionEntry {
    pub version: u32,
    /// The folder of its files.
    pub folder: String,
    pub training_id: String,
    pub created_at: String,
    pub created_by: String,
}

/// The content of a manifest file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub(crate) format: u32,
    /// Tells a writer that its own put came through after all.
    pub(crate) write_id: String,
    pub name: ModelName,
    /// Of the model, whatever its name is.
    pub(crate) model_id: String,
    pub created_at: String,
    pub(crate) next_version: u32,
    pub default_version: Option<u32>,
    /// By number.
    pub versions: Vec<VersionEntry>,
    pub aliases: BTreeMap<String, u32>,
    pub tags: BTreeMap<String, String>,
    pub comment: Option<String>,
    pub(crate) reservations: Vec<Reservation>,
    /// Set while the model takes this name over from another: it is not here before it has left there.
    pub(crate) renamed_from: Option<ModelName>,
    /// Set where the model has left for another name.
    pub(crate) renamed_to: Option<ModelName>,
}

/// Aliases that every model has.
pub(crate) const BUILT_IN_ALIASES: [&str; 3] = ["default", "first", "latest"];

impl Manifest {
    pub(crate) fn new(name: &ModelName) -> Manifest {
        Manifest {
            format: FORMAT,
            write_id: String::new(),
            name: name.clone(),
            model_id: uuid::Uuid::new_v4().to_string(),
            created_at: now(),
            next_version: 1,
            default_version: None,
            versions: Vec::new(),
            aliases: BTreeMap::new(),
            tags: BTreeMap::new(),
            comment: None,
            reservations: Vec::new(),
            renamed_from: None,
            renamed_to: None,
        }
    }

    /// Whether there is anything to predict with.
    pub fn has_versions(&self) -> bool {
        self.renamed_to.is_none() && !self.versions.is_empty()
    }

    /// The version of a number, an alias, or of nothing: the default.
    ///
    /// # Errors
    /// [`Error::VersionNotFound`] naming what there is.
    pub fn version(&self, wanted: &str) -> Result<&VersionEntry> {
        let number = match wanted {
            "" => self.default_version,
            wanted if wanted.eq_ignore_ascii_case("default") => self.default_version,
            wanted if wanted.eq_ignore_ascii_case("first") => self.versions.first().map(|entry| entry.version),
            wanted if wanted.eq_ignore_ascii_case("latest") => self.versions.last().map(|entry| entry.version),
            wanted => wanted.parse().ok().or_else(|| {
                let found = self.aliases.iter().find(|(alias, _)| alias.to_lowercase() == wanted.to_lowercase());
                found.map(|(_, version)| *version)
            }),
        };
        let found = number.and_then(|number| self.versions.iter().find(|entry| entry.version == number));
        found.ok_or_else(|| Error::VersionNotFound {
            name: self.name.to_string(),
            version: if wanted.is_empty() { "default".into() } else { wanted.to_string() },
            versions: self.versions.iter().map(|entry| entry.version).collect(),
            aliases: self.aliases.keys().cloned().collect(),
        })
    }

    /// Points an alias at a version; one of another case is the same alias.
    pub(crate) fn set_alias(&mut self, alias: &str, version: u32) {
        self.aliases.retain(|known, _| known.to_lowercase() != alias.to_lowercase());
        self.aliases.insert(alias.to_string(), version);
    }
}

/// # Errors
/// [`Error::InvalidAlias`] for what could be taken for a version, and for the aliases that every model has.
pub fn check_alias(alias: &str) -> Result<()> {
    let is_valid = !alias.trim().is_empty()
        && alias.chars().count() <= 64
        && !alias.chars().any(|c| c == '@' || c == '`' || c.is_control())
        && !alias.chars().all(|c| c.is_ascii_digit())
        && !BUILT_IN_ALIASES.iter().any(|known| alias.eq_ignore_ascii_case(known));
    if is_valid { Ok(()) } else { Err(Error::InvalidAlias { alias: alias.to_string() }) }
}

pub(crate) fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

/// Reads a manifest's bytes, the format before anything else.
pub(crate) fn decode(path: &str, content: &[u8]) -> Result<Manifest> {
    let corrupted = |detail: String| Error::Corrupted { path: path.to_string(), detail };
    check_format(path, content)?;
    serde_json::from_slice(content).map_err(|error| corrupted(error.to_string()))
}

/// # Errors
/// [`Error::UnknownFormat`], and [`Error::Corrupted`] for what is no JSON object with a format.
pub(crate) fn check_format(path: &str, content: &[u8]) -> Result<()> {
    #[derive(Deserialize)]
    struct Head {
        format: u64,
    }
    let head: Head = serde_json::from_slice(content)
        .map_err(|error| Error::Corrupted { path: path.to_string(), detail: error.to_string() })?;
    if head.format == 0 || head.format > u64::from(FORMAT) {
        return Err(Error::UnknownFormat { path: path.to_string(), found: head.format, supported: FORMAT });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_by_number_and_alias() {
        let mut manifest = Manifest::new(&ModelName::new("default", "m").unwrap());
        let entry = |version| VersionEntry {
            version,
            folder: String::new(),
            training_id: String::new(),
            created_at: now(),
            created_by: String::new(),
        };
        manifest.versions = vec![entry(1), entry(3), entry(4)];
        manifest.default_version = Some(3);
        manifest.set_alias("Champion", 1);
        let number = |wanted: &str| manifest.version(wanted).map(|entry| entry.version);
        for (wanted, expected) in [("", 3), ("default", 3), ("first", 1), ("LATEST", 4), ("4", 4), ("champion", 1)] {
            assert_eq!(number(wanted).unwrap(), expected, "{wanted}");
        }
        let error = number("9").unwrap_err();
        assert!(matches!(error, Error::VersionNotFound { versions, .. } if versions == [1, 3, 4]));
    }

    #[test]
    fn an_alias_cannot_be_taken_for_a_version() {
        for alias in ["7", "default", "First", "LATEST", "a@b", "", " "] {
            assert!(check_alias(alias).is_err(), "{alias}");
        }
        assert!(check_alias("champion-2").is_ok());
    }

    #[test]
    fn the_format_is_read_before_anything_else() {
        let read = |text: &str| decode("m", text.as_bytes()).unwrap_err();
        assert!(matches!(read("{\"format\": 2, \"odd\": true}"), Error::UnknownFormat { found: 2, .. }));
        assert!(matches!(read("{\"format\": 1}"), Error::Corrupted { .. }));
        assert!(matches!(read("{\"form"), Error::Corrupted { .. }));
    }
}
