//! A client's session: its engine session, its models, its operations, and the errors whose details it may ask for.

mod registry;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use spark_connect_proto::Plan;
use tracing::info;

use crate::artifact::Artifacts;
use crate::error::Report;
use crate::operation::{NewOperation, OperationState};
use crate::response::StreamLimits;
use crate::{Error, Operation, Options, Result, Services};

pub use registry::{SessionRef, Sessions, is_uuid};

pub struct Session {
    pub id: String,
    pub user: String,
    /// Tells this session from one of the same id in an earlier run of the server.
    pub server_session_id: String,
    pub engine: Arc<engine::embedded::Session>,
    pub models: crate::ml::ModelCache,
    pub services: Arc<Services>,
    pub(crate) artifacts: Artifacts,
    operations: Mutex<Operations>,
    /// Oldest first.
    errors: Mutex<VecDeque<Arc<Report>>>,
    last_used: Mutex<Instant>,
}

/// Ended operations that a session remembers at most, however recent.
const ENDED_MAX: usize = 10_000;

#[derive(Default)]
struct Operations {
    live: HashMap<String, Arc<Operation>>,
    /// Those that were dropped: how they ended and when.
    ended: HashMap<String, Ended>,
    /// The ids of `ended`, oldest first.
    ended_order: VecDeque<String>,
    is_closed: bool,
}

struct Ended {
    state: OperationState,
    /// Dropped because nobody read its results.
    is_abandoned: bool,
    at: Instant,
}

impl Operations {
    fn forget_oldest(&mut self) {
        if let Some(id) = self.ended_order.pop_front() {
            self.ended.remove(&id);
        }
    }

    fn forget_before(&mut self, now: Instant, age_max: Duration) {
        while let Some(oldest) = self.ended_order.front().and_then(|id| self.ended.get(id))
            && now.saturating_duration_since(oldest.at) >= age_max
        {
            self.forget_oldest();
        }
    }
}

/// An operation's request, as far as the session is concerned.
pub struct OperationRequest {
    pub id: String,
    pub tags: Vec<String>,
    pub is_reattachable: bool,
    pub plan: Option<Plan>,
}

/// What a request for an operation found.
pub enum Begun {
    New(Arc<Operation>),
    /// The same request again: the client did not see that the first one came through.
    Repeated(Arc<Operation>),
}

impl Session {
    pub(crate) fn new(
        id: String,
        user: String,
        engine: Arc<engine::embedded::Session>,
        models: crate::ml::ModelCache,
        services: Arc<Services>,
    ) -> Session {
        let artifacts = Artifacts::new(services.options.artifact_bytes_max);
        Session {
            id,
            user,
            server_session_id: uuid::Uuid::new_v4().to_string(),
            engine,
            models,
            services,
            artifacts,
            operations: Mutex::default(),
            errors: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
        }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.services.options
    }

    /// Registers an operation.
    ///
    /// # Errors
    /// [`Error::OperationExists`] for an id that another request has, [`Error::OperationAbandoned`] for one that was
    /// dropped, [`Error::SessionClosed`].
    pub(crate) fn begin(&self, request: OperationRequest) -> Result<Begun> {
        let mut operations = self.operations.lock();
        if operations.is_closed {
            return Err(Error::SessionClosed { id: self.id.clone() });
        }
        if let Some(operation) = operations.live.get(&request.id) {
            let is_same = operation.is_reattachable && request.is_reattachable && operation.plan == request.plan;
            return if is_same {
                Ok(Begun::Repeated(Arc::clone(operation)))
            } else {
                Err(Error::OperationExists { id: request.id })
            };
        }
        match operations.ended.get(&request.id) {
            Some(ended) if ended.is_abandoned => return Err(Error::OperationAbandoned { id: request.id }),
            Some(_) => return Err(Error::OperationExists { id: request.id }),
            None => {}
        }
        let new = NewOperation {
            id: request.id.clone(),
            tags: request.tags,
            is_reattachable: request.is_reattachable,
            plan: request.plan,
            session_id: self.id.clone(),
            server_session_id: self.server_session_id.clone(),
        };
        let operation = Arc::new(Operation::new(new, self.options()));
        operations.live.insert(request.id, Arc::clone(&operation));
        Ok(Begun::New(operation))
    }

    /// # Errors
    /// [`Error::OperationNotFound`], [`Error::OperationAbandoned`].
    pub(crate) fn operation(&self, id: &str) -> Result<Arc<Operation>> {
        let operations = self.operations.lock();
        match (operations.live.get(id), operations.ended.get(id)) {
            (Some(operation), _) => Ok(Arc::clone(operation)),
            (None, Some(ended)) if ended.is_abandoned => Err(Error::OperationAbandoned { id: id.to_string() }),
            (None, _) => Err(Error::OperationNotFound { id: id.to_string() }),
        }
    }

    /// Drops an operation, cancelling it if it still runs; its state can be asked for a while longer.
    pub(crate) fn drop_operation(&self, id: &str) -> Option<Arc<Operation>> {
        self.retire(id, false)
    }

