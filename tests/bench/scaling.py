"""Measures the collectives by size and number of ranks, fits a cost model to them, and says what it predicts.

    python scaling.py measure PATH/bandwidth samples.tsv [--batches 3] [--batch-ms 40]
    python scaling.py fit samples.tsv [--cores 2]

`bandwidth` is the example of the crate `collective`. `fit` prints the tables of docs/scaling.md. A point is the least of
its samples. The model of a call is

    seconds = alpha * steps + gamma * work

`steps` counts how often a rank waits for another in turn. `work` is the bytes that all ranks together read, write, send
or receive, by the cores they have. `alpha` and `gamma` are fitted by least squares of the relative error, none negative.
"""

from __future__ import annotations

import argparse
import collections
import math
import os
import subprocess
import sys

import numpy as np

COLLECTIVES = ["barrier", "all_reduce", "reduce_scatter", "all_gather", "broadcast"]
SIZES = [1 << power for power in (10, 14, 16, 18, 20, 22, 24, 26)]
# As in `collective::Options::default`.
CHUNK_BYTES, DIRECT_BYTES_MAX, TREE_BYTES_MAX = 512 << 10, 16 << 10, 32 << 10
# Values and results of all ranks that are larger than this come from memory, not from the cache that the cores share.
CACHE_BYTES = 32 << 20
# How a call is done within a host, between hosts of one rank each, and between hosts of several.
SHARED, TCP, BOTH = "shared memory", "tcp", "both"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("measure")
    measure.add_argument("bandwidth")
    measure.add_argument("samples")
    measure.add_argument("--batches", type=int, default=3)
    measure.add_argument("--batch-ms", type=int, default=40)
    measure.add_argument("--rounds", type=int, default=2)
    fit = commands.add_parser("fit")
    fit.add_argument("samples")
    fit.add_argument("--cores", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    run_measure(arguments) if arguments.command == "measure" else run_fit(arguments)


def run_measure(arguments) -> None:
    sizes = ",".join(map(str, SIZES))
    runs = [("shared_memory", "1", "1,2,3,4,6,8"), ("tcp", "1", "2,3,4,6,8"), ("shared_memory", "2", "4,8")]
    with open(arguments.samples, "w") as file:
        for round_number in range(arguments.rounds):
            for transport, hosts, ranks in runs:
                command = [arguments.bandwidth, "--rows", "--transports", transport, "--hosts", hosts]
                command += ["--ranks", ranks, "--collectives", ",".join(COLLECTIVES), "--bytes", sizes]
                command += ["--batches", str(arguments.batches), "--batch-ms", str(arguments.batch_ms)]
                file.write(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            command = [arguments.bandwidth, "--rows", "--transports", "tcp,shared_memory", "--ranks", "16,32,64"]
            command += ["--collectives", "barrier", "--bytes", "1024", "--batches", "1"]
            file.write(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            print(f"round {round_number + 1}: load {os.getloadavg()[0]:.1f}", file=sys.stderr)


def read(path: str) -> dict[tuple, float]:
    """(transport, hosts, ranks, collective, bytes) -> the least seconds."""
    least: dict[tuple, float] = collections.defaultdict(lambda: math.inf)
    with open(path) as file:
        for line in file:
            transport, hosts, ranks, collective, size, _, seconds = line.split("\t")
            if transport == "transport":
                continue
            place = (transport, int(hosts), int(ranks), collective, int(size))
            least[place] = min(least[place], float(seconds))
    return dict(least)


# The counts: (steps, bytes of all ranks together).


def within_host(collective: str, n: int, size: int) -> tuple[float, float]:
    chunks = max(1, math.ceil(size / CHUNK_BYTES))
    direct = n <= 2 or size <= DIRECT_BYTES_MAX
    match collective:
        case "barrier":
            return 1, 0
        case "all_reduce" if direct:
            # Each writes all of its values and reads those of all.
            return chunks, n * size * (n + 1)
        case "all_reduce":
            # Writes all, reduces its shard of all, writes that and reads the other shards.
            return 2 * chunks, n * size * 3
        case "reduce_scatter":
            return chunks, n * size * 2
        case "all_gather":
            # The lengths are agreed on first.
            return 1 + max(1, math.ceil(size / n / CHUNK_BYTES)), n * size * (1 + 1 / n)
        case "broadcast":
            # The others wait while the root writes.
            return 1 + chunks, size * (min(n, 2) + n - 1)
    raise ValueError(collective)


def between_hosts(collective: str, n: int, size: int) -> tuple[float, float]:
    tree = size <= TREE_BYTES_MAX
    doubling = 2 ** int(math.log2(n))
    tree_steps = math.log2(doubling) + (0 if n == doubling else 2)
    match collective:
        case "barrier":
            return tree_steps, 0
        case "all_reduce" if tree:
            return tree_steps, n * size * 2 * tree_steps
        case "all_reduce":
            return 2 * (n - 1), size * 4 * (n - 1)
        case "reduce_scatter" if tree:
            return tree_steps, n * size * 2 * tree_steps
        case "reduce_scatter":
            return n - 1, size * 2 * (n - 1)
        case "all_gather":
            return tree_steps + n - 1, size * 2 * (n - 1)
        case "broadcast" if tree:
            return tree_steps + math.ceil(math.log2(n)), size * 2 * (n - 1)
        case "broadcast":
            return tree_steps + math.ceil(size / CHUNK_BYTES) + n - 2, size * 2 * (n - 1)
    raise ValueError(collective)


def features(kind: str, collective: str, n: int, size: int, cores: int) -> list[float]:
    """The factors of alpha with a core for every rank, alpha with fewer, gamma from cache, gamma from memory."""
    steps, work = (within_host if kind == SHARED else between_hosts)(collective, n, size)
    share, busy = max(1.0, n / cores), min(n, cores)
    fits = n * size * (2 if collective == "all_gather" else 1) <= CACHE_BYTES
    own_core = n <= cores
    return [
        steps if own_core else 0.0,
        0.0 if own_core else steps * share,
        work / busy if fits else 0.0,
        0.0 if fits else work / busy,
    ]


def least_squares(rows: list[list[float]], seconds: list[float]) -> np.ndarray:
    """The coefficients, none negative, with the least sum of squared relative errors."""
    matrix, target = np.array(rows) / np.array(seconds)[:, None], np.ones(len(seconds))
    used = [column for column in range(matrix.shape[1]) if matrix[:, column].any()]
    while True:
        found = np.zeros(matrix.shape[1])
        found[used] = np.linalg.lstsq(matrix[:, used], target, rcond=None)[0]
        if (found[used] >= 0).all():
            return found
        used.remove(min(used, key=lambda column: found[column]))


def run_fit(arguments) -> None:
    least = read(arguments.samples)
    print_measured(least)
    fitted = {}
    print("\n### Fit\n")
    print("| where | collective | alpha, a core each (us) | alpha, shared cores (us) | gamma, cache (ns/KB) "
          "| gamma, memory (ns/KB) | points | median error | largest error |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind, transport in ((SHARED, "shared_memory"), (TCP, "tcp")):
        for collective in COLLECTIVES:
            points = [
                (features(kind, collective, n, size, arguments.cores), seconds, n, size)
                for (where, hosts, n, what, size), seconds in least.items()
                if (where, hosts, what) == (transport, 1, collective) and 2 <= n <= 8
            ]
            found = least_squares([point[0] for point in points], [point[1] for point in points])
            fitted[kind, collective] = found
            errors = [(float(np.dot(row, found)) / seconds - 1, n, size) for row, seconds, n, size in points]
            print(f"| {kind} | {collective} | {found[0] * 1e6:.1f} | {found[1] * 1e6:.1f} | {found[2] * 1e12:.0f} "
                  f"| {found[3] * 1e12:.0f} | {len(points)} | {median(errors):.0%} | {largest(errors)} |")
    print_residuals(least, fitted, arguments.cores)
    print_hierarchy(least, fitted, arguments.cores)
    print_join(least)
    print_predictions(fitted)


def median(errors) -> float:
    return float(np.median([abs(error) for error, _, _ in errors]))


def largest(errors) -> str:
    error, n, size = max(errors, key=lambda error: abs(error[0]))
    return f"{error:+.0%} ({n} ranks, {in_words(size)})"


def in_words(size: int) -> str:
    if size >= 1 << 30:
        return f"{size >> 30} GB"
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB" if size else "nothing"


def in_time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us" if seconds < 1e-5 else f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def print_measured(least) -> None:
    for transport, hosts, title in (
        ("shared_memory", 1, "one host, shared memory"), ("tcp", 1, "TCP, every rank a host of its own"),
        ("shared_memory", 2, "two hosts that share memory within and use TCP between them"),
    ):
        ranks = sorted({n for where, h, n, what, _ in least if (where, h, what) == (transport, hosts, "all_reduce")})
        print(f"\n### Measured: {title}\n")
        print("| collective | bytes | " + " | ".join(f"{n} rank{'s' * (n > 1)}" for n in ranks) + " |")
        print("|---|---|" + "---|" * len(ranks))
        for collective in COLLECTIVES:
            for size in [0] if collective == "barrier" else SIZES:
                times = [least.get((transport, hosts, n, collective, size)) for n in ranks]
                print(f"| {collective} | {in_words(size)} | " + " | ".join(map(in_time, times)) + " |")


def print_residuals(least, fitted, cores: int) -> None:
    print("\n### Residuals of all-reduce: predicted / measured - 1\n")
    print("| where | ranks | " + " | ".join(map(in_words, SIZES)) + " |")
    print("|---|---|" + "---|" * len(SIZES))
    for kind, transport in ((SHARED, "shared_memory"), (TCP, "tcp")):
        for n in (2, 3, 4, 6, 8):
            cells = []
            for size in SIZES:
                row = features(kind, "all_reduce", n, size, cores)
                predicted = float(np.dot(row, fitted[kind, "all_reduce"]))
                cells.append(f"{predicted / least[transport, 1, n, 'all_reduce', size] - 1:+.0%}")
            print(f"| {kind} | {n} | " + " | ".join(cells) + " |")


def print_hierarchy(least, fitted, cores: int) -> None:
    """Two hosts played on one machine, from the coefficients of their parts: nothing is fitted here."""
    print("\n### All-reduce over two hosts, composed from the parts\n")
    print("| ranks | bytes | measured | composed | error |")
    print("|---|---|---|---|---|")
    for n in (4, 8):
        for size in SIZES:
            measured = least["shared_memory", 2, n, "all_reduce", size]
            # Both hosts work at the same time on the cores that one has.
            within = all_reduce_within(fitted, n // 2, size, cores / 2)
            composed = within + float(np.dot(features(TCP, "all_reduce", 2, size, cores), fitted[TCP, "all_reduce"]))
            cells = [str(n), in_words(size), in_time(measured), in_time(composed), f"{composed / measured - 1:+.0%}"]
            print("| " + " | ".join(cells) + " |")


def all_reduce_within(fitted, n: int, size: int, cores: float) -> float:
    """What the ranks of a host do around the exchange of their leaders: a reduction to the leader, and a broadcast. The
    first takes as many steps as an all-reduce, and as long: the leader reads what the others would read by themselves."""
    if n == 1:
        return 0.0
    seconds = 0.0
    for collective in ("all_reduce", "broadcast"):
        steps, work = within_host(collective, n, size)
        alpha_own, alpha_shared, cache, memory = fitted[SHARED, collective]
        gamma = (cache or memory) if n * size <= CACHE_BYTES else (memory or cache)
        alpha = alpha_own if n <= cores else alpha_shared * n / cores
        seconds += alpha * steps + gamma * work / min(n, cores)
    return seconds


def print_join(least) -> None:
    print("\n### Connecting: every pair of ranks\n")
    print("| ranks | connections of control | over shared memory | over TCP |")
    print("|---|---|---|---|")
    for n in (2, 4, 8, 16, 32, 64):
        times = [least.get((where, 1, n, "join", 0)) for where in ("shared_memory", "tcp")]
        print(f"| {n} | {n * (n - 1) // 2} | " + " | ".join(map(in_time, times)) + " |")


# Predictions. Assumed: ranks have a core each; see docs/scaling.md for the rest.

# Bits per second, and the seconds a message takes through switches and wires beyond what loopback shows.
NETWORKS = {"25 Gbit/s": (25e9, 20e-6), "100 Gbit/s": (100e9, 10e-6)}
# The part of a link's rate that values get.
LINK_SHARE = 0.92
RANKS_A_HOST = 8


def ring(fitted, hosts: int, size: int, network: str) -> float:
    return exchange(fitted, 2 * (hosts - 1), 2 * (hosts - 1) / hosts * size, network)


def doubling(fitted, hosts: int, size: int, network: str) -> float:
    steps = math.ceil(math.log2(hosts))
    return exchange(fitted, steps, steps * size, network)


def exchange(fitted, steps: float, size_each_way: float, network: str) -> float:
    """`steps` messages in turn, in which a rank sends and receives `size_each_way`; a core does both."""
    alpha, _, _, gamma = fitted[TCP, "all_reduce"]
    bits_per_s, latency = NETWORKS[network]
    wire = size_each_way * 8 / (bits_per_s * LINK_SHARE)
    return steps * (alpha + latency) + max(wire, 2 * size_each_way * gamma)


def print_predictions(fitted) -> None:
    for network in NETWORKS:
        print(f"\n### Predicted all-reduce, {network}\n")
        print(f"| values | ranks | flat ring | flat doubling | {RANKS_A_HOST} ranks a host: ring | ... doubling "
              "| its links alone |")
        print("|---|---|---|---|---|---|---|")
        for size in (1 << 20, 100 << 20, 1 << 30):
            for n in (8, 64, 256, 1024, 4096):
                hosts = max(1, n // RANKS_A_HOST)
                within = all_reduce_within(fitted, RANKS_A_HOST, size, RANKS_A_HOST)
                cells = [ring(fitted, n, size, network), doubling(fitted, n, size, network)]
                cells += [within + ring(fitted, hosts, size, network), within + doubling(fitted, hosts, size, network)]
                if hosts == 1:
                    steps, work = within_host("all_reduce", n, size)
                    alpha, _, cache, memory = fitted[SHARED, "all_reduce"]
                    cells[2:] = [alpha * steps + (memory or cache) * work / n] * 2
                best = min(range(4), key=lambda cell: cells[cell])
                shown = [f"**{in_time(cell)}**" if i == best else in_time(cell) for i, cell in enumerate(cells)]
                links = 2 * (hosts - 1) / hosts * size * 8 / (NETWORKS[network][0] * LINK_SHARE)
                print(f"| {in_words(size)} | {n} | " + " | ".join(shown) + f" | {in_time(links) if links else '-'} |")


if __name__ == "__main__":
    main()
