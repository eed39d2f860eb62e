"""Modules of one's own, trained by ranks without Python, through a stock client and the client package."""

from __future__ import annotations

import io
import threading
import time

import numpy as np
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import MulticlassClassificationEvaluator, RegressionEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

import torch_modules


def points(spark, rows: int = 600, partitions: int | None = None):
    """Two numbers, and whether they have the same sign."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, size=(rows, 2))
    frame = spark.createDataFrame(
        [(float(a), float(b), int(a * b > 0), float(a * b), i % 4) for i, (a, b) in enumerate(x)],
        "a double, b double, label int, product double, category int",
    )
    frame = VectorAssembler(inputCols=["a", "b"], outputCol="features").transform(frame)
    return frame if partitions is None else frame.repartition(partitions)


def estimator(name: str, **params):
    from phalanx.torch import TorchEstimator

    return TorchEstimator(module=torch_modules.read(name), **params)


def test_numbers_of_workers_and_of_partitions_train_one_model(spark):
    frame = points(spark)
    params = {"optimizer": "adam", "learningRate": 0.03, "batchSize": 32, "epochs": 12, "seed": 5}
    raw = {}
    for workers, rows in [(1, frame), (2, frame), (3, frame.repartition(7))]:
        model = estimator("mlp_2_8_2", numWorkers=workers, **params).fit(rows)
        assert (model.numRows, model.numSteps, len(model.lossHistory)) == (600, 12 * 19, 12)
        scored = model.transform(frame)
        raw[workers] = np.array([list(row.rawPrediction) for row in scored.collect()])
    assert scored.columns[-3:] == ["rawPrediction", "probability", "prediction"]
    assert np.abs(raw[1] - raw[2]).max() < 1e-4 and np.abs(raw[1] - raw[3]).max() < 1e-4
    assert MulticlassClassificationEvaluator(metricName="accuracy").evaluate(scored) > 0.9
    again = estimator("mlp_2_8_2", numWorkers=2, **params).fit(frame)
    repeated = np.array([list(row.rawPrediction) for row in again.transform(frame).collect()])
    assert (repeated == raw[2]).all()


def test_full_batches_make_the_steps_that_arithmetic_makes(spark):
    frame = points(spark, 40)
    model = estimator(
        "mlp_2_8_1", loss="mse", labelCol="product", optimizer="sgd", learningRate=0.1, momentum=0.9, weightDecay=0.01,
        batchSize=40, epochs=15, numWorkers=2,
    ).fit(frame)  # fmt: skip
    rows = frame.collect()
    x, y = np.array([list(row.features) for row in rows]), np.array([row["product"] for row in rows])
    values = np.sin(np.arange(33) * 12.9898) * 0.4
    parts = [values[:16].reshape(8, 2), values[16:24], values[24:32], values[32:]]
    velocity, losses = [0.0] * 4, []
    for _ in range(15):
        hidden = np.tanh(x @ parts[0].T + parts[1])
        error = hidden @ parts[2] + parts[3] - y
        losses.append((error**2).mean())
        slope = 2 * error / len(y)
        back = np.outer(slope, parts[2]) * (1 - hidden**2)
        gradients = [back.T @ x, back.sum(0), hidden.T @ slope, slope.sum(keepdims=True)]
        velocity = [0.9 * v + g + 0.01 * p for v, g, p in zip(velocity, gradients, parts)]
        parts = [p - 0.1 * v for p, v in zip(parts, velocity)]
    assert model.lossHistory == pytest.approx(losses, rel=1e-5)
    expected = np.tanh(x @ parts[0].T + parts[1]) @ parts[2] + parts[3]
    predicted = [row.prediction for row in model.transform(frame).collect()]
    assert predicted == pytest.approx(list(expected), abs=1e-5)


def test_several_inputs_normalisation_and_early_stopping(spark, tmp_path):
    from phalanx.torch import TorchModel

    frame = points(spark, 300, partitions=5)
    frame = VectorAssembler(inputCols=["a", "b", "product"], outputCol="numbers").transform(frame)
    model = estimator(
        "pair", inputCols=["numbers", "category"], loss="bce", optimizer="adamW", learningRate=0.05, schedule="oneCycle",
        batchSize=16, epochs=40, validationFraction=0.2, patience=3, maxGradNorm=1.0, accumulationSteps=2, numWorkers=2,
    ).fit(frame)  # fmt: skip
    assert len(model.validationLossHistory) == len(model.lossHistory) and model.bestEpoch < len(model.lossHistory)
    scored = model.transform(frame)
    rows = scored.collect()
    assert MulticlassClassificationEvaluator(metricName="accuracy").evaluate(scored) > 0.9
    assert all(abs(sum(row.probability) - 1) < 1e-9 and row.prediction == np.argmax(row.probability) for row in rows)
    model.write().overwrite().save(str(tmp_path / "model"))
    loaded = TorchModel.load(str(tmp_path / "model"))
    assert loaded.transform(frame).collect() == rows
    assert loaded.lossHistory == model.lossHistory and loaded.getOrDefault(loaded.epochs) == 40
    assert loaded.moduleBytes() == model.moduleBytes()
    try:
        import torch
    except ImportError:
        return
    script = torch.jit.load(io.BytesIO(model.moduleBytes()))
    numbers = torch.tensor([list(row.numbers) for row in rows], dtype=torch.float32)
    output = script(numbers, torch.tensor([row.category for row in rows])).squeeze(1)
    assert [row.rawPrediction[1] for row in rows] == pytest.approx(output.tolist(), abs=1e-5)


def test_loss_of_ones_own(spark):
    from phalanx.torch import TorchEstimator

    frame = points(spark, 200)
    model = TorchEstimator(
        module=torch_modules.read("mlp_2_8_1"), loss="script", lossModule=torch_modules.read("quartic"),
        labelCol="product", optimizer="adam", learningRate=0.02, epochs=5, numWorkers=2, wireFormat="bfloat16",
    ).fit(frame)  # fmt: skip
    assert model.lossHistory[-1] < model.lossHistory[0]
    assert "prediction" in model.transform(frame).columns


def test_pipelines_and_cross_validation(spark, tmp_path):
    raw = points(spark, 200).drop("features")
    assembler = VectorAssembler(inputCols=["a", "b"], outputCol="features")
    torch_estimator = estimator("mlp_2_8_1", loss="mse", labelCol="product", optimizer="adam", epochs=4, batchSize=20)
    grid = ParamGridBuilder().addGrid(torch_estimator.learningRate, [1e-5, 0.03]).build()
    evaluator = RegressionEvaluator(labelCol="product")
    validator = CrossValidator(
        estimator=Pipeline(stages=[assembler, torch_estimator]), estimatorParamMaps=grid, evaluator=evaluator, numFolds=2
    )
    fitted = validator.fit(raw)
    assert fitted.avgMetrics[1] < fitted.avgMetrics[0]
    best = fitted.bestModel
    best.write().overwrite().save(str(tmp_path / "pipeline"))
    loaded = PipelineModel.load(str(tmp_path / "pipeline"))
    assert loaded.transform(raw).collect() == best.transform(raw).collect()
    Pipeline(stages=[assembler, torch_estimator]).write().overwrite().save(str(tmp_path / "unfitted"))
    unfitted = Pipeline.load(str(tmp_path / "unfitted"))
    assert unfitted.getStages()[1].getOrDefault("module") == torch_estimator.getOrDefault("module")


def test_what_goes_wrong_is_said(spark):
    frame = points(spark, 50)
    with pytest.raises(Exception, match="a value above 100"):
        far = VectorAssembler(inputCols=["c", "c"], outputCol="far").transform(frame.selectExpr("*", "a + 1000 as c"))
        estimator("checked", inputCols=["far"]).fit(far)
    with pytest.raises(Exception, match="TorchScript module cannot be loaded"):
        from phalanx.torch import TorchEstimator

        TorchEstimator(module=b"nothing").fit(frame)
    with pytest.raises(Exception, match="stage 3 of ZeRO"):
        estimator("checked", zeroStage=3).fit(frame)
    with pytest.raises(Exception, match="but got 0.5"):
        estimator("checked", labelCol="half").fit(frame.selectExpr("*", "0.5D as half"))
    with pytest.raises(Exception, match="became NaN at step|became inf at step"):
        estimator("mlp_2_8_1", loss="mse", labelCol="product", optimizer="sgd", learningRate=1e30, epochs=9).fit(frame)
    with pytest.raises(TypeError, match="no params learning_rate"):
        estimator("checked", learning_rate=1.0)


def test_a_killed_rank_changes_no_bit(spark, server):
    frame = points(spark, 4000)
    torch_estimator = estimator(
        "mlp_2_8_2", optimizer="adam", learningRate=0.01, batchSize=16, epochs=12, numWorkers=2
    )  # fmt: skip
    whole = torch_estimator.fit(frame)

    killed = []

    def kill() -> None:
        ranks = server.wait_for_ranks(2)
        time.sleep(0.6)
        killed.append(ranks[1].is_running())
        ranks[1].kill()

    server.wait_for_ranks(0)
    killer = threading.Thread(target=kill)
    killer.start()
    model = torch_estimator.fit(frame)
    killer.join()
    assert killed == [True], "the fit was over before a rank could be killed"
    assert model.moduleBytes() == whole.moduleBytes()
    assert model.lossHistory == whole.lossHistory
