//! Builds the part of libtorch's interface that tch does not bind.

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=native/torch.cpp");
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    let Some(libtorch) = std::env::var_os("LIBTORCH").map(PathBuf::from) else {
        println!("cargo:warning=LIBTORCH is not set: it must name the folder of libtorch 2.13.0, see .ci/setup");
        std::process::exit(1);
    };
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .include(libtorch.join("include"))
        .include(libtorch.join("include/torch/csrc/api/include"))
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        .warnings(false)
        .file("native/torch.cpp")
        .compile("phalanx_torch");
}
