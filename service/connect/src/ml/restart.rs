//! What a session says of faults: how often a fit starts again, on how many ranks at least, and from which checkpoints.

use train::checkpoint::Place;

use super::settings;
use crate::session::Session;
use crate::{Error, Result};

/// How often a fit is started again after it lost a rank. Default: 2. A lost process should not cost a fit, and a fit that
/// kills its ranks by itself, such as by their memory, should soon say so.
pub const MAX_RESTARTS_KEY: &str = "spark.phalanx.maxRestarts";
/// How many ranks a fit may shrink to as it loses them. Default: as many as it has, so that it never shrinks.
pub const MIN_WORKERS_KEY: &str = "spark.phalanx.minWorkers";
/// Steps from one checkpoint to the next; 0: none are written. Default: 10.
pub const INTERVAL_KEY: &str = "spark.phalanx.checkpoint.interval";
/// How many of a fit's newest checkpoints are kept. Default: 2.
pub const KEEP_KEY: &str = "spark.phalanx.checkpoint.keep";
/// Where fits keep their checkpoints, each in a folder named after its job, also after they have succeeded. Default: with
/// the job's record, until it has succeeded.
pub const DIR_KEY: &str = "spark.phalanx.checkpoint.dir";
/// A checkpoint, or a folder of them, that fits start from.
pub const RESUME_KEY: &str = "spark.phalanx.checkpoint.resumeFrom";

const MAX_RESTARTS: u32 = 2;
const INTERVAL: u64 = 10;
const KEEP: usize = 2;

/// What a fit does about faults.
#[derive(Debug)]
pub struct Restart {
    pub max_restarts: u32,
    pub min_ranks: usize,
    pub checkpoints: Option<Place>,
    /// Whether the checkpoints go once the fit has succeeded.
    are_checkpoints_temporary: bool,
}

impl Restart {
    /// # Errors
    /// [`Error::InvalidConf`]
    pub fn of(session: &Session, job_id: &str, num_ranks: usize) -> Result<Restart> {
        let of_ranks = "a whole number from 1 to the number of workers";
        let min_ranks = settings::number(session, MIN_WORKERS_KEY, of_ranks)?;
        if let Some(min_ranks) = min_ranks.filter(|min_ranks| !(1..=num_ranks as u64).contains(min_ranks)) {
            let value = min_ranks.to_string();
            return Err(Error::InvalidConf { key: MIN_WORKERS_KEY, value, expected: of_ranks });
        }
        let max_restarts = settings::number(session, MAX_RESTARTS_KEY, "a whole number")?;
        let keep = settings::number_of_at_least_1(session, KEEP_KEY)?;
        let interval = settings::number(session, INTERVAL_KEY, "a whole number")?;
        let resume_from = settings::location(session, RESUME_KEY)?;
        let (folder, are_checkpoints_temporary) = match settings::location(session, DIR_KEY)? {
            Some(dir) => (Some(format!("{}/{job_id}", dir.trim_end_matches('/'))), false),
            None => (default_folder(session, job_id), true),
        };
        let place =
            |folder| Place { folder, resume_from, interval: interval.unwrap_or(INTERVAL), keep: keep.unwrap_or(KEEP) };
        Ok(Restart {
            max_restarts: max_restarts.map_or(MAX_RESTARTS, |max| u32::try_from(max).unwrap_or(u32::MAX)),
            min_ranks: min_ranks.map_or(num_ranks, |min_ranks| min_ranks as usize),
            checkpoints: folder.map(place),
            are_checkpoints_temporary,
        })
    }

    /// Removes what a fit that has succeeded no longer needs.
    pub async fn clean_up(&self) {
        let Some(place) = self.checkpoints.as_ref().filter(|_| self.are_checkpoints_temporary) else { return };
        match tokio::fs::remove_dir_all(&place.folder).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(folder = place.folder, %error, "checkpoints could not be removed");
            }
            _ => {}
        }
    }
}

fn default_folder(session: &Session, job_id: &str) -> Option<String> {
    let jobs = session.services.jobs.as_ref()?;
    Some(jobs.path().join(job_id).join("checkpoints").to_string_lossy().into_owned())
}
