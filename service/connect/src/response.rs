//! The responses of one operation: kept until they are released, so that a client that lost its stream can go on.
//!
//! A producer ([`ResponseLog::push`]) waits while too much is unsent; one stream at a time reads ([`ResponseLog::attach`]),
//! and a newer one takes over from an older. What was sent stays until the client releases it, or until there is too much
//! of it.

mod stream;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prost::Message;
use spark_connect_proto::ExecutePlanResponse;
use spark_connect_proto::execute_plan_response::ResponseType;
use tokio::sync::Notify;
use uuid::Uuid;

pub use stream::{ResponseStream, StreamLimits, stream};

use crate::error::Report;
use crate::{Error, Result};

/// How an operation ended.
#[derive(Debug, Clone)]
pub enum End {
    Completed,
    Failed(Arc<Report>),
}

#[derive(Debug)]
pub struct ResponseLog {
    /// Upper half of the response ids; the lower half is the index.
    id_base: u64,
    unsent_bytes_max: usize,
    sent_bytes_max: usize,
    state: Mutex<State>,
    /// Wakes the stream: a response, the end, a takeover.
    arrived: Notify,
    /// Wakes the producer: something was sent, or all was released.
    room: Notify,
}

#[derive(Debug)]
struct State {
    entries: VecDeque<Entry>,
    /// Index of the next response, from 1.
    next: u64,
    /// Highest index that a stream has taken; 0 at first.
    sent: u64,
    unsent_bytes: usize,
    sent_bytes: usize,
    end: Option<End>,
    /// Grows with each attached stream; only the last one is served.
    cursor: u64,
    /// Since when no stream is attached; None while one is.
    detached: Option<Instant>,
    /// Nobody will read any more.
    is_released: bool,
}

#[derive(Debug)]
struct Entry {
    index: u64,
    bytes: usize,
    is_progress: bool,
    response: ExecutePlanResponse,
}

/// What a stream gets next.
pub enum Next {
    Response(Box<ExecutePlanResponse>, usize),
    End(End),
    /// Another stream took over.
    Disconnected,
    /// Nothing came before the deadline.
    TimedOut,
    /// The client released all.
    Released,
}

/// A stream's place in the log.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    number: u64,
    /// Index of the last response that the stream has taken.
    after: u64,
}

impl ResponseLog {
    pub fn new(unsent_bytes_max: usize, sent_bytes_max: usize) -> ResponseLog {
        let (id_base, _) = Uuid::new_v4().as_u64_pair();
        let state = State {
            entries: VecDeque::new(),
            next: 1,
            sent: 0,
            unsent_bytes: 0,
            sent_bytes: 0,
            end: None,
            cursor: 0,
            detached: Some(Instant::now()),
            is_released: false,
        };
        ResponseLog {
            id_base,
            unsent_bytes_max,
            sent_bytes_max,
            state: Mutex::new(state),
            arrived: Notify::new(),
            room: Notify::new(),
        }
    }

    fn response_id(&self, index: u64) -> String {
        Uuid::from_u64_pair(self.id_base, index).to_string()
    }

    fn index(&self, response_id: &str) -> Option<u64> {
        let (base, index) = Uuid::parse_str(response_id).ok()?.as_u64_pair();
        (base == self.id_base).then_some(index)
    }

    /// Adds a response, once there is room for it.
    ///
    /// # Errors
    /// [`Error::Cancelled`] once nobody will read it.
    pub async fn push(&self, response: ExecutePlanResponse) -> Result<()> {
        loop {
            let room = self.room.notified();
            {
                let mut state = self.state.lock();
                if state.is_released || state.end.is_some() {
                    return Err(Error::Cancelled);
                }
                if state.unsent_bytes < self.unsent_bytes_max {
                    self.append(&mut state, response, false);
                    break;
                }
            }
            room.await;
        }
        self.arrived.notify_waiters();
        Ok(())
    }

    /// Adds a progress report; one that was not sent yet gives way to it, so that they never pile up.
    pub fn push_progress(&self, response: ExecutePlanResponse) {
        {
            let mut state = self.state.lock();
            if state.is_released || state.end.is_some() {
                return;
            }
            let sent = state.sent;
            match state.entries.back_mut() {
                Some(last) if last.is_progress && last.index > sent => {
                    last.response = ExecutePlanResponse { response_id: self.response_id(last.index), ..response };
                }
                _ => self.append(&mut state, response, true),
            }
        }
        self.arrived.notify_waiters();
    }

    fn append(&self, state: &mut State, mut response: ExecutePlanResponse, is_progress: bool) {
        let index = state.next;
        response.response_id = self.response_id(index);
        let bytes = response.encoded_len();
        state.next += 1;
        state.unsent_bytes += bytes;
        state.entries.push_back(Entry { index, bytes, is_progress, response });
    }

