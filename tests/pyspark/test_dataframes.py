"""What a user writes around the training: sources, relations, results."""

from __future__ import annotations

import datetime
import decimal

import pandas as pd
import pytest
from pyspark.errors import AnalysisException
from pyspark.ml.linalg import DenseVector, SparseVector, Vectors
from pyspark.sql import Row
from pyspark.sql import functions as F

from server import spark_data


@pytest.fixture
def people(spark):
    rows = [("ann", 31, 1.5), ("bob", None, 2.5), ("cid", 45, None), ("dot", 31, 4.0)]
    return spark.createDataFrame(rows, "name string, age int, score double")


def test_first_range(spark):
    assert [row.id for row in spark.range(3).collect()] == [0, 1, 2]


def test_rows_and_types_come_back(spark):
    row = Row(
        i=1, d=1.5, s="x", b=True, n=None, day=datetime.date(2024, 2, 29), at=datetime.datetime(2024, 2, 29, 12, 30),
        dec=decimal.Decimal("1.25"), arr=[1, 2], m={"k": 1.0}, nested=Row(a=1, b="y"), raw=bytearray(b"ab"),
    )
    schema = (
        "i int, d double, s string, b boolean, n string, day date, at timestamp, dec decimal(10,2), arr array<int>,"
        " m map<string,double>, nested struct<a:int,b:string>, raw binary"
    )
    frame = spark.createDataFrame([row], schema)
    found = frame.collect()[0]
    expected = row.asDict(recursive=True)
    for name in ("i", "d", "s", "b", "n", "day", "at", "arr", "m"):
        assert found[name] == expected[name], name
    assert found.dec == decimal.Decimal("1.25") and found.nested.b == "y" and bytes(found.raw) == b"ab"


def test_print_schema_and_show(people, capsys):
    people.printSchema()
    assert capsys.readouterr().out == "root\n |-- name: string (nullable = true)\n |-- age: integer (nullable = true)\n" \
        " |-- score: double (nullable = true)\n\n"
    people.limit(2).show()
    assert capsys.readouterr().out == (
        "+----+----+-----+\n|name| age|score|\n+----+----+-----+\n| ann|  31|  1.5|\n| bob|NULL|  2.5|\n+----+----+-----+\n\n"
    )


def test_select_filter_with_column(people):
    frame = people.withColumn("twice", F.col("age") * 2).filter("age > 40").select("NAME", "twice")
    assert frame.columns == ["name", "twice"]
    assert frame.collect() == [Row(name="cid", twice=90)]


def test_group_and_aggregate(people):
    frame = people.groupBy("age").agg(F.count("*").alias("n"), F.avg("score"), F.max("name")).orderBy("age")
    assert frame.columns == ["age", "n", "avg(score)", "max(name)"]
    assert [tuple(row) for row in frame.collect()] == [(None, 1, 2.5, "bob"), (31, 2, 2.75, "dot"), (45, 1, None, "cid")]


def test_joins_of_frames_with_equal_names(spark, people):
    ages = spark.createDataFrame([(31, "young"), (45, "old")], "age int, word string")
    inner = people.join(ages, "age").orderBy("name")
    assert inner.columns == ["age", "name", "score", "word"]
    assert [row.word for row in inner.collect()] == ["young", "old", "young"]
    on = people.join(ages, people.age == ages.age, "left").select(people.name, ages.word).orderBy(people.name)
    assert [tuple(row) for row in on.collect()] == [("ann", "young"), ("bob", None), ("cid", "old"), ("dot", "young")]
    assert people.join(ages, "age", "left_anti").collect()[0].name == "bob"
    itself = people.alias("a").join(people.alias("b"), F.col("a.age") == F.col("b.age"))
    pairs = itself.filter("a.name < b.name").select("a.name", "b.name")
    assert pairs.columns == ["name", "name"] and [tuple(row) for row in pairs.collect()] == [("ann", "dot")]


def test_union_distinct_sort_limit(people):
    both = people.union(people).distinct()
    assert both.count() == 4
    assert [row.name for row in people.orderBy(F.desc("age"), "name").limit(2).collect()] == ["cid", "ann"]
    assert [row.age for row in people.orderBy(F.col("age").asc_nulls_last()).collect()] == [31, 31, 45, None]


def test_random_split_is_disjoint_and_complete(spark):
    parts = spark.range(1000).randomSplit([0.7, 0.3], seed=3)
    ids = [sorted(row.id for row in part.collect()) for part in parts]
    assert sorted(ids[0] + ids[1]) == list(range(1000))
    assert 620 < len(ids[0]) < 780
    again = [sorted(row.id for row in part.collect()) for part in spark.range(1000).randomSplit([0.7, 0.3], seed=3)]
    assert ids == again


