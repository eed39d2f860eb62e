//! Writes one job's files, off the way of the job.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gang::Event;
use tokio::sync::mpsc;
use tracing::warn;

use super::document::JobRecord;
use super::folder::{JobsFolder, RECORD, replace};
use super::now_text;

const LOG: &str = "log.txt";
const TRACE: &str = "trace.json";
const LOG_BYTES_MAX: usize = 16 << 20;
const TRACE_BYTES_MAX: usize = 64 << 20;
/// How often the files catch up with a job that runs.
const INTERVAL: Duration = Duration::from_millis(500);
/// What waits for the files beyond this is written at once.
const PENDING_BYTES: usize = 1 << 20;

pub struct Writer {
    folder: Arc<JobsFolder>,
    record: JobRecord,
    log: Growing,
    trace: Option<Growing>,
    has_event_in_trace: bool,
}

impl Writer {
    pub fn new(folder: Arc<JobsFolder>, record: JobRecord) -> Writer {
        let trace = record.about.is_traced.then(|| Growing::new(TRACE, TRACE_BYTES_MAX, "[\n"));
        Writer { folder, record, log: Growing::new(LOG, LOG_BYTES_MAX, ""), trace, has_event_in_trace: false }
    }

    /// Writes until there are no more events.
    pub async fn run(mut self, mut events: mpsc::Receiver<Event>) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut has_news = true;
        let mut is_open = true;
        while is_open {
            let mut is_due = false;
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => {
                        self.apply(&event);
                        has_news = true;
                        is_due = self.pending_bytes() > PENDING_BYTES;
                    }
                    None => is_open = false,
                },
                _ = ticks.tick() => is_due = has_news,
            }
            if is_due {
                has_news = false;
                match Box::pin(self.flush()).await {
                    Some(writer) => self = writer,
                    None => return,
                }
            }
        }
        if !self.record.is_ended() {
            self.record.abandon();
            self.say(&format!("{}: {}", self.record.state, self.record.reason.clone()));
        }
        if let Some(trace) = &mut self.trace {
            trace.close("\n]\n");
        }
        let job_id = self.record.about.job_id.clone();
        let folder = Arc::clone(&self.folder);
        if Box::pin(self.flush()).await.is_some() {
            let _ = tokio::task::spawn_blocking(move || folder.close(&job_id)).await;
        }
    }

    fn apply(&mut self, event: &Event) {
        self.record.apply(event);
        match event {
            Event::Log { rank, line } => self.log.push(&format!("{} [rank {rank}] {line}\n", now_text())),
            Event::Record { record, .. } => self.trace(record),
            Event::Progress { .. } => {}
            Event::Queued { .. }
            | Event::Starting { .. }
            | Event::Started { .. }
            | Event::Restarting { .. }
            | Event::Finished { .. }
            | Event::Failed(_) => {
                let (state, reason, generation) = (self.record.state, &self.record.reason, self.record.generation);
                self.say(&format!("generation {generation} {state}: {reason}"));
            }
        }
    }

    /// A line of the job's own.
    fn say(&mut self, line: &str) {
        self.log.push(&format!("{} [job] {line}\n", now_text()));
    }

    /// Appends events, one a line, to the array that the file is.
    fn trace(&mut self, lines: &[u8]) {
        let (Some(trace), Ok(lines)) = (&mut self.trace, std::str::from_utf8(lines)) else { return };
        for line in lines.lines() {
            let separator = if self.has_event_in_trace { ",\n" } else { "" };
            trace.push(&format!("{separator}{line}"));
            self.has_event_in_trace = true;
        }
    }

    fn pending_bytes(&self) -> usize {
        self.log.pending.len() + self.trace.as_ref().map_or(0, |trace| trace.pending.len())
    }

    /// Brings the files up to date on a thread that may block. None when the disk refuses: the job is not recorded then.
    async fn flush(self) -> Option<Writer> {
        let job_id = self.record.about.job_id.clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut writer = self;
            writer.write().map(|()| writer)
        });
        match written.await {
            Ok(Ok(writer)) => Some(writer),
            Ok(Err(error)) => {
                warn!(job_id, %error, "the job's record cannot be written");
                None
            }
            Err(error) => {
                warn!(job_id, %error, "the job's record is not written any more");
                None
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let path = self.folder.create(&self.record.about.job_id)?;
        self.log.write(&path)?;
        if let Some(trace) = &mut self.trace {
            trace.write(&path)?;
        }
        replace(&path.join(RECORD), &serde_json::to_vec(&self.record)?)
    }
}

/// A file that grows up to a size.
struct Growing {
    name: &'static str,
    bytes_max: usize,
    bytes: usize,
    is_full: bool,
    pending: String,
    file: Option<File>,
}

impl Growing {
    fn new(name: &'static str, bytes_max: usize, head: &str) -> Growing {
        Growing { name, bytes_max, bytes: head.len(), is_full: false, pending: head.to_string(), file: None }
    }

    fn push(&mut self, text: &str) {
        if self.is_full {
            return;
        }
        if self.bytes + text.len() > self.bytes_max {
            self.is_full = true;
            if self.name == LOG {
                self.pending.push_str("[the log is full]\n");
            }
            return;
        }
        self.bytes += text.len();
        self.pending.push_str(text);
    }

    /// Adds what the file must end with, however full it is.
    fn close(&mut self, tail: &str) {
        self.pending.push_str(tail);
    }

    fn write(&mut self, folder: &PathBuf) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let opened = OpenOptions::new().create(true).write(true).truncate(true).open(folder.join(self.name))?;
                self.file.insert(opened)
            }
        };
        file.write_all(self.pending.as_bytes())?;
        self.pending.clear();
        Ok(())
    }
}
