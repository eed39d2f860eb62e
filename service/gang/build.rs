//! Generates the gRPC server and client of the control stream; the messages are written by hand in `src/wire.rs`.

fn main() {
    let control = tonic_build::manual::Method::builder()
        .name("control")
        .route_name("Control")
        .input_type("crate::wire::FromMember")
        .output_type("crate::wire::ToMember")
        .codec_path("tonic_prost::ProstCodec")
        .client_streaming()
        .server_streaming()
        .build();
    let service =
        tonic_build::manual::Service::builder().package("phalanx.gang.v1").name("Gang").method(control).build();
    tonic_build::manual::Builder::new().compile(&[service]);
    println!("cargo:rerun-if-changed=build.rs");
}
