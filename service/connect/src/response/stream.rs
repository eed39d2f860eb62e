//! One client's stream of an operation's responses: it ends with the operation, or earlier, by time or size, for the
//! client to come back.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::Stream;
use futures::stream::unfold;
use spark_connect_proto::ExecutePlanResponse;
use tonic::Status;

use super::{Cursor, End, Next};
use crate::{Error, Operation};

pub type ResponseStream = Pin<Box<dyn Stream<Item = Result<ExecutePlanResponse, Status>> + Send>>;

/// When a stream ends before its operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    pub duration_max: Option<Duration>,
    pub bytes_max: Option<u64>,
}

impl StreamLimits {
    pub const NONE: StreamLimits = StreamLimits { duration_max: None, bytes_max: None };
}

/// Lets go of the operation when the client does.
struct Attached {
    operation: Arc<Operation>,
    cursor: Cursor,
    deadline: Option<Instant>,
    bytes_left: Option<u64>,
    is_over: bool,
}

impl Drop for Attached {
    fn drop(&mut self) {
        let was_served = self.operation.log.detach(&self.cursor);
        if was_served && !self.operation.is_reattachable {
            self.operation.abandon();
        }
    }
}

pub fn stream(operation: Arc<Operation>, cursor: Cursor, limits: StreamLimits) -> ResponseStream {
    let deadline = limits.duration_max.map(|duration| Instant::now() + duration);
    let attached = Attached { operation, cursor, deadline, bytes_left: limits.bytes_max, is_over: false };
    Box::pin(unfold(attached, |mut attached| async move {
        let item = attached.next().await?;
        Some((item, attached))
    }))
}

impl Attached {
    async fn next(&mut self) -> Option<Result<ExecutePlanResponse, Status>> {
        if self.is_over || self.bytes_left == Some(0) {
            return None;
        }
        let operation = Arc::clone(&self.operation);
        match operation.log.next(&mut self.cursor, self.deadline).await {
            Next::Response(response, bytes) => {
                self.bytes_left = self.bytes_left.map(|left| left.saturating_sub(bytes as u64));
                // A stream that is past its time still gives what it took, so that each attempt moves on.
                if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    self.is_over = true;
                }
                Some(Ok(*response))
            }
            Next::End(End::Completed) | Next::TimedOut => None,
            Next::End(End::Failed(report)) => {
                self.is_over = true;
                Some(Err(report.status()))
            }
            Next::Disconnected => {
                self.is_over = true;
                Some(Err(Error::CursorDisconnected { id: operation.id.clone() }.status()))
            }
            Next::Released => {
                self.is_over = true;
                Some(Err(Error::Cancelled.status()))
            }
        }
    }
}
