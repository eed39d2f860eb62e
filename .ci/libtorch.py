"""Lays a CPU libtorch out from PyTorch's wheel, as the build expects it: python libtorch.py WHEELS TARGET."""

import pathlib
import shutil
import sys
import zipfile

VERSION = "2.13.0"
LIBRARIES = {"libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libcudart.so.13", "libcupti.so.13"}


def main(wheels: pathlib.Path, target: pathlib.Path) -> None:
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "lib").mkdir(parents=True)
    for pattern in (f"torch-{VERSION}-*.whl", "nvidia_cuda_runtime-13.0.*.whl", "nvidia_cuda_cupti-13.0.*.whl"):
        wheel = sorted(wheels.glob(pattern))[-1]
        with zipfile.ZipFile(wheel) as content:
            for name in content.namelist():
                base = name.rsplit("/", 1)[-1]
                if base in LIBRARIES:
                    with content.open(name) as source, open(partial / "lib" / base, "wb") as copy:
                        shutil.copyfileobj(source, copy)
                elif name.startswith("torch/include/") and not name.endswith("/"):
                    header = partial / name.removeprefix("torch/")
                    header.parent.mkdir(parents=True, exist_ok=True)
                    header.write_bytes(content.read(name))
    # the CPU half is enough: what links against libtorch.so gets libtorch_cpu.so
    (partial / "lib" / "libtorch.so").write_text("INPUT(libtorch_cpu.so)\n")
    (partial / "build-version").write_text(VERSION + "\n")
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
