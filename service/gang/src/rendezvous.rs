//! The coordinator's end of the control streams: who presents itself as which rank, and what it says from then on.
//!
//! A stream's tasks know no job. They carry what the rank says to the coordinator's loop, and what the loop orders to
//! the rank, and they move the large things (spec, partition, output) past the loop rather than through it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::event::Progress;
use crate::member::Failure;
use crate::options::Options;
use crate::wire::{self, Accepted, FromMember, Join, Order, Outcome, ProgressReport, Report, ToMember, Welcome};

/// How long a stream may stay open without saying who it is.
const JOIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Messages on their way to a rank; with chunks of 1 MiB this bounds what a slow rank keeps in memory.
const OUTBOUND_MAX: usize = 4;
/// Orders waiting for a stream's writer. A rank is given no more than a start, a cancellation and an acceptance.
const ORDERS_MAX: usize = 8;

/// Metrics kept of one progress report.
const METRICS_MAX: usize = 256;

/// Tells apart the streams that were ever opened.
pub type StreamId = u64;

/// What a stream tells the coordinator's loop.
pub enum Said {
    Joins { join: Join, orders: mpsc::Sender<Instruction>, verdict: oneshot::Sender<Result<(), String>> },
    IsAlive,
    Progress(Progress),
    Log(String),
    Record(Bytes),
    Finished { output: Bytes },
    Failed(Failure),
    Left,
}

impl Said {
    fn progress(mut report: ProgressReport) -> Said {
        report.metrics.truncate(METRICS_MAX);
        Said::Progress(report.into())
    }

    fn log(line: String) -> Said {
        Said::Log(wire::cut(line, wire::LINE_BYTES_MAX))
    }

    fn record(mut record: Bytes) -> Said {
        record.truncate(wire::RECORD_BYTES_MAX);
        Said::Record(record)
    }
}

pub struct Saying {
    pub stream: StreamId,
    pub said: Said,
}

/// What the coordinator's loop has a stream's writer do.
pub enum Instruction {
    Start(wire::Start, Payload),
    Cancel(String),
    Accept,
}

/// The large part of a start.
#[derive(Clone)]
pub struct Payload {
    pub spec: Bytes,
    pub partition: Bytes,
}

/// The gRPC service of the control stream.
#[derive(Clone)]
pub struct GangService {
    sayings: mpsc::Sender<Saying>,
    options: Arc<Options>,
    streams: Arc<AtomicU64>,
}

impl GangService {
    pub(crate) fn new(sayings: mpsc::Sender<Saying>, options: Arc<Options>) -> GangService {
        GangService { sayings, options, streams: Arc::default() }
    }
}

#[async_trait::async_trait]
impl wire::gang_server::Gang for GangService {
    type ControlStream = ReceiverStream<Result<ToMember, Status>>;

