//! Builds the server from its configuration, runs it, and drains it.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use engine::embedded::Engine;
use engine::flight::{FRAME_BYTES, PartitionServer, WINDOW_BYTES};
use gang::ProcessLauncher;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::transport::server::TcpIncoming;
use tracing::info;

use crate::config::{Config, ServeArgs};

/// A partition waits this long for its rank; a fit that ends earlier takes its partitions with it.
const TICKET_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// Messages and plans are walked recursively, and may nest thousands deep. Untouched stack costs nothing.
const STACK_BYTES: usize = 256 << 20;

type BoxError = Box<dyn StdError + Send + Sync>;

/// # Errors
/// The configuration is not valid, or an address cannot be listened on.
pub fn run(args: ServeArgs) -> Result<(), BoxError> {
    let config = Config::load(args)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK_BYTES).enable_all().build()?;
    let served = runtime.block_on(serve(config));
    runtime.shutdown_timeout(Duration::from_secs(2));
    served
}

async fn serve(config: Config) -> Result<(), BoxError> {
    let listener = TcpListener::bind((config.host, config.port)).await?;
    // ranks meet, and fetch their rows, on a port of their own that only this machine reaches
    let internal = TcpListener::bind(("127.0.0.1", 0)).await?;
    let internal_uri = format!("http://{}", internal.local_addr()?);

    let gang_options = gang::Options {
        coordinator: internal_uri.clone(),
        slots: config.slots,
        warm_workers: config.warm_workers.unwrap_or(config.slots),
        stall_timeout: Duration::from_secs(config.stall_timeout_s),
        ..gang::Options::default()
    };
    let gang = gang::Service::new(gang_options, Arc::new(ProcessLauncher::this_executable(Vec::new())?));
    let metrics = Arc::new(connect::Metrics::default());
    let metrics_server = match config.metrics_port {
        Some(port) => {
            let listener = TcpListener::bind((config.metrics_host, port)).await?;
            info!(address = %listener.local_addr()?, "metrics are served");
            let registry = crate::metrics::registry(&metrics, gang.handle(), config.slots);
            Some(tokio::spawn(crate::metrics::serve(listener, registry)))
        }
        None => None,
    };
    let jobs = match config.job_records_max {
        0 => None,
        jobs_max => Some(connect::JobsFolder::open(config.data_dir.join("jobs"), jobs_max)?),
    };
    let models = connect::ModelStore::open(&models_location(&config))?;
    let upkeep = tokio::spawn(Arc::clone(&models).keep_up());
    let partitions = PartitionServer::new(TICKET_LIFE);
    let services = Arc::new(connect::Services {
        engine: engine(&config)?,
        gang: gang.handle(),
        partitions: partitions.clone(),
        internal_uri,
        jobs,
        models,
        metrics,
        options: connect_options(&config),
    });

    let (stop, stopped) = watch::channel(false);
    let until_stopped = |mut stopped: watch::Receiver<bool>| async move {
        let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
    };
    let incoming = TcpIncoming::from(internal).with_nodelay(Some(true));
    let internal_server = tonic::transport::Server::builder()
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .add_service(gang.grpc())
        .add_service(partitions.service())
        .serve_with_incoming_shutdown(incoming, until_stopped(stopped.clone()));
    let internal_server = tokio::spawn(internal_server);
    let gang = tokio::spawn(gang.run(until_stopped(stopped.clone())));

    info!(address = %listener.local_addr()?, slots = config.slots, "ready");
    let served = connect::serve(listener, services, shutdown_signal()).await;
    info!("stopping");
    let _ = stop.send(true);
    gang.await?;
    tokio::time::timeout(Duration::from_secs(2), internal_server).await.ok();
    upkeep.abort();
    if let Some(server) = metrics_server {
        server.abort();
    }
    Ok(served?)
}

fn engine(config: &Config) -> engine::Result<Arc<Engine>> {
    let memory = config.query_memory_bytes_max;
    Engine::new(engine::embedded::engine::Options {
        target_partitions: config.query_partitions,
        memory_limit_bytes: (memory > 0).then_some(memory),
        spill_dir: None,
        warehouse_dir: config.data_dir.join("warehouse"),
    })
}

/// Models stand beside the tables, unless the configuration names another place.
fn models_location(config: &Config) -> String {
    match config.models.as_str() {
        "" => config.data_dir.join("models").display().to_string(),
        location => location.to_string(),
    }
}

fn connect_options(config: &Config) -> connect::Options {
    connect::Options {
        token: (!config.token.is_empty()).then(|| config.token.clone()),
        session_idle_timeout: Duration::from_secs(60 * config.session_idle_timeout_min),
        slots: config.slots,
        default_workers: config.default_workers,
        fold_partitions: config.query_partitions,
        ..connect::Options::default()
    }
}

/// Ends on SIGINT or SIGTERM.
async fn shutdown_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
