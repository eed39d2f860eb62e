"""What must fail, fails soon, says why, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from pyspark.errors import PySparkException
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession as ConnectSession

import data
from conftest import SLOTS
from test_training import assembled


@pytest.fixture
def small(spark):
    return assembled(spark, data.breast_cancer())


@pytest.fixture
def large(spark):
    return endless(spark)


def endless(spark):
    """Data on which a fit goes on and on: features that are nearly one, and classes that a plane separates."""
    size = 20
    base = spark.range(400_000).select(*[F.rand(seed=i).alias(f"r{i}") for i in range(size)])
    columns = [(F.col("r0") + F.col(f"r{i}") * 10.0 ** (-i / 4)).alias(f"x{i}") for i in range(size)]
    frame = base.select(*columns, (F.col("r3") + F.col("r4") > F.col("r5") + 0.5).cast("int").alias("label"))
    return VectorAssembler(inputCols=[f"x{i}" for i in range(size)], outputCol="features").transform(frame)


def slow_fit(frame):
    return LogisticRegression(maxIter=100_000, tol=0.0).fit(frame)


class Background:
    """Runs a call on a thread and keeps what came of it."""

    def __init__(self, call):
        self.error: BaseException | None = None
        self.result = None
        self.ended_at = 0.0
        self.session = ConnectSession.getActiveSession()
        self.thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self.thread.start()

    def _run(self, call):
        # fetching from a model asks for the thread's active session
        ConnectSession._active_session.session = self.session
        try:
            self.result = call()
        except BaseException as error:
            self.error = error
        self.ended_at = time.monotonic()

    def wait(self, timeout_s: float) -> BaseException | None:
        self.thread.join(timeout_s)
        assert not self.thread.is_alive(), f"still running after {timeout_s} s"
        return self.error


def test_more_ranks_than_slots_are_refused_at_once(spark, server, small):
    spark.conf.set("spark.phalanx.workers", str(SLOTS + 1))
    started = time.monotonic()
    with pytest.raises(PySparkException) as error:
        LogisticRegression().fit(small)
    assert time.monotonic() - started < 5
    assert f"{SLOTS + 1}" in str(error.value) and f"{SLOTS}" in str(error.value)
    assert server.ranks() == []
    spark.conf.set("spark.phalanx.workers", "2")
    LogisticRegression(maxIter=3).fit(small)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_dead_rank_fails_its_fit_with_the_cause(spark, server, small, large, how):
    spark.conf.set("spark.phalanx.maxRestarts", "0")
    fit = Background(lambda: slow_fit(large))
    ranks = server.wait_for_ranks(2, 20)
    time.sleep(1.5)
    killed_at = time.monotonic()
    os.kill(ranks[1].pid, how)
    error = fit.wait(15)
    assert isinstance(error, PySparkException), error
    assert fit.ended_at - killed_at < 10
    text = str(error)
    assert ("signal 9" in text) if how == signal.SIGKILL else ("no sign of life" in text), text
    server.wait_for_ranks(0)
    LogisticRegression(maxIter=3).fit(small)


def test_interrupt_stops_a_fit(spark, server, large):
    fit = Background(lambda: slow_fit(large))
    server.wait_for_ranks(2, 20)
    time.sleep(1.0)
    interrupted_at = time.monotonic()
    assert spark.interruptAll()
    error = fit.wait(10)
    assert fit.ended_at - interrupted_at < 5
    assert "OPERATION_CANCELED" in str(error)
    server.wait_for_ranks(0, 5)


def test_interrupt_by_tag_spares_other_operations(spark, server, large, small):
    def tagged():
        spark.addTag("doomed")
        return slow_fit(large)

    fit = Background(tagged)
    server.wait_for_ranks(2, 20)
    time.sleep(0.5)
    other = Background(lambda: LogisticRegression(maxIter=5).fit(small))
    spark.interruptTag("doomed")
    assert "OPERATION_CANCELED" in str(fit.wait(10))
    assert other.wait(30) is None


def test_a_client_that_goes_away_leaves_no_rank_for_long(server):
    """The session ends with the client's release, and its fit with it."""
    session = SparkSession.builder.remote(server.remote).create()
    session.conf.set("spark.phalanx.workers", "2")
    frame = endless(session)
    fit = Background(lambda: slow_fit(frame))
    server.wait_for_ranks(2, 20)
    session.stop()
    server.wait_for_ranks(0, 10)
    fit.wait(30)


def test_thirty_fits_leave_nothing_behind(spark, server, small):
    estimator = LogisticRegression(maxIter=2)
    estimator.fit(small)
    server.wait_for_ranks(0)
    files, shared = server.open_files(), set(os.listdir("/dev/shm"))
    for _ in range(30):
        estimator.fit(small)
    server.wait_for_ranks(0)
    assert server.open_files() <= files + 4
    assert set(os.listdir("/dev/shm")) <= shared


def test_four_jobs_at_once_all_end(spark, server, small):
    fits = [Background(lambda: LogisticRegression(maxIter=5).fit(small)) for _ in range(4)]
    for fit in fits:
        assert fit.wait(60) is None
    server.wait_for_ranks(0)


def test_progress_moves_while_a_fit_runs(spark, small, large):
    seen = []

    def handler(stages, inflight_tasks, operation_id, done):
        seen.append([(stage.num_completed_tasks, stage.num_tasks) for stage in stages])

    spark.registerProgressHandler(handler)
    try:
        LogisticRegression(maxIter=300, tol=0.0).fit(large)
    finally:
        spark.removeProgressHandler(handler)
    completed = [stages[0][0] for stages in seen if stages]
    assert len(set(completed)) > 2 and completed == sorted(completed), completed
    assert any(stages and stages[0][1] == 300 for stages in seen)


CTRL_C_SCRIPT = """
import sys
sys.path.insert(0, sys.argv[2])
from pyspark.sql import SparkSession
import test_faults
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.conf.set("spark.phalanx.workers", "2")
test_faults.slow_fit(test_faults.endless(spark))
"""


def test_ctrl_c_on_the_client_stops_its_fit(server, tmp_path):
    script = tmp_path / "client.py"
    script.write_text(CTRL_C_SCRIPT)
    folder = os.path.dirname(os.path.abspath(__file__))
    client = subprocess.Popen([sys.executable, "-W", "ignore", str(script), server.remote, folder],
                              stderr=subprocess.DEVNULL)
    try:
        server.wait_for_ranks(2, 30)
        time.sleep(1.0)
        interrupted_at = time.monotonic()
        client.send_signal(signal.SIGINT)
        server.wait_for_ranks(0, 5)
        assert time.monotonic() - interrupted_at < 5
    finally:
        client.kill()
        client.wait()
