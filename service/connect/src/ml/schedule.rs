//! What a session says of when and where its fits run: on how many ranks, in which queue, and for how long.

use std::time::Duration;

use super::settings;
use crate::Result;
use crate::session::Session;

/// How many ranks train a model of this session. Default: the server's slots.
pub const WORKERS_KEY: &str = "spark.phalanx.workers";
/// The queue that fits wait in. Fits of one pool start in the order they came. Default: one a user.
pub const POOL_KEY: &str = "spark.phalanx.pool";
/// How long a fit may wait for slots before it fails. Default: for ever.
pub const QUEUE_TIMEOUT_KEY: &str = "spark.phalanx.queueTimeout";
/// How long a fit may take, its wait included, before it is stopped and fails. Default: for ever.
pub const TIMEOUT_KEY: &str = "spark.phalanx.timeout";

#[derive(Debug, Clone)]
pub struct Schedule {
    pub num_ranks: usize,
    pub pool: String,
    pub queue_timeout: Option<Duration>,
    pub timeout: Option<Duration>,
}

impl Schedule {
    /// # Errors
    /// [`crate::Error::InvalidConf`]
    pub fn of(session: &Session) -> Result<Schedule> {
        let num_ranks = settings::number_of_at_least_1(session, WORKERS_KEY)?;
        Ok(Schedule {
            num_ranks: num_ranks.unwrap_or(session.services.options.default_workers),
            pool: settings::text(session, POOL_KEY)?.unwrap_or_else(|| session.user.clone()),
            queue_timeout: settings::time(session, QUEUE_TIMEOUT_KEY)?,
            timeout: settings::time(session, TIMEOUT_KEY)?,
        })
    }
}
