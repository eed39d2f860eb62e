//! One call of a collective on this rank: what it is, and how long it may take.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use crate::{
    call_record::CallRecord,
    control::{Control, notice::Notice},
    error::{Error, Result},
    signature::Signature,
};

/// The longest time a rank sleeps without looking at its peers: within it a death or an abort is seen.
pub(crate) const PULSE: Duration = Duration::from_millis(20);

pub(crate) struct Call<'g> {
    pub signature: Signature,
    pub control: &'g Control,
    started: Instant,
    timeout: Duration,
    announced: Cell<bool>,
    /// Whether the signature is in shared memory and was compared.
    pub agreed: Cell<bool>,
    /// How much this rank gives or gets; known to each collective.
    pub bytes: Cell<usize>,
}

impl<'g> Call<'g> {
    pub fn new(signature: Signature, control: &'g Control, timeout: Duration) -> Call<'g> {
        let (announced, agreed) = (Cell::new(false), Cell::new(false));
        Call { signature, control, started: Instant::now(), timeout, announced, agreed, bytes: Cell::new(0) }
    }

    pub fn record(&self) -> CallRecord {
        CallRecord {
            collective: self.signature.collective(),
            sequence: self.signature.sequence,
            bytes: self.bytes.get() as u64,
            started: self.started,
            elapsed: self.started.elapsed(),
        }
    }

    /// To be called by whatever blocks, at least once a `PULSE`.
    ///
    /// # Errors
    /// The gang failed, a peer is gone, or the deadline passed while `waiting_for` were missing.
    pub fn pulse(&self, waiting_for: impl FnOnce() -> Vec<usize>) -> Result<()> {
        self.control.check(self.signature.sequence)?;
        let waited = self.started.elapsed();
        if waited >= self.timeout {
            // A rank that is itself waiting is not to blame; if all say so, blame those this rank needs.
            let silent = self.control.silent_ranks(self.signature.sequence);
            let missing = if silent.is_empty() { waiting_for() } else { silent };
            let waited_ms = waited.as_millis() as u64;
            return Err(Error::Timeout { collective: self.signature.collective(), waited_ms, missing });
        }
        if waited >= self.timeout / 2 && !self.announced.replace(true) {
            self.control.tell_all(&Notice::Waiting { call: self.signature.sequence });
        }
        Ok(())
    }

    pub fn deadline(&self) -> Instant {
        self.started + self.timeout
    }

    pub fn waited(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether so much of the time is gone that a pulse is due, however well it goes.
    pub fn is_late(&self) -> bool {
        self.started.elapsed() >= self.timeout / 2
    }

    pub fn lost(&self, rank: usize, source: std::io::Error) -> Error {
        self.control.why_lost(rank, self.signature.sequence, source)
    }

    /// How long to sleep until the next pulse.
    pub fn nap(&self) -> Duration {
        let left = self.timeout.saturating_sub(self.started.elapsed());
        PULSE.min(left).max(Duration::from_millis(1))
    }
}
