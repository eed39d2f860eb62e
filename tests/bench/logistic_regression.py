"""Times LogisticRegression on 1M x 28 doubles from Parquet here and in real Spark, in one run.

    python logistic_regression.py --server PATH/phalanx [--rows 1000000] [--repeat 3]

Both servers are Spark Connect servers with two cores, and both are asked by the same stock client: a fit, a second (warm)
fit, and a transform with an accuracy over it. Memory is the largest resident set of the server and all its processes.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "pyspark"))
from server import Server  # noqa: E402

FEATURES = 28


def write_data(path: str, rows: int) -> None:
    """Separable only in part, so that the fit has something to do; the seed makes it the same each time."""
    random = np.random.default_rng(42)
    x = random.normal(size=(rows, FEATURES)) * random.uniform(0.1, 10.0, FEATURES) + random.normal(size=FEATURES)
    margin = (x / x.std(axis=0)) @ random.normal(size=FEATURES) + random.logistic(size=rows) * 2
    columns = {f"x{i}": x[:, i] for i in range(FEATURES)}
    columns["label"] = (margin > 0).astype(np.int32)
    pq.write_table(pa.table(columns), path, row_group_size=125_000)


class Memory:
    """The largest resident set of a process and its descendants, sampled."""

    def __init__(self, pid: int):
        self.largest = 0
        self.running = True
        self.root = psutil.Process(pid)
        self.thread = threading.Thread(target=self._sample, daemon=True)
        self.thread.start()

    def _sample(self) -> None:
        while self.running:
            try:
                family = [self.root, *self.root.children(recursive=True)]
                self.largest = max(self.largest, sum(proportional(process) for process in family))
            except psutil.NoSuchProcess:
                pass
            time.sleep(0.1)

    def stop(self) -> float:
        self.running = False
        self.thread.join()
        return self.largest / 2**20


def proportional(process: psutil.Process) -> int:
    """Pages that several processes share count once."""
    try:
        return process.memory_full_info().pss
    except psutil.Error:
        return 0


def measure(remote: str, path: str, repeat: int) -> dict[str, float]:
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    started = time.perf_counter()
    spark = SparkSession.builder.remote(remote).create()
    spark.range(1).collect()
    figures = {"first collect": time.perf_counter() - started}
    frame = spark.read.parquet(path)
    assembler = VectorAssembler(inputCols=[f"x{i}" for i in range(FEATURES)], outputCol="features")
    data = assembler.transform(frame).select("features", "label")
    fits = []
    for _ in range(1 + repeat):
        started = time.perf_counter()
        model = LogisticRegression(maxIter=50, regParam=0.001).fit(data)
        fits.append(time.perf_counter() - started)
    figures["first fit"] = fits[0]
    figures["warm fit"] = statistics.median(fits[1:])
    figures["iterations"] = model.summary.totalIterations
    figures["objective"] = model.summary.objectiveHistory[-1]
    started = time.perf_counter()
    figures["accuracy"] = MulticlassClassificationEvaluator(metricName="accuracy").evaluate(model.transform(data))
    figures["transform + accuracy"] = time.perf_counter() - started
    spark.stop()
    return figures


def phalanx(binary: str, path: str, repeat: int) -> dict[str, float]:
    started = time.perf_counter()
    server = Server(binary, slots=2)
    start = time.perf_counter() - started
    memory = Memory(server.process.pid)
    figures = {"start": start, **measure(server.remote, path, repeat)}
    figures["peak memory MiB"] = memory.stop()
    server.stop()
    return figures


def real_spark(path: str, repeat: int) -> dict[str, float]:
    import pyspark

    home = pathlib.Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="spark-")
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_NO_DAEMONIZE": "1", "SPARK_LOG_DIR": folder}
    command = [
        str(home / "sbin" / "start-connect-server.sh"), "--master", "local[2]", "--driver-memory", "6g",
        "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", f"spark.local.dir={folder}",
    ]
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               cwd=folder, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.2)
        start = time.perf_counter() - started
        memory = Memory(process.pid)
        figures = {"start": start, **measure(f"sc://127.0.0.1:{port}", path, repeat)}
        figures["peak memory MiB"] = memory.stop()
        return figures
    finally:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.wait()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--server", required=True)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--only", choices=["phalanx", "spark"])
    options = arguments.parse_args()
    path = os.path.join(tempfile.mkdtemp(prefix="bench-"), "data.parquet")
    write_data(path, options.rows)
    size = os.path.getsize(path) / 2**20
    print(f"{options.rows} rows x {FEATURES} doubles, {size:.0f} MiB of Parquet, maxIter=50, regParam=0.001")
    results = {}
    if options.only != "spark":
        results["Phalanx"] = phalanx(options.server, path, options.repeat)
    if options.only != "phalanx":
        results["Spark"] = real_spark(path, options.repeat)
    print(f"| {'figure':22} | {' | '.join(f'{name:>12}' for name in results)} |")
    print(f"|{'-' * 24}|{'|'.join('-' * 13 + ':' for _ in results)}|")
    for figure in next(iter(results.values())):
        row = " | ".join(f"{result[figure]:12.6g}" for result in results.values())
        unit = "" if figure in ("iterations", "objective", "accuracy", "peak memory MiB") else " (s)"
        print(f"| {figure + unit:22} | {row} |")


if __name__ == "__main__":
    main()
