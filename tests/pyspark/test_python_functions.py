"""Python functions in the engine: UDFs, functions of batches and groups, and what they do when they fail."""

from __future__ import annotations

import datetime
import decimal
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.ml.functions import array_to_vector, predict_batch_udf, vector_to_array
from pyspark.ml.linalg import DenseVector, Vectors, VectorUDT
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from server import Server


@pytest.fixture(scope="module")
def python_server():
    server = Server(python=sys.executable, slots=2, warm_workers=0, python_spare_workers=1)
    yield server
    server.stop()


@pytest.fixture
def spark(python_server):
    session = SparkSession.builder.remote(python_server.remote).create()
    yield session
    session.stop()


def workers(server: Server) -> list[psutil.Process]:
    return server.ranks()


def wait_until(condition, timeout_s: float = 5) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def test_arrow_udfs_see_spark_types_and_give_them_back(spark):
    values = [
        (1, 2.5, "a", datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5), decimal.Decimal("1.50"), [1, 2], {"k": 1}),
        (None, None, None, None, None, None, None, None),
    ]
    schema = "i int, d double, s string, day date, t timestamp, m decimal(10,2), l array<int>, h map<string,int>"
    df = spark.createDataFrame(values, schema)
    for name, data_type in df.dtypes:
        same = F.udf(lambda value: value, data_type, useArrow=True)
        assert df.select(same(name).alias(name)).collect() == df.select(name).collect(), name
    described = F.udf(lambda *row: "|".join(type(value).__name__ for value in row), "string", useArrow=True)
    first = df.select(described(*df.columns)).first()[0]
    assert first == "int|float|str|date|datetime|Decimal|list|dict"


def test_several_calls_nest_and_stand_anywhere(spark):
    plus = F.udf(lambda value: value + 1, "long", useArrow=True)
    times = F.udf(lambda a, b: a * b, "long", useArrow=True)
    df = spark.range(0, 6, 1, 2)
    rows = df.select("id", plus("id").alias("p"), times(plus("id"), plus(plus("id"))).alias("t")).collect()
    assert rows == [Row(id=i, p=i + 1, t=(i + 1) * (i + 2)) for i in range(6)]
    assert [row.id for row in df.where(plus("id") > 4).collect()] == [4, 5]
    assert [row.id for row in df.orderBy(plus("id").desc()).limit(2).collect()] == [5, 4]
    assert df.groupBy((plus("id") % 2).alias("k")).agg(F.sum(plus("id")).alias("s")).orderBy("k").collect() == [
        Row(k=0, s=12),
        Row(k=1, s=9),
    ]
    joined = df.alias("a").join(df.alias("b"), plus(F.col("a.id")) == F.col("b.id"))
    assert sorted(row[0] for row in joined.select(F.col("a.id")).collect()) == [0, 1, 2, 3, 4]
    assert df.select(F.when(F.col("id") > 3, plus("id")).otherwise(0).alias("w")).agg(F.sum("w")).first()[0] == 11
    assert df.withColumn("x", plus("id")).select("id").count() == 6


def test_keyword_arguments_and_no_arguments(spark):
    minus = F.udf(lambda a, b: a - b, "long", useArrow=True)
    seven = F.udf(lambda: 7, "int", useArrow=True)
    df = spark.range(3)
    rows = df.select(minus(b=F.lit(1), a="id").alias("m"), seven().alias("s")).collect()
    assert rows == [Row(m=i - 1, s=7) for i in range(3)]


