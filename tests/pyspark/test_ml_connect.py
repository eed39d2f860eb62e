"""`pyspark.ml.connect`: estimators whose code is the client's, run as Python functions on the server."""

from __future__ import annotations

import os
import sys

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch", reason="pyspark.ml.connect needs torch at the client")

from pyspark.ml.connect.classification import LogisticRegression, LogisticRegressionModel
from pyspark.ml.connect.evaluation import (
    BinaryClassificationEvaluator,
    MulticlassClassificationEvaluator,
    RegressionEvaluator,
)
from pyspark.ml.connect.feature import ArrayAssembler, MaxAbsScaler, StandardScaler
from pyspark.ml.connect.pipeline import Pipeline, PipelineModel
from pyspark.ml.connect.tuning import CrossValidator
from pyspark.ml.tuning import ParamGridBuilder
from pyspark.sql import SparkSession
from sklearn.metrics import mean_squared_error, r2_score, roc_auc_score

from server import Server


@pytest.fixture(scope="module")
def spark():
    server = Server(python=sys.executable, slots=2, warm_workers=0)
    session = SparkSession.builder.remote(server.remote).getOrCreate()
    yield session
    session.stop()
    server.stop()


@pytest.fixture(scope="module")
def blobs(spark):
    random = np.random.default_rng(1)
    rows = []
    for label, centre in [(0, [-1.5, 2.0]), (1, [2.0, -1.0])]:
        rows += [(label, (random.normal(size=2) + centre).tolist()) for _ in range(60)]
    random.shuffle(rows)
    return spark.createDataFrame(rows, "label int, features array<double>").repartition(2)


def test_scalers_give_what_the_formulas_say(spark):
    rows = [([2.0, 3.5, 1.5],), ([-3.0, -0.5, -2.5],)]
    df = spark.createDataFrame(rows, ["features"])
    scaled = MaxAbsScaler(inputCol="features", outputCol="scaled").fit(df).transform(df).toPandas()
    expected = np.array([[2 / 3, 1.0, 0.6], [-1.0, -1 / 7, -1.0]])
    np.testing.assert_allclose(np.stack(scaled["scaled"].to_numpy()), expected)

    model = StandardScaler(inputCol="features", outputCol="scaled").fit(df)
    scaled = np.stack(model.transform(df).toPandas()["scaled"].to_numpy())
    np.testing.assert_allclose(scaled, np.array([[1, 1, 1], [-1, -1, -1]]) / np.sqrt(2))
    # the same model scores a local frame
    local = model.transform(pd.DataFrame({"features": [row[0] for row in rows]}))
    np.testing.assert_allclose(np.stack(local["scaled"].to_numpy()), scaled)


def test_evaluators_agree_with_scikit_learn(spark):
    random = np.random.default_rng(2)
    label = random.integers(0, 2, 50)
    score = np.round(random.random(50), 3)
    df = spark.createDataFrame(list(zip(label.tolist(), score.tolist())), "label int, probability double").repartition(2)
    evaluator = BinaryClassificationEvaluator(metricName="areaUnderROC", labelCol="label", probabilityCol="probability")
    assert evaluator.evaluate(df) == pytest.approx(roc_auc_score(label, score), abs=1e-5)
    df = spark.createDataFrame(list(zip(label.tolist(), (score > 0.5).astype(int).tolist())), "label int, prediction int")
    accuracy = MulticlassClassificationEvaluator(metricName="accuracy", labelCol="label", predictionCol="prediction")
    assert accuracy.evaluate(df) == pytest.approx(np.mean(label == (score > 0.5)), abs=1e-5)
    target = label + random.normal(size=50)
    df = spark.createDataFrame(list(zip(target.tolist(), score.tolist())), "label double, prediction double")
    for metric, expected in [("mse", mean_squared_error(target, score)), ("r2", r2_score(target, score))]:
        evaluator = RegressionEvaluator(metricName=metric, labelCol="label", predictionCol="prediction")
        assert evaluator.evaluate(df) == pytest.approx(expected, abs=1e-4)


def test_logistic_regression_in_a_pipeline_is_fitted_saved_and_loaded(spark, blobs, tmp_path):
    scaler = StandardScaler(inputCol="features", outputCol="scaled")
    regression = LogisticRegression(
        featuresCol="scaled", maxIter=30, numTrainWorkers=2, batchSize=8, learningRate=0.1, seed=3
    )
    model = Pipeline(stages=[scaler, regression]).fit(blobs)
    rows = model.transform(blobs).select("label", "prediction", "probability").toPandas()
    assert (rows["label"] == rows["prediction"]).mean() > 0.97
    np.testing.assert_allclose([sum(probability) for probability in rows["probability"]], 1, atol=1e-5)
    model.saveToLocal(str(tmp_path / "pipeline"))
    # torch reads a module back only from classes that it is told to trust
    trusted = [torch.nn.Sequential, torch.nn.Linear, torch.nn.Softmax]
    with torch.serialization.safe_globals(trusted):
        loaded = PipelineModel.loadFromLocal(str(tmp_path / "pipeline"))
    again = loaded.transform(blobs).select("probability").toPandas()
    np.testing.assert_array_equal(
        np.stack(again["probability"].to_numpy()), np.stack(rows["probability"].to_numpy())
    )
    assert isinstance(loaded.stages[1], LogisticRegressionModel)


@pytest.mark.skipif("PHALANX_SLOW_TESTS" not in os.environ, reason="takes over a minute: five trainings; set PHALANX_SLOW_TESTS")
def test_cross_validation_picks_the_better_model(spark, blobs):
    regression = LogisticRegression(maxIter=5, numTrainWorkers=1, batchSize=16, seed=4)
    grid = ParamGridBuilder().addGrid(regression.learningRate, [1e-6, 0.1]).build()
    evaluator = BinaryClassificationEvaluator(metricName="areaUnderROC", labelCol="label", probabilityCol="probability")
    validator = CrossValidator(
        estimator=regression, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, parallelism=1, seed=1
    )
    model = validator.fit(blobs)
    assert len(model.avgMetrics) == 2 and model.avgMetrics[1] > 0.95
    assert model.bestModel.getOrDefault("learningRate") in (1e-6, 0.1)


def test_arrays_are_assembled(spark):
    df = spark.createDataFrame([([1.0, 2.0], 3.0, [4.0])], "a array<double>, b double, c array<double>")
    assembler = ArrayAssembler(inputCols=["a", "b", "c"], outputCol="all", featureSizes=[2, 1, 1])
    assert assembler.transform(df).first()["all"] == [1.0, 2.0, 3.0, 4.0]
