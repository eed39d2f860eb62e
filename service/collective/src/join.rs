//! From a membership to a group: every pair of ranks connects and proves that it belongs together, then the ranks of a
//! host share memory. The higher rank of a pair connects, the lower one accepts.

mod handshake;
mod meet;

use std::{
    io,
    net::{IpAddr, TcpListener},
    os::fd::AsRawFd,
};

use handshake::Identity;
use meet::Meeting;

use crate::{
    call::Call,
    control::{Control, notice::Notice},
    element::ElementType,
    error::{Error, Result},
    group::Group,
    membership::{Address, Membership},
    options::Options,
    signature::{Collective, Signature},
    topology::Topology,
    transport::{
        shared_memory::{self, Segment, SegmentFile},
        tcp::Links,
    },
};

/// Where the other ranks reach this one, before it is known who they are.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: Address,
}

impl Listener {
    /// Listens on a free port of `ip`, the address under which the other ranks reach this host.
    ///
    /// # Errors
    /// `InvalidAddress` for an unspecified address (`0.0.0.0`, `::`), which nobody can connect to; `Io`.
    pub fn bind(ip: IpAddr) -> Result<Listener> {
        if ip.is_unspecified() {
            let reason = "other ranks cannot connect to an unspecified address".to_string();
            return Err(Error::InvalidAddress { text: ip.to_string(), reason });
        }
        let error = |source| Error::io("listen for the other ranks", source);
        let listener = TcpListener::bind((ip, 0)).map_err(error)?;
        lengthen_queue(&listener).map_err(error)?;
        listener.set_nonblocking(true).map_err(error)?;
        let socket = listener.local_addr().map_err(error)?;
        Ok(Listener { listener, address: Address { host_id: Address::this_host()?, socket } })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connects to all other ranks and returns when all of them are connected.
    ///
    /// # Errors
    /// `Timeout` after `connect_timeout` with the ranks that are missing; `Authentication` if one of the peers does not
    /// know the secret; `Mismatch` if it is of another job, generation or world size, or has other options.
    pub fn join(self, options: &Options, membership: Membership) -> Result<Group> {
        options.validate()?;
        membership.validate()?;
        let topology = Topology::new(&membership.addresses, membership.rank, options.shared_memory);
        let control = Control::new(membership.rank, membership.world_size);
        let signature = Signature::new(Collective::Join, ElementType::U8, 0);
        let call = Call::new(signature, &control, options.connect_timeout);

        let outcome = self.connect_all(&call, options, &membership, &topology);
        match outcome {
            Ok((links, segment)) => Ok(Group::new(options.clone(), &membership, topology, control, links, segment)),
            Err(error) => Err(control.fail(error)),
        }
    }

    fn connect_all(
        self,
        call: &Call<'_>,
        options: &Options,
        membership: &Membership,
        topology: &Topology,
    ) -> Result<(Links, Option<Segment>)> {
        let identity = Identity::new(membership, options);
        let links = Meeting::new(call, membership, topology, identity).run(&self.listener)?;
        let links = Links::new(links)?;
        let mut name = None;
        let segment = share_memory(call, options, membership, topology, &mut name);
        // All have mapped it, or the join has failed: nobody needs the name any more.
        if let Some(name) = name {
            shared_memory::remove(&name);
        }
        Ok((links, segment?))
    }
}

/// The standard library lets 128 connections wait to be accepted, and the kernel makes those beyond try again after a
/// second or resets them; all the other ranks may connect at the same moment.
fn lengthen_queue(listener: &TcpListener) -> io::Result<()> {
    const CONNECTIONS_MAX: libc::c_int = 2 * Membership::WORLD_SIZE_MAX as libc::c_int;
    // SAFETY: the descriptor is open and listens; listening again only sets the length, up to the system's own limit.
    match unsafe { libc::listen(listener.as_raw_fd(), CONNECTIONS_MAX) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `name` is set as soon as there may be a file of that name.
fn share_memory(
    call: &Call<'_>,
    options: &Options,
    membership: &Membership,
    topology: &Topology,
    name: &mut Option<String>,
) -> Result<Option<Segment>> {
    let locals = topology.local_ranks();
    let leader = locals[0];
    let mut segment = None;
    if locals.len() > 1 {
        let file = if topology.is_leader() {
            let new_name = shared_memory::segment_name(&membership.job_id, membership.generation)?;
            // The others learn the name before the file exists, so that they can remove it if this rank is killed.
            for &local in &locals[1..] {
                call.control.tell(local, &Notice::Segment { name: new_name.clone() });
            }
            let bytes = Segment::bytes_needed(locals.len(), options.chunk_bytes);
            SegmentFile::create(name.insert(new_name), bytes)?
        } else {
            wait_until(call, || {
                *name = call.control.segment_name(leader);
                if call.control.is_ready(leader) { Vec::new() } else { vec![leader] }
            })?;
            let missing = || Error::InvalidMembership { reason: format!("rank {leader} leads no host") };
            SegmentFile::open(name.as_deref().ok_or_else(missing)?)?
        };
        segment = Some(file.map(options.chunk_bytes, locals, topology.local_rank)?);
        call.control.tell_all(&Notice::Ready);
        // The leader's file stays open, and so locked, until everybody is ready.
        wait_for_all(call, membership)?;
    } else {
        call.control.tell_all(&Notice::Ready);
        wait_for_all(call, membership)?;
    }
    Ok(segment)
}

fn wait_for_all(call: &Call<'_>, membership: &Membership) -> Result<()> {
    wait_until(call, || (0..membership.world_size).filter(|&rank| !call.control.is_ready(rank)).collect())
}

/// Waits until `missing` is empty.
fn wait_until(call: &Call<'_>, mut missing: impl FnMut() -> Vec<usize>) -> Result<()> {
    loop {
        let outcome = call.pulse(&mut missing);
        if missing().is_empty() {
            return Ok(());
        }
        outcome?;
        let mut interest = crate::transport::poll::Interest::default();
        call.control.watch(&mut interest);
        interest.wait(call.nap()).map_err(|source| Error::io("wait for a peer", source))?;
    }
}
