//! What the server can be told: arguments over a file over defaults.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;

#[derive(Args)]
pub struct ServeArgs {
    /// Address to listen on [default: 127.0.0.1].
    #[arg(long)]
    pub host: Option<IpAddr>,
    /// Port to listen on; 0 takes any free one [default: 15002].
    #[arg(long)]
    pub port: Option<u16>,
    /// TOML file with any of the keys of the configuration.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the server keeps what outlives it, such as tables [default: ./phalanx-data].
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Ranks that may run at the same time [default: the machine's cores].
    #[arg(long)]
    pub slots: Option<usize>,
}

/// The configuration. Every key can stand in the file; those with an argument can be given on the command line too.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 takes any free one.
    pub port: u16,
    /// Where the server keeps what outlives it.
    pub data_dir: PathBuf,
    /// Ranks that may run at the same time, over all sessions.
    pub slots: usize,
    /// Ranks of a fit whose session does not set `spark.phalanx.workers`. 0: as many as there are slots.
    pub default_workers: usize,
    /// Idle ranks kept ready, so that a fit need not start processes. Absent: as many as there are slots.
    pub warm_workers: Option<usize>,
    /// Partitions that a query runs in. 0: as many as there are cores.
    pub query_partitions: usize,
    /// Memory that queries may take before they spill, in bytes. 0: no limit.
    pub query_memory_bytes_max: usize,
    /// The bearer token that clients must send. Empty: none is asked for.
    pub token: String,
    /// Seconds that a rank may give no sign of life before its gang ends.
    pub stall_timeout_s: u64,
    /// Port of the Prometheus metrics, on `metrics_host`. 0 takes any free one; absent: they are not served.
    pub metrics_port: Option<u16>,
    /// Address of the metrics. Whoever reaches it can read them.
    pub metrics_host: IpAddr,
    /// Folder or `file://` URL of the models that SQL trains; empty: `models` in `data_dir`. Servers may share one.
    pub models: String,
    /// How many jobs that have ended keep their records. 0: jobs are not recorded.
    pub job_records_max: usize,
    /// Minutes after its last call that a session ends.
    pub session_idle_timeout_min: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            host: IpAddr::from([127, 0, 0, 1]),
            port: 15002,
            data_dir: PathBuf::from("phalanx-data"),
            slots: cores(),
            default_workers: 0,
            warm_workers: None,
            query_partitions: 0,
            query_memory_bytes_max: 0,
            token: String::new(),
            stall_timeout_s: 6,
            metrics_port: None,
            metrics_host: IpAddr::from([127, 0, 0, 1]),
            models: String::new(),
            job_records_max: 1000,
            session_idle_timeout_min: 60,
        }
    }
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the configuration {path}")]
    Read { path: String, source: std::io::Error },
    #[error("the configuration {path} is not valid")]
    Parse { path: String, source: toml::de::Error },
    #[error("{key} must be at least 1")]
    NotPositive { key: &'static str },
    #[error("without a token the server listens on loopback only: set token, or host to a loopback address, not {host}")]
    OpenToAll { host: IpAddr },
}

impl Config {
    /// # Errors
    /// The file cannot be read, has unknown keys or wrong types; values that cannot be.
    pub fn load(args: ServeArgs) -> Result<Config, Error> {
        let mut config = match &args.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        config.host = args.host.unwrap_or(config.host);
        config.port = args.port.unwrap_or(config.port);
        config.slots = args.slots.unwrap_or(config.slots);
        if let Some(data_dir) = args.data_dir {
            config.data_dir = data_dir;
        }
        config.check()
    }

    fn read(path: &Path) -> Result<Config, Error> {
        let shown = || path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: shown(), source })?;
        toml::from_str(&text).map_err(|source| Error::Parse { path: shown(), source })
    }

    fn check(mut self) -> Result<Config, Error> {
        if self.slots == 0 {
            return Err(Error::NotPositive { key: "slots" });
        }
        if self.stall_timeout_s == 0 {
            return Err(Error::NotPositive { key: "stall_timeout_s" });
        }
        if self.token.is_empty() && !self.host.is_loopback() {
            return Err(Error::OpenToAll { host: self.host });
        }
        if self.default_workers == 0 {
            self.default_workers = self.slots;
        }
        if self.query_partitions == 0 {
            self.query_partitions = cores();
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_does_not_exist_is_refused_by_name() {
        let error = toml::from_str::<Config>("prot = 1").unwrap_err();
        assert!(error.to_string().contains("prot"), "{error}");
    }

    #[test]
    fn a_server_open_to_all_needs_a_token() {
        let open = Config { host: IpAddr::from([0, 0, 0, 0]), ..Config::default() };
        assert!(matches!(open.clone().check(), Err(Error::OpenToAll { .. })));
        assert!(Config { token: "secret".into(), ..open }.check().is_ok());
    }

    #[test]
    fn zeros_mean_what_the_machine_has() {
        let config = Config { slots: 3, ..Config::default() }.check().unwrap();
        assert_eq!(config.default_workers, 3);
        assert_eq!(config.query_partitions, cores());
    }
}
