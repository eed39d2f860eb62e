//! Broadcast: every rank gets the values of one.

use crate::{
    call::Call,
    element::Element,
    error::{Error, Result},
    group::Group,
    signature::{Collective, Signature},
};

impl Group {
    /// Replaces `values` by those of `root`. The length must be the same on all ranks.
    pub fn broadcast<T: Element>(&self, values: &mut [T], root: usize) -> Result<()> {
        let signature = Signature::new(Collective::Broadcast, T::TYPE, values.len()).with_root(root);
        self.run(signature, |call| {
            self.check_root(root)?;
            call.bytes.set(size_of_val(values));
            self.agree(call, &mut [])?;
            self.spread(call, values, root)
        })
    }

    /// Returns the bytes of `root`; those of the other ranks do not matter.
    pub fn broadcast_bytes(&self, mut bytes: Vec<u8>, root: usize) -> Result<Vec<u8>> {
        let signature = Signature::new(Collective::Broadcast, u8::TYPE, 0).with_root(root);
        self.run(signature, |call| {
            self.check_root(root)?;
            let mut len = [if self.rank() == root { bytes.len() as i64 } else { 0 }];
            self.agree(call, &mut len)?;
            let len = usize::try_from(len[0]).map_err(|_| Error::Mismatch {
                rank: root,
                expected: "bytes that fit in memory".into(),
                found: format!("{} bytes", len[0]),
            })?;
            if self.rank() != root {
                bytes.clear();
            }
            bytes.resize(len, 0);
            call.bytes.set(len);
            self.spread(call, &mut bytes, root)?;
            Ok(bytes)
        })
    }

    fn spread<T: Element>(&self, call: &Call<'_>, values: &mut [T], root: usize) -> Result<()> {
        let root_host = self.topology.host_of(root);
        let is_root_host = self.topology.host == root_host;
        if is_root_host {
            let local_root = self.topology.local_ranks().iter().position(|&rank| rank == root).unwrap_or(0);
            self.broadcast_host(call, values, local_root)?;
        }
        let Some(leaders) = self.leaders() else { return Ok(()) };
        if self.topology.is_leader() {
            let algorithm = self.topology.between_hosts(size_of_val(values), &self.options);
            leaders.broadcast(call, values, root_host, algorithm)?;
        }
        if is_root_host { Ok(()) } else { self.broadcast_host(call, values, 0) }
    }
}
