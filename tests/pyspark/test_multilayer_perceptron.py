"""`MultilayerPerceptronClassifier` through a stock client, beside the figures of real Spark."""

from __future__ import annotations

import json
import pathlib

import pytest
from pyspark.ml.classification import MultilayerPerceptronClassificationModel, MultilayerPerceptronClassifier
from pyspark.ml.linalg import Vectors

from server import spark_data

GOLD = json.loads((pathlib.Path(__file__).parent.parent / "gold" / "multilayer_perceptron.json").read_text())
XOR = [(0.0, [0.0, 0.0]), (1.0, [0.0, 1.0]), (1.0, [1.0, 0.0]), (0.0, [1.0, 1.0])]


def xor(spark, more=()):
    rows = [(label, Vectors.dense(row)) for label, row in [*XOR, *more]]
    return spark.createDataFrame(rows, ["label", "features"]).coalesce(1)


@pytest.mark.parametrize("name", GOLD)
def test_objective_and_weights_are_those_of_spark(spark, name):
    spark.conf.set("spark.phalanx.workers", "1")
    gold = GOLD[name]
    iris = spark.read.format("libsvm").load(spark_data("sample_multiclass_classification_data.txt"))
    frame = iris if name == "iris" else xor(spark)
    model = MultilayerPerceptronClassifier(**gold["params"]).fit(frame)
    summary = model.summary()
    assert summary.totalIterations == len(gold["history"]) - 1
    assert list(summary.objectiveHistory) == pytest.approx(gold["history"], rel=1e-6)
    assert list(model.weights) == pytest.approx(gold["weights"], rel=1e-4, abs=1e-4)
    assert list(model.predictRaw(frame.first().features)) == pytest.approx(gold["raw"], rel=1e-4, abs=1e-4)
    assert summary.accuracy == pytest.approx(gold["accuracy"])


def test_two_ranks_come_to_the_model_of_one(spark):
    frame = spark.read.format("libsvm").load(spark_data("sample_multiclass_classification_data.txt"))
    trained = {}
    for workers in ("1", "2"):
        spark.conf.set("spark.phalanx.workers", workers)
        # 150 rows in blocks of 30: none is short, so it does not matter which rows are in the last one
        classifier = MultilayerPerceptronClassifier(layers=[4, 5, 3], seed=7, maxIter=20, blockSize=30)
        trained[workers] = classifier.fit(frame)
    assert list(trained["2"].weights) == pytest.approx(list(trained["1"].weights), rel=1e-6)


def test_model_answers_scores_saves_and_loads(spark, tmp_path):
    frame = xor(spark)
    model = MultilayerPerceptronClassifier(layers=[2, 3, 2], seed=123, maxIter=100).fit(frame)
    assert model.numClasses == 2 and model.numFeatures == 2 and model.getLayers() == [2, 3, 2]
    assert "numLayers=3, numClasses=2, numFeatures=2" in str(model)
    scored = model.transform(frame)
    assert scored.columns == ["label", "features", "rawPrediction", "probability", "prediction"]
    rows = scored.collect()
    assert [row.prediction for row in rows] == [row.label for row in rows]
    assert model.predict(rows[1].features) == 1.0
    assert list(model.predictProbability(rows[1].features)) == pytest.approx(list(rows[1].probability), abs=1e-12)
    assert model.evaluate(frame).accuracy == 1.0
    model.write().overwrite().save(str(tmp_path / "model"))
    loaded = MultilayerPerceptronClassificationModel.load(str(tmp_path / "model"))
    assert list(loaded.weights) == list(model.weights) and str(loaded) == str(model)
    assert loaded.transform(frame).collect() == rows
    eager = model.copy({model.thresholds: [0.0, 1.0]})
    assert {row.prediction for row in eager.transform(frame).collect()} == {0.0}


def test_initial_weights_are_used_and_checked(spark):
    frame = xor(spark)
    weights = Vectors.dense([0.1 * i - 0.5 for i in range(17)])
    model = MultilayerPerceptronClassifier(layers=[2, 3, 2], maxIter=3, initialWeights=weights).fit(frame)
    assert model.summary().objectiveHistory[0] == pytest.approx(0.7007848639633949, abs=1e-12)
    with pytest.raises(Exception, match="Expected weight vector of size 17 but got size 1"):
        MultilayerPerceptronClassifier(layers=[2, 3, 2], initialWeights=Vectors.dense([1.0])).fit(frame)


def test_what_cannot_be_trained_on_is_named(spark):
    with pytest.raises(Exception, match=r"Labels MUST be in \{0, 1\}, but got 2.0"):
        MultilayerPerceptronClassifier(layers=[2, 3, 2], maxIter=1).fit(xor(spark, [(2.0, [1.0, 1.0])]))
    with pytest.raises(Exception, match="the first of layers is 3, but vectors of features have 2 values"):
        MultilayerPerceptronClassifier(layers=[3, 3, 2], maxIter=1).fit(xor(spark))
    with pytest.raises(Exception, match="layers given invalid value"):
        MultilayerPerceptronClassifier(layers=[2], maxIter=1).fit(xor(spark))