def test_pandas_udfs_of_series_frames_and_iterators(spark):
    df = spark.range(0, 10_001, 1, 2).select("id", F.struct((F.col("id") * 2).alias("x"), F.lit("y").alias("y")).alias("s"))

    @F.pandas_udf("long")
    def total(a: pd.Series, s: pd.DataFrame) -> pd.Series:
        return a + s["x"]

    @F.pandas_udf("long")
    def in_batches(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        base = 1000
        for batch in batches:
            yield batch + base

    rows = df.select(total("id", "s").alias("t"), in_batches("id").alias("b")).agg(F.sum("t"), F.sum("b")).first()
    ids = sum(range(10_001))
    assert tuple(rows) == (3 * ids, ids + 1000 * 10_001)

    @F.pandas_udf("a long, b string")
    def pair(a: pd.Series) -> pd.DataFrame:
        return pd.DataFrame({"a": a, "b": a.astype(str)})

    assert spark.range(2).select(pair("id").alias("p")).select("p.*").collect() == [Row(a=0, b="0"), Row(a=1, b="1")]


def test_timestamps_are_in_the_session_zone_for_pandas(spark):
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    df = spark.sql("SELECT TIMESTAMP '2024-07-01 08:00:00' AS t")

    @F.pandas_udf("int")
    def hour(t: pd.Series) -> pd.Series:
        return t.dt.hour

    @F.pandas_udf("timestamp")
    def same(t: pd.Series) -> pd.Series:
        return t

    assert df.select(hour("t")).first()[0] == 8
    assert df.select((same("t") == F.col("t"))).first()[0]


def test_vectors_reach_udfs_as_vectors(spark):
    df = spark.createDataFrame([(Vectors.dense(1.0, 2.0),), (Vectors.sparse(2, [1], [4.0]),)], ["v"])
    norm = F.udf(lambda v: float(np.sum(v.toArray())), "double", useArrow=True)
    twice = F.udf(lambda v: DenseVector(2 * v.toArray()), VectorUDT(), useArrow=True)
    assert [row[0] for row in df.select(norm("v")).collect()] == [3.0, 4.0]
    assert [row[0] for row in df.select(twice("v")).collect()] == [DenseVector([2, 4]), DenseVector([0, 8])]


def test_registered_functions_are_called_from_sql(spark):
    spark.udf.register("plus_one", lambda value: value + 1, "long")
    spark.range(4).createOrReplaceTempView("numbers")
    assert [row[0] for row in spark.sql("SELECT plus_one(id) FROM numbers WHERE PLUS_ONE(id) > 2").collect()] == [3, 4]
    assert spark.sql("SELECT plus_one(id) FROM numbers").columns == ["plus_one(id)"]
    assert spark.range(2).select(F.call_function("plus_one", F.col("id"))).first()[0] == 1
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        spark.sql("SELECT plus_two(1)").collect()


def test_functions_of_batches(spark):
    def doubled(batches):
        for batch in batches:
            assert batch.schema.names == ["id", "name"]
            column = pa.compute.multiply(batch.column(0), 2)
            yield pa.RecordBatch.from_arrays([column], ["any name"])

    import pyarrow.compute  # noqa: F401

    df = spark.range(0, 25_000, 1, 2).withColumn("name", F.lit("n"))
    assert df.mapInArrow(doubled, "id long").agg(F.sum("id")).first()[0] == 2 * sum(range(25_000))

    def frames(batches):
        for frame in batches:
            yield frame[frame["id"] % 2 == 0]

    assert df.mapInPandas(frames, df.schema).count() == 12_500
    assert df.mapInPandas(lambda batches: iter([]), "x int").collect() == []
    # what is not read of the input is no error
    assert df.mapInArrow(lambda batches: iter([next(batches).slice(0, 1)]), df.schema).count() == 2


def test_groups(spark):
    df = spark.createDataFrame([(k, float(v)) for k in "abc" for v in range(4)] + [(None, 9.0)], "k string, v double")

    def centred(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(v=frame["v"] - frame["v"].mean())

    rows = df.groupBy("k").applyInPandas(centred, "k string, v double").groupBy("k").agg(F.sum("v").alias("s"))
    assert sorted((row.k or "", row.s) for row in rows.collect()) == [("", 0.0), ("a", 0.0), ("b", 0.0), ("c", 0.0)]

    def described(key, frame):
        columns = pd.Series([",".join(frame.columns)], dtype=object)
        return pd.DataFrame({"k": pd.Series([key[0]], dtype=object), "even": int(key[1]), "n": len(frame), "columns": columns})

    rows = df.groupBy("k", (F.col("v") % 2 == 0).cast("int")).applyInPandas(
        described, "k string, even int, n int, columns string"
    )
    found = sorted((row.k or "", row.even, row.n, row.columns) for row in rows.collect())
    assert found[:3] == [("", 0, 1, "k,v"), ("a", 0, 2, "k,v"), ("a", 1, 2, "k,v")]

    def counted(key, table):
        return pa.table({"k": pa.array([key[0].as_py()], pa.string()), "n": [table.num_rows]})

    rows = df.groupBy("k").applyInArrow(counted, "k string, n long").collect()
    assert sorted((row.k or "", row.n) for row in rows) == [("", 1), ("a", 4), ("b", 4), ("c", 4)]


def test_groups_of_two_relations(spark):
    left = spark.createDataFrame([(1, "a"), (1, "b"), (2, "c")], "k int, x string")
    right = spark.createDataFrame([(1, 10), (3, 30)], "k int, y int")

    def joined(key, l, r):
        return pd.DataFrame({"k": [key[0]], "left": [len(l)], "right": [len(r)]})

    rows = left.groupBy("k").cogroup(right.groupBy("k")).applyInPandas(joined, "k int, left int, right int").collect()
    assert sorted(map(tuple, rows)) == [(1, 2, 1), (2, 1, 0), (3, 0, 1)]

    def tables(l, r):
        return pa.table({"n": pa.array([l.num_rows - r.num_rows], pa.int32())})

    rows = left.groupBy("k").cogroup(right.groupBy("k")).applyInArrow(tables, "n int").collect()
    assert sorted(row.n for row in rows) == [-1, 1, 1]


def test_aggregates(spark):
    @F.pandas_udf("double")
    def mean_of(v: pd.Series) -> float:
        return float(v.mean())

    @F.pandas_udf("double")
    def weighted(v: pd.Series, w: pd.Series) -> float:
        return float(np.average(v, weights=w))

    df = spark.range(0, 10, 1, 2).select("id", (F.col("id") % 2).alias("k"), (F.col("id") + 1.0).alias("w"))
    rows = df.groupBy("k").agg(mean_of("id").alias("m"), (weighted("id", "w") + 1).alias("w")).orderBy("k").collect()
    expected = [np.average([0, 2, 4, 6, 8], weights=[1, 3, 5, 7, 9]), np.average([1, 3, 5, 7, 9], weights=[2, 4, 6, 8, 10])]
    assert [(row.k, row.m) for row in rows] == [(0, 4.0), (1, 5.0)]
    assert [row.w for row in rows] == pytest.approx([value + 1 for value in expected])
    assert df.agg(mean_of("id")).collect() == [Row(**{"mean_of(id)": 4.5})]
    assert df.where("id < 0").groupBy("k").agg(mean_of("id")).collect() == []
    with pytest.raises(AnalysisException, match="INVALID_PANDAS_UDF_PLACEMENT"):
        df.groupBy("k").agg(mean_of("id"), F.sum("id")).collect()


def test_batches_are_predicted(spark):
    def make_predict():
        weights = np.array([1.0, 10.0])

        def predict(features: np.ndarray) -> np.ndarray:
            assert features.ndim == 2 and len(features) <= 3
            return features @ weights

        return predict

    predict = predict_batch_udf(make_predict, return_type=T.DoubleType(), batch_size=3, input_tensor_shapes=[[2]])
    df = spark.createDataFrame([(float(i), Vectors.dense(i, 2.0 * i)) for i in range(8)], ["i", "v"])
    arrays = df.select("i", vector_to_array("v").alias("a"))
    rows = arrays.select("i", predict("a").alias("p"), array_to_vector("a").alias("v")).collect()
    assert [(row.p, row.v) for row in rows] == [(21.0 * i, DenseVector([i, 2.0 * i])) for i in range(8)]


def test_an_exception_brings_its_traceback(spark):
    def fails(value):
        raise ValueError(f"no good {value}")

    with pytest.raises(PythonException) as raised:
        spark.range(3).select(F.udf(fails, "int")("id")).collect()
    message = str(raised.value)
    assert "ValueError: no good 0" in message and "in fails" in message and "Traceback" in message
    # the session goes on
    assert spark.range(1).select(F.udf(lambda v: v, "long")("id")).first()[0] == 0


def test_columns_of_another_type_are_refused(spark):
    def text(batches):
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array(["x"] * batch.num_rows)], ["id"])

    with pytest.raises(Exception, match="ARROW_TYPE_MISMATCH"):
        spark.range(3).mapInArrow(text, "id long").collect()
    with pytest.raises(Exception, match="ARROW_TYPE_MISMATCH"):
        spark.range(3).mapInArrow(text, "id string, more string").collect()


