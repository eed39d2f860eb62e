//! What a fit or an evaluation says of itself.
//!
//! Some attributes are known at once (`objectiveHistory`), `predictions` is a lazy relation, and the rest are folds over
//! the predictions (`areaUnderROC`, `roc`). The caller runs the fold, distributed over partitions, and hands it back.

pub mod classification;
pub mod regression;
mod student;

use crate::{Accumulator, Argument, Attribute, Result};

/// The answer to a fetch from a summary.
pub enum SummaryAttribute {
    Ready(Attribute),
    /// The model's output on the summary's dataset, all columns or the named ones (under their new names).
    Predictions { select: Option<Vec<String>> },
    /// Not known before [`Summary::accumulator`] has seen the predictions and was given to [`Summary::observe`].
    NeedsPredictions,
}

pub trait Summary: Send + Sync {
    /// # Errors
    /// [`crate::Error::AttributeNotAllowed`] for names that Spark does not allow on this summary.
    fn attribute(&self, name: &str, arguments: &[Argument]) -> Result<SummaryAttribute>;

    /// The columns of the predictions that the accumulator reads, in this order.
    fn columns(&self) -> Vec<String>;

    fn accumulator(&self) -> Result<Box<dyn Accumulator>>;

    /// Takes the merged accumulator; later attributes come from it.
    fn observe(&self, accumulator: Box<dyn Accumulator>) -> Result<()>;
}
