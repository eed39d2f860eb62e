"""The main job: estimators in pipelines, on real data, right and reproducible."""

from __future__ import annotations

import gc
import time

import pandas as pd
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import LogisticRegression, LogisticRegressionModel
from pyspark.ml.evaluation import (
    BinaryClassificationEvaluator,
    MulticlassClassificationEvaluator,
    RegressionEvaluator,
)
from pyspark.ml.feature import Imputer, OneHotEncoder, StandardScaler, StringIndexer, VectorAssembler
from pyspark.ml.linalg import Matrices, Vectors
from pyspark.ml.regression import LinearRegression
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import functions as F

import data
from server import spark_data


def assembled(spark, frame: pd.DataFrame):
    features = [name for name in frame.columns if name != "label"]
    loaded = spark.createDataFrame(frame)
    return VectorAssembler(inputCols=features, outputCol="features").transform(loaded).select("features", "label")


def test_binomial_with_summary_and_curves(spark):
    frame = assembled(spark, data.breast_cancer())
    model = LogisticRegression(maxIter=100, regParam=0.01).fit(frame)
    assert model.numClasses == 2 and model.numFeatures == 30 and len(model.coefficients) == 30
    summary = model.summary
    history = summary.objectiveHistory
    assert len(history) == summary.totalIterations + 1
    assert all(later <= earlier + 1e-12 for earlier, later in zip(history, history[1:]))
    assert summary.areaUnderROC > 0.99 and summary.accuracy > 0.97
    roc = [tuple(row) for row in summary.roc.collect()]
    assert roc[0] == (0.0, 0.0) and roc[-1] == (1.0, 1.0)
    assert summary.pr.columns == ["recall", "precision"]
    assert summary.fMeasureByThreshold.columns == ["threshold", "F-Measure"]
    assert summary.predictions.columns == ["features", "label", "rawPrediction", "probability", "prediction"]
    assert summary.labels == [0.0, 1.0] and len(summary.recallByLabel) == 2
    evaluated = model.evaluate(frame)
    assert evaluated.areaUnderROC == pytest.approx(summary.areaUnderROC, abs=1e-12)
    scored = model.transform(frame)
    assert BinaryClassificationEvaluator().evaluate(scored) == pytest.approx(summary.areaUnderROC, abs=1e-12)
    row = scored.first()
    assert model.predict(row.features) == row.prediction
    assert list(model.predictProbability(row.features)) == pytest.approx(list(row.probability), abs=1e-12)
    assert "uid=" in str(model) and "numClasses=2, numFeatures=30" in str(model)


def test_sparse_libsvm_data(spark):
    frame = spark.read.format("libsvm").load(spark_data("sample_libsvm_data.txt"))
    model = LogisticRegression(maxIter=10, regParam=0.3, elasticNetParam=0.8).fit(frame)
    assert model.summary.areaUnderROC == pytest.approx(1.0, abs=1e-12)
    assert 0 < model.coefficients.numNonzeros() < 30


def test_multinomial(spark):
    frame = spark.read.format("libsvm").load(spark_data("sample_multiclass_classification_data.txt"))
    model = LogisticRegression(maxIter=50, regParam=0.01).fit(frame)
    assert model.numClasses == 3
    assert (model.coefficientMatrix.numRows, model.coefficientMatrix.numCols) == (3, 4)
    assert sum(model.interceptVector) == pytest.approx(0.0, abs=1e-9)
    assert model.summary.accuracy > 0.9
    scored = model.transform(frame)
    for metric in ("f1", "accuracy", "weightedPrecision", "logLoss", "hammingLoss"):
        value = MulticlassClassificationEvaluator(metricName=metric).evaluate(scored)
        assert 0.0 <= value <= 1.0, metric


