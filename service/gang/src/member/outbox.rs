//! What a rank wants to tell and has not sent yet. Bounded: the rank never waits, the oldest lines are dropped.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::Failure;
use crate::error::Result;
use crate::event::Progress;
use crate::wire::{self, Report};

const OUTGOING_MAX: usize = 1024;

#[derive(Default)]
pub struct Outbox {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    outgoing: VecDeque<Outgoing>,
    lines_dropped: u64,
    outcome: Option<Outcome>,
    finishing: bool,
    closed: bool,
}

pub enum Outgoing {
    Progress(Progress),
    Log(String),
    Record(Bytes),
}

pub struct Outcome {
    pub result: std::result::Result<Bytes, Failure>,
    pub reply: oneshot::Sender<Result<()>>,
}

/// The next thing to do for whoever empties the outbox.
pub enum Next {
    Send(Report),
    /// Everything before it was sent.
    Finish(Outcome),
    /// The member is gone without an outcome.
    Close,
}

impl Outbox {
    pub fn push(&self, outgoing: Outgoing) {
        let mut inner = self.inner.lock();
        if inner.finishing || inner.closed {
            return;
        }
        if inner.outgoing.len() == OUTGOING_MAX
            && let Some(Outgoing::Log(_)) = inner.outgoing.pop_front()
        {
            inner.lines_dropped += 1;
        }
        inner.outgoing.push_back(outgoing);
        drop(inner);
        self.changed.notify_one();
    }

    pub fn finish(&self, result: std::result::Result<Bytes, Failure>, reply: oneshot::Sender<Result<()>>) {
        let mut inner = self.inner.lock();
        inner.finishing = true;
        inner.outcome = Some(Outcome { result, reply });
        drop(inner);
        self.changed.notify_one();
    }

    /// Notes that the member is gone. One that has finished is awaited all the same.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.changed.notify_one();
    }

    /// Whether the member is gone.
    pub fn is_closed(&self) -> bool {
        self.inner.lock().closed
    }

    pub async fn next(&self) -> Next {
        loop {
            let changed = self.changed.notified();
            if let Some(next) = self.inner.lock().pop() {
                return next;
            }
            changed.await;
        }
    }
}

impl Inner {
    fn pop(&mut self) -> Option<Next> {
        if self.lines_dropped > 0 {
            let line = format!("[{} lines dropped: the coordinator is slow]", self.lines_dropped);
            self.lines_dropped = 0;
            return Some(Next::Send(Report::Log(line)));
        }
        if let Some(outgoing) = self.outgoing.pop_front() {
            return Some(Next::Send(match outgoing {
                Outgoing::Progress(progress) => Report::Progress(progress.into()),
                Outgoing::Log(line) => Report::Log(wire::cut(line, wire::LINE_BYTES_MAX)),
                Outgoing::Record(record) => Report::Record(record),
            }));
        }
        if let Some(outcome) = self.outcome.take() {
            return Some(Next::Finish(outcome));
        }
        (self.closed && !self.finishing).then_some(Next::Close)
    }
}