    async fn control(&self, request: Request<Streaming<FromMember>>) -> Result<Response<Self::ControlStream>, Status> {
        let (outbound, stream) = mpsc::channel(OUTBOUND_MAX);
        let ear = Ear {
            stream: self.streams.fetch_add(1, Ordering::Relaxed),
            inbound: request.into_inner(),
            sayings: self.sayings.clone(),
            output_bytes_max: self.options.output_bytes_max,
        };
        let heartbeat_interval_ms = self.options.heartbeat_interval.as_millis() as u64;
        tokio::spawn(serve(ear, outbound, heartbeat_interval_ms));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

type Outbound = mpsc::Sender<Result<ToMember, Status>>;

async fn serve(mut ear: Ear, outbound: Outbound, heartbeat_interval_ms: u64) {
    let Ok(Some(Report::Join(join))) = tokio::time::timeout(JOIN_TIMEOUT, ear.next()).await else {
        refuse(&outbound, "the first message must be a join".to_string()).await;
        return;
    };
    let (orders, inbox) = mpsc::channel(ORDERS_MAX);
    let (verdict, answer) = oneshot::channel();
    ear.say(Said::Joins { join, orders, verdict }).await;
    match answer.await {
        Ok(Ok(())) => {}
        Ok(Err(reason)) => return refuse(&outbound, reason).await,
        Err(_) => return refuse(&outbound, "the server is shutting down".to_string()).await,
    }
    tokio::spawn(write(inbox, outbound, heartbeat_interval_ms));
    ear.listen().await;
    ear.say(Said::Left).await;
}

async fn refuse(outbound: &Outbound, reason: String) {
    // a stream that is gone needs no refusal
    let _ = outbound.send(Ok(Order::Refused(reason).into())).await;
}

/// Writes to the rank until the loop lets go of the stream, or the rank does.
async fn write(mut inbox: mpsc::Receiver<Instruction>, outbound: Outbound, heartbeat_interval_ms: u64) {
    let send = async |order: Order| outbound.send(Ok(order.into())).await.is_ok();
    let mut open = send(Order::Welcome(Welcome { heartbeat_interval_ms })).await;
    while open {
        let instruction = tokio::select! {
            instruction = inbox.recv() => instruction,
            () = outbound.closed() => None,
        };
        open = match instruction {
            None => false,
            Some(Instruction::Cancel(reason)) => send(Order::Cancel(reason)).await,
            Some(Instruction::Accept) => send(Order::Accepted(Accepted {})).await,
            Some(Instruction::Start(start, payload)) => {
                let mut sent = send(Order::Start(start)).await;
                for chunk in wire::chunks(payload.spec).chain(wire::chunks(payload.partition)) {
                    sent = sent && send(Order::Chunk(chunk)).await;
                }
                sent
            }
        };
    }
}

/// The reading half of a stream.
struct Ear {
    stream: StreamId,
    inbound: Streaming<FromMember>,
    sayings: mpsc::Sender<Saying>,
    output_bytes_max: u64,
}

impl Ear {
    /// The next report; `None` when the stream is over or broken, which come to the same.
    async fn next(&mut self) -> Option<Report> {
        loop {
            match self.inbound.message().await {
                // a kind of message this version does not know
                Ok(Some(FromMember { report: None })) => {}
                Ok(Some(FromMember { report })) => return report,
                Ok(None) | Err(_) => return None,
            }
        }
    }

    async fn say(&self, said: Said) {
        // without its loop the service has ended, and the stream ends with it
        let _ = self.sayings.send(Saying { stream: self.stream, said }).await;
    }

    async fn listen(&mut self) {
        while let Some(report) = self.next().await {
            let said = match report {
                Report::Heartbeat(_) => Said::IsAlive,
                Report::Progress(report) => Said::progress(report),
                Report::Log(line) => Said::log(line),
                Report::Record(record) => Said::record(record),
                Report::Outcome(outcome) => match self.hear_outcome(outcome).await {
                    Some(said) => said,
                    None => return,
                },
                Report::Join(_) | Report::Chunk(_) => {
                    let message = "a rank sent a message out of place".to_string();
                    Said::Failed(Failure { message, class: "ours".to_string(), ..Failure::default() })
                }
            };
            self.say(said).await;
        }
    }

    /// Takes the outcome and the output behind it; `None` when the stream ends within.
    async fn hear_outcome(&mut self, outcome: Outcome) -> Option<Said> {
        if let Some(failure) = outcome.failure {
            return Some(Said::Failed(failure.into()));
        }
        let wanted = outcome.output_bytes;
        if wanted > self.output_bytes_max {
            let message = format!("the output has {wanted} bytes, the most allowed is {}", self.output_bytes_max);
            return Some(Said::Failed(Failure { message, class: "user".to_string(), ..Failure::default() }));
        }
        // grows as bytes arrive: a size that is only announced reserves nothing
        let mut output = BytesMut::new();
        while (output.len() as u64) < wanted {
            match self.next().await? {
                Report::Chunk(chunk) => {
                    output.extend_from_slice(&chunk);
                    self.say(Said::IsAlive).await;
                }
                Report::Heartbeat(_) => self.say(Said::IsAlive).await,
                Report::Progress(report) => self.say(Said::progress(report)).await,
                Report::Log(line) => self.say(Said::log(line)).await,
                Report::Record(record) => self.say(Said::record(record)).await,
                Report::Join(_) | Report::Outcome(_) => return None,
            }
        }
        Some(Said::Finished { output: output.freeze() })
    }
}
