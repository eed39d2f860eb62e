//! A rank's place in its gang, and the frame of every call: one at a time, signed, with a deadline, and the last one once
//! something has failed.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    between_hosts::Leaders,
    call::Call,
    call_record::CallObserver,
    control::{Control, notice::Notice},
    error::{Error, Result},
    membership::Membership,
    options::Options,
    signature::Signature,
    topology::Topology,
    transport::{shared_memory::Segment, tcp::Links},
};

/// The ranks of one generation of a gang, connected.
///
/// Calls on one group must be made in the same order on all ranks. They may come from several threads: a call waits
/// until the one before it has returned. After an error every further call returns the first error.
///
/// A rank that has made its last call drops its group, which tells the others that it leaves in good order; a process
/// that ends without counts as lost by ranks that are still in the call.
pub struct Group {
    pub(crate) options: Options,
    pub(crate) topology: Topology,
    pub(crate) links: Links,
    pub(crate) segment: Option<Segment>,
    control: Control,
    observer: Option<Arc<dyn CallObserver>>,
    rank: usize,
    world_size: usize,
    generation: u64,
    /// How many calls were made. Held for the time of a call.
    calls: Mutex<u64>,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("rank", &self.rank)
            .field("world_size", &self.world_size)
            .field("generation", &self.generation)
            .field("hosts", &self.topology.hosts)
            .finish_non_exhaustive()
    }
}

impl Group {
    pub(crate) fn new(
        options: Options,
        membership: &Membership,
        topology: Topology,
        control: Control,
        links: Links,
        segment: Option<Segment>,
    ) -> Group {
        Group {
            options,
            topology,
            links,
            segment,
            control,
            observer: None,
            rank: membership.rank,
            world_size: membership.world_size,
            generation: membership.generation,
            calls: Mutex::new(0),
        }
    }

    /// A gang of one rank, of generation 0: its calls return what a gang of equals would.
    pub fn single() -> Group {
        Group {
            options: Options::default(),
            topology: Topology::alone(),
            links: Links::none(),
            segment: None,
            control: Control::new(0, 1),
            observer: None,
            rank: 0,
            world_size: 1,
            generation: 0,
            calls: Mutex::new(0),
        }
    }

    /// Lets `observer` see every call from now on.
    pub fn observe(&mut self, observer: Arc<dyn CallObserver>) {
        self.observer = Some(observer);
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn world_size(&self) -> usize {
        self.world_size
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Ends the gang, from any thread: blocked and later calls on all ranks return `Aborted`, unless something else
    /// failed first.
    pub fn abort(&self, reason: &str) {
        self.fail(Error::Aborted { reason: reason.to_string() });
    }

    fn fail(&self, error: Error) -> Error {
        let first = self.control.fail(error);
        // After the notices, which those who see the mark then look for.
        if let Some(segment) = &self.segment {
            segment.mark_failed();
        }
        first
    }

    /// Whether peers may have failed since the last call; looked at before a call that might not block.
    fn check_peers(&self, sequence: u64) -> Result<()> {
        let is_marked = self.segment.as_ref().is_some_and(Segment::somebody_failed);
        if is_marked || self.topology.hosts.len() > 1 { self.control.check(sequence) } else { Ok(()) }
    }

    /// Makes one call. Whatever goes wrong in it ends the gang.
    pub(crate) fn run<R>(&self, signature: Signature, body: impl FnOnce(&Call<'_>) -> Result<R>) -> Result<R> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = self.control.failure() {
            return Err(error);
        }
        *calls += 1;
        let signature = signature.as_call(*calls, self.generation);
        let _unwound = Unwound(self);
        let call = Call::new(signature, &self.control, self.options.timeout);
        let result = self.check_peers(*calls).and_then(|()| body(&call)).map_err(|error| self.fail(error));
        if let Some(observer) = &self.observer {
            observer.call_returned(call.record());
        }
        result
    }

    /// The leaders of the hosts; `None` if there is one host only.
    pub(crate) fn leaders(&self) -> Option<Leaders<'_>> {
        (self.topology.hosts.len() > 1).then(|| Leaders {
            links: &self.links,
            ranks: self.topology.leaders(),
            host: self.topology.host,
            chunk_bytes: self.options.chunk_bytes,
        })
    }

    pub(crate) fn check_root(&self, root: usize) -> Result<()> {
        if root < self.world_size {
            return Ok(());
        }
        Err(Error::RootOutOfRange { root, world_size: self.world_size })
    }
}

/// Ends the gang if a call panics: the ranks are out of step then.
struct Unwound<'g>(&'g Group);

impl Drop for Unwound<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Error::Aborted { reason: "a rank panicked within a call".into() });
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let calls = *self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if self.control.failure().is_none() {
            self.control.tell_all(&Notice::Leaving { calls });
        }
    }
}
