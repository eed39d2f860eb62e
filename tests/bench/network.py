"""Rows per second of data-parallel training beside PyTorch's DistributedDataParallel over gloo, in turns.

    python network.py NETWORK_SPEED       with a Python that has torch; NETWORK_SPEED is the example of that name, built by
    cargo build --release --workspace --examples

Both train an MLP of 28-256-256-2 with SGD and momentum on ranks of one thread each, PyTorch from tensors in memory that are
shuffled once an epoch. The best of three runs counts.
"""

import os
import re
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

FEATURES, STEPS = 28, 1500
ROUNDS = 3


def rank_main(rank: int, ranks: int, rows: int, port: int, results) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(rank)
    num_rows = min(rows * STEPS // 3, 200_000)
    x = torch.rand(num_rows, FEATURES) * 2 - 1
    y = (x[:, 0] * x[:, 1] > 0).long()
    torch.manual_seed(1)
    module = nn.Sequential(
        nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2)
    )  # fmt: skip
    module = nn.parallel.DistributedDataParallel(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
    loss = nn.CrossEntropyLoss()
    steps_left = STEPS
    started = time.perf_counter()
    while steps_left > 0:
        order = torch.randperm(num_rows)
        for start in range(0, num_rows - rows + 1, rows):
            batch = order[start : start + rows]
            optimizer.zero_grad()
            loss(module(x[batch]), y[batch]).backward()
            optimizer.step()
            steps_left -= 1
            if steps_left == 0:
                break
    elapsed = time.perf_counter() - started
    if rank == 0:
        results.put(rows * ranks * STEPS / elapsed)
    dist.destroy_process_group()


def pytorch(ranks: int, rows: int) -> float:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    results = mp.get_context("spawn").SimpleQueue()
    mp.spawn(rank_main, (ranks, rows, port, results), nprocs=ranks)
    return results.get()


def phalanx(binary: str, ranks: int, rows: int) -> float:
    output = subprocess.run([binary, str(ranks), str(rows)], check=True, capture_output=True, text=True).stdout
    return float(re.search(r"(\d+) rows/s", output).group(1))


def main() -> None:
    print("| ranks | rows of a rank's batch | PyTorch DDP, gloo | Phalanx | ratio |")
    print("|---|---|---|---|---|")
    for rows in (64, 1024):
        for ranks in (1, 2):
            theirs, ours = 0.0, 0.0
            for _ in range(ROUNDS):
                theirs = max(theirs, pytorch(ranks, rows))
                ours = max(ours, phalanx(sys.argv[1], ranks, rows))
            print(f"| {ranks} | {rows} | {theirs:,.0f} rows/s | {ours:,.0f} rows/s | {ours / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main()
