"""What people see of a job: its record, its log, its timeline, the server's metrics, and where it stands in line."""

from __future__ import annotations

import json
import logging
import re
import time
import urllib.error
import urllib.request

import pytest
from pyspark.errors import PySparkException
from pyspark.ml.classification import LogisticRegression
from pyspark.sql import SparkSession

import data
from records import JobRecords
from server import Server
from test_faults import Background, endless, slow_fit
from test_training import assembled

SLOTS = 2
ROWS = 569


@pytest.fixture(scope="module")
def server():
    server = Server(slots=SLOTS, warm_workers=0, metrics_port=0)
    yield server
    server.stop()


@pytest.fixture
def small(spark):
    return assembled(spark, data.breast_cancer())


@pytest.fixture
def jobs(spark):
    return JobRecords(spark.conf.get("spark.phalanx.jobs.dir"))


def metrics_address(server) -> str:
    (line,) = [line for line in server.log if "metrics are served" in line]
    return re.search(r"address=([0-9.]+:\d+)", line).group(1)


def metrics(server) -> dict[str, float]:
    with urllib.request.urlopen(f"http://{metrics_address(server)}/metrics") as response:
        assert response.headers["Content-Type"].startswith("application/openmetrics-text")
        text = response.read().decode()
    assert text.endswith("# EOF\n")
    samples = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in samples}


