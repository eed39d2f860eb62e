//! The folders of all jobs: where they are, how many are kept, and what a server that was killed has left.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde_json::Value;
use tracing::warn;

use super::now_text;

pub const RECORD: &str = "record.json";
/// Where a job keeps its checkpoints unless told otherwise.
const CHECKPOINTS: &str = "checkpoints";

/// `data_dir/jobs`.
#[derive(Debug)]
pub struct JobsFolder {
    path: PathBuf,
    /// How many ended jobs keep their records.
    jobs_max: usize,
    /// Jobs whose records are being written, which are never removed.
    live: Mutex<HashSet<String>>,
}

impl JobsFolder {
    /// Opens the folder, and marks the jobs of a server that ended before them.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn open(path: PathBuf, jobs_max: usize) -> io::Result<Arc<JobsFolder>> {
        std::fs::create_dir_all(&path)?;
        let path = path.canonicalize()?;
        let folder = JobsFolder { path, jobs_max, live: Mutex::default() };
        for (job, _) in folder.jobs()? {
            if let Err(error) = mark_lost(&job) {
                warn!(job = %job.display(), %error, "a job's record cannot be read");
            }
        }
        folder.prune();
        Ok(Arc::new(folder))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a job's folder, and keeps it at least until [`JobsFolder::close`].
    pub fn create(&self, job_id: &str) -> io::Result<PathBuf> {
        self.live.lock().insert(job_id.to_string());
        let path = self.path.join(job_id);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Lets go of a job that has ended, and removes the oldest jobs beyond the limit.
    pub fn close(&self, job_id: &str) {
        self.live.lock().remove(job_id);
        self.prune();
    }

    /// The folders of jobs, with the time of their last record; oldest first.
    fn jobs(&self) -> io::Result<Vec<(PathBuf, SystemTime)>> {
        let mut jobs = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            if let Ok(metadata) = std::fs::metadata(path.join(RECORD)) {
                jobs.push((path, metadata.modified()?));
            }
        }
        jobs.sort_by_key(|(_, modified)| *modified);
        Ok(jobs)
    }

    fn prune(&self) {
        let jobs = match self.jobs() {
            Ok(jobs) => jobs,
            Err(error) => return warn!(path = %self.path.display(), %error, "the jobs' records cannot be listed"),
        };
        let live = self.live.lock().clone();
        let is_live = |path: &Path| path.file_name().and_then(|name| name.to_str()).is_some_and(|id| live.contains(id));
        let ended: Vec<&PathBuf> = jobs.iter().map(|(path, _)| path).filter(|path| !is_live(path)).collect();
        let surplus = ended.len().saturating_sub(self.jobs_max);
        for path in &ended[..surplus] {
            if let Err(error) = std::fs::remove_dir_all(path) {
                warn!(path = %path.display(), %error, "an old job's record cannot be removed");
            }
        }
    }
}

/// Replaces a file as a whole: a reader sees the old one or the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, bytes)?;
    std::fs::rename(&new, path)
}

/// A job that still runs by its record, while no server ran it, is lost.
fn mark_lost(job: &Path) -> io::Result<()> {
    let path = job.join(RECORD);
    let mut record: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    if record.get("ended_at").is_none_or(|ended| !ended.is_null()) {
        return Ok(());
    }
    record["state"] = "lost".into();
    let has_checkpoints = std::fs::read_dir(job.join(CHECKPOINTS)).is_ok_and(|mut entries| entries.next().is_some());
    record["reason"] = match has_checkpoints {
        true => "the server ended before the job did; a fit can go on from its checkpoints",
        false => "the server ended before the job did",
    }
    .into();
    record["ended_at"] = now_text().into();
    replace(&path, &serde_json::to_vec(&record)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("phalanx-jobs-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    fn put(folder: &JobsFolder, job_id: &str, record: &str) {
        let path = folder.create(job_id).unwrap();
        replace(&path.join(RECORD), record.as_bytes()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(10));
    }

    #[test]
    fn only_the_last_jobs_that_have_ended_are_kept() {
        let path = temporary("kept");
        let folder = JobsFolder::open(path.clone(), 2).unwrap();
        for job_id in ["live", "a", "b", "c"] {
            put(&folder, job_id, "{}");
        }
        for job_id in ["a", "b", "c"] {
            folder.close(job_id);
        }
        let left = |id: &str| folder.path().join(id).exists();
        assert!(left("live") && left("b") && left("c") && !left("a"));
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_job_of_a_server_that_was_killed_is_lost() {
        let path = temporary("lost");
        let folder = JobsFolder::open(path.clone(), 2).unwrap();
        put(&folder, "a", r#"{"state":"running","ended_at":null}"#);
        put(&folder, "b", r#"{"state":"finished","ended_at":"2026-01-01T00:00:00Z"}"#);
        drop(folder);
        let folder = JobsFolder::open(path.clone(), 2).unwrap();
        let state = |id: &str| {
            let record = std::fs::read(folder.path().join(id).join(RECORD)).unwrap();
            serde_json::from_slice::<Value>(&record).unwrap()["state"].clone()
        };
        assert_eq!((state("a"), state("b")), ("lost".into(), "finished".into()));
        std::fs::remove_dir_all(path).unwrap();
    }
}