def test_linear_regression(spark):
    frame = assembled(spark, data.diabetes())
    model = LinearRegression(solver="normal").fit(frame)
    from sklearn.linear_model import LinearRegression as Reference

    raw = data.diabetes()
    reference = Reference().fit(raw.drop(columns="label"), raw["label"])
    assert list(model.coefficients) == pytest.approx(list(reference.coef_), rel=1e-6)
    assert model.intercept == pytest.approx(reference.intercept_, rel=1e-9)
    assert model.summary.r2 == pytest.approx(reference.score(raw.drop(columns="label"), raw["label"]), abs=1e-9)
    assert len(model.summary.pValues) == 11
    scored = model.transform(frame)
    assert RegressionEvaluator(metricName="r2").evaluate(scored) == pytest.approx(model.summary.r2, abs=1e-9)
    assert model.summary.residuals.columns == ["residuals"]


def test_weights_zero_equal_rows_left_out(spark):
    frame = data.breast_cancer().iloc[:300, -8:].copy()
    frame["w"] = [float(i % 3 != 0) for i in range(300)]
    features = [name for name in frame.columns if name not in ("label", "w")]
    loaded = VectorAssembler(inputCols=features, outputCol="features").transform(spark.createDataFrame(frame))
    weighted = LogisticRegression(regParam=0.1, weightCol="w").fit(loaded)
    filtered = LogisticRegression(regParam=0.1).fit(loaded.filter("w = 1.0"))
    assert list(weighted.coefficients) == pytest.approx(list(filtered.coefficients), rel=1e-5)


def test_coefficient_bounds_hold(spark):
    frame = assembled(spark, data.breast_cancer()[["mean_radius", "mean_texture", "mean_area", "label"]])
    model = LogisticRegression(
        lowerBoundsOnCoefficients=Matrices.dense(1, 3, [-0.1, -0.1, -0.1]),
        upperBoundsOnCoefficients=Matrices.dense(1, 3, [0.0, 0.0, 0.0]),
        upperBoundsOnIntercepts=Vectors.dense(5.0),
    ).fit(frame)
    assert all(-0.1 - 1e-12 <= value <= 1e-12 for value in model.coefficients) and model.intercept <= 5.0 + 1e-12


def test_threshold_moves_the_prediction(spark):
    frame = assembled(spark, data.breast_cancer())
    model = LogisticRegression(regParam=0.1).fit(frame)
    everything = model.transform(frame, {model.threshold: 0.0}).filter("prediction = 1.0").count()
    assert everything == 569
    assert model.transform(frame, {model.threshold: 1.0}).filter("prediction = 1.0").count() == 0


@pytest.mark.parametrize("estimator", ["logistic", "linear"])
def test_any_number_of_ranks_gives_the_same_model(spark, estimator):
    frame = assembled(spark, data.breast_cancer() if estimator == "logistic" else data.diabetes())
    make = LogisticRegression(regParam=0.01) if estimator == "logistic" else LinearRegression(regParam=0.1)
    fitted = {}
    for workers in (1, 2, 4):
        spark.conf.set("spark.phalanx.workers", str(workers))
        model = make.fit(frame)
        fitted[workers] = [*model.coefficients, model.intercept]
    assert fitted[2] == pytest.approx(fitted[1], rel=1e-6, abs=1e-9)
    assert fitted[4] == pytest.approx(fitted[1], rel=1e-6, abs=1e-9)
    spark.conf.set("spark.phalanx.workers", "2")
    model = make.fit(frame)
    assert [*model.coefficients, model.intercept] == fitted[2], "one world size gives one model, bit for bit"


