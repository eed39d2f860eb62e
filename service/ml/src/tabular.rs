//! Tables of raw columns to what estimators take, and back: numbers, texts and booleans with nulls in them become a vector
//! of features, labels of any type become class numbers.
//!
//! What is learned from the training rows (means, levels, classes) is plain data that is stored with a model, and replayed
//! at prediction. [`features`] and [`label`] each have a part that learns and a part that replays; [`split`] shares out
//! rows.

pub mod features;
pub mod label;
pub mod split;

mod numbers;

pub use features::{Encoding, FeatureColumn, FeatureFit, FeatureStatistics, Features, RawType};
pub use label::{Classes, LabelError};
pub use split::{Assignment, Part, RowHashes};
