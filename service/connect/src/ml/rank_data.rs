//! What a gang's ranks are told: where their rows are, and where their checkpoints.
//!
//! A partition is read once, so every generation of a gang gets new ones, made from the same frame. They hold the same
//! rows in the same order as long as the number of ranks stays the same.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use engine::embedded::Frame;
use engine::registered::RegisteredPartition;
use gang::{Partitions, RankFailure};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use train::checkpoint::Place;

use super::watch;
use crate::session::Session;
use crate::{Error, Result};

/// Where a rank finds its rows, and how it is to run. The coordinator passes it on unread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionAddress {
    pub uri: String,
    pub ticket: String,
    /// Where rank 0 keeps its state between steps.
    pub checkpoints: Option<Place>,
    /// Whether the rank keeps a timeline.
    pub is_traced: bool,
}

/// The partitions of one fit's frame, one generation after the other.
pub struct RankData {
    session: Arc<Session>,
    frame: Frame,
    columns: Vec<String>,
    checkpoints: Option<Place>,
    is_traced: bool,
    /// Of the generation that goes on, or is about to.
    current: Mutex<Vec<RegisteredPartition>>,
    /// Why partitions could not be made again.
    error: Mutex<Option<engine::Error>>,
}

impl fmt::Debug for RankData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RankData").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl RankData {
    /// Makes the partitions of the first generation at once, so that a plan that cannot run fails before any rank starts.
    ///
    /// # Errors
    /// Those of planning.
    pub async fn new(
        session: &Arc<Session>,
        frame: &Frame,
        columns: &[String],
        num_ranks: usize,
        checkpoints: Option<Place>,
    ) -> Result<Arc<RankData>> {
        let data = RankData {
            session: Arc::clone(session),
            frame: frame.clone(),
            columns: columns.to_vec(),
            checkpoints,
            is_traced: watch::is_traced(session)?,
            current: Mutex::default(),
            error: Mutex::default(),
        };
        data.register(num_ranks).await?;
        Ok(Arc::new(data))
    }

    async fn register(&self, num_ranks: usize) -> engine::Result<()> {
        let streams = self.session.engine.partitions(&self.frame, &self.columns, num_ranks).await?;
        let server = &self.session.services.partitions;
        let partitions = streams.into_iter().map(|stream| RegisteredPartition::new(server, stream)).collect();
        *self.current.lock() = partitions;
        Ok(())
    }

    fn addresses(&self) -> std::result::Result<Vec<Bytes>, serde_json::Error> {
        let uri = &self.session.services.internal_uri;
        let address = |partition: &RegisteredPartition| {
            let address = PartitionAddress {
                uri: uri.clone(),
                ticket: partition.ticket().into(),
                checkpoints: self.checkpoints.clone(),
                is_traced: self.is_traced,
            };
            serde_json::to_vec(&address).map(Bytes::from)
        };
        self.current.lock().iter().map(address).collect()
    }

    /// A rank that could not read its rows only knows that the stream broke; why it broke is known where the rows come
    /// from.
    pub fn first_cause(&self, error: Error) -> Error {
        let cause = match &error {
            Error::Gang(gang::Error::RankFailed { cause: RankFailure::Program { .. }, .. }) => {
                self.current.lock().iter().find_map(RegisteredPartition::take_error)
            }
            Error::Gang(gang::Error::Partitions { .. }) => self.error.lock().take(),
            _ => None,
        };
        cause.map_or(error, Error::Engine)
    }
}

#[async_trait::async_trait]
impl Partitions for RankData {
    async fn prepare(
        &self,
        generation: u32,
        num_ranks: usize,
    ) -> std::result::Result<Vec<Bytes>, Box<dyn StdError + Send + Sync>> {
        if generation > 0
            && let Err(error) = Box::pin(self.register(num_ranks)).await
        {
            let text = error.to_string();
            self.error.lock().get_or_insert(error);
            return Err(text.into());
        }
        Ok(self.addresses()?)
    }
}