    fn retire(&self, id: &str, is_abandoned: bool) -> Option<Arc<Operation>> {
        let mut operations = self.operations.lock();
        let operation = operations.live.remove(id)?;
        let state = match operation.state() {
            OperationState::Running | OperationState::Terminating => OperationState::Cancelled,
            state => state,
        };
        operations.ended.insert(id.to_string(), Ended { state, is_abandoned, at: Instant::now() });
        operations.ended_order.push_back(id.to_string());
        while operations.ended_order.len() > ENDED_MAX {
            operations.forget_oldest();
        }
        drop(operations);
        operation.abandon();
        Some(operation)
    }

    /// Cancels the running operations that `select` picks; returns their ids.
    pub(crate) fn interrupt(&self, select: impl Fn(&Operation) -> bool) -> Vec<String> {
        let operations = self.operations.lock();
        let selected = operations.live.values().filter(|operation| operation.is_running() && select(operation));
        selected
            .map(|operation| {
                operation.cancel();
                operation.id.clone()
            })
            .collect()
    }

    /// The states of the operations with these ids, or of all; None for an id this session does not know.
    pub(crate) fn operation_states(&self, ids: &[String]) -> Vec<(String, Option<OperationState>)> {
        let operations = self.operations.lock();
        let state = |id: &String| match (operations.live.get(id), operations.ended.get(id)) {
            (Some(operation), _) => Some(operation.state()),
            (None, Some(ended)) => Some(ended.state),
            (None, None) => None,
        };
        if ids.is_empty() {
            let all = operations.live.keys().chain(operations.ended.keys());
            return all.map(|id| (id.clone(), state(id))).collect();
        }
        ids.iter().map(|id| (id.clone(), state(id))).collect()
    }

    /// Keeps an error for a client that asks for its details.
    pub(crate) fn keep_error(&self, report: Arc<Report>) {
        let mut errors = self.errors.lock();
        errors.push_back(report);
        while errors.len() > self.options().errors_max {
            errors.pop_front();
        }
    }

    pub(crate) fn error(&self, id: &str) -> Option<Arc<Report>> {
        self.errors.lock().iter().find(|report| report.id == id).cloned()
    }

    pub(crate) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// For how long nothing was asked of the session; zero while an operation runs.
    pub(crate) fn idle_for(&self, now: Instant) -> Duration {
        if self.operations.lock().live.values().any(|operation| operation.is_running()) {
            return Duration::ZERO;
        }
        now.saturating_duration_since(*self.last_used.lock())
    }

    /// Drops operations that nobody reads, and forgets those that ended long ago.
    pub(crate) fn sweep(&self, now: Instant) {
        let options = self.options();
        let dropped: Vec<(String, bool)> = {
            let mut operations = self.operations.lock();
            operations.forget_before(now, options.ended_operation_timeout);
            let detached = operations.live.values().filter_map(|operation| {
                let detached = operation.log.detached_for(now)?;
                // Nobody can come back to the stream of an operation that is not reattachable.
                let is_over = !operation.is_reattachable && !operation.is_running();
                let is_old = detached > options.detached_timeout;
                (is_old || (is_over && detached > Duration::from_secs(1))).then(|| (operation.id.clone(), !is_over))
            });
            detached.collect()
        };
        for (id, is_abandoned) in dropped {
            if is_abandoned {
                info!(session_id = self.id, operation_id = id, "operation dropped, nobody read its results");
            }
            self.retire(&id, is_abandoned);
        }
    }

    /// Ends all operations, and lets none begin.
    pub(crate) fn close(&self) {
        let operations: Vec<Arc<Operation>> = {
            let mut operations = self.operations.lock();
            operations.is_closed = true;
            operations.live.drain().map(|(_, operation)| operation).collect()
        };
        for operation in operations {
            operation.abandon();
        }
    }

    /// When a stream ends before its operation: what the session's configuration says.
    pub(crate) fn stream_limits(&self) -> StreamLimits {
        let conf = self.engine.conf();
        let duration = conf.get("spark.connect.execute.reattachable.senderMaxStreamDuration");
        let size = conf.get("spark.connect.execute.reattachable.senderMaxStreamSize");
        StreamLimits {
            // Zero or less means no limit, as in Spark.
            duration_max: Some(duration.as_deref().and_then(parse_duration).unwrap_or(Duration::from_secs(120)))
                .filter(|duration| !duration.is_zero()),
            bytes_max: Some(size.as_deref().and_then(parse_bytes).unwrap_or(1 << 30)).filter(|bytes| *bytes > 0),
        }
    }
}

/// Reads Spark's spelling of a time: `2m`, `1s`, `500ms`; a number alone is milliseconds.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let milliseconds = match unit.trim() {
        "us" => return Some(Duration::from_micros(number)),
        "" | "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => return None,
    };
    number.checked_mul(milliseconds).map(Duration::from_millis)
}

/// Reads Spark's spelling of a size: `1g`, `4m`, `123`.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        "t" | "tb" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_read_as_spark_spells_them() {
        assert_eq!(parse_duration("2m"), Some(Duration::from_secs(120)));
        assert_eq!(parse_duration(" 1s "), Some(Duration::from_secs(1)));
        assert_eq!(parse_duration("250"), Some(Duration::from_millis(250)));
        assert_eq!(parse_duration("soon"), None);
        assert_eq!(parse_bytes("123"), Some(123));
        assert_eq!(parse_bytes("4m"), Some(4 << 20));
        assert_eq!(parse_bytes("1gb"), Some(1 << 30));
        assert_eq!(parse_bytes("99999999999t"), None);
    }
}