def test_penguins_pipeline_survives_a_restart(spark, server, tmp_path):
    frame = spark.createDataFrame(data.penguins())
    numbers = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    pipeline = Pipeline(
        stages=[
            StringIndexer(inputCol="species", outputCol="label"),
            StringIndexer(inputCols=["island", "sex"], outputCols=["island_i", "sex_i"], handleInvalid="keep"),
            OneHotEncoder(inputCols=["island_i", "sex_i"], outputCols=["island_v", "sex_v"]),
            Imputer(inputCols=numbers, outputCols=[f"{name}_f" for name in numbers], strategy="median"),
            VectorAssembler(inputCols=[f"{n}_f" for n in numbers] + ["island_v", "sex_v"], outputCol="raw"),
            StandardScaler(inputCol="raw", outputCol="features", withMean=True),
            LogisticRegression(regParam=0.001),
        ]
    )
    model = pipeline.fit(frame)
    scored = model.transform(frame)
    assert MulticlassClassificationEvaluator(metricName="accuracy").evaluate(scored) > 0.98
    expected = [tuple(row.probability) for row in scored.select("probability").collect()]
    path = str(tmp_path / "penguins")
    model.save(path)
    with pytest.raises(Exception, match="already exists"):
        model.save(path)
    model.write().overwrite().save(path)
    description = str(model.stages[-1])
    spark.stop()
    server.restart()
    fresh = type(spark).builder.remote(server.remote).create()
    try:
        loaded = PipelineModel.load(path)
        again = loaded.transform(fresh.createDataFrame(data.penguins()))
        assert [tuple(row.probability) for row in again.select("probability").collect()] == expected
        assert str(loaded.stages[-1]) == description
    finally:
        fresh.stop()


def test_cross_validator_in_parallel(spark):
    frame = assembled(spark, data.breast_cancer())
    estimator = LogisticRegression(maxIter=30)
    grid = ParamGridBuilder().addGrid(estimator.regParam, [0.001, 0.1, 10.0]).build()
    validator = CrossValidator(
        estimator=estimator, estimatorParamMaps=grid, evaluator=BinaryClassificationEvaluator(), numFolds=3,
        parallelism=3, seed=5,
    )
    model = validator.fit(frame)
    assert len(model.avgMetrics) == 3 and max(model.avgMetrics) > 0.98
    assert isinstance(model.bestModel, LogisticRegressionModel)


def test_flights_for_size(spark, tmp_path):
    frame = spark.createDataFrame(data.flights())
    path = str(tmp_path / "flights")
    frame.write.parquet(path)
    flights = spark.read.parquet(path).na.drop(subset=["dep_delay", "arr_delay", "air_time"])
    assert flights.count() == 327346
    late = flights.withColumn("label", (F.col("arr_delay") > 15).cast("int"))
    pipeline = Pipeline(
        stages=[
            StringIndexer(inputCol="carrier", outputCol="carrier_i"),
            OneHotEncoder(inputCol="carrier_i", outputCol="carrier_v"),
            VectorAssembler(inputCols=["dep_delay", "distance", "hour", "carrier_v"], outputCol="features"),
            LogisticRegression(maxIter=50),
        ]
    )
    train, test = late.randomSplit([0.8, 0.2], seed=1)
    model = pipeline.fit(train)
    assert BinaryClassificationEvaluator().evaluate(model.transform(test)) > 0.9


def test_a_model_is_deleted_with_its_last_reference(spark):
    frame = assembled(spark, data.breast_cancer())
    model = LogisticRegression(maxIter=5).fit(frame)
    listed = spark.client._get_ml_cache_info()
    assert len(listed) == 1 and "class org.apache.spark.ml.classification.LogisticRegressionModel" in listed[0]
    copied = model.copy()
    assert copied.coefficients == model.coefficients
    del model, copied
    gc.collect()
    deadline = time.monotonic() + 5
    while spark.client._get_ml_cache_info() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert spark.client._get_ml_cache_info() == []


@pytest.fixture
def four_rows(spark):
    rows = [(1.0, 1.0, Vectors.dense(0.0, 5.0)), (0.0, 2.0, Vectors.dense(1.0, 2.0)),
            (1.0, 3.0, Vectors.dense(2.0, 1.0)), (0.0, 4.0, Vectors.dense(3.0, 3.0))]
    return spark.createDataFrame(rows, ["label", "weight", "features"])


