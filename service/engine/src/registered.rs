//! A partition that waits for its rank, and why it broke, if it did.
//!
//! A rank that loses its stream only sees that it broke. The cause, such as a division by zero in the query, is known
//! here, and is what the client must be told.

use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use parking_lot::Mutex;

use crate::Error;
use crate::flight::{PartitionServer, Ticket};

/// A registered stream. Dropping it revokes the ticket.
#[derive(Debug)]
pub struct RegisteredPartition {
    server: PartitionServer,
    ticket: Ticket,
    /// Shared with the stream: the first error it met.
    error: Arc<Mutex<Option<Error>>>,
}

impl RegisteredPartition {
    pub fn new(server: &PartitionServer, stream: SendableRecordBatchStream) -> RegisteredPartition {
        let error: Arc<Mutex<Option<Error>>> = Arc::default();
        let (schema, first) = (stream.schema(), Arc::clone(&error));
        let watched = stream.map(move |record_batch| {
            record_batch.map_err(|source| {
                let source = Error::from(source);
                let shown = DataFusionError::Execution(source.to_string());
                first.lock().get_or_insert(source);
                shown
            })
        });
        let stream = Box::pin(RecordBatchStreamAdapter::new(schema, watched));
        RegisteredPartition { server: server.clone(), ticket: server.register(stream), error }
    }

    /// What a rank presents to read the stream.
    pub fn ticket(&self) -> &str {
        self.ticket.as_str()
    }

    /// Why the stream broke, once.
    pub fn take_error(&self) -> Option<Error> {
        self.error.lock().take()
    }
}

impl Drop for RegisteredPartition {
    fn drop(&mut self) {
        self.server.revoke(&self.ticket);
    }
}
