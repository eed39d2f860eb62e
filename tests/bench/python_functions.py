"""Rows a second through Python functions, here and in Spark's local[2]: python python_functions.py --server BINARY."""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import time

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "pyspark"))

REPEATS = 4


def measure(remote: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()

    @F.pandas_udf("double")
    def series(x: pd.Series) -> pd.Series:
        return x * 2.0

    value = F.udf(lambda x: x * 2.0, "double", useArrow=True)
    same = (lambda: lambda batches: batches)()
    queries = [
        ("pandas_udf", 4_000_000, lambda df: df.select(series("x").alias("x"))),
        ("Arrow udf", 1_000_000, lambda df: df.select(value("x").alias("x"))),
        ("mapInArrow", 4_000_000, lambda df: df.mapInArrow(same, "x double")),
    ]
    for name, num_rows, query in queries:
        df = query(spark.range(0, num_rows, 1, 2).select(F.col("id").cast("double").alias("x"))).agg(F.sum("x"))
        times = []
        for _ in range(REPEATS):
            begin = time.monotonic()
            df.collect()
            times.append(time.monotonic() - begin)
        warm = min(times[1:])
        print(f"{name:12} first {times[0]:6.2f} s, warm {warm:5.2f} s, {num_rows / warm / 1e6:6.2f} M rows/s", flush=True)
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", help="the phalanx binary")
    parser.add_argument("--remote", help="measure this server only")
    options = parser.parse_args()
    if options.remote:
        measure(options.remote)
        return
    from server import Server

    os.environ["PYSPARK_PYTHON"] = sys.executable
    server = Server(options.server, python=sys.executable)
    for title, remote in [("phalanx", server.remote), ("Spark local[2]", "local[2]")]:
        print(title, flush=True)
        # a process for each: one client speaks to one server
        subprocess.run([sys.executable, __file__, "--remote", remote], check=True, stderr=subprocess.DEVNULL)
    server.stop()


if __name__ == "__main__":
    main()
