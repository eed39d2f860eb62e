//! Collectives among the ranks of a gang: how gradients and statistics of several processes become one.
//!
//! Knows: ranks, hosts, values of a few plain types, shared memory and TCP. Must not know: tensors, algorithms, how a gang
//! is formed or restarted, Spark. All calls block, and all have a deadline.
//!
//! `Listener::bind` gives the address that goes through the rendezvous; `Listener::join` makes the `Group` from what the
//! rendezvous answers. Ranks of one host exchange values through shared memory, and their leaders do so with those of
//! other hosts over TCP. One host, or hosts of one rank each, are the same algorithm with one part empty.
//!
//! Both ends of a connection prove that they know the job's secret before anything else passes. What passes then is neither
//! encrypted nor signed: who can read or change packets between hosts can do so with gradients.

mod group;
mod join;
mod membership;
mod options;

mod all_gather;
mod all_reduce;
mod barrier;
mod broadcast;
mod reduce_scatter;

mod between_hosts;
mod call;
mod call_record;
mod control;
mod signature;
mod topology;
mod transport;
mod within_host;

mod element;
mod error;
mod reduce_op;

pub use call_record::{CallObserver, CallRecord};
pub use element::{Element, ElementType};
pub use error::{Class, Error, Result};
pub use group::Group;
pub use join::Listener;
pub use membership::{Address, Membership};
pub use options::Options;
pub use reduce_op::ReduceOp;
pub use topology::shard_range;