def test_modules_files_and_archives_are_there(spark, tmp_path):
    (tmp_path / "phalanx_a_module.py").write_text("ANSWER = 42\n")
    with zipfile.ZipFile(tmp_path / "phalanx_modules.zip", "w") as archive:
        archive.writestr("phalanx_zipped.py", "ANSWER = 43\n")
    (tmp_path / "numbers.txt").write_text("44")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("inside.txt", "45")
    spark.addArtifacts(str(tmp_path / "phalanx_a_module.py"), str(tmp_path / "phalanx_modules.zip"), pyfile=True)
    spark.addArtifacts(str(tmp_path / "numbers.txt"), file=True)
    spark.addArtifacts(str(tmp_path / "data.zip") + "#unpacked", archive=True)

    def answers(_):
        import pathlib

        import phalanx_a_module
        import phalanx_zipped

        root = pathlib.Path(phalanx_a_module.__file__).parent
        texts = [(root / "numbers.txt").read_text(), (root / "unpacked" / "inside.txt").read_text()]
        return ",".join(map(str, [phalanx_a_module.ANSWER, phalanx_zipped.ANSWER, *texts]))

    assert spark.range(1).select(F.udf(answers, "string")("id")).first()[0] == "42,43,44,45"


def test_sessions_do_not_share_workers(python_server):
    def marked(mark):
        def first_mark(batches):
            import builtins

            found = getattr(builtins, "phalanx_mark", None)
            builtins.phalanx_mark = mark
            # a worker that leaves rows unread is not used again
            assert len(list(batches)) == 1
            yield pa.RecordBatch.from_pydict({"mark": [found]}, pa.schema([("mark", pa.string())]))

        return first_mark

    found = []
    for mark in ["one", "two"]:
        session = SparkSession.builder.remote(python_server.remote).create()
        for _ in range(2):
            found.append(session.range(0, 1, 1, 1).mapInArrow(marked(mark), "mark string").collect()[0][0])
        session.stop()
    # a worker is used again, but by its own session
    assert found == [None, "one", None, "two"]


