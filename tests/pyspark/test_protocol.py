"""The protocol under stock clients: streams cut and taken up again, sessions apart, operations once."""

from __future__ import annotations

import uuid

import pytest
from pyspark.errors import PySparkException
from pyspark.ml.classification import LogisticRegression
from pyspark.sql import SparkSession

import data
from test_training import assembled


def test_a_stream_cut_by_size_is_taken_up_again(spark):
    spark.conf.set("spark.connect.execute.reattachable.senderMaxStreamSize", "123")
    frame = spark.range(300_000).selectExpr("id", "cast(id AS string) AS text")
    assert frame.toPandas()["id"].sum() == 300_000 * 299_999 // 2


def test_a_stream_cut_by_time_is_taken_up_again_and_trains_once(spark):
    spark.conf.set("spark.connect.execute.reattachable.senderMaxStreamDuration", "1s")
    frame = assembled(spark, data.breast_cancer())
    model = LogisticRegression(maxIter=20).fit(frame)
    assert len(spark.client._get_ml_cache_info()) == 1
    assert len(model.coefficients) == 30


def test_sessions_do_not_see_each_other(server):
    first = SparkSession.builder.remote(server.remote).create()
    second = SparkSession.builder.remote(server.remote).create()
    try:
        first.range(3).createOrReplaceTempView("only_mine")
        first.conf.set("spark.sql.shuffle.partitions", "7")
        assert second.conf.get("spark.sql.shuffle.partitions") == "200"
        with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
            second.table("only_mine").collect()
        assert first.table("only_mine").count() == 3
    finally:
        first.stop()
        second.stop()


def test_a_session_id_that_is_no_uuid_is_refused(server):
    with pytest.raises((PySparkException, ValueError), match="(?i)uuid|INVALID_HANDLE"):
        session = SparkSession.builder.remote(f"{server.remote}/;session_id=nonsense").create()
        session.range(1).collect()


def test_a_session_may_choose_its_id(server):
    chosen = str(uuid.uuid4())
    session = SparkSession.builder.remote(f"{server.remote}/;session_id={chosen}").create()
    assert session.session_id == chosen and session.range(1).count() == 1
    session.stop()


def test_interrupted_operations_are_named(spark):
    assert spark.interruptAll() == []
    assert spark.interruptOperation(str(uuid.uuid4())) == []


def test_plans_nested_deep_are_run(spark):
    frame = spark.range(10)
    for i in range(500):
        frame = frame.filter(frame.id >= -i)
    assert frame.count() == 10


def test_a_local_relation_beyond_the_cache_threshold(spark):
    frame = spark.createDataFrame([(i, "x" * 100) for i in range(60_000)], "id int, text string")
    spark.conf.set("spark.sql.session.localRelationCacheThreshold", "1000")
    again = spark.createDataFrame([(i, "x" * 100) for i in range(60_000)], "id int, text string")
    assert frame.count() == again.count() == 60_000
    assert again.selectExpr("sum(id) AS s").collect()[0].s == sum(range(60_000))
