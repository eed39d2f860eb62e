//! All sessions of the server, by user and id.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use spark_connect_proto::UserContext;
use tracing::{info, warn};
use uuid::Uuid;

use super::Session;
use crate::{Error, Result, Services};

/// What a call says of the session it is for.
#[derive(Debug)]
pub struct SessionRef<'a> {
    pub id: &'a str,
    pub user: Option<&'a UserContext>,
    /// The server session id that the client saw before.
    pub observed: Option<&'a str>,
}

/// Tells clients where the records of jobs are.
const JOBS_DIR_KEY: &str = "spark.phalanx.jobs.dir";

type Key = (String, String);

pub struct Sessions {
    services: Arc<Services>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: HashMap<Key, Arc<Session>>,
    /// Ids that were released or timed out, and when: they do not come back.
    closed: HashMap<Key, Instant>,
}

impl Sessions {
    pub fn new(services: Arc<Services>) -> Sessions {
        Sessions { services, state: Mutex::default() }
    }

    /// The session of a call, made if it is the first.
    ///
    /// # Errors
    /// [`Error::MalformedHandle`], [`Error::SessionClosed`], [`Error::SessionChanged`], and what the engine says.
    pub fn get_or_create(&self, call: &SessionRef<'_>) -> Result<Arc<Session>> {
        let key = key(call)?;
        let session = {
            let mut state = self.state.lock();
            match state.open.get(&key) {
                Some(session) => Arc::clone(session),
                None if state.closed.contains_key(&key) => return Err(Error::SessionClosed { id: key.1 }),
                // A client that saw a server session before must not silently go on in an empty one.
                None if call.observed.is_some_and(|observed| !observed.is_empty()) => {
                    return Err(Error::SessionChanged { id: key.1 });
                }
                None => {
                    let session = self.create(&key);
                    info!(session_id = session.id, user = session.user, "session opened");
                    state.open.insert(key, Arc::clone(&session));
                    self.count(&state);
                    session
                }
            }
        };
        same_server_session(&session, call)?;
        session.touch();
        Ok(session)
    }

    /// The session of a call that makes none.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], and those of [`Sessions::get_or_create`].
    pub fn get(&self, call: &SessionRef<'_>) -> Result<Arc<Session>> {
        let key = key(call)?;
        let session = {
            let state = self.state.lock();
            match state.open.get(&key) {
                Some(session) => Arc::clone(session),
                None if state.closed.contains_key(&key) => return Err(Error::SessionClosed { id: key.1 }),
                None => return Err(Error::SessionNotFound { id: key.1 }),
            }
        };
        same_server_session(&session, call)?;
        session.touch();
        Ok(session)
    }

    fn count(&self, state: &State) {
        self.services.metrics.sessions.set(state.open.len() as i64);
    }

    fn create(&self, key: &Key) -> Arc<Session> {
        let (user, id) = key.clone();
        let engine = engine::embedded::Session::new(&self.services.engine, &user);
        if let Some(jobs) = &self.services.jobs
            && let Err(error) = engine.set_conf(JOBS_DIR_KEY, &jobs.path().to_string_lossy())
        {
            warn!(session_id = id, %error, "a session cannot be told where jobs are recorded");
        }
        let models = crate::ml::ModelCache::default();
        Arc::new(Session::new(id, user, engine, models, Arc::clone(&self.services)))
    }

    /// Ends a session; with `allow_reconnect` its id may be used again. The session, if it was open.
    ///
    /// # Errors
    /// [`Error::MalformedHandle`].
    pub fn release(&self, call: &SessionRef<'_>, allow_reconnect: bool) -> Result<Option<Arc<Session>>> {
        let key = key(call)?;
        let session = {
            let mut state = self.state.lock();
            let session = state.open.remove(&key);
            self.count(&state);
            if !allow_reconnect {
                state.closed.insert(key, Instant::now());
            }
            session
        };
        if let Some(session) = &session {
            session.close();
            info!(session_id = session.id, user = session.user, "session released");
        }
        Ok(session)
    }

    /// Opens a copy of `source` under a new id.
    ///
    /// # Errors
    /// [`Error::CloneTargetMalformed`], [`Error::CloneTargetClosed`], [`Error::CloneTargetExists`].
    pub fn insert_clone(&self, source: &Session, id: String) -> Result<Arc<Session>> {
        if Uuid::try_parse(&id).is_err() {
            return Err(Error::CloneTargetMalformed { id });
        }
        let key = (source.user.clone(), id.clone());
        let mut state = self.state.lock();
        if state.closed.contains_key(&key) {
            return Err(Error::CloneTargetClosed { id });
        }
        if state.open.contains_key(&key) {
            return Err(Error::CloneTargetExists { id });
        }
        let engine = source.engine.clone_session()?;
        let models = crate::ml::ModelCache::default();
        let clone = Arc::new(Session::new(id, source.user.clone(), engine, models, Arc::clone(&self.services)));
        clone.artifacts.copy_from(&source.artifacts);
        state.open.insert(key, Arc::clone(&clone));
        self.count(&state);
        Ok(clone)
    }

    /// Ends what nobody has used for too long.
    pub fn sweep(&self, now: Instant) {
        let options = &self.services.options;
        let (sessions, idle) = {
            let mut state = self.state.lock();
            state.closed.retain(|_, at| now.saturating_duration_since(*at) < options.closed_session_timeout);
            let is_idle = |session: &Arc<Session>| session.idle_for(now) > options.session_idle_timeout;
            let keys: Vec<Key> =
                state.open.iter().filter(|(_, session)| is_idle(session)).map(|(key, _)| key.clone()).collect();
            let mut idle = Vec::new();
            for key in keys {
                idle.extend(state.open.remove(&key));
                state.closed.insert(key, now);
            }
            self.count(&state);
            (state.open.values().cloned().collect::<Vec<_>>(), idle)
        };
        for session in sessions {
            session.sweep(now);
        }
        for session in idle {
            session.close();
            info!(session_id = session.id, user = session.user, "session ended, nobody used it");
        }
    }

    /// Ends all sessions: the server stops.
    pub fn close(&self) {
        let sessions: Vec<Arc<Session>> = self.state.lock().open.drain().map(|(_, session)| session).collect();
        for session in sessions {
            session.close();
        }
    }
}

fn key(call: &SessionRef<'_>) -> Result<Key> {
    if !is_uuid(call.id) {
        return Err(Error::MalformedHandle { handle: call.id.to_string() });
    }
    let user = call.user.map(|user| user.user_id.clone()).unwrap_or_default();
    Ok((user, call.id.to_string()))
}

/// Whether it is a UUID in its hyphenated form, the only one that Spark takes.
pub fn is_uuid(id: &str) -> bool {
    id.len() == 36 && Uuid::try_parse(id).is_ok()
}

fn same_server_session(session: &Session, call: &SessionRef<'_>) -> Result<()> {
    match call.observed {
        Some(observed) if !observed.is_empty() && observed != session.server_session_id => {
            Err(Error::SessionChanged { id: session.id.clone() })
        }
        _ => Ok(()),
    }
}
