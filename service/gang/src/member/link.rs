//! The member's thread: the rank's end of the control stream.

use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Endpoint;

use super::outbox::{Next, Outbox, Outcome};
use super::{Assignment, MemberOptions};
use crate::error::{Error, Result};
use crate::wire::gang_client::GangClient;
use crate::wire::{self, FromMember, Heartbeat, Join, Order, Report, Start, ToMember};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the coordinator may take to say whether the rank is welcome.
const WELCOME_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the coordinator may take to confirm an outcome once it was sent.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);
/// A coordinator on another machine that vanished without a word is noticed after these two together.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
const WINDOW_BYTES: u32 = 4 << 20;
const OUTBOUND_MAX: usize = 4;
/// What a rank whose coordinator is gone has to put itself in order, after which its process ends.
const LOST_GRACE: Duration = Duration::from_secs(1);
const LOST_EXIT_CODE: i32 = 70;

type Assigned = oneshot::Sender<Result<Assignment>>;
type Cancel = watch::Sender<Option<String>>;

pub fn start(
    options: MemberOptions,
    address: String,
    outbox: Arc<Outbox>,
    assigned: Assigned,
    cancel: Cancel,
) -> Result<()> {
    let thread_error = |source| Error::MemberThread { source: Arc::new(source) };
    let run = move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(Box::pin(run(options, address, outbox, assigned, cancel))),
        // the one who joins may have given up
        Err(error) => drop(assigned.send(Err(thread_error(error)))),
    };
    thread::Builder::new().name("gang-member".to_string()).spawn(run).map_err(thread_error)?;
    Ok(())
}

async fn run(options: MemberOptions, address: String, outbox: Arc<Outbox>, assigned: Assigned, cancel: Cancel) {
    let mut link = match Link::join(options, address).await {
        Ok(link) => link,
        Err(error) => {
            // the one who joins may have given up
            let _ = assigned.send(Err(error));
            return;
        }
    };
    match link.await_start(&outbox).await {
        Ok(Some(assignment)) => {
            if assigned.send(Ok(assignment)).is_err() {
                return;
            }
        }
        Ok(None) => return,
        Err(error) => {
            let _ = assigned.send(Err(error));
            return;
        }
    }
    if let Err(error) = link.work(&outbox, &cancel).await {
        end_process(&error, &outbox, &cancel).await;
    }
}

/// Ends a process that works for nobody: first in words, then for good. Spares one whose member is gone already.
async fn end_process(error: &Error, outbox: &Outbox, cancel: &Cancel) {
    cancel.send_replace(Some(error.to_string()));
    if outbox.is_closed() {
        return;
    }
    // whether anybody still reads standard error does not matter here
    let _ = writeln!(std::io::stderr(), "this rank ends: {error}");
    tokio::time::sleep(LOST_GRACE).await;
    if outbox.is_closed() {
        return;
    }
    // SAFETY: plain system calls, which end the process at once, and the processes it started where it leads a group of
    // its own. Exit handlers are skipped on purpose: the rank program's threads still run.
    unsafe {
        if libc::getpgrp() == libc::getpid() {
            libc::kill(0, libc::SIGKILL);
        }
        libc::_exit(LOST_EXIT_CODE)
    }
}

struct Link {
    outbound: mpsc::Sender<FromMember>,
    inbound: Streaming<ToMember>,
    heartbeat: Interval,
    rank: usize,
}

