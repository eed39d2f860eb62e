//! What a job tells its caller while it goes on, and the bounded feed that carries it.
//!
//! The coordinator and the log readers push without ever waiting. Log lines, records and progress are dropped, oldest first,
//! when the caller does not keep up; changes of state never are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::Error;

#[derive(Debug, Clone)]
pub enum Event {
    /// Waits for slots; sent again when the reason changes.
    Queued {
        reason: String,
    },
    /// Slots are held, the ranks of this generation are being launched.
    Starting {
        generation: u32,
    },
    /// All ranks of this generation have joined.
    Started {
        generation: u32,
    },
    /// This generation has failed, and the next one follows after a pause. No process of it is left.
    Restarting {
        generation: u32,
        cause: Error,
    },
    Progress {
        rank: usize,
        progress: Progress,
    },
    /// A line of a rank's standard output or error, or one it logged itself.
    Log {
        rank: usize,
        line: String,
    },
    /// Bytes of the rank program's own, which the control plane does not read. Dropped like log lines.
    Record {
        rank: usize,
        record: Bytes,
    },
    /// The last event of a job that succeeded: what rank 0 returned.
    Finished {
        output: Bytes,
    },
    /// The last event of a job that did not. No process of it is left, unless one could not be killed.
    Failed(Error),
}

/// How far a rank has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub step: u64,
    /// 0 when it is not known.
    pub steps_max: u64,
    pub rows: u64,
    /// NaN when there is none.
    pub loss: f64,
    pub metrics: Vec<(String, f64)>,
}

/// One job's feed: the coordinator writes events, the caller reads them, and may ask to cancel.
pub(crate) struct Feed {
    inner: Mutex<Inner>,
    /// Wakes the caller.
    ready: Notify,
    /// Wakes the coordinator's loop.
    wake: Arc<Notify>,
    events_max: usize,
}

#[derive(Default)]
struct Inner {
    events: VecDeque<Event>,
    /// How many of `events` are log lines, records or progress.
    droppable: usize,
    lines_dropped: BTreeMap<usize, u64>,
    closed: bool,
    cancel: Option<String>,
}

impl Event {
    fn is_droppable(&self) -> bool {
        matches!(self, Event::Log { .. } | Event::Progress { .. } | Event::Record { .. })
    }
}

impl Feed {
    pub fn new(events_max: usize, wake: Arc<Notify>) -> Feed {
        Feed { inner: Mutex::default(), ready: Notify::new(), wake, events_max: events_max.max(1) }
    }

    pub fn push(&self, event: Event) {
        let mut inner = self.inner.lock();
        if inner.closed {
            return;
        }
        if let (Event::Queued { .. }, Some(Event::Queued { .. })) = (&event, inner.events.back()) {
            inner.events.pop_back();
        }
        if event.is_droppable() {
            if inner.droppable == self.events_max {
                inner.drop_oldest();
            }
            inner.droppable += 1;
        }
        inner.events.push_back(event);
        drop(inner);
        self.ready.notify_one();
    }

    /// Pushes the last event.
    pub fn end(&self, event: Event) {
        self.push(event);
        self.close();
    }

    /// No event follows.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.ready.notify_one();
    }

    pub async fn next(&self) -> Option<Event> {
        loop {
            let ready = self.ready.notified();
            {
                let mut inner = self.inner.lock();
                if let Some(event) = inner.pop() {
                    return Some(event);
                }
                if inner.closed {
                    return None;
                }
            }
            ready.await;
        }
    }

    /// Asks for the job's end. The first reason stays.
    pub fn cancel(&self, reason: &str) {
        self.inner.lock().cancel.get_or_insert_with(|| reason.to_string());
        self.wake.notify_one();
    }

    pub fn cancel_reason(&self) -> Option<String> {
        self.inner.lock().cancel.clone()
    }
}

impl Inner {
    fn drop_oldest(&mut self) {
        let Some(index) = self.events.iter().position(Event::is_droppable) else { return };
        if let Some(Event::Log { rank, .. }) = self.events.remove(index) {
            *self.lines_dropped.entry(rank).or_default() += 1;
        }
        self.droppable -= 1;
    }

    fn pop(&mut self) -> Option<Event> {
        if let Some((rank, count)) = self.lines_dropped.pop_first() {
            return Some(Event::Log { rank, line: format!("[{count} lines dropped: the reader is slow]") });
        }
        let event = self.events.pop_front()?;
        if event.is_droppable() {
            self.droppable -= 1;
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(events_max: usize) -> Feed {
        Feed::new(events_max, Arc::new(Notify::new()))
    }

    fn log(line: &str) -> Event {
        Event::Log { rank: 0, line: line.to_string() }
    }

    async fn drain(feed: &Feed) -> Vec<String> {
        let mut shown = Vec::new();
        while let Some(event) = feed.next().await {
            shown.push(match event {
                Event::Log { line, .. } => line,
                Event::Queued { reason } => reason,
                other => format!("{other:?}"),
            });
        }
        shown
    }

    #[tokio::test]
    async fn the_oldest_lines_are_dropped_with_a_count_and_states_are_kept() {
        let feed = feed(2);
        feed.push(Event::Starting { generation: 0 });
        for line in ["a", "b", "c", "d"] {
            feed.push(log(line));
        }
        feed.push(Event::Started { generation: 0 });
        feed.close();
        let expected = [
            "[2 lines dropped: the reader is slow]",
            "Starting { generation: 0 }",
            "c",
            "d",
            "Started { generation: 0 }",
        ];
        assert_eq!(drain(&feed).await, expected);
    }

    #[tokio::test]
    async fn only_the_newest_reason_to_wait_is_kept() {
        let feed = feed(2);
        feed.push(Event::Queued { reason: "first".to_string() });
        feed.push(Event::Queued { reason: "second".to_string() });
        feed.close();
        assert_eq!(drain(&feed).await, ["second"]);
    }
}
