//! Generates the gRPC server of `spark.connect.SparkConnectService`; the messages are those of `spark_connect_proto`.

use tonic_build::manual::{Method, Service};

fn main() {
    let service = [
        unary("analyze_plan", "AnalyzePlan", "AnalyzePlanRequest", "AnalyzePlanResponse"),
        unary("config", "Config", "ConfigRequest", "ConfigResponse"),
        unary("artifact_status", "ArtifactStatus", "ArtifactStatusesRequest", "ArtifactStatusesResponse"),
        unary("interrupt", "Interrupt", "InterruptRequest", "InterruptResponse"),
        unary("release_execute", "ReleaseExecute", "ReleaseExecuteRequest", "ReleaseExecuteResponse"),
        unary("release_session", "ReleaseSession", "ReleaseSessionRequest", "ReleaseSessionResponse"),
        unary("fetch_error_details", "FetchErrorDetails", "FetchErrorDetailsRequest", "FetchErrorDetailsResponse"),
        unary("clone_session", "CloneSession", "CloneSessionRequest", "CloneSessionResponse"),
        unary("get_status", "GetStatus", "GetStatusRequest", "GetStatusResponse"),
        method("execute_plan", "ExecutePlan", "ExecutePlanRequest", "ExecutePlanResponse").server_streaming().build(),
        method("reattach_execute", "ReattachExecute", "ReattachExecuteRequest", "ExecutePlanResponse")
            .server_streaming()
            .build(),
        method("add_artifacts", "AddArtifacts", "AddArtifactsRequest", "AddArtifactsResponse")
            .client_streaming()
            .build(),
    ]
    .into_iter()
    .fold(Service::builder().package("spark.connect").name("SparkConnectService"), |service, method| {
        service.method(method)
    })
    .build();
    tonic_build::manual::Builder::new().build_client(false).compile(&[service]);
    println!("cargo:rerun-if-changed=build.rs");
}

fn unary(name: &str, route: &str, input: &str, output: &str) -> Method {
    method(name, route, input, output).build()
}

fn method(name: &str, route: &str, input: &str, output: &str) -> tonic_build::manual::MethodBuilder {
    Method::builder()
        .name(name)
        .route_name(route)
        .input_type(format!("spark_connect_proto::{input}"))
        .output_type(format!("spark_connect_proto::{output}"))
        .codec_path("crate::server::codec::BoundedCodec")
}