def test_sql_and_views(spark, people):
    people.createOrReplaceTempView("People")
    found = spark.sql(
        "SELECT upper(name) AS n, COALESCE(age, 0) + 1 AS next FROM people WHERE score IS NOT NULL ORDER BY next DESC, n"
    )
    assert [tuple(row) for row in found.collect()] == [("ANN", 32), ("DOT", 32), ("BOB", 1)]
    counted = spark.sql("SELECT age, count(*) FROM people GROUP BY age HAVING count(*) > 1")
    assert counted.columns == ["age", "count(1)"] and counted.collect()[0]["count(1)"] == 2
    bound = spark.sql("SELECT :x * 2 AS y", args={"x": 21})
    assert bound.collect()[0].y == 42
    assert spark.sql("WITH t AS (SELECT 1 AS a UNION ALL SELECT 2) SELECT sum(a) s FROM t").collect()[0].s == 3
    assert spark.sql("SELECT 7 / 2 AS q, 7 % 2 AS r").collect() == [Row(q=3.5, r=1)]
    spark.catalog.dropTempView("people")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM people").collect()


def test_pandas_both_ways(spark):
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, None, 2.5], "c": ["x", None, "z"]})
    back = spark.createDataFrame(frame).toPandas()
    assert list(back.columns) == ["a", "b", "c"] and back["a"].tolist() == [1, 2, 3]
    assert back["b"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize("source", ["parquet", "csv", "json"])
def test_files_written_and_read(spark, people, tmp_path, source):
    path = str(tmp_path / source)
    writer = people.write.format(source).option("header", True)
    writer.save(path)
    schema = "name string, age int, score double"
    back = spark.read.format(source).option("header", True).schema(schema).load(path).orderBy("name")
    assert [tuple(row) for row in back.collect()] == [tuple(row) for row in people.orderBy("name").collect()]
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        writer.save(path)
    people.limit(1).write.format(source).mode("overwrite").option("header", True).save(path)
    assert spark.read.format(source).option("header", True).schema(schema).load(path).count() == 1


def test_csv_infers_types(spark, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n1,2.5,x,true\n3,4.0,,false\n")
    frame = spark.read.csv(str(path), header=True, inferSchema=True)
    assert [field.dataType.simpleString() for field in frame.schema] == ["int", "double", "string", "boolean"]
    assert [tuple(row) for row in frame.collect()] == [(1, 2.5, "x", True), (3, 4.0, None, False)]


def test_libsvm(spark):
    frame = spark.read.format("libsvm").load(spark_data("sample_libsvm_data.txt"))
    assert frame.count() == 100
    row = frame.first()
    assert isinstance(row.features, SparseVector) and row.features.size == 692
    assert sorted({r.label for r in frame.select("label").collect()}) == [0.0, 1.0]


def test_vectors_survive_collect_and_parquet(spark, tmp_path):
    rows = [(0, Vectors.dense(1.0, 2.0)), (1, Vectors.sparse(3, [0, 2], [1.5, -2.0])), (2, None)]
    frame = spark.createDataFrame(rows, ["id", "v"])
    assert frame.schema["v"].dataType.simpleString() == "vector"
    path = str(tmp_path / "v")
    frame.write.parquet(path)
    for found in (frame, spark.read.parquet(path)):
        values = [row.v for row in found.orderBy("id").collect()]
        assert values == [DenseVector([1.0, 2.0]), SparseVector(3, [0, 2], [1.5, -2.0]), None]


def test_a_missing_column_is_named_with_a_suggestion(people):
    with pytest.raises(AnalysisException) as error:
        people.select("nmae").collect()
    assert error.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert error.value.getSqlState() == "42703"
    assert "`nmae`" in str(error.value) and "`name`" in str(error.value)


def test_a_missing_path_is_named(spark):
    with pytest.raises(AnalysisException, match="PATH_NOT_FOUND.*no/such/file"):
        spark.read.parquet("/no/such/file").collect()


def test_configs(spark):
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    spark.conf.unset("spark.sql.shuffle.partitions")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "200"
    assert spark.conf.get("spark.no.such.key", "fallback") == "fallback"


def test_a_large_result_streams(spark):
    frame = spark.range(2_000_000).selectExpr("id", "id * 2 AS twice", "cast(id AS string) AS text")
    pandas = frame.toPandas()
    assert len(pandas) == 2_000_000 and pandas["twice"].iloc[-1] == 3_999_998


def test_many_columns_one_after_another(spark):
    frame = spark.range(3)
    for i in range(200):
        frame = frame.withColumn(f"c{i}", F.col("id") + i)
    assert frame.filter("id = 2").collect()[0]["c199"] == 201
