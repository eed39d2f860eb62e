"""Times f32 all-reduce of our ranks and of PyTorch's gloo ranks on one machine, in turn, and prints one table.

    python collectives.py --ours PATH/bandwidth [--ranks 2,4] [--rounds 3] [--batches 3] [--batch-ms 100]

`bandwidth` is the example of the crate `collective`. This script must run in a Python that has PyTorch; gloo talks over
TCP on the loopback interface, whichever transport of ours it is compared with. Every round starts the ranks anew: ours
over shared memory, gloo, ours over TCP, gloo again, so that a machine with other work treats them alike. Per point the
least and the median of all samples are shown; a sample is the mean of as many calls as fit in `--batch-ms`.
Bus bandwidth is 2 (n - 1) / n * bytes / time; ratios are of the least times.
"""

from __future__ import annotations

import argparse
import collections
import os
import socket
import statistics
import subprocess
import sys
import time

SIZES = [1 << power for power in (10, 14, 18, 20, 24, 26, 28)]
NAMES = {"shared_memory": "shared memory", "tcp": "tcp", "gloo": "gloo"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", help="path of the example `bandwidth`")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--bytes", default=",".join(map(str, SIZES)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--batch-ms", type=int, default=100)
    parser.add_argument("--gloo-rank", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.gloo_rank:
        run_gloo_rank(arguments)
        return
    if not arguments.ours:
        parser.error("--ours is needed")

    # (who, ranks, bytes) -> seconds of every sample
    samples: dict[tuple[str, int, int], list[float]] = collections.defaultdict(list)
    for round_number in range(arguments.rounds):
        for num_ranks in map(int, arguments.ranks.split(",")):
            for who in ("shared_memory", "gloo", "tcp", "gloo"):
                rows = run_gloo(arguments, num_ranks) if who == "gloo" else run_ours(arguments, who, num_ranks)
                for key, seconds in rows:
                    samples[key].append(seconds)
            print(f"round {round_number + 1}, {num_ranks} ranks: load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    print_table(arguments, samples)


def run_ours(arguments, transport: str, num_ranks: int):
    command = [arguments.ours, "--rows", "--transports", transport, "--ranks", str(num_ranks)]
    command += ["--bytes", arguments.bytes, "--batches", str(arguments.batches)]
    command += ["--batch-ms", str(arguments.batch_ms)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
    for line in output.splitlines()[1:]:
        who, _, ranks, collective, size, _, seconds = line.split("\t")
        if collective == "memcpy":
            yield ("memcpy", 1, int(size)), float(seconds)
        elif collective == "all_reduce":
            yield (who, int(ranks), int(size)), float(seconds)


def run_gloo(arguments, num_ranks: int):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, "--bytes", arguments.bytes, "--batches", str(arguments.batches)]
    command += ["--batch-ms", str(arguments.batch_ms), "--gloo-rank"]
    ranks = [
        subprocess.Popen([*command, f"{rank},{num_ranks},{port}"], stdout=subprocess.PIPE, text=True)
        for rank in range(num_ranks)
    ]
    outputs = [rank.communicate(timeout=600)[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise RuntimeError("a gloo rank failed")
    for line in outputs[0].splitlines():
        size, seconds = line.split()
        yield ("gloo", num_ranks, int(size)), float(seconds)


def run_gloo_rank(arguments) -> None:
    import torch
    import torch.distributed as dist

    rank, num_ranks, port = map(int, arguments.gloo_rank.split(","))
    # One thread a rank, as ours.
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=num_ranks)
    for size in map(int, arguments.bytes.split(",")):
        values = torch.ones(size // 4)

        def run(num_calls: int) -> float:
            dist.barrier()
            started = time.perf_counter()
            for _ in range(num_calls):
                # Gloo has no mean of its own: the sum is the least it can do.
                dist.all_reduce(values, op=dist.ReduceOp.SUM)
            return (time.perf_counter() - started) / num_calls

        run(1)
        wanted = arguments.batch_ms / 1e3 / max(run(3), 1e-9)
        num_calls = torch.tensor([int(min(max(wanted, 1), 5000))])
        dist.broadcast(num_calls, 0)
        for _ in range(arguments.batches):
            values.fill_(1.0)
            seconds = run(int(num_calls[0]))
            if rank == 0:
                print(size, f"{seconds:e}", flush=True)
    dist.destroy_process_group()


def print_table(arguments, samples) -> None:
    print(f"{'ranks':>5} {'bytes':>10} {'who':<14} {'least us':>11} {'median us':>11} {'bus GB/s':>9} "
          f"{'to gloo':>8} {'memcpy GB/s':>12}")
    for num_ranks in map(int, arguments.ranks.split(",")):
        for size in map(int, arguments.bytes.split(",")):
            memcpy = size / min(samples["memcpy", 1, size]) / 1e9
            gloo = min(samples["gloo", num_ranks, size])
            for who, name in NAMES.items():
                seconds = samples[who, num_ranks, size]
                least = min(seconds)
                bus = 2 * (num_ranks - 1) / num_ranks * size / least / 1e9
                print(f"{num_ranks:>5} {size:>10} {name:<14} {least * 1e6:>11.1f} "
                      f"{statistics.median(seconds) * 1e6:>11.1f} {bus:>9.2f} {gloo / least:>7.2f}x {memcpy:>12.2f}")


if __name__ == "__main__":
    main()
