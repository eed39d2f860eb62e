//! What a rank says while it trains.

pub mod meter;
pub mod timeline;

pub use meter::{Meter, StepCost};
pub use timeline::Timeline;

/// One step of a rank program, as it is shown to people.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Steps done so far.
    pub step: u64,
    /// Steps at most; 0 when unknown.
    pub steps_max: u64,
    /// Rows this rank has used so far: each counts as often as a pass has used it.
    pub rows: u64,
    /// The objective after this step, over all ranks.
    pub loss: Option<f64>,
    /// Anything else worth seeing, by name.
    pub metrics: Vec<(&'static str, f64)>,
}

pub trait Progress: Sync {
    fn report(&self, step: Step);
    /// Why the job was cancelled, once it was.
    fn cancelled(&self) -> Option<String>;
}

/// Reports nowhere, and is never cancelled.
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _: Step) {}
    fn cancelled(&self) -> Option<String> {
        None
    }
}
