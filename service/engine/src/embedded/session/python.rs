//! The Python functions of a session: where they run, and the files they need.

use std::sync::Arc;

use spark_connect_proto::CommonInlineUserDefinedFunction;

use super::Session;
use crate::embedded::python::{Functions, Host, PythonFunction, SessionFiles};
use crate::{Error, Result};

impl Session {
    /// Where the session's functions run, under the configuration it has now.
    pub(in crate::embedded) fn python_host(&self) -> Option<Arc<Host>> {
        let files = self.python.as_ref()?;
        let workers = self.engine.options().python.clone()?;
        Some(Arc::new(Host::new(workers, Arc::clone(files), &self.conf.read())))
    }

    pub(in crate::embedded) fn functions(&self) -> Functions {
        Arc::clone(&self.functions.read())
    }

    /// Gives a function a name, by which SQL and expressions call it from now on.
    ///
    /// # Errors
    /// [`Error::PythonOff`], and those of [`PythonFunction::from_proto`].
    pub fn register_function(&self, message: &CommonInlineUserDefinedFunction) -> Result<()> {
        let function = PythonFunction::from_proto(message)?;
        self.python_files()?;
        let mut functions = self.functions.write();
        Arc::make_mut(&mut functions).insert(function.name.to_lowercase(), function);
        Ok(())
    }

    /// The files that its functions import and open.
    ///
    /// # Errors
    /// [`Error::PythonOff`].
    pub fn python_files(&self) -> Result<&SessionFiles> {
        self.python.as_deref().ok_or(Error::PythonOff)
    }
}
