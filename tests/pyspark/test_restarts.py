"""A fit outlives its ranks, and its server: it goes on from its last checkpoint, to the same weights."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import time

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.linalg import Vectors
from pyspark.ml.regression import LinearRegression
from pyspark.sql import functions as F

from records import JobRecords
from server import Server
from test_faults import Background

SLOTS = 3
ROWS = 60_000
FEATURES = 12


@pytest.fixture(scope="module")
def server():
    server = Server(slots=SLOTS, warm_workers=0)
    yield server
    server.stop()


@pytest.fixture
def spark(spark):
    spark.conf.set("spark.phalanx.checkpoint.interval", "5")
    spark.conf.set("spark.phalanx.maxRestarts", "100")
    return spark


def rows(spark, count=ROWS):
    """Features that are nearly one, so that a fit takes some hundred steps."""
    base = spark.range(count).select(*[F.rand(seed=i).alias(f"r{i}") for i in range(FEATURES)])
    columns = [(F.col("r0") + F.col(f"r{i}") * 10.0 ** (-i / 4)).alias(f"x{i}") for i in range(FEATURES)]
    label = (F.col("r3") + F.col("r4") * 0.5 > F.col("r5") + F.col("r6") * 0.3).cast("double")
    from pyspark.ml.feature import VectorAssembler

    frame = base.select(*columns, label.alias("label"), (F.col("r1") * 3 - F.col("r2")).alias("target"))
    return VectorAssembler(inputCols=[f"x{i}" for i in range(FEATURES)], outputCol="features").transform(frame)


ESTIMATORS = {
    "lbfgs": lambda: LogisticRegression(maxIter=400, tol=0.0, regParam=1e-6),
    "owlqn": lambda: LogisticRegression(maxIter=400, tol=0.0, regParam=1e-5, elasticNetParam=0.5),
    "lbfgsb": lambda: LogisticRegression(
        maxIter=400, tol=0.0, regParam=1e-6, upperBoundsOnIntercepts=Vectors.dense(5.0)
    ),
    "least squares": lambda: LinearRegression(
        maxIter=400, tol=0.0, regParam=1e-6, elasticNetParam=0.5, solver="l-bfgs", labelCol="target"
    ),
    "huber": lambda: LinearRegression(maxIter=400, tol=0.0, loss="huber", regParam=1e-6, labelCol="target"),
}


def converging(max_iterations=1000):
    """A fit that ends at its minimum, which does not depend on the order of sums: the penalty keeps it from being flat."""
    return LogisticRegression(maxIter=max_iterations, tol=1e-14, regParam=1e-2)


def assert_equal_minimum(model, expected):
    assert model.summary.objectiveHistory[-1] == pytest.approx(expected.summary.objectiveHistory[-1], rel=1e-9)
    np.testing.assert_allclose(model.coefficients.toArray(), expected.coefficients.toArray(), rtol=1e-6, atol=1e-6)


def bits(model) -> bytes:
    """Everything that was learned, to the bit."""
    values = [model.coefficients.toArray(), [model.intercept], model.summary.objectiveHistory]
    return b"".join(np.asarray(value, dtype="float64").tobytes() for value in values)


class Killer:
    """Kills ranks of a server's fits now and then, until it is stopped."""

    def __init__(self, server, seed=1, signals=(signal.SIGKILL,)):
        self.server, self.random, self.signals = server, random.Random(seed), signals
        self.kills = 0

    def kill_one(self) -> bool:
        ranks = self.server.ranks()
        if not ranks:
            return False
        try:
            os.kill(self.random.choice(ranks).pid, self.random.choice(self.signals))
        except ProcessLookupError:
            return False
        self.kills += 1
        return True

    def kill_while(self, fit: Background, kills_max: int, pause_s=(0.05, 0.6)) -> None:
        kills = 0
        while fit.thread.is_alive() and kills < kills_max:
            fit.thread.join(self.random.uniform(*pause_s))
            if fit.thread.is_alive():
                kills += self.kill_one()


def checkpoints(folder) -> list[str]:
    return sorted(str(path) for path in pathlib.Path(folder).glob("**/*.checkpoint"))