impl Link {
    async fn join(options: MemberOptions, address: String) -> Result<Link> {
        let coordinator = options.coordinator.clone();
        let malformed = |source| Error::MalformedAddress { coordinator: coordinator.clone(), source: Arc::new(source) };
        let unreachable = |source| Error::Unreachable { coordinator: coordinator.clone(), source: Arc::new(source) };
        let channel = Endpoint::from_shared(options.coordinator)
            .map_err(malformed)?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .connect()
            .await
            .map_err(unreachable)?;
        let mut client = GangClient::new(channel)
            .max_decoding_message_size(wire::MESSAGE_BYTES_MAX)
            .max_encoding_message_size(wire::MESSAGE_BYTES_MAX);
        let (outbound, stream) = mpsc::channel(OUTBOUND_MAX);
        let join = Join {
            job_id: options.job_id,
            generation: options.generation,
            rank: options.rank as u64,
            secret: Bytes::copy_from_slice(&options.secret.bytes()),
            address,
        };
        outbound.send(Report::Join(join).into()).await.map_err(|_| lost("closed before the join"))?;
        let greet = async {
            let inbound = client.control(ReceiverStream::new(stream)).await.map_err(|status| lost(status.message()));
            let mut inbound = inbound?.into_inner();
            let order = next_order(&mut inbound).await?;
            Ok((inbound, order))
        };
        let (inbound, order) = timeout(WELCOME_TIMEOUT, greet).await.map_err(|_| lost("no answer to the join"))??;
        let welcome = match order {
            Order::Welcome(welcome) => welcome,
            Order::Refused(reason) => return Err(Error::Refused { reason }),
            other => return Err(Error::UnexpectedMessage { found: other.name(), expected: "a welcome" }),
        };
        let mut heartbeat = interval(Duration::from_millis(welcome.heartbeat_interval_ms.max(1)));
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Link { outbound, inbound, heartbeat, rank: options.rank })
    }

    /// Waits for all the others; `None` when the member was dropped meanwhile.
    async fn await_start(&mut self, outbox: &Outbox) -> Result<Option<Assignment>> {
        loop {
            tokio::select! {
                order = next_order(&mut self.inbound) => match order? {
                    Order::Start(start) => return self.receive_start(start).await.map(Some),
                    Order::Cancel(reason) => return Err(Error::Cancelled { reason }),
                    other => return Err(Error::UnexpectedMessage { found: other.name(), expected: "a start" }),
                },
                _ = self.heartbeat.tick() => send(&self.outbound, Report::Heartbeat(Heartbeat {})).await?,
                // nobody has the member yet, so nothing but its end can come
                next = outbox.next() => if let Next::Close = next { return Ok(None) },
            }
        }
    }

    async fn receive_start(&mut self, start: Start) -> Result<Assignment> {
        let secret: [u8; 32] = start
            .secret
            .as_ref()
            .try_into()
            .map_err(|_| Error::UnexpectedMessage { found: "a secret of the wrong size", expected: "32 bytes" })?;
        let total = start.spec_bytes.saturating_add(start.partition_bytes) as usize;
        let mut payload = BytesMut::new();
        while payload.len() < total {
            tokio::select! {
                order = next_order(&mut self.inbound) => match order? {
                    Order::Chunk(chunk) => payload.extend_from_slice(&chunk),
                    Order::Cancel(reason) => return Err(Error::Cancelled { reason }),
                    other => return Err(Error::UnexpectedMessage { found: other.name(), expected: "a chunk" }),
                },
                _ = self.heartbeat.tick() => send(&self.outbound, Report::Heartbeat(Heartbeat {})).await?,
            }
        }
        let mut spec = payload.freeze();
        if spec.len() != total {
            return Err(Error::UnexpectedMessage { found: "too many bytes", expected: "the announced size" });
        }
        let partition = spec.split_off(start.spec_bytes as usize);
        self.rank = start.rank as usize;
        Ok(Assignment {
            job_id: start.job_id,
            rank: self.rank,
            world_size: start.addresses.len(),
            generation: start.generation,
            addresses: start.addresses,
            secret,
            program: start.program,
            spec,
            partition,
        })
    }

    /// Carries messages both ways until the rank has finished, or has left without an outcome.
    async fn work(&mut self, outbox: &Outbox, cancel: &Cancel) -> Result<()> {
        let listen = listen(&mut self.inbound, cancel);
        tokio::pin!(listen);
        let outcome = tokio::select! {
            outcome = send_until_outcome(&self.outbound, &mut self.heartbeat, outbox) => outcome?,
            heard = &mut listen => return Err(heard.err().unwrap_or_else(|| lost("confirmed before the outcome"))),
        };
        let Some(Outcome { result, reply }) = outcome else { return Ok(()) };
        let result = result.map(|output| if self.rank == 0 { output } else { Bytes::new() });
        let accepted = async {
            tokio::select! {
                sent = send_outcome(&self.outbound, result) => sent?,
                heard = &mut listen => return heard,
            }
            timeout(ACCEPT_TIMEOUT, &mut listen).await.map_err(|_| lost("the outcome was not confirmed"))?
        };
        // the rank program has returned by now: its caller learns of a loss from the reply, and ends by itself
        let _ = reply.send(accepted.await);
        Ok(())
    }
}

/// Hears cancellations, until the outcome is confirmed.
async fn listen(inbound: &mut Streaming<ToMember>, cancel: &Cancel) -> Result<()> {
    loop {
        match next_order(inbound).await? {
            Order::Cancel(reason) => {
                cancel.send_replace(Some(reason));
            }
            Order::Accepted(_) => return Ok(()),
            other => return Err(Error::UnexpectedMessage { found: other.name(), expected: "a cancellation" }),
        }
    }
}

async fn send_until_outcome(
    outbound: &mpsc::Sender<FromMember>,
    heartbeat: &mut Interval,
    outbox: &Outbox,
) -> Result<Option<Outcome>> {
    loop {
        let report = tokio::select! {
            // a rank that has much to tell is alive by that, yet must not be silent if telling takes long
            biased;
            _ = heartbeat.tick() => Report::Heartbeat(Heartbeat {}),
            next = outbox.next() => match next {
                Next::Send(report) => report,
                Next::Finish(outcome) => return Ok(Some(outcome)),
                Next::Close => return Ok(None),
            },
        };
        send(outbound, report).await?;
    }
}

async fn send_outcome(
    outbound: &mpsc::Sender<FromMember>,
    result: std::result::Result<Bytes, super::Failure>,
) -> Result<()> {
    let (output, failure) = match result {
        Ok(output) => (output, None),
        Err(failure) => (Bytes::new(), Some(failure.into())),
    };
    send(outbound, Report::Outcome(wire::Outcome { output_bytes: output.len() as u64, failure })).await?;
    for chunk in wire::chunks(output) {
        send(outbound, Report::Chunk(chunk)).await?;
    }
    Ok(())
}

async fn send(outbound: &mpsc::Sender<FromMember>, report: Report) -> Result<()> {
    outbound.send(report.into()).await.map_err(|_| lost("the coordinator no longer reads"))
}

async fn next_order(inbound: &mut Streaming<ToMember>) -> Result<Order> {
    loop {
        match inbound.message().await {
            Ok(Some(ToMember { order: Some(order) })) => return Ok(order),
            // a kind of message this version does not know
            Ok(Some(ToMember { order: None })) => {}
            Ok(None) => return Err(lost("closed by the coordinator")),
            Err(status) => return Err(lost(status.message())),
        }
    }
}

fn lost(reason: &str) -> Error {
    Error::ConnectionLost { reason: reason.to_string() }
}
