//! What the sessions of one server share.

use std::sync::Arc;

use crate::{JobsFolder, Metrics, ModelStore, Options};

pub struct Services {
    /// Runs relations and SQL.
    pub engine: Arc<engine::embedded::Engine>,
    /// Runs barrier jobs.
    pub gang: gang::Handle,
    /// Serves partitions of the data to ranks.
    pub partitions: engine::flight::PartitionServer,
    /// Where ranks reach the gang's coordinator and the partitions, such as `http://127.0.0.1:41234`.
    pub internal_uri: String,
    /// Where the records of jobs are kept; None: nowhere.
    pub jobs: Option<Arc<JobsFolder>>,
    /// Models by name, and what trains them.
    pub models: Arc<ModelStore>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    pub options: Options,
}
