//! Names of models: a schema and a name, matched whatever their case.

use object_store::path::Path;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Longer names do not fit a file's name once they are escaped.
const CHARACTERS_MAX: usize = 64;

/// A model's schema and name, as they are spelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelName {
    pub schema: String,
    pub name: String,
}

impl ModelName {
    /// # Errors
    /// [`Error::InvalidName`]
    pub fn new(schema: &str, name: &str) -> Result<ModelName> {
        for part in [schema, name] {
            let invalid = |detail| Err(Error::InvalidName { name: part.to_string(), detail });
            if part.trim().is_empty() {
                return invalid("it is empty");
            }
            if part.chars().count() > CHARACTERS_MAX {
                return invalid("it has more than 64 characters");
            }
            if part.chars().any(char::is_control) {
                return invalid("it has control characters");
            }
        }
        Ok(ModelName { schema: schema.to_string(), name: name.to_string() })
    }

    /// Whether both name the same model.
    pub fn is_same(&self, other: &ModelName) -> bool {
        self.key() == other.key()
    }

    fn key(&self) -> (String, String) {
        (self.schema.to_lowercase(), self.name.to_lowercase())
    }

    /// Where its manifests are. Whatever a path cannot hold is escaped.
    pub(crate) fn folder(&self, root: &Path) -> Path {
        let (schema, name) = self.key();
        root.clone().join("models").join(schema).join(name)
    }
}

/// `schema.name`
impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_out_of_its_folder() {
        for name in ["..", ".", "a/b", "a\\b", "%2e"] {
            let folder = ModelName::new("default", name).unwrap().folder(&Path::from("root"));
            assert_eq!(folder.parts().count(), 4, "{folder}");
            assert!(folder.as_ref().starts_with("root/models/default/"), "{folder}");
            assert!(!folder.as_ref().ends_with('.'), "{folder}");
        }
        assert!(ModelName::new("default", " ").is_err());
        assert!(ModelName::new("default", "a\0").is_err());
    }

    #[test]
    fn case_does_not_tell_models_apart() {
        let name = |text| ModelName::new("Db", text).unwrap();
        assert!(name("Churn").is_same(&name("cHURN")));
        assert_eq!(name("Churn").folder(&Path::default()), name("churn").folder(&Path::default()));
    }
}
