//! Temporary views, of a session and of the server.

use super::Session;
use crate::embedded::Frame;
use crate::embedded::expression::parse_name;
use crate::embedded::relation::visible_only;
use crate::{Error, Result};

impl Session {
    /// Gives a frame a name.
    ///
    /// # Errors
    /// [`Error::TempViewAlreadyExists`] unless `replace`.
    pub fn create_view(&self, name: &str, frame: Frame, replace: bool, global: bool) -> Result<()> {
        let parts = parse_name(name)?;
        let name = match parts.as_slice() {
            [name] => name.clone(),
            [database, name] if global && database.eq_ignore_ascii_case(&self.global_database()) => name.clone(),
            _ => return Err(Error::InvalidPlan { detail: format!("{name} is no valid name of a temporary view") }),
        };
        let frame = visible_only(frame)?;
        let mut views = if global { self.engine.global_views.write() } else { self.views.write() };
        let key = name.to_lowercase();
        if views.contains_key(&key) && !replace {
            return Err(Error::TempViewAlreadyExists { name });
        }
        views.insert(key, frame);
        Ok(())
    }

    /// Whether there was such a view.
    pub fn drop_view(&self, name: &str, global: bool) -> bool {
        let mut views = if global { self.engine.global_views.write() } else { self.views.write() };
        views.remove(&name.trim_matches('`').to_lowercase()).is_some()
    }

    /// The names of the temporary views; of the global ones if `global`.
    pub fn view_names(&self, global: bool) -> Vec<String> {
        let views = if global { self.engine.global_views.read() } else { self.views.read() };
        views.keys().cloned().collect()
    }

    /// The view of a name in parts, and the qualifiers its columns answer to.
    pub(in crate::embedded) fn view(&self, parts: &[String]) -> Option<(Frame, Vec<String>)> {
        match parts {
            [name] => {
                let frame = self.views.read().get(&name.to_lowercase()).cloned()?;
                Some((frame, vec![name.clone()]))
            }
            [database, name] if database.eq_ignore_ascii_case(&self.global_database()) => {
                let frame = self.engine.global_views.read().get(&name.to_lowercase()).cloned()?;
                Some((frame, vec![database.clone(), name.clone()]))
            }
            _ => None,
        }
    }

    pub fn global_database(&self) -> String {
        self.conf.read().get("spark.sql.globalTempDatabase").unwrap_or_else(|| "global_temp".to_owned())
    }
}