def test_a_worker_that_exits_or_is_killed_fails_its_query_only(spark):
    def leaves(batches):
        for batch in batches:
            print("these are my last words", flush=True)
            os._exit(7)
            yield batch

    def killed(batches):
        for batch in batches:
            os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    with pytest.raises(Exception) as raised:
        spark.range(3).mapInArrow(leaves, "id long").collect()
    assert "exited unexpectedly (exit code 7)" in str(raised.value) and "my last words" in str(raised.value)
    with pytest.raises(Exception, match="exited unexpectedly .killed"):
        spark.range(3).mapInArrow(killed, "id long").collect()
    assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3


def test_an_endless_print_and_a_closed_output_do_no_harm(spark):
    def chatters(batches):
        for batch in batches:
            for _ in range(200_000):
                print("x" * 100)
            sys.stdout.close()
            yield batch

    assert spark.range(0, 3, 1, 1).mapInArrow(chatters, "id long").count() == 3


def test_an_interrupt_kills_workers_with_all_they_started(python_server, spark, tmp_path):
    started = tmp_path / "started"

    def sleeps(batches):
        # one child in its group, one that leaves it
        children = [
            subprocess.Popen(["sleep", "600"]),
            subprocess.Popen(["sleep", "600"], start_new_session=True),
        ]
        started.write_text(",".join(str(process.pid) for process in children) + f",{os.getpid()}")
        time.sleep(600)
        yield from batches

    failure: list[BaseException] = []

    def run():
        try:
            spark.range(0, 3, 1, 1).mapInArrow(sleeps, "id long").collect()
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: started.exists() and started.read_text().count(",") == 2, 20)
    pids = [int(pid) for pid in started.read_text().split(",")]
    assert all(psutil.pid_exists(pid) for pid in pids)
    begin = time.monotonic()
    spark.interruptAll()
    wait_until(lambda: not any(alive(pid) for pid in pids))
    assert time.monotonic() - begin < 5
    thread.join(10)
    assert failure and "OPERATION_CANCELED" in str(failure[0])


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_memory_is_bounded():
    server = Server(python=sys.executable, slots=1, warm_workers=0, python_worker_memory_bytes_max=600 << 20)
    try:
        spark = SparkSession.builder.remote(server.remote).create()

        def eats(batches):
            for batch in batches:
                block = bytearray(2 << 30)
                yield batch if block else batch

        with pytest.raises(PythonException, match="MemoryError"):
            spark.range(1).mapInArrow(eats, "id long").collect()
        assert spark.range(1).mapInArrow(lambda batches: batches, "id long").count() == 1
        spark.stop()
    finally:
        server.stop()
    # nothing outlives the server
    assert server.process is None


def test_a_server_without_python_refuses_by_name():
    server = Server(slots=1, warm_workers=0)
    try:
        spark = SparkSession.builder.remote(server.remote).create()
        for use in [
            lambda: spark.range(1).select(F.udf(lambda v: v, "long")("id")).collect(),
            lambda: spark.range(1).mapInArrow(lambda batches: batches, "id long").collect(),
            lambda: spark.range(1).groupBy("id").applyInPandas(lambda frame: frame, "id long").collect(),
            lambda: spark.udf.register("f", lambda v: v, "long"),
        ]:
            with pytest.raises(Exception, match="UNSUPPORTED_FEATURE.*started without Python"):
                use()
        spark.stop()
    finally:
        server.stop()
