//! The messages of the control stream between a rank and the coordinator, and the generated server and client.
//!
//! One stream a rank carries everything. Spec, partition and output may be large: they travel as a size followed by
//! chunks of [`CHUNK_BYTES`], so no message comes near the size limit.

use bytes::Bytes;

use crate::event::Progress;

/// The most bytes one chunk carries.
pub const CHUNK_BYTES: usize = 1 << 20;
/// The largest message either side takes. The largest one sent is a chunk, or an assignment with very many addresses.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// The most bytes of one log line; the rest is the next line.
pub const LINE_BYTES_MAX: usize = 16 << 10;
/// The most bytes of one record.
pub const RECORD_BYTES_MAX: usize = 256 << 10;
/// The most bytes of each text in a failure.
pub const FAILURE_TEXT_BYTES_MAX: usize = 256 << 10;

#[expect(clippy::allow_attributes, reason = "generated code is as it is")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/phalanx.gang.v1.Gang.rs"));
}

pub use generated::{gang_client, gang_server};

#[derive(Clone, PartialEq, prost::Message)]
pub struct FromMember {
    #[prost(oneof = "Report", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub report: Option<Report>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Report {
    #[prost(message, tag = "1")]
    Join(Join),
    #[prost(message, tag = "2")]
    Heartbeat(Heartbeat),
    #[prost(message, tag = "3")]
    Progress(ProgressReport),
    #[prost(string, tag = "4")]
    Log(String),
    #[prost(message, tag = "5")]
    Outcome(Outcome),
    /// The next bytes of the output an [`Outcome`] announced.
    #[prost(bytes = "bytes", tag = "6")]
    Chunk(Bytes),
    /// Bytes of the rank program's own.
    #[prost(bytes = "bytes", tag = "7")]
    Record(Bytes),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Join {
    #[prost(string, tag = "1")]
    pub job_id: String,
    #[prost(uint32, tag = "2")]
    pub generation: u32,
    #[prost(uint64, tag = "3")]
    pub rank: u64,
    #[prost(bytes = "bytes", tag = "4")]
    pub secret: Bytes,
    #[prost(string, tag = "5")]
    pub address: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Heartbeat {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ProgressReport {
    #[prost(uint64, tag = "1")]
    pub step: u64,
    #[prost(uint64, tag = "2")]
    pub steps_max: u64,
    #[prost(uint64, tag = "3")]
    pub rows: u64,
    #[prost(double, tag = "4")]
    pub loss: f64,
    #[prost(message, repeated, tag = "5")]
    pub metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Metric {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(double, tag = "2")]
    pub value: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Outcome {
    /// Chunks of so many bytes follow, unless there is a failure.
    #[prost(uint64, tag = "1")]
    pub output_bytes: u64,
    #[prost(message, optional, tag = "2")]
    pub failure: Option<FailureReport>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct FailureReport {
    #[prost(string, tag = "1")]
    pub message: String,
    #[prost(string, tag = "2")]
    pub class: String,
    #[prost(string, tag = "3")]
    pub detail: String,
    #[prost(bool, tag = "4")]
    pub secondary: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ToMember {
    #[prost(oneof = "Order", tags = "1, 2, 3, 4, 5, 6")]
    pub order: Option<Order>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Order {
    /// The rank is who it says it is; the others are awaited.
    #[prost(message, tag = "1")]
    Welcome(Welcome),
    #[prost(string, tag = "2")]
    Refused(String),
    #[prost(message, tag = "3")]
    Start(Start),
    /// The next bytes of spec and partition, in that order.
    #[prost(bytes = "bytes", tag = "4")]
    Chunk(Bytes),
    #[prost(string, tag = "5")]
    Cancel(String),
    /// The outcome has arrived whole; the rank may leave.
    #[prost(message, tag = "6")]
    Accepted(Accepted),
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Welcome {
    #[prost(uint64, tag = "1")]
    pub heartbeat_interval_ms: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Start {
    #[prost(uint64, tag = "1")]
    pub rank: u64,
    #[prost(uint32, tag = "2")]
    pub generation: u32,
    /// One a rank, in the order of ranks.
    #[prost(string, repeated, tag = "3")]
    pub addresses: Vec<String>,
    #[prost(bytes = "bytes", tag = "4")]
    pub secret: Bytes,
    #[prost(string, tag = "5")]
    pub program: String,
    #[prost(uint64, tag = "6")]
    pub spec_bytes: u64,
    #[prost(uint64, tag = "7")]
    pub partition_bytes: u64,
    #[prost(string, tag = "8")]
    pub job_id: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Accepted {}

impl From<Report> for FromMember {
    fn from(report: Report) -> Self {
        FromMember { report: Some(report) }
    }
}

impl From<Order> for ToMember {
    fn from(order: Order) -> Self {
        ToMember { order: Some(order) }
    }
}

impl Order {
    pub fn name(&self) -> &'static str {
        match self {
            Order::Welcome(_) => "a welcome",
            Order::Refused(_) => "a refusal",
            Order::Start(_) => "a start",
            Order::Chunk(_) => "a chunk",
            Order::Cancel(_) => "a cancellation",
            Order::Accepted(_) => "an acceptance",
        }
    }
}

impl From<Progress> for ProgressReport {
    fn from(progress: Progress) -> Self {
        let metrics = progress.metrics.into_iter().map(|(name, value)| Metric { name, value }).collect();
        ProgressReport {
            step: progress.step,
            steps_max: progress.steps_max,
            rows: progress.rows,
            loss: progress.loss,
            metrics,
        }
    }
}

impl From<ProgressReport> for Progress {
    fn from(report: ProgressReport) -> Self {
        let metrics = report.metrics.into_iter().map(|metric| (metric.name, metric.value)).collect();
        Progress { step: report.step, steps_max: report.steps_max, rows: report.rows, loss: report.loss, metrics }
    }
}

/// Splits without copying.
pub fn chunks(mut bytes: Bytes) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || match bytes.len() {
        0 => None,
        len => Some(bytes.split_to(len.min(CHUNK_BYTES))),
    })
}

/// Cuts a text to at most `bytes_max`, at a character's boundary.
pub fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_put_together_are_the_whole() {
        let whole = Bytes::from((0..(5 * CHUNK_BYTES / 2)).map(|i| i as u8).collect::<Vec<u8>>());
        let parts: Vec<Bytes> = chunks(whole.clone()).collect();
        assert_eq!(parts.len(), 3);
        assert_eq!(parts.concat(), whole);
        assert_eq!(chunks(Bytes::new()).count(), 0);
    }

    #[test]
    fn a_cut_text_stays_text() {
        assert_eq!(cut("aé".to_string(), 2), "a");
        assert_eq!(cut("aé".to_string(), 3), "aé");
    }
}
