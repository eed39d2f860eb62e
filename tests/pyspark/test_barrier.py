"""Barrier stages of Python functions: they start together, meet, and end together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import psutil
import pyarrow as pa
import pytest
from pyspark import BarrierTaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from server import Server

SLOTS = 3


@pytest.fixture(scope="module")
def python_server():
    server = Server(python=sys.executable, slots=SLOTS, warm_workers=0, python_spare_workers=0)
    yield server
    server.stop()


@pytest.fixture
def spark(python_server):
    session = SparkSession.builder.remote(python_server.remote).create()
    yield session
    session.stop()


# by value, as a function of a notebook is: the server cannot import this module
same = (lambda: lambda batches: batches)()


def wait_until(condition, timeout_s: float = 5) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_tasks_see_each_other(spark):
    def introduces_itself(batches):
        context = BarrierTaskContext.get()
        rows = sum(batch.num_rows for batch in batches)
        context.barrier()
        gathered = [context.allGather(f"{turn} of {context.partitionId()}") for turn in range(3)]
        described = {
            "partition": context.partitionId(),
            "rows": rows,
            "gathered": gathered,
            "hosts": [info.address.split(":")[0] for info in context.getTaskInfos()],
            "stage": context.stageId(),
            "attempt": context.attemptNumber(),
            "property": context.getLocalProperty("spark.app.name"),
        }
        yield pa.RecordBatch.from_pydict({"described": [json.dumps(described)]})

    spark.conf.set("spark.app.name", "a name")
    df = spark.range(0, 30, 1, SLOTS).mapInArrow(introduces_itself, "described string", barrier=True)
    found = [json.loads(row.described) for row in df.collect()]
    assert [task["partition"] for task in found] == list(range(SLOTS))
    assert [task["rows"] for task in found] == [10] * SLOTS
    for task in found:
        assert task["gathered"] == [[f"{turn} of {other}" for other in range(SLOTS)] for turn in range(3)]
        assert task["hosts"] == ["127.0.0.1"] * SLOTS
        assert (task["attempt"], task["property"]) == (0, "a name")
    assert len({task["stage"] for task in found}) == 1


def test_a_barrier_relation_is_shown_counted_limited_and_written(spark, tmp_path):
    df = spark.range(0, 100, 1, 2).mapInArrow(same, "id long", barrier=True)
    assert df.count() == 100
    assert len(df.limit(3).collect()) == 3
    assert "id" in df._show_string(5)
    assert df.where("id > 97").select((F.col("id") + 1).alias("next")).collect()[0].next == 99
    df.write.parquet(str(tmp_path / "rows"))
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 100
    frames = spark.range(0, 10, 1, 2).mapInPandas(same, "id long", barrier=True)
    assert frames.join(df, "id").count() == 10


def test_more_tasks_than_slots_are_refused_at_once(spark):
    begin = time.monotonic()
    with pytest.raises(Exception, match=f"{SLOTS + 1}.*{SLOTS}"):
        spark.range(0, 10, 1, SLOTS + 1).mapInArrow(same, "id long", barrier=True).collect()
    assert time.monotonic() - begin < 5
    assert spark.range(0, 10, 1, SLOTS).mapInArrow(same, "id long", barrier=True).count() == 10


def test_stages_that_do_not_fit_beside_each_other_take_turns(python_server, tmp_path):
    def one_at_a_time(batches):
        context = BarrierTaskContext.get()
        mark = tmp_path / f"running-{context.partitionId()}"
        mark.touch(exist_ok=False)
        context.barrier()
        time.sleep(0.2)
        mark.unlink()
        yield from batches

    counts: list[int] = []

    def run():
        session = SparkSession.builder.remote(python_server.remote).create()
        counts.append(session.range(0, 10, 1, 2).mapInArrow(one_at_a_time, "id long", barrier=True).count())
        session.stop()

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counts == [10, 10, 10]


@pytest.mark.parametrize("how", ["raises", "exits"])
def test_a_task_that_dies_ends_its_stage(python_server, spark, how, tmp_path):
    def one_dies(batches):
        context = BarrierTaskContext.get()
        (tmp_path / str(context.partitionId())).write_text(str(os.getpid()))
        context.barrier()
        if context.partitionId() == 1:
            if how == "exits":
                os._exit(3)
            raise RuntimeError("task 1 gives up")
        # the others wait for it
        context.barrier()
        yield from batches

    begin = time.monotonic()
    cause = "task 1 gives up" if how == "raises" else "exit code 3"
    with pytest.raises(Exception, match=f"(?s)[Tt]ask 1 of a barrier stage failed.*{cause}"):
        spark.range(0, 3, 1, SLOTS).mapInArrow(one_dies, "id long", barrier=True).collect()
    assert time.monotonic() - begin < 10
    pids = [int((tmp_path / str(task)).read_text()) for task in range(SLOTS)]
    wait_until(lambda: not any(alive(pid) for pid in pids))
    # its slots are free again
    assert spark.range(0, 10, 1, SLOTS).mapInArrow(same, "id long", barrier=True).count() == 10


def test_an_interrupt_ends_all_tasks_and_their_children(spark, tmp_path):
    def waits(batches):
        context = BarrierTaskContext.get()
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        partial = tmp_path / f"partial-{context.partitionId()}"
        partial.write_text(f"{os.getpid()},{child.pid}")
        partial.rename(tmp_path / f"pids-{context.partitionId()}")
        if context.partitionId() > 0:
            context.barrier()
        time.sleep(600)
        yield from batches

    failures: list[BaseException] = []

    def run():
        try:
            spark.range(0, 3, 1, 2).mapInArrow(waits, "id long", barrier=True).collect()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: len(list(tmp_path.glob("pids-*"))) == 2, 20)
    pids = [int(pid) for file in tmp_path.glob("pids-*") for pid in file.read_text().split(",")]
    assert len(pids) == 4 and all(alive(pid) for pid in pids)
    begin = time.monotonic()
    spark.interruptAll()
    wait_until(lambda: not any(alive(pid) for pid in pids))
    assert time.monotonic() - begin < 5
    thread.join(10)
    assert failures and "OPERATION_CANCELED" in str(failures[0])
    assert spark.range(0, 10, 1, SLOTS).mapInArrow(same, "id long", barrier=True).count() == 10


def test_a_profile_of_resources_is_refused_by_name(spark):
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    profile = ResourceProfileBuilder().require(TaskResourceRequests().cpus(2)).build
    with pytest.raises(Exception, match="resource profiles"):
        spark.range(3).mapInArrow(same, "id long", profile=profile).collect()
