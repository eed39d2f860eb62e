"""The main job: a stock client trains on real data through a gang of ranks, scores, and prints what came out.

    python main_job.py --server PATH/phalanx     starts a server, runs, and stops it
    python main_job.py --remote sc://host:15002  runs against a server that is up
"""

from __future__ import annotations

import argparse
import tempfile
import time

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.evaluation import BinaryClassificationEvaluator, MulticlassClassificationEvaluator
from pyspark.ml.feature import Imputer, OneHotEncoder, StandardScaler, StringIndexer, VectorAssembler
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import data
from server import Server


def breast_cancer(spark: SparkSession) -> None:
    print("\n== Breast cancer (569 rows, 30 features): logistic regression in a pipeline ==")
    frame = spark.createDataFrame(data.breast_cancer())
    train, test = frame.randomSplit([0.8, 0.2], seed=7)
    features = [name for name in frame.columns if name != "label"]
    pipeline = Pipeline(
        stages=[
            VectorAssembler(inputCols=features, outputCol="raw"),
            StandardScaler(inputCol="raw", outputCol="features", withMean=True),
            LogisticRegression(maxIter=50, regParam=0.01),
        ]
    )
    started = time.perf_counter()
    model = pipeline.fit(train)
    seconds = time.perf_counter() - started
    fitted = model.stages[-1]
    scored = model.transform(test)
    auc = BinaryClassificationEvaluator().evaluate(scored)
    accuracy = MulticlassClassificationEvaluator(metricName="accuracy").evaluate(scored)
    print(f"trained in {seconds:.2f} s on {train.count()} rows, {fitted.summary.totalIterations} iterations")
    print(f"objective {fitted.summary.objectiveHistory[0]:.4f} -> {fitted.summary.objectiveHistory[-1]:.4f}")
    print(f"test rows {test.count()}, area under ROC {auc:.4f}, accuracy {accuracy:.4f}")
    scored.select("label", "probability", "prediction").show(5, truncate=False)


def penguins(spark: SparkSession) -> None:
    print("== Palmer penguins (344 rows, nulls and strings): three species, saved and loaded ==")
    frame = spark.createDataFrame(data.penguins()).filter(F.col("sex").isNotNull())
    numbers = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    pipeline = Pipeline(
        stages=[
            StringIndexer(inputCol="species", outputCol="label"),
            StringIndexer(inputCols=["island", "sex"], outputCols=["island_index", "sex_index"]),
            OneHotEncoder(inputCols=["island_index", "sex_index"], outputCols=["island_vector", "sex_vector"]),
            Imputer(inputCols=numbers, outputCols=[f"{name}_filled" for name in numbers]),
            VectorAssembler(
                inputCols=[f"{name}_filled" for name in numbers] + ["island_vector", "sex_vector"],
                outputCol="features",
            ),
            LogisticRegression(maxIter=100, regParam=0.001),
        ]
    )
    train, test = frame.randomSplit([0.7, 0.3], seed=11)
    model = pipeline.fit(train)
    with tempfile.TemporaryDirectory() as folder:
        model.write().overwrite().save(f"{folder}/penguins")
        loaded = PipelineModel.load(f"{folder}/penguins")
        scored = loaded.transform(test)
        accuracy = MulticlassClassificationEvaluator(metricName="accuracy").evaluate(scored)
        print(f"accuracy of the loaded pipeline on {test.count()} test rows: {accuracy:.4f}")
        scored.groupBy("species", "prediction").count().orderBy("species", "prediction").show()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = arguments.add_mutually_exclusive_group(required=True)
    target.add_argument("--server", help="the phalanx binary to start")
    target.add_argument("--remote", help="a server that is up")
    options = arguments.parse_args()
    server = Server(options.server) if options.server else None
    try:
        spark = SparkSession.builder.remote(server.remote if server else options.remote).getOrCreate()
        print(f"connected to {server.remote if server else options.remote}, Spark {spark.version}")
        breast_cancer(spark)
        penguins(spark)
        spark.stop()
    finally:
        if server:
            server.stop()


if __name__ == "__main__":
    main()
