"""What Spark 4.3 makes of a few networks: python multilayer_perceptron.py > multilayer_perceptron.json

Each case trains on one partition, whose rows Spark cuts into blocks.
"""

import json
import sys

from pyspark.ml.classification import MultilayerPerceptronClassifier
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

XOR = [(0.0, [0.0, 0.0]), (1.0, [0.0, 1.0]), (1.0, [1.0, 0.0]), (0.0, [1.0, 1.0])]
CASES = {
    "xor": {"layers": [2, 3, 2], "seed": 123, "maxIter": 20},
    "xor_short_block": {"layers": [2, 3, 2], "seed": 123, "maxIter": 8, "blockSize": 3},
    "xor_gd": {"layers": [2, 3, 2], "seed": 123, "maxIter": 50, "solver": "gd", "stepSize": 10.0, "tol": 0.1},
    "iris": {"layers": [4, 5, 4, 3], "seed": 1234, "maxIter": 30},
}


def main() -> None:
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    import pyspark

    xor = spark.createDataFrame([(label, Vectors.dense(row)) for label, row in XOR], ["label", "features"]).coalesce(1)
    path = f"{pyspark.__path__[0]}/data/mllib/sample_multiclass_classification_data.txt"
    iris = spark.read.format("libsvm").load(path).coalesce(1)
    gold = {}
    for name, params in CASES.items():
        frame = iris if name == "iris" else xor
        model = MultilayerPerceptronClassifier(**params).fit(frame)
        gold[name] = {
            "params": params,
            "weights": [float(v) for v in model.weights],
            "history": model.summary().objectiveHistory,
            "accuracy": model.summary().accuracy,
            "raw": [float(v) for v in model.predictRaw(frame.first().features)],
        }
    json.dump(gold, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
