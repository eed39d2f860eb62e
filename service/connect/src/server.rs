//! The gRPC service: each method finds its file of `rpc`, and its errors become statuses. Nothing is decided here but who
//! is let in.

mod auth;
pub(crate) mod codec;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spark_connect_proto::{
    AddArtifactsRequest, AddArtifactsResponse, AnalyzePlanRequest, AnalyzePlanResponse, ArtifactStatusesRequest,
    ArtifactStatusesResponse, CloneSessionRequest, CloneSessionResponse, ConfigRequest, ConfigResponse,
    ExecutePlanRequest, FetchErrorDetailsRequest, FetchErrorDetailsResponse, GetStatusRequest, GetStatusResponse,
    InterruptRequest, InterruptResponse, ReattachExecuteRequest, ReleaseExecuteRequest, ReleaseExecuteResponse,
    ReleaseSessionRequest, ReleaseSessionResponse, UserContext,
};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::codec::CompressionEncoding;
use tonic::{Request, Response, Status, Streaming};
use tracing::{info, warn};

use crate::error::Report;
use crate::response::ResponseStream;
use crate::rpc;
use crate::session::{SessionRef, Sessions};
use crate::{Error, Result, Services};

use generated::spark_connect_service_server::{SparkConnectService, SparkConnectServiceServer};

#[expect(clippy::allow_attributes, reason = "generated code is as it is")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/spark.connect.SparkConnectService.rs"));
}

/// How often sessions and operations are looked over for what nobody uses.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Serves Spark Connect until `shutdown` completes; then ends all operations and lets open streams finish for a while.
///
/// # Errors
/// [`Error::Serve`] when the listener fails.
pub async fn serve(
    listener: TcpListener,
    services: Arc<Services>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let options = services.options.clone();
    let sessions = Arc::new(Sessions::new(services));
    let service = SparkConnectServiceServer::new(Server { sessions: Arc::clone(&sessions) })
        .max_decoding_message_size(options.message_bytes_max)
        .max_encoding_message_size(options.message_bytes_max)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Zstd);
    let service = tonic::service::interceptor::InterceptedService::new(service, auth::Auth::new(options.token));

    let (stop, stopped) = watch::channel(false);
    let closing = Arc::clone(&sessions);
    let drained = stopped.clone();
    let signal = tokio::spawn(async move {
        shutdown.await;
        closing.close();
        stop.send_replace(true);
    });
    let sweeper = tokio::spawn(sweep(Arc::clone(&sessions)));
    let server = tonic::transport::Server::builder()
        .tcp_nodelay(true)
        .http2_keepalive_interval(Some(Duration::from_secs(60)))
        .http2_keepalive_timeout(Some(Duration::from_secs(20)))
        .add_service(service)
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), until_true(stopped));
    let served = tokio::select! {
        served = server => served.map_err(|source| Error::Serve { source }),
        () = async {
            until_true(drained).await;
            tokio::time::sleep(options.drain_timeout).await;
        } => {
            info!("streams that are still open are cut");
            Ok(())
        }
    };
    sweeper.abort();
    signal.abort();
    sessions.close();
    served
}

async fn until_true(mut value: watch::Receiver<bool>) {
    // The sender is dropped only after it has sent true.
    let _ = value.wait_for(|is_true| *is_true).await;
}

async fn sweep(sessions: Arc<Sessions>) {
    let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
    loop {
        ticks.tick().await;
        sessions.sweep(Instant::now());
    }
}

struct Server {
    sessions: Arc<Sessions>,
}

/// Ends a call's task when its client goes away.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Server {
    fn sessions(&self) -> Arc<Sessions> {
        Arc::clone(&self.sessions)
    }

    /// Runs a call in a task of its own, so that a panic in it ends that call only.
    async fn run<T: Send + 'static>(
        &self,
        call: Caller,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T, Status> {
        let mut task = AbortOnDrop(tokio::spawn(work));
        let outcome = (&mut task.0).await.unwrap_or_else(|error| Err(Error::from_join(error)));
        outcome.map_err(|error| self.failed(&call, &error))
    }

    async fn answer<T: Send + 'static>(
        &self,
        call: Caller,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        self.run(call, work).await.map(Response::new)
    }

    /// The status of a failed call; the session keeps the error's details.
    fn failed(&self, call: &Caller, error: &Error) -> Status {
        let report = Arc::new(Report::from(error));
        let class = report.class.as_deref().unwrap_or_default();
        match error {
            Error::Panicked { .. } | Error::Bug { .. } => {
                warn!(session_id = call.id, error_id = report.id, class, %error, "call failed by our own bug");
            }
            error => info!(session_id = call.id, error_id = report.id, class, %error, "call failed"),
        }
        let session = SessionRef { id: &call.id, user: call.user.as_ref(), observed: None };
        if let Ok(session) = self.sessions.get(&session) {
            session.keep_error(Arc::clone(&report));
        }
        report.status()
    }
}