    /// Ends the log; the first end stays. A completed one that `completion` belongs to ends with that message.
    pub fn finish(&self, end: End, completion: Option<ExecutePlanResponse>) {
        {
            let mut state = self.state.lock();
            if state.end.is_some() {
                return;
            }
            if let Some(completion) = completion {
                self.append(&mut state, completion, false);
            }
            state.end = Some(end);
        }
        self.arrived.notify_waiters();
        self.room.notify_waiters();
    }

    /// Makes a stream that goes on after the response of this id (from the start without one) the only one served.
    ///
    /// # Errors
    /// [`Error::CursorNotFound`] for an id this operation never gave, [`Error::CursorNotAvailable`] where what follows is
    /// no longer kept.
    pub fn attach(&self, last_response_id: Option<&str>) -> Result<Cursor> {
        let cursor = {
            let mut state = self.state.lock();
            let after = match last_response_id {
                None => 0,
                Some(id) => match self.index(id) {
                    Some(index) if index > 0 && index < state.next => index,
                    _ => return Err(Error::CursorNotFound { response_id: id.to_string() }),
                },
            };
            let first_kept = state.entries.front().map_or(state.next, |entry| entry.index);
            if after + 1 < first_kept {
                let response_id = last_response_id.map_or_else(|| self.response_id(1), str::to_string);
                return Err(Error::CursorNotAvailable { response_id, index: after + 1 });
            }
            state.cursor += 1;
            state.detached = None;
            Cursor { number: state.cursor, after }
        };
        self.arrived.notify_waiters();
        Ok(cursor)
    }

    /// The next response after the cursor, which it moves on.
    pub async fn next(&self, cursor: &mut Cursor, deadline: Option<Instant>) -> Next {
        loop {
            let arrived = self.arrived.notified();
            if let Some(next) = self.take(cursor) {
                return next;
            }
            match deadline {
                None => arrived.await,
                Some(deadline) => {
                    if tokio::time::timeout_at(deadline.into(), arrived).await.is_err() {
                        return Next::TimedOut;
                    }
                }
            }
        }
    }

    fn take(&self, cursor: &mut Cursor) -> Option<Next> {
        let mut state = self.state.lock();
        if state.cursor != cursor.number {
            return Some(Next::Disconnected);
        }
        let index = cursor.after + 1;
        if index >= state.next {
            return match &state.end {
                Some(end) => Some(Next::End(end.clone())),
                None if state.is_released => Some(Next::Released),
                None => None,
            };
        }
        let first = state.entries.front().map_or(state.next, |entry| entry.index);
        let at = index.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        let Some(entry) = at.and_then(|at| state.entries.get(at)) else {
            // What this stream has not read was released under it.
            return Some(Next::Released);
        };
        let (bytes, response) = (entry.bytes, Box::new(entry.response.clone()));
        cursor.after = index;
        if index > state.sent {
            state.sent = index;
            state.unsent_bytes = state.unsent_bytes.saturating_sub(bytes);
            state.sent_bytes += bytes;
            self.drop_old(&mut state);
            self.room.notify_waiters();
        }
        Some(Next::Response(response, bytes))
    }

    /// Forgets the oldest sent responses while there are too many; the last sent one stays.
    fn drop_old(&self, state: &mut State) {
        while state.sent_bytes > self.sent_bytes_max
            && let Some(first) = state.entries.front()
            && first.index < state.sent
        {
            state.sent_bytes = state.sent_bytes.saturating_sub(first.bytes);
            state.entries.pop_front();
        }
    }

    /// The stream is gone; true if it was the one served.
    pub fn detach(&self, cursor: &Cursor) -> bool {
        let mut state = self.state.lock();
        let is_served = state.cursor == cursor.number;
        if is_served {
            state.detached = Some(Instant::now());
        }
        is_served
    }

    /// Forgets the responses up to and with this one; an unknown id changes nothing.
    pub fn release_until(&self, response_id: &str) {
        let Some(until) = self.index(response_id) else { return };
        {
            let mut state = self.state.lock();
            let until = until.min(state.sent);
            while let Some(first) = state.entries.front()
                && first.index <= until
            {
                state.sent_bytes = state.sent_bytes.saturating_sub(first.bytes);
                state.entries.pop_front();
            }
        }
        self.room.notify_waiters();
    }

    /// Forgets all responses, now and later.
    pub fn release_all(&self) {
        {
            let mut state = self.state.lock();
            state.is_released = true;
            state.entries.clear();
            (state.unsent_bytes, state.sent_bytes) = (0, 0);
        }
        self.arrived.notify_waiters();
        self.room.notify_waiters();
    }

    pub fn end(&self) -> Option<End> {
        self.state.lock().end.clone()
    }

    /// For how long no stream has been attached.
    pub fn detached_for(&self, now: Instant) -> Option<Duration> {
        self.state.lock().detached.map(|since| now.saturating_duration_since(since))
    }
}

/// The message that ends a reattachable stream.
pub fn result_complete() -> ResponseType {
    ResponseType::ResultComplete(spark_connect_proto::execute_plan_response::ResultComplete {})
}

#[cfg(test)]
mod tests;
