//! What one resolution knows: the session's rules, fresh names, and the subqueries resolved so far.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::Frame;
use super::python::{Functions, Host, PythonFunction};
use crate::{Conf, Error, Result};

/// Shared by the resolution of a relation and of the expressions in it.
#[derive(Debug)]
pub struct ResolveContext {
    /// A copy of the session's configuration, taken when the resolution began.
    pub conf: Conf,
    next_column: AtomicU64,
    /// Frames of `WithRelations.references`, by the plan id that expressions refer to them with.
    pub references: Mutex<HashMap<i64, Frame>>,
    /// Where Python functions run; None: nowhere.
    python: Option<Arc<Host>>,
    functions: Functions,
}

/// Column names must not repeat across resolutions either: a cached frame is joined with a later one.
static RESOLUTIONS: AtomicU64 = AtomicU64::new(1);

impl ResolveContext {
    pub fn new(conf: Conf) -> ResolveContext {
        let resolution = RESOLUTIONS.fetch_add(1, Ordering::Relaxed);
        ResolveContext { conf, next_column: AtomicU64::new(resolution << 24), references: Mutex::default(), python: None, functions: Functions::default() }
    }

    pub fn with_python(self, python: Option<Arc<Host>>, functions: Functions) -> ResolveContext {
        ResolveContext { python, functions, ..self }
    }

    /// The registered function of a name.
    pub fn function(&self, name: &str) -> Option<&PythonFunction> {
        let lower = name.to_lowercase();
        self.functions.get(lower.strip_prefix("system.session.").unwrap_or(&lower))
    }

    /// Where Python functions run.
    ///
    /// # Errors
    /// [`Error::PythonOff`].
    pub fn python(&self) -> Result<Arc<Host>> {
        self.python.clone().ok_or(Error::PythonOff)
    }

    /// A column name that no plan of this process has.
    pub fn fresh_name(&self) -> String {
        format!("#{:x}", self.next_column.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether two column names are the same under the session's case rule.
    pub fn same_name(&self, left: &str, right: &str) -> bool {
        if self.conf.case_sensitive() { left == right } else { left.to_lowercase() == right.to_lowercase() }
    }
}