def test_bounded_coefficients_are_those_of_spark(spark, four_rows, tmp_path):
    estimator = LogisticRegression(
        regParam=0.01, weightCol="weight", lowerBoundsOnCoefficients=Matrices.dense(1, 2, [-1.0, -1.0]),
        upperBoundsOnIntercepts=Vectors.dense(0.0),
    )
    model = estimator.fit(four_rows)
    assert list(model.coefficients) == pytest.approx([-0.2944, -0.0484], abs=1e-4)
    assert model.intercept == pytest.approx(0.0, abs=1e-4)
    path = str(tmp_path / "estimator")
    estimator.save(path)
    loaded = LogisticRegression.load(path)
    assert loaded.uid == estimator.uid and loaded.getRegParam() == 0.01
    assert loaded.getLowerBoundsOnCoefficients() == estimator.getLowerBoundsOnCoefficients()


def test_bounded_multinomial_coefficients_are_those_of_spark(spark):
    frame = spark.read.format("libsvm").load(spark_data("sample_multiclass_classification_data.txt"))
    model = LogisticRegression(
        regParam=0.01, lowerBoundsOnCoefficients=Matrices.dense(3, 4, list(range(12))),
        upperBoundsOnIntercepts=Vectors.dense(0.0, 0.0, 0.0),
    ).fit(frame)
    expected = [[4.593, 4.5516, 9.0099, 12.2904], [1.0, 8.1093, 7.0, 10.0], [3.041, 5.0, 8.0, 11.0]]
    for found, row in zip(model.coefficientMatrix.toArray(), expected):
        assert list(found) == pytest.approx(row, abs=1e-4)
    assert list(model.interceptVector) == pytest.approx([-0.9057, -1.1392, -0.0033], abs=1e-4)


def test_thresholds_of_a_model_follow_what_is_set(four_rows):
    model = LogisticRegression(weightCol="weight").fit(four_rows)
    predicted = {t: [row.prediction for row in model.setThreshold(t).transform(four_rows).collect()] for t in (0.0, 0.5, 1.0)}
    assert predicted == {0.0: [1.0] * 4, 0.5: [0.0, 1.0, 1.0, 0.0], 1.0: [0.0] * 4}


def test_an_evicted_model_goes_on_and_its_summary_comes_back(spark, four_rows):
    model = LinearRegression(regParam=0.0, maxIter=2, solver="normal", weightCol="weight").fit(four_rows)
    features = Vectors.dense(0.0, 5.0)
    predicted = model.predict(features)
    assert model.summary.predictions.count() == 4
    spark.client._delete_ml_cache([model._java_obj._ref_id], evict_only=True)
    assert spark.client._get_ml_cache_info() == []
    assert model.predict(features) == predicted
    assert model.summary.predictions.count() == 4 and model.summary.numInstances == 4


def test_the_cache_is_cleaned(spark, four_rows):
    models = [LogisticRegression(maxIter=1).fit(four_rows) for _ in range(3)]
    assert len(spark.client._get_ml_cache_info()) == len(models)
    spark.client._cleanup_ml_cache()
    assert spark.client._get_ml_cache_info() == []


def test_weighted_summaries_are_those_of_spark(spark):
    rows = [(1.0, 2.0, Vectors.dense(1.0)), (0.0, 2.0, Vectors.sparse(1, [], [])), (2.0, 2.0, Vectors.dense(2.0)),
            (2.0, 2.0, Vectors.dense(1.9))]
    frame = spark.createDataFrame(rows, ["label", "weight", "features"])
    summary = LogisticRegression(maxIter=5, regParam=0.01, weightCol="weight", fitIntercept=False).fit(frame).summary
    found = [summary.accuracy, summary.weightedFalsePositiveRate, summary.weightedPrecision, summary.weightedFMeasure()]
    assert found == pytest.approx([0.75, 0.25, 0.583, 0.65], abs=5e-3)
    assert summary.weightCol == "weight" and summary.probabilityCol == "probability"
