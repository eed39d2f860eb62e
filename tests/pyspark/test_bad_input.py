"""Bad input: Spark's error class, the column or value named, and a session that lives on."""

from __future__ import annotations

import pyspark.sql.connect.proto as pb
import pytest
from pyspark.errors import AnalysisException, ArithmeticException, IllegalArgumentException, PySparkException
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.feature import StringIndexer, VectorAssembler
from pyspark.ml.linalg import Vectors

import data
from test_training import assembled


@pytest.fixture
def small(spark):
    return assembled(spark, data.breast_cancer())


@pytest.fixture(autouse=True)
def the_session_lives_on(spark):
    yield
    assert spark.range(2).count() == 2


def labelled(spark, labels):
    rows = [(label, Vectors.dense(float(i), -float(i))) for i, label in enumerate(labels)]
    return spark.createDataFrame(rows, ["label", "features"])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [([0.0, 0.5, 1.0], "0.5"), ([0.0, -1.0, 1.0], "-1"), ([0.0, 1.0, float("nan")], "(?i)nan")],
)
def test_labels_that_are_no_classes_are_named(spark, labels, expected):
    with pytest.raises(PySparkException, match=expected):
        LogisticRegression().fit(labelled(spark, labels))
    assert spark.range(1).count() == 1


def test_a_missing_features_column_is_named(spark, small):
    with pytest.raises(PySparkException, match="featurez"):
        LogisticRegression(featuresCol="featurez").fit(small)


def test_an_empty_table_is_refused(spark, small):
    with pytest.raises(PySparkException):
        LogisticRegression().fit(small.filter("label > 5"))
    assert spark.range(1).count() == 1


def test_vectors_of_two_sizes_are_refused(spark):
    rows = [(0.0, Vectors.dense(1.0)), (1.0, Vectors.dense(1.0, 2.0))]
    with pytest.raises(PySparkException, match="expected vectors of 1 values, found one of 2"):
        LogisticRegression().fit(spark.createDataFrame(rows, ["label", "features"]))


def test_nulls_and_nan_in_an_assembler(spark):
    frame = spark.createDataFrame([(1.0, 1.0), (None, 2.0), (3.0, float("nan"))], "a double, b double")
    make = lambda how: VectorAssembler(inputCols=["a", "b"], outputCol="v", handleInvalid=how)  # noqa: E731
    with pytest.raises(PySparkException, match="Encountered null while assembling a row"):
        make("error").transform(frame).collect()
    assert make("skip").transform(frame).count() == 1
    kept = [row.v for row in make("keep").transform(frame).collect()]
    assert len(kept) == 3 and kept[1][1] == 2.0 and kept[1][0] != kept[1][0]


def test_an_operator_that_is_not_there_is_refused_by_name(spark, small):
    from pyspark.ml.classification import GBTClassifier

    with pytest.raises(PySparkException, match="GBTClassifier"):
        GBTClassifier().fit(small)


def test_a_param_out_of_range_is_named(spark, small):
    with pytest.raises(PySparkException, match="regParam"):
        LogisticRegression(regParam=-1.0).fit(small)


def fit_command(spark, frame, operator: str, **params: float) -> pb.Command:
    """What a client would send that knows other operators and params than the stock one."""
    command = pb.Command()
    fit = command.ml_command.fit
    fit.estimator.name, fit.estimator.uid = operator, "uid"
    fit.estimator.type = pb.MlOperator.OPERATOR_TYPE_ESTIMATOR
    for name, value in params.items():
        fit.params.params[name].double = value
    fit.dataset.CopyFrom(frame._plan.plan(spark.client))
    return command


def test_an_unknown_param_is_named(spark, small):
    command = fit_command(spark, small, "org.apache.spark.ml.classification.LogisticRegression", regPram=1.0)
    with pytest.raises(PySparkException, match="regPram"):
        spark.client.execute_command(command)


def test_an_unknown_estimator_is_named(spark, small):
    with pytest.raises(PySparkException, match="com.example.Estimator"):
        spark.client.execute_command(fit_command(spark, small, "com.example.Estimator"))


def test_one_class_is_predicted_for_certain_as_in_spark(spark):
    model = LogisticRegression().fit(labelled(spark, [1.0] * 5))
    assert model.intercept == float("inf") and list(model.coefficients) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("value", "expected"), [(float("nan"), "NaN"), (float("inf"), "Infinity")], ids=["nan", "infinity"]
)
def test_a_feature_that_is_no_number_is_named(spark, value, expected):
    rows = [(0.0, Vectors.dense(1.0)), (1.0, Vectors.dense(value))]
    with pytest.raises(PySparkException, match=f"{expected}.*column features"):
        LogisticRegression().fit(spark.createDataFrame(rows, ["label", "features"]))


def test_labels_that_are_text_are_refused_before_anything_starts(spark):
    with pytest.raises(IllegalArgumentException, match="label must be of type numeric"):
        LogisticRegression().fit(spark.createDataFrame([("cat", Vectors.dense(1.0))], ["label", "features"]))


def test_a_missing_label_gets_a_suggestion(small):
    with pytest.raises(AnalysisException) as error:
        LogisticRegression(labelCol="lable").fit(small)
    assert error.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert "`lable`" in str(error.value) and "`label`" in str(error.value)


def test_an_error_of_the_query_is_the_error_of_the_fit(spark):
    frame = spark.range(10).selectExpr("id % 2 AS label", "1 / (id - 5) AS a")
    frame = VectorAssembler(inputCols=["a"], outputCol="features").transform(frame)
    with pytest.raises(ArithmeticException) as error:
        LogisticRegression().fit(frame)
    assert error.value.getCondition() == "DIVIDE_BY_ZERO"


def test_negative_and_zero_weights_are_refused(spark):
    frame = labelled(spark, [0.0, 1.0])
    with pytest.raises(PySparkException, match="Negative.*-1.0.*column w"):
        LogisticRegression(weightCol="w").fit(frame.selectExpr("*", "-1.0D AS w"))
    with pytest.raises(PySparkException, match="weights of all rows are zero"):
        LogisticRegression(weightCol="w").fit(frame.selectExpr("*", "0.0D AS w"))


def test_an_unseen_label_is_named(spark):
    model = StringIndexer(inputCol="c", outputCol="i").fit(spark.createDataFrame([("a",), ("b",)], ["c"]))
    with pytest.raises(PySparkException, match="Unseen label: z"):
        model.transform(spark.createDataFrame([("z",)], ["c"])).collect()


def test_a_conf_that_is_no_number_of_workers_is_refused(spark, small):
    spark.conf.set("spark.phalanx.workers", "zero")
    with pytest.raises(IllegalArgumentException, match="spark.phalanx.workers"):
        LogisticRegression().fit(small)


def test_a_python_function_is_refused_clearly(spark):
    from pyspark.sql import functions as F

    with pytest.raises(PySparkException, match="UNSUPPORTED_FEATURE.*Python UDF"):
        spark.range(3).select(F.udf(lambda x: x + 1, "int")("id")).collect()
