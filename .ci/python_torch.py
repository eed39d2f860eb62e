"""Lays torch out for Python, without a GPU and its five gigabytes: python python_torch.py WHEELS LIBTORCH TARGET.

PyPI's torch is built for CUDA: it loads the libraries of CUDA, though it calls none of them where there is no GPU. Here are
libraries of their names in their place, in which every function that torch asks for gives an error. The large library
that the Rust half has already is linked, not copied.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

VERSION = "2.13.0"
# those that are there: small, and called even without a GPU
REAL = {"libcudart.so.13", "libcupti.so.13"}
USERS = ["libtorch_cuda.so", "libtorch_python.so", "libtorch_cpu.so", "libc10_cuda.so"]
# torch's own, over a library of NVIDIA's
NVSHMEM = "libtorch_nvshmem.so"
LEFT_OUT = re.compile(r"torch/(include/|bin/protoc|share/|test/|lib/libtorch_cuda_linalg|lib/libtorch_nvshmem)")


def main(wheels: pathlib.Path, libtorch: pathlib.Path, target: pathlib.Path) -> None:
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(sorted(wheels.glob(f"torch-{VERSION}-*.whl"))[-1]) as wheel:
        wheel.extractall(partial, [name for name in wheel.namelist() if not LEFT_OUT.match(name)])
    for program in (partial / "torch" / "bin").iterdir():
        program.chmod(0o755)
    libraries = partial / "torch" / "lib"
    for name in ["libtorch_cpu.so", *REAL]:
        (libraries / name).unlink(missing_ok=True)
        os.link(libtorch / "lib" / name, libraries / name)
    for name, versions in missing(libraries).items():
        write_stub(libraries, name, versions)
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


def missing(libraries: pathlib.Path) -> dict[str, dict[str, set[str]]]:
    """The libraries that are not there, with the functions that are asked of them, by symbol version."""
    stubs: dict[str, dict[str, set[str]]] = {NVSHMEM: collections.defaultdict(set)}
    for user in USERS:
        headers = run("objdump", "-p", libraries / user)
        for name in re.findall(r"NEEDED\s+(lib(?:cu|nv|nccl)\S+)", headers):
            if name not in REAL:
                stubs.setdefault(name, collections.defaultdict(set))
    defined = {symbol for library in libraries.glob("lib*.so*") for symbol, _ in symbols(library, "defined")}
    for user in USERS:
        library_of = {}
        for line in run("objdump", "-p", libraries / user).splitlines():
            if found := re.match(r"\s+required from (\S+):", line):
                library = found.group(1)
            elif found := re.match(r"\s+0x\w+ 0x\w+ \d+ (\S+)", line):
                library_of[found.group(1)] = library
        for symbol, version in symbols(libraries / user, "undefined"):
            if library_of.get(version) in stubs:
                stubs[library_of[version]][version].add(symbol)
            elif not version and symbol not in defined and re.match(r"cu|nccl|nv|_ZN.*nvshmem", symbol):
                # the loader takes a symbol without a version from any library
                stubs[NVSHMEM][""].add(symbol)
    return stubs


def symbols(library: pathlib.Path, kind: str) -> list[tuple[str, str]]:
    lines = [line.split() for line in run("nm", "-D", f"--{kind}-only", library).splitlines()]
    names = [words[-1] for words in lines if kind == "defined" or words[-2] == "U"]
    return [(name.split("@")[0], name.rpartition("@")[2] if "@" in name else "") for name in names]


def write_stub(libraries: pathlib.Path, name: str, versions: dict[str, set[str]]) -> None:
    source, script = libraries / "stub.s", libraries / "stub.map"
    names = sorted(symbol for group in versions.values() for symbol in group)
    labels = "".join(f'.globl "{symbol}"\n.type "{symbol}",@function\n"{symbol}":\n' for symbol in names)
    source.write_text(f'.text\n{labels}movl $1, %eax\nret\n.section .note.GNU-stack,"",@progbits\n')
    named = {version: group for version, group in versions.items() if version}
    script.write_text("".join(f"{v} {{ global: {' '.join(f'{s};' for s in sorted(g))} }};\n" for v, g in named.items()))
    options = [f"-Wl,--version-script={script}"] if named else []
    run("gcc", "-shared", f"-Wl,-soname,{name}", *options, "-o", libraries / name, source)
    source.unlink()
    script.unlink()


def run(*command: object) -> str:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
