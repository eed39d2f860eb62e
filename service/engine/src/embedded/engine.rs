//! What all sessions of one server share: memory, spill files, global views and the rules plans are made with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, UnboundedMemoryPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionState;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;
use parking_lot::RwLock;

use super::Frame;
use super::functions::PartitionAware;
use super::operator::{OrderedCoalesceRule, SparkQueryPlanner};
use super::python::ExtractRule;
use crate::{Error, Result};

/// How an [`Engine`] is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Partitions that a query without a partitioning of its own runs in.
    pub target_partitions: usize,
    /// Bytes that sorts, joins and aggregations of all queries together may hold before they spill. None: no limit.
    pub memory_limit_bytes: Option<usize>,
    /// Where they spill to. None: the system's folder for temporary files.
    pub spill_dir: Option<PathBuf>,
    /// Where tables without a path of their own are written.
    pub warehouse_dir: PathBuf,
    /// The processes that run Python functions. None: such functions are refused.
    pub python: Option<python::Workers>,
}

impl Default for Options {
    fn default() -> Options {
        let target_partitions = std::thread::available_parallelism().map(usize::from).unwrap_or(1);
        Options { target_partitions, memory_limit_bytes: None, spill_dir: None, warehouse_dir: "spark-warehouse".into(), python: None }
    }
}

/// One a server.
#[derive(Debug)]
pub struct Engine {
    pub(super) options: Options,
    pub(super) state: SessionState,
    /// Global temporary views by lower-case name: all sessions see them.
    pub(super) global_views: RwLock<BTreeMap<String, Frame>>,
}

impl Engine {
    /// # Errors
    /// [`Error::Io`] where the spill folder cannot be used.
    pub fn new(options: Options) -> Result<Arc<Engine>> {
        let runtime = runtime(&options)?;
        let state = state(&options, runtime);
        Ok(Arc::new(Engine { options, state, global_views: RwLock::default() }))
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    pub fn runtime(&self) -> &Arc<RuntimeEnv> {
        self.state.runtime_env()
    }
}

fn runtime(options: &Options) -> Result<Arc<RuntimeEnv>> {
    let mut disk = DiskManagerBuilder::default();
    if let Some(folder) = &options.spill_dir {
        std::fs::create_dir_all(folder)
            .map_err(|source| Error::Io { path: folder.display().to_string(), source })?;
        disk = disk.with_mode(DiskManagerMode::Directories(vec![folder.clone()]));
    }
    let builder = RuntimeEnvBuilder::new().with_disk_manager_builder(disk);
    let builder = match options.memory_limit_bytes {
        Some(bytes) => builder.with_memory_pool(Arc::new(FairSpillPool::new(bytes))),
        None => builder.with_memory_pool(Arc::new(UnboundedMemoryPool::default())),
    };
    Ok(builder.build_arc()?)
}

fn state(options: &Options, runtime: Arc<RuntimeEnv>) -> SessionState {
    let mut config = SessionConfig::new()
        .with_target_partitions(options.target_partitions.max(1))
        .with_information_schema(false)
        // Rows keep the order of partition, then position, as a Spark user sees it: dealing batches out would lose it.
        .with_round_robin_repartition(false);
    let settings = config.options_mut();
    // Spark's column metadata lives in the fields of files; strings stay Utf8.
    settings.execution.parquet.skip_metadata = false;
    settings.execution.parquet.schema_force_view_types = false;
    settings.sql_parser.enable_ident_normalization = false;
    let mut rules = PhysicalOptimizer::new().rules;
    rules.push(Arc::new(PartitionAware));
    rules.push(Arc::new(OrderedCoalesceRule));
    SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_physical_optimizer_rules(rules)
        .with_analyzer_rule(Arc::new(ExtractRule))
        .with_query_planner(Arc::new(SparkQueryPlanner))
        .build()
}