def test_a_fit_leaves_a_record_of_what_each_rank_did(jobs, small):
    model = LogisticRegression(maxIter=12, tol=0.0, regParam=0.01).fit(small)
    record = jobs.last()
    assert record["state"] == "finished" and record["operator"] == "LogisticRegression"
    assert record["params"]["maxIter"] == "12" and record["pool"] == record["user"]
    assert record["submitted_at"] <= record["started_at"] <= record["ended_at"]
    assert (record["step"], record["steps_max"]) == (12, 12)
    assert [each["loss"] for each in record["losses"]] == pytest.approx(model.summary.objectiveHistory)
    assert record["loss"] == pytest.approx(model.summary.objectiveHistory[-1])
    ranks = record["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1]
    for rank in ranks:
        assert rank["step"] == 12 and rank["rows"] >= 12 * (ROWS // 2)
        of_rank = rank["metrics"]
        assert of_rank["step_s"] > 0 and of_rank["rows_per_s"] > 0 and of_rank["bytes_read"] > 0
        assert 0 <= of_rank["communication_share"] <= 1 and of_rank["collective_calls"] >= 12
    assert record["rows"] == sum(rank["rows"] for rank in ranks)


def test_a_running_fit_is_seen_live(spark, jobs):
    frame = endless(spark)
    fit = Background(lambda: slow_fit(frame))
    first = jobs.wait_for("running")
    time.sleep(2)
    second = jobs.last()
    assert second["job_id"] == first["job_id"] and second["step"] > first["step"]
    assert second["loss"] < second["losses"][0]["loss"] and second["rows_per_s"] > 0
    spark.interruptAll()
    fit.wait(10)
    assert jobs.last()["state"] == "cancelled"


def test_logs_are_tagged_by_rank_in_the_record_and_at_the_client(spark, jobs, small, caplog):
    LogisticRegression(maxIter=3).fit(small)
    log = jobs.path("log.txt").read_text()
    for rank in (0, 1):
        assert re.search(rf"\[rank {rank}\] joined as rank {rank} of 2, generation 0, process \d+", log), log
        assert re.search(rf"\[rank {rank}\] finished; 3 steps, \d+ rows used", log), log
    assert "[job] generation 0 running: all ranks have joined" in log
    assert not caplog.records
    spark.conf.set("spark.phalanx.log.toClient", "true")
    with caplog.at_level(logging.WARNING):
        LogisticRegression(maxIter=3).fit(small)
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "[rank 0] joined" in text and "[rank 1] finished" in text, text


def test_a_timeline_is_a_chrome_trace(spark, jobs, small):
    LogisticRegression(maxIter=3).fit(small)
    assert not jobs.path("trace.json").exists()
    spark.conf.set("spark.phalanx.trace", "true")
    LogisticRegression(maxIter=5, tol=0.0).fit(small)
    events = json.loads(jobs.path("trace.json").read_text())
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {0: "rank 0", 1: "rank 1"}
    spans = [event for event in events if event["ph"] == "X"]
    assert all(span["dur"] >= 0 and abs(span["ts"] / 1e6 - time.time()) < 60 for span in spans)
    for rank in (0, 1):
        of_rank = [span for span in spans if span["pid"] == rank]
        steps = [span["name"] for span in of_rank if span["cat"] == "step"]
        assert steps == ["start", *(f"step {step}" for step in range(1, 6))], steps
        calls = [span for span in of_rank if span["name"] == "all_reduce"]
        assert len(calls) >= 6 and all(call["args"]["bytes"] > 0 for call in calls)


def test_metrics_are_served_for_prometheus(server, spark, small):
    LogisticRegression(maxIter=4, tol=0.0).fit(small)
    before = metrics(server)
    LogisticRegression(maxIter=4, tol=0.0).fit(small)
    spark.conf.set("spark.phalanx.workers", str(SLOTS + 1))
    with pytest.raises(PySparkException):
        LogisticRegression().fit(small)
    # slots are free once the processes are gone
    server.wait_for_ranks(0)
    time.sleep(0.5)
    after = metrics(server)

    def grown(name):
        return after[name] - before.get(name, 0.0)

    assert grown('phalanx_jobs_ended_total{operator="LogisticRegression",state="finished"}') == 1
    assert grown('phalanx_training_steps_total{operator="LogisticRegression"}') == 4
    assert grown('phalanx_training_rows_total{operator="LogisticRegression"}') >= 4 * ROWS
    assert grown("phalanx_collective_calls_total") >= 10 and grown("phalanx_collective_bytes_total") > 0
    assert grown('phalanx_operations_total{kind="ml_fit",outcome="failed"}') == 1
    assert after["phalanx_slots"] == SLOTS and after["phalanx_slots_used"] == 0
    assert after["phalanx_sessions"] >= 1
    for path, method, status in [("/", "GET", 404), ("/metrics", "POST", 405)]:
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(urllib.request.Request(f"http://{metrics_address(server)}{path}", method=method))
        assert error.value.code == status


def test_a_fit_waits_in_line_says_why_and_can_be_given_up(server, spark, jobs, small):
    frame = endless(spark)
    fit = Background(lambda: slow_fit(frame))
    server.wait_for_ranks(2, 20)
    other = SparkSession.builder.remote(server.remote).create()
    other.conf.set("spark.phalanx.queueTimeout", "1500ms")
    other.conf.set("spark.phalanx.pool", "reports")
    other_small = assembled(other, data.breast_cancer())
    waiting = Background(lambda: LogisticRegression(maxIter=3).fit(other_small))
    record = jobs.wait_for("queued")
    assert record["reason"] == "needs 2 slots, 0 of 2 free" and record["pool"] == "reports"
    error = waiting.wait(10)
    assert "BARRIER_JOB_NOT_ADMITTED" in str(error) and "needs 2 slots, 0 of 2 free" in str(error)
    assert jobs.last()["first_cause"]["kind"] == "queue_timeout"
    spark.interruptAll()
    fit.wait(10)
    other.stop()


def test_a_fit_that_takes_too_long_is_stopped(server, spark):
    spark.conf.set("spark.phalanx.timeout", "2s")
    frame = endless(spark)
    started = time.monotonic()
    with pytest.raises(PySparkException, match="BARRIER_JOB_TIMEOUT.*spark.phalanx.timeout"):
        slow_fit(frame)
    assert time.monotonic() - started < 8
    server.wait_for_ranks(0)


@pytest.mark.parametrize("key", ["workers", "queueTimeout", "timeout", "trace", "log.toClient"])
def test_a_setting_that_cannot_be_is_refused_by_name(spark, small, key):
    spark.conf.set(f"spark.phalanx.{key}", "soon")
    with pytest.raises(PySparkException, match=f"spark.phalanx.{key}"):
        LogisticRegression(maxIter=1).fit(small)
