//! Phalanx: a Spark Connect server whose speciality is training.
//!
//! Layout: arguments -> `config` -> `serve` (the server) or `worker` (one rank of a gang). This package alone knows every
//! crate of the workspace; each of them knows only the next on a request's way.

mod config;
mod gang_slots;
mod memory;
mod metrics;
mod rank_report;
mod serve;
mod worker;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

#[derive(Parser)]
#[command(name = "phalanx", version, about = "A Spark Connect server whose speciality is training")]
enum Command {
    /// Serves Spark Connect.
    Serve(config::ServeArgs),
    /// Runs one rank of a gang. Started by the server, which passes what to join in the environment.
    #[command(hide = true)]
    Worker,
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Serve(args) => {
            init_log();
            serve::run(args)
        }
        Command::Worker => {
            init_log();
            worker::run()
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("phalanx: {}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Logs go to standard error; `RUST_LOG` filters them.
fn init_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,datafusion=warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
