//! Evaluators: a file each, over metrics that summaries share.

pub mod binary_classification;
pub mod binary_metrics;
pub mod column;
pub mod multiclass_classification;
pub mod multiclass_metrics;
pub mod regression;
pub mod regression_metrics;