def wait_for_checkpoint(folder, timeout_s=30) -> str:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := checkpoints(folder):
            return found[-1]
        time.sleep(0.01)
    raise TimeoutError(f"no checkpoint in {folder}")


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_killed_ranks_leave_the_weights_as_they_would_have_been(spark, server, name):
    frame = rows(spark)
    undisturbed = bits(ESTIMATORS[name]().fit(frame))
    assert checkpoints(server.data_dir) == [], "a fit that has succeeded needs its checkpoints no more"
    fit = Background(lambda: ESTIMATORS[name]().fit(frame))
    killer = Killer(server, seed=len(name))
    wait_for_checkpoint(server.data_dir)
    killer.kill_one()
    killer.kill_while(fit, 2, (0.3, 0.9))
    assert fit.wait(60) is None, fit.error
    assert killer.kills >= 1
    assert bits(fit.result) == undisturbed
    server.wait_for_ranks(0)


def test_a_restart_goes_on_from_the_checkpoint_and_does_not_begin_again(spark, server):
    frame = rows(spark)
    fit = Background(lambda: ESTIMATORS["lbfgs"]().fit(frame))
    wait_for_checkpoint(server.data_dir)
    Killer(server).kill_one()
    assert fit.wait(60) is None, fit.error
    assert any("resumes from a checkpoint" in line for line in server.log)


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGABRT, signal.SIGSEGV], ids=lambda how: how.name)
def test_a_rank_that_hangs_or_crashes_is_replaced(spark, server, how):
    frame = rows(spark)
    undisturbed = bits(ESTIMATORS["lbfgs"]().fit(frame))
    fit = Background(lambda: ESTIMATORS["lbfgs"]().fit(frame))
    wait_for_checkpoint(server.data_dir)
    assert Killer(server, signals=(how,)).kill_one()
    assert fit.wait(60) is None, fit.error
    assert bits(fit.result) == undisturbed
    server.wait_for_ranks(0)


def test_a_spent_budget_ends_the_fit_with_the_first_cause(spark, server):
    spark.conf.set("spark.phalanx.maxRestarts", "1")
    frame = rows(spark)
    fit = Background(lambda: LogisticRegression(maxIter=100_000, tol=0.0).fit(frame))
    wait_for_checkpoint(server.data_dir)
    for _ in range(2):
        victim = server.wait_for_ranks(2, 20)[1]
        time.sleep(0.7)
        os.kill(victim.pid, signal.SIGKILL)
        while victim.is_running() and victim.status() != "zombie":
            time.sleep(0.01)
    error = fit.wait(15)
    assert isinstance(error, PySparkException), error
    text = str(error)
    assert "rank 1 of generation 0 was killed by signal 9" in text and "started again once" in text, text
    server.wait_for_ranks(0)
    kept = checkpoints(server.data_dir)
    assert kept, "what a failed fit has come to is kept"
    for path in kept:
        os.remove(path)


def test_an_error_of_the_data_is_not_tried_again(spark, server):
    frame = rows(spark).withColumn("label", F.lit(0.5))
    with pytest.raises(PySparkException, match="0.5"):
        LogisticRegression().fit(frame)
    broken = rows(spark).withColumn("label", F.expr("assert_true(label < 0.5)").cast("double"))
    with pytest.raises(PySparkException):
        LogisticRegression().fit(broken)
    assert not any("will start again" in line for line in server.log[-20:])


def test_an_elastic_fit_goes_on_with_the_ranks_that_are_left(spark, server):
    spark.conf.set("spark.phalanx.workers", "3")
    frame = rows(spark, 1_000_000)
    undisturbed = converging().fit(frame)
    spark.conf.set("spark.phalanx.minWorkers", "2")
    fit = Background(lambda: converging().fit(frame))
    server.wait_for_ranks(3, 20)
    wait_for_checkpoint(server.data_dir)
    Killer(server).kill_one()
    seen = set()
    while fit.thread.is_alive():
        seen.add(len(server.ranks()))
        time.sleep(0.02)
    assert fit.wait(60) is None, fit.error
    assert 2 in seen
    assert any("a gang starts" in line and "num_ranks=2" in line for line in server.log)
    assert_equal_minimum(fit.result, undisturbed)
    server.wait_for_ranks(0)


@pytest.mark.parametrize(("key", "value"), [
    ("spark.phalanx.minWorkers", "3"),
    ("spark.phalanx.minWorkers", "0"),
    ("spark.phalanx.maxRestarts", "-1"),
    ("spark.phalanx.checkpoint.interval", "often"),
    ("spark.phalanx.checkpoint.keep", "0"),
    ("spark.phalanx.checkpoint.dir", "here"),
])
def test_a_setting_that_cannot_be_is_refused_by_name(spark, key, value):
    spark.conf.set(key, value)
    with pytest.raises(PySparkException, match=key.replace(".", r"\.")):
        LogisticRegression(maxIter=1).fit(rows(spark, 100))


