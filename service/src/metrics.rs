//! Prometheus metrics over HTTP: `GET /metrics` on a port of its own.
//!
//! What `connect` counts is registered as it is; how jobs and slots stand is asked of the gang whenever somebody reads.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gang::{JobState, JobView, RankState};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tracing::{debug, warn};

const TEXT_FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// All metrics of this server, by names that begin with `phalanx_`.
pub fn registry(metrics: &connect::Metrics, gang: gang::Handle, slots: usize) -> Registry {
    let mut registry = Registry::with_prefix("phalanx");
    metrics.register(&mut registry);
    registry.register_collector(Box::new(Gangs { gang, slots }));
    registry
}

/// Answers until it is dropped.
pub async fn serve(listener: TcpListener, registry: Registry) {
    let registry = Arc::new(registry);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "a reader of the metrics could not connect");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let registry = Arc::clone(&registry);
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let response = answer(&request, &registry);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = connection.await {
                debug!(%error, "a reader of the metrics went away");
            }
        });
    }
}

fn answer(request: &Request<Incoming>, registry: &Registry) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    if request.uri().path() != "/metrics" {
        *response.status_mut() = StatusCode::NOT_FOUND;
    } else if request.method() != Method::GET {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    } else {
        let mut body = String::new();
        match text::encode(&mut body, registry) {
            Ok(()) => {
                response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(TEXT_FORMAT));
                *response.body_mut() = Full::from(body);
            }
            Err(error) => {
                warn!(%error, "the metrics cannot be written");
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            }
        }
    }
    response
}

/// How jobs and slots stand.
struct Gangs {
    gang: gang::Handle,
    slots: usize,
}

impl fmt::Debug for Gangs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gangs").field("slots", &self.slots).finish_non_exhaustive()
    }
}

/// States of jobs that have not ended; the others are counted when they end.
const LIVE_STATES: [JobState; 4] = [JobState::Queued, JobState::Starting, JobState::Running, JobState::Stopping];

impl Collector for Gangs {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let live: Vec<JobView> = self.gang.snapshot().into_iter().filter(|job| !job.state.is_ended()).collect();
        let holds_slots = |job: &&JobView| job.state != JobState::Queued;
        let ranks = live.iter().flat_map(|job| &job.ranks);
        let mut by_state: BTreeMap<&str, usize> = LIVE_STATES.iter().map(|state| (state.as_str(), 0)).collect();
        for job in &live {
            *by_state.entry(job.state.as_str()).or_default() += 1;
        }
        let mut jobs = encoder.encode_descriptor("jobs", "Barrier jobs that have not ended", None, MetricType::Gauge)?;
        for (state, count) in &by_state {
            let labels = [("state", *state)];
            gauge(*count).encode(jobs.encode_family(&labels)?)?;
        }
        let single = [
            ("jobs_queued", "Barrier jobs that wait for slots", by_state.get("queued").copied().unwrap_or(0)),
            ("slots", "Ranks that may run at the same time", self.slots),
            ("slots_used", "Slots held by jobs", live.iter().filter(holds_slots).map(|job| job.num_ranks).sum()),
            ("ranks_running", "Ranks that have joined", ranks.filter(|it| it.state == RankState::Joined).count()),
            ("workers_idle", "Processes that are ready to become ranks", self.gang.num_idle_workers()),
        ];
        for (name, help, value) in single {
            let value = gauge(value);
            value.encode(encoder.encode_descriptor(name, help, None, ConstGauge::<i64>::TYPE)?)?;
        }
        Ok(())
    }
}

fn gauge(value: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}
