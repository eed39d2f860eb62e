//! The control plane of barrier jobs: gangs of ranks that start together or not at all, and end together.
//!
//! A [`BarrierJob`] waits in its pool's queue, holding nothing, until all the slots it needs are free. Its ranks are
//! then launched as one gang, meet at the rendezvous, run, and finish, fail or are cancelled as one. The server's side
//! is [`Service`] and [`Handle`]; a rank's side is [`Member`].
//!
//! Knows: jobs, slots, processes, the control stream between a rank and the coordinator.
//! Must not know: tensors, tables, Spark, nor what a rank computes. A rank program is a name and bytes, an output is
//! bytes, a rank's own collective address is text.

mod error;
mod job;
mod options;
mod partitions;
mod reservation;
mod secret;

mod admission;
mod attempt;
mod liveness;
mod warm;

mod coordinator;
mod event;
mod rendezvous;
mod running_job;
mod wire;

mod launcher;
mod process;

mod member;

pub use coordinator::{Handle, Service};
pub use error::{Class, Error, RankFailure, Result};
pub use event::{Event, Progress};
pub use job::{BarrierJob, JobState, JobView, RankState, RankView};
pub use launcher::{Exit, LaunchError, LaunchedRank, Launcher, LogSink, RankLaunch, Signal};
pub use member::{Assignment, Cancellation, Failure, Member, MemberOptions, Reporter};
pub use options::Options;
pub use partitions::Partitions;
pub use process::ProcessLauncher;
pub use rendezvous::GangService;
pub use reservation::{Reservation, SlotRequest};
pub use running_job::RunningJob;
pub use secret::Secret;
pub use wire::RECORD_BYTES_MAX;

/// The tonic server of the control stream, ready to be added to a [`tonic::transport::Server`].
pub type GangServer = wire::gang_server::GangServer<GangService>;
