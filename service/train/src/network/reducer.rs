//! Buckets of gradients are summed over the ranks while the backward pass goes on.
//!
//! Every rank sends its buckets in the same order, from the last layer's to the first's, whatever order its gradients come
//! in, and sends all of them in every step. So ranks agree on their calls even if some have no rows in a step, or use only
//! a part of the module.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender};

use collective::{Element, Group, ReduceOp};
use half::{bf16, f16};

use super::Wire;
use super::flat::Flat;
use super::native::Ready;
use crate::{Error, Result};

/// A bucket that no backward pass adds to any more, until it is waited for.
struct Job {
    values: *mut f32,
    len: usize,
}

// SAFETY: whoever sends a job leaves its memory alone until the answer came.
unsafe impl Send for Job {}

/// Sends buckets to the thread that reduces them.
pub struct Reducer<'a> {
    group: &'a Group,
    wire: Wire,
    buckets: Vec<Range<usize>>,
    bucket_of: Vec<usize>,
    gradients: *mut f32,
    jobs: Sender<Job>,
    answers: Receiver<collective::Result<()>>,
    /// Parameters of each bucket whose gradients are still to come.
    missing: RefCell<Vec<usize>>,
    /// Whether gradients that come now are the step's last.
    is_armed: Cell<bool>,
    num_sent: Cell<usize>,
}

impl<'a> Reducer<'a> {
    /// Starts the thread, which ends when the reducer is dropped. `flat` must outlive the reducer.
    ///
    /// # Errors
    /// No thread is left.
    pub fn new<'scope>(
        scope: &'scope std::thread::Scope<'scope, '_>,
        group: &'a Group,
        flat: &Flat,
        wire: Wire,
    ) -> Result<Reducer<'a>>
    where
        'a: 'scope,
    {
        let (jobs, received) = std::sync::mpsc::channel::<Job>();
        let (sender, answers) = std::sync::mpsc::channel();
        let reduce_until_closed = move || {
            for job in received {
                // SAFETY: the sender leaves this memory to us until it has the answer, and keeps it alive.
                let values = unsafe { std::slice::from_raw_parts_mut(job.values, job.len) };
                if sender.send(reduce(group, values, wire)).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new()
            .name("gradients".into())
            .spawn_scoped(scope, reduce_until_closed)
            .map_err(|source| Error::Bug { invariant: format!("a thread for gradients can be started: {source}") })?;
        Ok(Reducer {
            group,
            wire,
            buckets: flat.buckets().to_vec(),
            bucket_of: flat.bucket_of().to_vec(),
            gradients: flat.gradients_pointer(),
            jobs,
            answers,
            missing: RefCell::default(),
            is_armed: Cell::new(false),
            num_sent: Cell::new(0),
        })
    }

    /// Begins a step: no bucket is ready.
    pub fn begin(&self) {
        let mut missing = vec![0; self.buckets.len()];
        self.bucket_of.iter().for_each(|bucket| missing[*bucket] += 1);
        self.missing.replace(missing);
        self.num_sent.set(0);
        self.is_armed.set(false);
    }

    /// The backward pass that comes now is the step's last.
    pub fn arm(&self) {
        self.is_armed.set(true);
    }

    /// Reduces what is left, and waits for the rest. Gradients are the sums over all ranks then.
    ///
    /// # Errors
    /// Those of the collective.
    pub fn finish(&self) -> Result<()> {
        self.is_armed.set(false);
        while self.num_sent.get() + 1 < self.buckets.len() {
            self.send_next();
        }
        for _ in 0..self.num_sent.get() {
            let answer = self.answers.recv();
            answer.map_err(|_| Error::Bug { invariant: "the thread of the gradients answers".into() })??;
        }
        // the last bucket has nothing left to overlap with: a thread would only add its waking up
        let Some(last) = self.buckets.last() else { return Ok(()) };
        // SAFETY: within the buffer of gradients, which no backward pass adds to now.
        let values = unsafe { std::slice::from_raw_parts_mut(self.gradients.add(last.start), last.len()) };
        Ok(reduce(self.group, values, self.wire)?)
    }

    fn send_next(&self) {
        let bucket = &self.buckets[self.num_sent.get()];
        // SAFETY: the bucket is within the buffer of gradients.
        let values = unsafe { self.gradients.add(bucket.start) };
        self.num_sent.set(self.num_sent.get() + 1);
        // that the thread is gone is seen where its answer is waited for
        let _ = self.jobs.send(Job { values, len: bucket.len() });
    }
}

impl Ready for Reducer<'_> {
    fn is_ready(&self, parameter: usize) {
        if !self.is_armed.get() {
            return;
        }
        let mut missing = self.missing.borrow_mut();
        let count = &mut missing[self.bucket_of[parameter]];
        *count = count.saturating_sub(1);
        // all but the last one, which `finish` keeps for itself
        while self.num_sent.get() + 1 < self.buckets.len() && missing[self.num_sent.get()] == 0 {
            self.send_next();
        }
    }
}

fn reduce(group: &Group, values: &mut [f32], wire: Wire) -> collective::Result<()> {
    match wire {
        Wire::F32 => group.all_reduce(values, ReduceOp::Sum),
        Wire::Bf16 => reduce_as(group, values, bf16::from_f32, bf16::to_f32),
        Wire::F16 => reduce_as(group, values, f16::from_f32, f16::to_f32),
    }
}

fn reduce_as<T: Element>(
    group: &Group,
    values: &mut [f32],
    narrow: fn(f32) -> T,
    widen: fn(T) -> f32,
) -> collective::Result<()> {
    let mut narrowed: Vec<T> = values.iter().map(|v| narrow(*v)).collect();
    group.all_reduce(&mut narrowed, ReduceOp::Sum)?;
    values.iter_mut().zip(narrowed).for_each(|(value, narrowed)| *value = widen(narrowed));
    Ok(())
}
