//! The Python functions of a session: where they run, and the files they need.

use std::sync::Arc;

use super::Session;
use crate::embedded::python::{Host, SessionFiles};
use crate::{Error, Result};

impl Session {
    /// Where the session's functions run, under the configuration it has now.
    pub(in crate::embedded) fn python_host(&self) -> Option<Arc<Host>> {
        let files = self.python.as_ref()?;
        let workers = self.engine.options().python.clone()?;
        Some(Arc::new(Host::new(workers, Arc::clone(files), &self.conf.read())))
    }

    /// The files that its functions import and open.
    ///
    /// # Errors
    /// [`Error::PythonOff`].
    pub fn python_files(&self) -> Result<&SessionFiles> {
        self.python.as_deref().ok_or(Error::PythonOff)
    }
}
