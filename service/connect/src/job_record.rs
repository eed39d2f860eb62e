//! What remains of every barrier job: a folder of `data_dir/jobs` with its record, its ranks' log and its timeline.
//!
//! `record.json` is replaced as a whole, at most twice a second while the job runs and once when it has ended; `log.txt` and
//! `trace.json` grow. All three are bounded in size, and only the last jobs are kept. Nothing of it ever fails a job: a
//! disk that takes no record is logged, and the job goes on.

mod document;
mod folder;
mod writer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use gang::Event;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::warn;

use crate::Services;
use crate::metrics::JobMeter;
pub use document::About;
use document::JobRecord;
pub use folder::JobsFolder;

/// Events on their way to the files; beyond it the job's feed keeps them, and drops progress and lines.
const EVENTS_MAX: usize = 1024;
/// How long the end of a fit waits until its record is on disk.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The time as records and logs tell it.
fn now_text() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Takes what happens to one job. Dropped before the job has ended, the record says so.
pub struct Recorder {
    job_id: String,
    /// None where the server keeps no records.
    to_files: Option<ToFiles>,
    meter: JobMeter,
    submitted: Instant,
    has_started: bool,
}

struct ToFiles {
    events: mpsc::Sender<Event>,
    writer: JoinHandle<()>,
}

impl Recorder {
    pub fn begin(services: &Services, about: About) -> Recorder {
        let job_id = about.job_id.clone();
        let meter = JobMeter::new(&services.metrics, &about.operator);
        let to_files = services.jobs.as_ref().map(|folder| {
            let (events, receiver) = mpsc::channel(EVENTS_MAX);
            let writer = writer::Writer::new(Arc::clone(folder), JobRecord::new(about));
            ToFiles { events, writer: tokio::spawn(writer.run(receiver)) }
        });
        Recorder { job_id, to_files, meter, submitted: Instant::now(), has_started: false }
    }

    pub async fn event(&mut self, event: &Event) {
        self.count(event);
        if let Some(files) = &self.to_files {
            // a writer that is gone has said why
            let _ = files.events.send(event.clone()).await;
        }
    }

    fn count(&mut self, event: &Event) {
        match event {
            Event::Starting { .. } => {
                if !self.has_started {
                    self.has_started = true;
                    self.meter.queued_for(self.submitted.elapsed().as_secs_f64());
                }
                self.meter.generation_begins();
            }
            Event::Restarting { cause, .. } => self.meter.restarts(cause),
            Event::Progress { rank, progress } => self.meter.progress(*rank, progress),
            Event::Finished { .. } => self.meter.ended("finished", None, self.submitted.elapsed().as_secs_f64()),
            Event::Failed(error) => {
                let state = document::last_state(error);
                self.meter.ended(state, Some(error), self.submitted.elapsed().as_secs_f64());
            }
            Event::Queued { .. } | Event::Started { .. } | Event::Log { .. } | Event::Record { .. } => {}
        }
    }

    /// Waits until the record is on disk, so that a client that has its answer can read it.
    pub async fn close(self) {
        let Recorder { job_id, to_files, .. } = self;
        let Some(ToFiles { events, writer }) = to_files else { return };
        drop(events);
        if tokio::time::timeout(CLOSE_TIMEOUT, writer).await.is_err() {
            warn!(job_id, "a job's record is written slowly");
        }
    }
}
