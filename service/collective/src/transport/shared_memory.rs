//! Memory that the ranks of one host share, and the step in which they exchange what they wrote there.
//!
//! Every rank has a control block, which only it writes, and two slots for values. A round uses one slot of every rank:
//! each writes its own, all make a step, and then each may read all. Rounds alternate between the two slots. When a
//! rank writes a slot again, two rounds later, everybody has made a step of the round between, and so has finished
//! reading: one step a round is enough.

mod file;
mod futex;

pub(crate) use file::{SegmentFile, remove, segment_name};

use std::{
    io,
    ops::Range,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use crate::{
    call::Call,
    element::Element,
    error::{Error, Result},
    signature::Signature,
};

/// A multiple of the cache line and of what the prefetcher fetches with it.
#[repr(C, align(256))]
struct ControlBlock {
    /// The steps this rank has made; wraps.
    steps: AtomicU32,
    /// How many ranks sleep until `steps` changes.
    sleepers: AtomicU32,
    /// 1 once this rank's group has failed: there is a notice on the control connection.
    failed: AtomicU32,
    /// The signatures of this call and the one before, by parity of the sequence number.
    signatures: [[AtomicU64; Signature::WORDS]; 2],
}

/// How often to look before sleeping where every rank can have a core: about as long as a sleep and a wake take.
const SPINS: u32 = 2000;
/// How often to give the core away before sleeping where the one that is waited for may need it.
const YIELDS: u32 = 10;
/// A core that comes back later than this was given to a stranger for the rest of its time slice.
const STRANGER_TIME: Duration = Duration::from_micros(500);
/// After that so many waits sleep at once: who is woken goes before those that have long run.
const WAITS_WITHOUT_YIELDS: u32 = 2000;

pub(crate) struct Segment {
    base: *mut u8,
    bytes: usize,
    slot_bytes: usize,
    /// Ranks of this host, by local rank.
    ranks: Vec<usize>,
    local_rank: usize,
    /// Counts this rank's rounds.
    rounds: AtomicU32,
    spins: u32,
    yields: u32,
    /// How many of the next waits must not give the core away.
    waits_without_yields: AtomicU32,
}

// SAFETY: `base` is a mapping that lives as long as the segment and does not belong to a thread. What several threads
// reach through it is atomic, or is a slot, and slots are only touched by the one call that the group admits at a time.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `SegmentFile::map` made, and nothing borrowed from it outlives `self`.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

impl Segment {
    fn control_bytes(num_ranks: usize) -> usize {
        (num_ranks * size_of::<ControlBlock>()).next_multiple_of(4096)
    }

    pub fn bytes_needed(num_ranks: usize, slot_bytes: usize) -> usize {
        Self::control_bytes(num_ranks) + num_ranks * 2 * slot_bytes
    }

    /// `base` must be a mapping of `bytes_needed` zeroed bytes, shared by `ranks`, which the segment unmaps.
    fn new(base: *mut u8, slot_bytes: usize, ranks: &[usize], local_rank: usize) -> Segment {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (spins, yields) = if ranks.len() <= cores { (SPINS, 0) } else { (0, YIELDS) };
        let bytes = Self::bytes_needed(ranks.len(), slot_bytes);
        let rounds = AtomicU32::new(0);
        Segment {
            base,
            bytes,
            slot_bytes,
            ranks: ranks.to_vec(),
            local_rank,
            rounds,
            spins,
            yields,
            waits_without_yields: AtomicU32::new(0),
        }
    }

    pub fn num_ranks(&self) -> usize {
        self.ranks.len()
    }

    pub fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// How many elements of `T` a slot holds.
    pub fn slot_len<T>(&self) -> usize {
        self.slot_bytes / size_of::<T>()
    }

    fn block(&self, local_rank: usize) -> &ControlBlock {
        debug_assert!(local_rank < self.ranks.len());
        // SAFETY: blocks stand at the start of the mapping, one for each rank, aligned to their size as the mapping is
        // to pages. They hold atomics only, valid as zeros, so that other processes may change them at any time.
        unsafe { &*self.base.cast::<ControlBlock>().add(local_rank) }
    }

    /// Starts a round: what the slots held before is given up.
    pub fn start_round(&self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }

    fn slot<T: Element>(&self, local_rank: usize, range: &Range<usize>) -> *mut T {
        assert!(local_rank < self.ranks.len() && range.start <= range.end && range.end <= self.slot_len::<T>());
        let parity = (self.rounds.load(Ordering::Relaxed) % 2) as usize;
        let offset = Self::control_bytes(self.ranks.len()) + (local_rank * 2 + parity) * self.slot_bytes;
        // SAFETY: the slot lies within the mapping, and by the assertion the range within the slot. Slots start at
        // multiples of 4096, so that elements are aligned.
        unsafe { self.base.add(offset).cast::<T>().add(range.start) }
    }

    /// Puts `values` into this rank's slot from element `start` on.
    pub fn write<T: Element>(&self, start: usize, values: &[T]) {
        let place = self.slot::<T>(self.local_rank, &(start..start + values.len()));
        // SAFETY: `slot` checked the range. Nobody reads this part of this rank's slot now: see the head of this file.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), place, values.len()) };
    }

    /// What `local_rank` wrote before the last step.
    pub fn read<T: Element>(&self, local_rank: usize, range: Range<usize>) -> &[T] {
        let place = self.slot::<T>(local_rank, &range);
        // SAFETY: `slot` checked the range, any bytes are valid elements, and the step put the writes before this read.
        // The owner does not write this part again before this rank's next step: see the head of this file.
        unsafe { std::slice::from_raw_parts(place, range.len()) }
    }

    /// Waits until all ranks of the host have made as many steps as this one; what they wrote before can be read then.
    /// The first step of a call also compares the signatures.
    pub fn step(&self, call: &Call<'_>) -> Result<()> {
        let own = self.block(self.local_rank);
        let parity = (call.signature.sequence % 2) as usize;
        if !call.agreed.get() {
            for (place, word) in own.signatures[parity].iter().zip(call.signature.to_words()) {
                place.store(word, Ordering::Relaxed);
            }
        }
        let step = own.steps.load(Ordering::Relaxed).wrapping_add(1);
        // Sequentially consistent, as is a sleeper's announcement: either it sees the step or this rank sees it.
        own.steps.store(step, Ordering::SeqCst);
        if own.sleepers.load(Ordering::SeqCst) > 0 {
            futex::wake_all(&own.steps);
        }
        for local_rank in (0..self.ranks.len()).filter(|&local_rank| local_rank != self.local_rank) {
            self.wait_for(call, local_rank, step)?;
        }
        if !call.agreed.replace(true) {
            self.compare_signatures(call, parity)?;
        }
        Ok(())
    }

    /// Lets the ranks of this host see before their next call that this one has failed.
    pub fn mark_failed(&self) {
        self.block(self.local_rank).failed.store(1, Ordering::Release);
    }

    pub fn somebody_failed(&self) -> bool {
        (0..self.ranks.len()).any(|local_rank| self.block(local_rank).failed.load(Ordering::Acquire) != 0)
    }

    fn compare_signatures(&self, call: &Call<'_>, parity: usize) -> Result<()> {
        for (local_rank, &rank) in self.ranks.iter().enumerate() {
            let words = self.block(local_rank).signatures[parity].each_ref().map(|word| word.load(Ordering::Relaxed));
            let found = Signature::from_words(words);
            if found != call.signature {
                return Err(call.signature.mismatch(rank, &found));
            }
        }
        Ok(())
    }

    fn has_made(&self, local_rank: usize, step: u32) -> bool {
        let made = self.block(local_rank).steps.load(Ordering::Acquire);
        made.wrapping_sub(step) < u32::MAX / 2
    }

    fn wait_for(&self, call: &Call<'_>, local_rank: usize, step: u32) -> Result<()> {
        for _ in 0..self.spins {
            if self.has_made(local_rank, step) {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        if self.made_while_yielding(local_rank, step) {
            return Ok(());
        }
        let block = self.block(local_rank);
        loop {
            block.sleepers.fetch_add(1, Ordering::SeqCst);
            let made = block.steps.load(Ordering::SeqCst);
            let slept = if made.wrapping_sub(step) < u32::MAX / 2 {
                Ok(())
            } else {
                futex::wait(&block.steps, made, call.nap())
            };
            block.sleepers.fetch_sub(1, Ordering::SeqCst);
            slept.map_err(|source: io::Error| Error::io("wait in shared memory", source))?;
            if self.has_made(local_rank, step) {
                return Ok(());
            }
            let outcome = call.pulse(|| self.missing(step));
            // A peer that made its last step and ended is no loss.
            if self.has_made(local_rank, step) {
                return Ok(());
            }
            outcome?;
        }
    }

    /// Gives the core away in the hope that the rank waited for is the one who gets it.
    fn made_while_yielding(&self, local_rank: usize, step: u32) -> bool {
        let without = self.waits_without_yields.load(Ordering::Relaxed);
        if without > 0 {
            self.waits_without_yields.store(without - 1, Ordering::Relaxed);
            return self.has_made(local_rank, step);
        }
        for _ in 0..self.yields {
            if self.has_made(local_rank, step) {
                return true;
            }
            let given = Instant::now();
            std::thread::yield_now();
            if given.elapsed() > STRANGER_TIME {
                self.waits_without_yields.store(WAITS_WITHOUT_YIELDS, Ordering::Relaxed);
                break;
            }
        }
        self.has_made(local_rank, step)
    }

    fn missing(&self, step: u32) -> Vec<usize> {
        (0..self.ranks.len()).filter(|&local| !self.has_made(local, step)).map(|local| self.ranks[local]).collect()
    }
}