def test_a_fit_is_resumed_by_hand_at_any_number_of_ranks(spark, server, tmp_path):
    frame = rows(spark)
    whole = ESTIMATORS["lbfgs"]().fit(frame)
    spark.conf.set("spark.phalanx.checkpoint.dir", str(tmp_path))
    ESTIMATORS["lbfgs"]().setMaxIter(50).fit(frame)
    found = checkpoints(tmp_path)
    assert len(found) == 2 and found[-1].endswith("50.checkpoint"), found
    spark.conf.set("spark.phalanx.checkpoint.resumeFrom", found[-1])
    resumed = ESTIMATORS["lbfgs"]().fit(frame)
    assert bits(resumed) == bits(whole)
    spark.conf.unset("spark.phalanx.checkpoint.resumeFrom")
    whole = converging().fit(frame)
    known = set(checkpoints(tmp_path))
    converging(15).fit(frame)
    (newest,) = [path for path in checkpoints(tmp_path) if path not in known and path.endswith("15.checkpoint")]
    spark.conf.set("spark.phalanx.checkpoint.resumeFrom", newest)
    for workers in ("1", "3"):
        spark.conf.set("spark.phalanx.workers", workers)
        other = converging().fit(frame)
        assert other.summary.objectiveHistory[:16] == whole.summary.objectiveHistory[:16]
        assert_equal_minimum(other, whole)


def test_a_checkpoint_of_another_fit_or_a_damaged_one_is_refused(spark, tmp_path):
    frame = rows(spark)
    spark.conf.set("spark.phalanx.checkpoint.dir", str(tmp_path))
    ESTIMATORS["lbfgs"]().setMaxIter(30).fit(frame)
    newest = checkpoints(tmp_path)[-1]
    spark.conf.set("spark.phalanx.checkpoint.resumeFrom", os.path.dirname(newest))
    for estimator, other in [(ESTIMATORS["owlqn"](), frame), (ESTIMATORS["lbfgs"](), rows(spark, ROWS - 1))]:
        with pytest.raises(PySparkException, match="of another fit") as error:
            estimator.fit(other)
        assert "CHECKPOINT_NOT_USABLE" in str(error.value)
    with open(newest, "r+b") as file:
        file.truncate(os.path.getsize(newest) - 8)
    # the one before is whole
    assert ESTIMATORS["lbfgs"]().setMaxIter(31).fit(frame).summary.totalIterations == 31
    spark.conf.set("spark.phalanx.checkpoint.resumeFrom", newest)
    with pytest.raises(PySparkException, match="cut off or damaged"):
        ESTIMATORS["lbfgs"]().fit(frame)
    spark.conf.set("spark.phalanx.checkpoint.resumeFrom", str(tmp_path / "nowhere"))
    with pytest.raises(PySparkException, match="there is no checkpoint"):
        ESTIMATORS["lbfgs"]().fit(frame)


def test_a_killed_server_leaves_a_fit_that_can_be_resumed():
    server = Server(slots=2, warm_workers=0)
    try:
        session = server.new_session()
        session.conf.set("spark.phalanx.checkpoint.interval", "5")
        frame = rows(session)
        whole = bits(ESTIMATORS["lbfgs"]().fit(frame))
        fit = Background(lambda: ESTIMATORS["lbfgs"]().fit(frame))
        wait_for_checkpoint(server.data_dir)
        ranks = server.ranks()
        server.process.kill()
        server.process.wait()
        deadline = time.monotonic() + 5
        while any(rank.is_running() and rank.status() != "zombie" for rank in ranks):
            assert time.monotonic() < deadline, "ranks outlive their server"
            time.sleep(0.02)
        server.start()
        record = JobRecords(f"{server.data_dir}/jobs").last()
        assert record["state"] == "lost" and record["operator"] == "LogisticRegression", record
        kept = checkpoints(record["checkpoints"])
        assert kept
        fit.wait(60)
        again = server.new_session()
        again.conf.set("spark.phalanx.checkpoint.resumeFrom", record["checkpoints"])
        resumed = bits(ESTIMATORS["lbfgs"]().fit(rows(again)))
        assert resumed == whole
        assert any("resumes from a checkpoint" in line for line in server.log)
    finally:
        server.stop(signal.SIGKILL)
