//! One client's session: its configuration, views, persisted relations and artifacts; and what can be done in it.

mod artifacts;
mod command;
mod database;
mod explain;
mod python;
mod run;
mod sql;
mod table;
mod views;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use datafusion::execution::session_state::SessionState;
use parking_lot::RwLock;
use spark_connect_proto::{Relation, StorageLevel};

pub use self::artifacts::Artifacts;
pub(super) use self::run::execute;
pub use self::sql::SqlOutcome;
pub use self::table::Table;

use super::operator::CacheNode;
use super::python::{Functions, SessionFiles};
use super::relation::Resolution;
use super::{Engine, Extensions, Frame};
use crate::{Conf, Error, Result};

/// The one catalog.
pub const CATALOG: &str = "spark_catalog";
pub const DEFAULT_DATABASE: &str = "default";

#[derive(Debug)]
pub struct Session {
    engine: Arc<Engine>,
    user: String,
    conf: RwLock<Conf>,
    /// Temporary views by lower-case name.
    views: RwLock<BTreeMap<String, Frame>>,
    database: RwLock<String>,
    persisted: RwLock<Vec<Persisted>>,
    /// Frames that the client holds by an id: checkpoints.
    remotes: RwLock<HashMap<String, Frame>>,
    artifacts: RwLock<HashMap<String, Bytes>>,
    /// Registered functions by lower-case name.
    functions: RwLock<Functions>,
    /// The files of its Python functions; None where the server runs none.
    python: Option<Arc<SessionFiles>>,
}

/// A relation that the client asked to keep.
#[derive(Debug, Clone)]
struct Persisted {
    relation: Relation,
    level: StorageLevel,
    /// Set when the relation is resolved for the first time.
    frame: Option<Frame>,
}

impl Session {
    pub fn new(engine: &Arc<Engine>, user: &str) -> Arc<Session> {
        Arc::new(Session {
            engine: Arc::clone(engine),
            user: user.to_owned(),
            conf: RwLock::new(Conf::new()),
            views: RwLock::default(),
            database: RwLock::new(DEFAULT_DATABASE.to_owned()),
            persisted: RwLock::default(),
            remotes: RwLock::default(),
            artifacts: RwLock::default(),
            functions: RwLock::default(),
            python: engine.options().python.clone().map(|workers| Arc::new(SessionFiles::new(workers))),
        })
    }

    /// A session of its own that begins with what this one has.
    ///
    /// # Errors
    /// The files of its Python functions cannot be copied.
    pub fn clone_session(&self) -> Result<Arc<Session>> {
        let python = self.python.as_ref().map(|files| files.copied()).transpose()?.map(Arc::new);
        Ok(Arc::new(Session {
            engine: Arc::clone(&self.engine),
            user: self.user.clone(),
            conf: RwLock::new(self.conf()),
            views: RwLock::new(self.views.read().clone()),
            database: RwLock::new(self.database.read().clone()),
            persisted: RwLock::new(self.persisted.read().clone()),
            remotes: RwLock::new(self.remotes.read().clone()),
            artifacts: RwLock::new(self.artifacts.read().clone()),
            functions: RwLock::new(Arc::clone(&self.functions.read())),
            python,
        }))
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn user(&self) -> &str {
        &self.user
    }

    /// A copy of the configuration.
    pub fn conf(&self) -> Conf {
        self.conf.read().clone()
    }

    /// # Errors
    /// Those of [`Conf::set`].
    pub fn set_conf(&self, key: &str, value: &str) -> Result<()> {
        self.conf.write().set(key, value)
    }

    /// # Errors
    /// Those of [`Conf::unset`].
    pub fn unset_conf(&self, key: &str) -> Result<()> {
        self.conf.write().unset(key)
    }

    /// Resolves a relation to a plan; nothing of it runs, except where its own schema depends on rows (a pivot without
    /// values), or it is a text (`show`).
    ///
    /// # Errors
    /// Whatever is wrong with the plan; see [`Error`].
    pub async fn resolve(&self, relation: &Relation, extensions: &dyn Extensions) -> Result<Frame> {
        let resolution = Resolution::new(self, extensions);
        Box::pin(resolution.relation(relation, &[])).await
    }

    /// DataFusion's state for a resolution or a run.
    pub(crate) fn state(&self) -> SessionState {
        self.engine.state.clone()
    }

    /// Keeps the rows of a relation once they are computed, for later plans that contain it.
    pub fn persist(&self, relation: &Relation, level: StorageLevel) {
        let mut persisted = self.persisted.write();
        match persisted.iter_mut().find(|known| &known.relation == relation) {
            Some(known) => known.level = level,
            None => persisted.push(Persisted { relation: relation.clone(), level, frame: None }),
        }
    }

    pub fn unpersist(&self, relation: &Relation) {
        self.persisted.write().retain(|known| &known.relation != relation);
    }

    pub fn unpersist_all(&self) {
        self.persisted.write().clear();
    }

    /// The storage level of a persisted relation; none of its flags is set when it is not persisted.
    pub fn storage_level(&self, relation: &Relation) -> StorageLevel {
        let persisted = self.persisted.read();
        let found = persisted.iter().find(|known| &known.relation == relation);
        found.map_or(StorageLevel { replication: 1, ..StorageLevel::default() }, |known| known.level)
    }

    /// The frame of a persisted relation that was resolved before.
    pub(super) fn cached(&self, relation: &Relation) -> Option<Frame> {
        let persisted = self.persisted.read();
        persisted.iter().find(|known| &known.relation == relation).and_then(|known| known.frame.clone())
    }

    /// Puts the keeper of rows over the frame of a relation that is to be persisted.
    pub(super) fn keep(&self, relation: &Relation, frame: Frame) -> Frame {
        if self.persisted.read().is_empty() {
            return frame;
        }
        let mut persisted = self.persisted.write();
        match persisted.iter_mut().find(|known| &known.relation == relation) {
            Some(known) if known.frame.is_none() => {
                let frame = Frame { plan: CacheNode::plan(frame.plan), columns: frame.columns };
                known.frame = Some(frame.clone());
                frame
            }
            _ => frame,
        }
    }

    /// Keeps the rows of a frame under an id that plans can refer to, as a checkpoint does.
    pub fn put_remote(&self, id: &str, frame: Frame) {
        let frame = Frame { plan: CacheNode::plan(frame.plan), columns: frame.columns };
        self.remotes.write().insert(id.to_owned(), frame);
    }

    pub fn remove_remote(&self, id: &str) -> bool {
        self.remotes.write().remove(id).is_some()
    }

    pub(super) fn remote(&self, id: &str) -> Result<Frame> {
        let found = self.remotes.read().get(id).cloned();
        found.ok_or_else(|| Error::InvalidPlan { detail: format!("No DataFrame with id {id} is found in the session") })
    }
}