/// Whose call it is.
struct Caller {
    id: String,
    user: Option<UserContext>,
}

fn caller(id: &str, user: Option<&UserContext>) -> Caller {
    Caller { id: id.to_string(), user: user.cloned() }
}

#[tonic::async_trait]
impl SparkConnectService for Server {
    type ExecutePlanStream = ResponseStream;
    type ReattachExecuteStream = ResponseStream;

    async fn execute_plan(&self, request: Request<ExecutePlanRequest>) -> Result<Response<ResponseStream>, Status> {
        let request = request.into_inner();
        let caller = caller(&request.session_id, request.user_context.as_ref());
        self.answer(caller, rpc::execute_plan::answer(self.sessions(), request)).await
    }

    async fn reattach_execute(
        &self,
        request: Request<ReattachExecuteRequest>,
    ) -> Result<Response<ResponseStream>, Status> {
        let request = request.into_inner();
        let caller = caller(&request.session_id, request.user_context.as_ref());
        self.answer(caller, rpc::reattach::answer(self.sessions(), request)).await
    }

    async fn analyze_plan(
        &self,
        request: Request<AnalyzePlanRequest>,
    ) -> Result<Response<AnalyzePlanResponse>, Status> {
        let request = request.into_inner();
        let caller = caller(&request.session_id, request.user_context.as_ref());
        self.answer(caller, rpc::analyze_plan::answer(self.sessions(), request)).await
    }

    async fn config(&self, request: Request<ConfigRequest>) -> Result<Response<ConfigResponse>, Status> {
        let request = request.into_inner();
        let caller = caller(&request.session_id, request.user_context.as_ref());
        self.answer(caller, rpc::config::answer(self.sessions(), request)).await
    }

    async fn add_artifacts(
        &self,
        request: Request<Streaming<AddArtifactsRequest>>,
    ) -> Result<Response<AddArtifactsResponse>, Status> {
        let mut stream = request.into_inner();
        let Some(first) = stream.message().await? else {
            let error = Error::NotSet { message: "spark.connect.AddArtifactsRequest", field: "payload" };
            return Err(error.status());
        };
        let caller = caller(&first.session_id, first.user_context.as_ref());
        match rpc::artifacts::add(self.sessions(), first, stream).await {
            Ok(response) => Ok(Response::new(response)),
            Err(rpc::artifacts::Broken::Error(error)) => Err(self.failed(&caller, &error)),
            Err(rpc::artifacts::Broken::Connection(status)) => Err(status),
        }
    }

    async fn artifact_status(
        &self,
        request: Request<ArtifactStatusesRequest>,
    ) -> Result<Response<ArtifactStatusesResponse>, Status> {
        let request = request.into_inner();
        let caller = caller(&request.session_id, request.user_context.as_ref());
        self.answer(caller, rpc::artifacts::status(self.sessions(), request)).await
    }

    async fn interrupt(&self, request: Request<InterruptRequest>) -> Result<Response<InterruptResponse>, Status> {
        let request = request.into_inner();
        let caller = caller(&request.session_id, request.user_context.as_ref());
        self.answer(caller, rpc::interrupt::answer(self.sessions(), request)).await
    }

    async fn release_execute(
        &self,
        request: Request<ReleaseExecuteRequest>,
    ) -> Result<Response<ReleaseExecuteResponse>, Status> {
        let request = request.into_inner();
        let caller = caller(&request.session_id, request.user_context.as_ref());
        self.answer(caller, rpc::release::execute(self.sessions(), request)).await
    }

    async fn release_session(
        &self,
        request: Request<ReleaseSessionRequest>,
    ) -> Result<Response<ReleaseSessionResponse>, Status> {
        let request = request.into_inner();
        let caller = caller(&request.session_id, request.user_context.as_ref());
        self.answer(caller, rpc::release::session(self.sessions(), request)).await
    }

    async fn fetch_error_details(
        &self,
        request: Request<FetchErrorDetailsRequest>,
    ) -> Result<Response<FetchErrorDetailsResponse>, Status> {
        let request = request.into_inner();
        let caller = caller(&request.session_id, request.user_context.as_ref());
        self.answer(caller, rpc::fetch_error_details::answer(self.sessions(), request)).await
    }

    async fn clone_session(
        &self,
        request: Request<CloneSessionRequest>,
    ) -> Result<Response<CloneSessionResponse>, Status> {
        let request = request.into_inner();
        let caller = caller(&request.session_id, request.user_context.as_ref());
        self.answer(caller, rpc::clone_session::answer(self.sessions(), request)).await
    }

    async fn get_status(&self, request: Request<GetStatusRequest>) -> Result<Response<GetStatusResponse>, Status> {
        let request = request.into_inner();
        let caller = caller(&request.session_id, request.user_context.as_ref());
        self.answer(caller, rpc::get_status::answer(self.sessions(), request)).await
    }
}
