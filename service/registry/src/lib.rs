//! Models that outlive their session: named, versioned, aliased and tagged, as files of an object store.
//!
//! # What is where
//!     versions/<uuid>/...                        a version's files, written once; `files.json`, the list of them, last
//!     models/<schema>/<name>/manifest-<n>.json   what the model is now: the greatest `n` counts
//!     trainings/<id>.json                        what became of a training
//!     servers/<id>.json                          that a server still runs, for servers of other machines
//!
//! A change writes the next manifest with a put that fails where one stands already, so of two writers one wins and the
//! other reads again. Nothing else makes a version visible: a crash before leaves the old state, after it the new one.
//!
//! Knows: files, names, versions. Must not know: what a model is, what is in its files, who trains.

mod error;
mod live;
mod manifest;
mod model;
mod name;
mod rename;
mod reservation;
mod store;
mod sweep;
mod training;
mod version;

pub use error::{Error, Result};
pub use live::ServerIdentity;
pub use manifest::{Manifest, VersionEntry, check_alias};
pub use model::{Dropped, Publish};
pub use name::ModelName;
pub use reservation::{Intent, Reservation};
pub use store::{Registry, locate};
pub use training::{TrainingRecord, TrainingStatus};
pub use version::{Files, Staged};
