//! A minimization between two steps, as bytes: whoever goes on from it does what the first would have done, bit by bit.

use crate::checkpoint::{Reader, Writer};
use crate::{Error, Result};

/// Where a minimization starts.
pub enum Start<'a> {
    /// At a point, knowing nothing.
    At(&'a [f64]),
    /// Where another one was. Its point is neither shown to the observer nor counted again.
    From(&'a Snapshot),
}

impl Start<'_> {
    pub(super) fn point(&self) -> &[f64] {
        match self {
            Start::At(point) => point,
            Start::From(snapshot) => &snapshot.point,
        }
    }
}

/// Everything that the steps to come depend on, beside the objective and the options.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub(super) method: String,
    pub(super) iteration: u64,
    pub(super) point: Vec<f64>,
    /// The objective's, as the gradient: without the method's own penalty, which follows from them.
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    pub(super) initial_value: f64,
    pub(super) window: Vec<f64>,
    pub(super) history: Vec<f64>,
    pub(super) search_failed: bool,
    pub(super) failed_once: bool,
    /// The steps that the curvature is estimated from, with the change of the gradient over each, oldest first.
    pub(super) pairs: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Snapshot {
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    pub fn num_parameters(&self) -> usize {
        self.point.len()
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Writer::default();
        bytes.text(&self.method);
        bytes.number(self.iteration);
        for flag in [self.search_failed, self.failed_once] {
            bytes.number(u64::from(flag));
        }
        bytes.doubles(&[self.value, self.initial_value]);
        for values in [&self.point, &self.gradient, &self.window, &self.history] {
            bytes.doubles(values);
        }
        bytes.number(self.pairs.len() as u64);
        for (step, change) in &self.pairs {
            bytes.doubles(step);
            bytes.doubles(change);
        }
        bytes.finish()
    }

    /// # Errors
    /// [`Error::SnapshotMismatch`]: these are not the bytes of a snapshot.
    pub fn from_bytes(bytes: &[u8]) -> Result<Snapshot> {
        Snapshot::read(&mut Reader::new(bytes))
            .ok_or_else(|| Error::SnapshotMismatch { reason: "its bytes are no minimizer's state".into() })
    }

    fn read(bytes: &mut Reader<'_>) -> Option<Snapshot> {
        let method = bytes.text()?;
        let iteration = bytes.number()?;
        let (search_failed, failed_once) = (bytes.number()? != 0, bytes.number()? != 0);
        let [value, initial_value] = bytes.doubles()?[..] else { return None };
        let (point, gradient, window, history) =
            (bytes.doubles()?, bytes.doubles()?, bytes.doubles()?, bytes.doubles()?);
        let mut pairs = Vec::new();
        for _ in 0..bytes.number()? {
            pairs.push((bytes.doubles()?, bytes.doubles()?));
        }
        let is_whole = gradient.len() == point.len()
            && pairs.iter().all(|(step, change)| step.len() == point.len() && change.len() == point.len())
            && bytes.is_at_end();
        let snapshot = Snapshot {
            method,
            iteration,
            point,
            value,
            gradient,
            initial_value,
            window,
            history,
            search_failed,
            failed_once,
            pairs,
        };
        is_whole.then_some(snapshot)
    }

    pub(super) fn check(&self, method: &str) -> Result<()> {
        match self.method == method {
            true => Ok(()),
            false => {
                Err(Error::SnapshotMismatch { reason: format!("it is one of {}, expected {method}", self.method) })
            }
        }
    }
}
