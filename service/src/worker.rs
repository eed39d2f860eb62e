//! A rank's life on one page: join, read the partition, run the rank program over the collectives, hand the model over.

use std::error::Error as StdError;
use std::str::FromStr;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use collective::{Address, Group, Listener, Membership};
use connect::PartitionAddress;
use engine::flight::Ticket;
use futures::StreamExt;
use gang::{Assignment, Cancellation, Failure, Member, MemberOptions, Reporter};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use train::checkpoint::{self, Checkpointer};
use train::{Partition, RankContext};

use crate::rank_report::RankReport;

/// Record batches that are on their way to the rank program.
const RECORD_BATCHES_READ_AHEAD: usize = 4;

type BoxError = Box<dyn StdError + Send + Sync>;

/// # Errors
/// The gang could not be joined, or its coordinator was lost. A failing rank program is no error here: it is reported.
pub fn run() -> Result<(), BoxError> {
    // the gang's ranks share the machine: each takes one core for its arithmetic
    tch::set_num_threads(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let options = MemberOptions::from_env()?;
    loop {
        let has_succeeded = serve_one_gang(&runtime, options.clone())?;
        // only a process whose last program ended well is fit for another
        if !(has_succeeded && options.reusable) {
            return Ok(());
        }
        crate::memory::trim();
    }
}

/// Joins a gang and serves it to its end. Returns whether the rank program succeeded.
fn serve_one_gang(runtime: &Runtime, options: MemberOptions) -> Result<bool, BoxError> {
    let listener = Listener::bind(std::net::IpAddr::from([127, 0, 0, 1]))?;
    let address = listener.address().to_string();
    let (member, assignment) = runtime.block_on(Member::join(options, address))?;
    let reporter = member.reporter();
    let cancellation = member.cancellation();
    let result = run_program(runtime, listener, &assignment, reporter, cancellation);
    let has_succeeded = result.is_ok();
    runtime.block_on(member.finish(result.map(Bytes::from).map_err(failure)))?;
    Ok(has_succeeded)
}

/// Runs the rank program on this thread, while the runtime reads the partition and hears of a cancel.
fn run_program(
    runtime: &Runtime,
    listener: Listener,
    assignment: &Assignment,
    reporter: Reporter,
    cancellation: Cancellation,
) -> train::Result<Vec<u8>> {
    let program = ml::catalog::program(&assignment.program)
        .ok_or_else(|| train::Error::Bug { invariant: format!("program {} exists", assignment.program) })?;
    let address: PartitionAddress = serde_json::from_slice(&assignment.partition)
        .map_err(|source| train::Error::Partition { source: source.into() })?;
    let report = RankReport::new(assignment, address.is_traced, reporter, cancellation.clone());
    let mut group = listener.join(&collective::Options::default(), membership(assignment)?)?;
    group.observe(report.meter());
    let group = Arc::new(group);
    let watcher = runtime.spawn(abort_when_cancelled(Arc::clone(&group), cancellation));
    let checkpoints = checkpoints(runtime, assignment.rank, &address)?;
    let (schema, record_batches) = open_partition(runtime, &address)?;
    let mut record_batches = ReceivedBatches { receiver: record_batches, report: &report };
    let partition = Partition { schema, record_batches: &mut record_batches };
    let mut ctx = RankContext { group: &group, partition, progress: &report, checkpoints: checkpoints.as_ref() };
    let result = (program.run)(&assignment.spec, &mut ctx);
    report.program_ended(&result);
    if let Err(error) = &result {
        // peers that wait for this rank must not wait for the deadline
        group.abort(&error.to_string());
    }
    // the group is left when its last reference goes: peers take a rank that vanishes without leaving for lost
    watcher.abort();
    let _ = runtime.block_on(watcher);
    drop(group);
    result
}

fn membership(assignment: &Assignment) -> train::Result<Membership> {
    let addresses = assignment.addresses.iter().map(|text| Address::from_str(text)).collect::<Result<Vec<_>, _>>()?;
    Ok(Membership {
        job_id: assignment.job_id.clone(),
        generation: assignment.generation.into(),
        rank: assignment.rank,
        world_size: assignment.world_size,
        secret: assignment.secret,
        addresses,
    })
}

/// All ranks hold the same state between steps: rank 0 keeps it. What it has not written yet is, when this is dropped.
fn checkpoints(runtime: &Runtime, rank: usize, address: &PartitionAddress) -> train::Result<Box<dyn Checkpointer>> {
    match &address.checkpoints {
        Some(place) if rank == 0 => Ok(Box::new(checkpoint::Store::open(place.clone(), runtime.handle().clone())?)),
        _ => Ok(Box::new(checkpoint::Never)),
    }
}

async fn abort_when_cancelled(group: Arc<Group>, cancellation: Cancellation) {
    let reason = cancellation.wait().await;
    group.abort(&reason);
}

type Received = mpsc::Receiver<train::Result<RecordBatch>>;

/// Opens the stream of this rank's rows, which the runtime then reads ahead of the rank program.
fn open_partition(
    runtime: &Runtime,
    address: &PartitionAddress,
) -> train::Result<(arrow::datatypes::SchemaRef, Received)> {
    let partition = |source: BoxError| train::Error::Partition { source };
    let mut stream = runtime
        .block_on(engine::flight::fetch(&address.uri, &Ticket::from(address.ticket.clone())))
        .map_err(|source| partition(source.into()))?;
    let schema = Arc::clone(stream.schema());
    let (sender, receiver) = mpsc::channel(RECORD_BATCHES_READ_AHEAD);
    runtime.spawn(async move {
        while let Some(record_batch) = stream.next().await {
            let record_batch = record_batch.map_err(|source| partition(source.into()));
            if sender.send(record_batch).await.is_err() {
                break;
            }
        }
    });
    Ok((schema, receiver))
}

struct ReceivedBatches<'a> {
    receiver: Received,
    report: &'a RankReport,
}

impl Iterator for ReceivedBatches<'_> {
    type Item = train::Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let received = self.receiver.blocking_recv();
        if let Some(Ok(record_batch)) = &received {
            self.report.has_read(record_batch.get_array_memory_size());
        }
        received
    }
}

fn failure(error: train::Error) -> Failure {
    let class = match &error {
        train::Error::InvalidData { .. } | train::Error::LossNotFinite { .. } | train::Error::Cancelled { .. } => "user",
        train::Error::CheckpointNotUsable { .. } | train::Error::SnapshotMismatch { .. } => "user",
        train::Error::ModuleFailed { .. } => "user",
        train::Error::Collective { .. } | train::Error::Partition { .. } => "external",
        _ => "ours",
    };
    Failure {
        message: crate::chain(&error),
        class: class.into(),
        detail: error.class().into(),
        secondary: error.is_secondary(),
    }
}
