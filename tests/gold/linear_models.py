"""Writes what real Spark 4.3 fits on small data sets: linear_models.json, and data/*.json to fit again.

Run with a Python that has pyspark 4.3 (with its jars) and scikit-learn:  python linear_models.py
"""

import itertools
import json
import math
import os
import sys

import numpy as np
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.linalg import DenseMatrix, SparseVector, Vectors
from pyspark.ml.regression import LinearRegression
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, StructField, StructType
from pyspark.ml.linalg import VectorUDT
import pyspark
from sklearn import datasets as sk

HERE = os.path.dirname(os.path.abspath(__file__))
MLLIB = os.path.join(os.path.dirname(pyspark.__file__), "data", "mllib")


def read_libsvm(name):
    labels, rows, size = [], [], 0
    for line in open(os.path.join(MLLIB, name)):
        parts = line.split()
        if not parts:
            continue
        labels.append(float(parts[0]))
        pairs = [part.split(":") for part in parts[1:]]
        indices = [int(i) - 1 for i, _ in pairs]
        rows.append((indices, [float(v) for _, v in pairs]))
        size = max(size, max(indices) + 1 if indices else 0)
    return labels, rows, size


def weights_of(count):
    return [0.5 + 0.25 * (i * 7 % 5) for i in range(count)]


def sparse(name):
    labels, rows, size = read_libsvm(name)
    return {
        "numFeatures": size,
        "labels": labels,
        "weights": weights_of(len(labels)),
        "indices": [indices for indices, _ in rows],
        "values": [values for _, values in rows],
    }


def dense(features, labels):
    return {
        "numFeatures": features.shape[1],
        "labels": [float(v) for v in labels],
        "weights": weights_of(len(labels)),
        "indices": None,
        "values": [[float(v) for v in row] for row in features],
    }


def with_constant(data):
    """A second column that never changes, and is not zero."""
    values = [[row[0], 2.5] + row[1:] for row in data["values"]]
    return {**data, "numFeatures": data["numFeatures"] + 1, "values": values}


def load_data():
    cancer, iris, diabetes = sk.load_breast_cancer(), sk.load_iris(), sk.load_diabetes()
    return {
        "breast_cancer": dense(cancer.data, cancer.target),
        "libsvm": sparse("sample_libsvm_data.txt"),
        "iris": dense(iris.data, iris.target),
        "iris_constant": with_constant(dense(iris.data, iris.target)),
        "multiclass": sparse("sample_multiclass_classification_data.txt"),
        "diabetes": dense(diabetes.data, diabetes.target),
        "diabetes_constant": with_constant(dense(diabetes.data, diabetes.target)),
        "linear": sparse("sample_linear_regression_data.txt"),
    }


def frame(spark, data):
    schema = StructType([
        StructField("label", DoubleType(), False),
        StructField("weight", DoubleType(), False),
        StructField("features", VectorUDT(), True),
    ])
    rows = []
    for i, label in enumerate(data["labels"]):
        if data["indices"] is None:
            vector = Vectors.dense(data["values"][i])
        else:
            vector = SparseVector(data["numFeatures"], data["indices"][i], data["values"][i])
        rows.append((label, data["weights"][i], vector))
    return spark.createDataFrame(rows, schema).coalesce(1).cache()


def number(value):
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def numbers(values):
    return [number(v) for v in values]


def matrix(m):
    return [numbers(row) for row in m.toArray()]


def rows_of(df):
    return [numbers(row) for row in df.collect()]


def storage(v):
    return "sparse" if "Sparse" in type(v).__name__ else "dense"


def describe_logistic(df, case, model, deep):
    summary = model.summary
    out = {
        "numClasses": model.numClasses,
        "coefficients": matrix(model.coefficientMatrix),
        "intercepts": numbers(model.interceptVector.toArray()),
        "coefficientStorage": storage(model.coefficientMatrix),
        "interceptStorage": storage(model.interceptVector),
        "objectiveHistory": numbers(summary.objectiveHistory),
        "totalIterations": summary.totalIterations,
        "accuracy": number(summary.accuracy),
    }
    if deep:
        out["summary"] = {
            "labels": numbers(summary.labels),
            "truePositiveRateByLabel": numbers(summary.truePositiveRateByLabel),
            "falsePositiveRateByLabel": numbers(summary.falsePositiveRateByLabel),
            "precisionByLabel": numbers(summary.precisionByLabel),
            "recallByLabel": numbers(summary.recallByLabel),
            "fMeasureByLabel": numbers(summary.fMeasureByLabel(0.5)),
            "weightedTruePositiveRate": number(summary.weightedTruePositiveRate),
            "weightedFalsePositiveRate": number(summary.weightedFalsePositiveRate),
            "weightedPrecision": number(summary.weightedPrecision),
            "weightedRecall": number(summary.weightedRecall),
            "weightedFMeasure": number(summary.weightedFMeasure(2.0)),
        }
        if model.numClasses <= 2:
            out["summary"]["areaUnderROC"] = number(summary.areaUnderROC)
            for name in ["roc", "pr", "fMeasureByThreshold", "precisionByThreshold", "recallByThreshold"]:
                out["summary"][name] = rows_of(getattr(summary, name))
        predicted = model.transform(df).limit(20).select("rawPrediction", "probability", "prediction").collect()
        out["predictions"] = [
            [numbers(r[0].toArray()), numbers(r[1].toArray()), number(r[2])] for r in predicted
        ]
    return out


def logistic_cases():
    grid = [(0.0, 0.0)] + list(itertools.product([0.01, 0.3], [0.0, 0.5, 1.0]))
    for data in ["breast_cancer", "libsvm", "iris", "multiclass"]:
        for (reg, net), standardization, intercept in itertools.product(grid, [True, False], [True, False]):
            if not standardization and reg == 0.0:
                continue
            for weighted in [False, True]:
                if weighted and not (standardization and intercept):
                    continue
                yield data, {
                    "regParam": reg, "elasticNetParam": net, "standardization": standardization,
                    "fitIntercept": intercept, **({"weightCol": "weight"} if weighted else {}),
                }
    for net in [0.0, 0.5]:
        for intercept in [True, False]:
            yield "breast_cancer", {
                "regParam": 0.05, "elasticNetParam": net, "fitIntercept": intercept, "family": "multinomial",
            }
    yield "breast_cancer", {"regParam": 0.0, "family": "multinomial"}
    yield "breast_cancer", {"regParam": 0.1, "maxIter": 5}
    yield "breast_cancer", {"regParam": 0.1, "maxIter": 0}
    yield "breast_cancer", {"regParam": 0.1, "tol": 1e-3}
    yield "breast_cancer", {"regParam": 0.1, "threshold": 0.9}
    yield "iris", {"regParam": 0.1, "thresholds": [0.1, 0.6, 0.3]}
    yield "iris_constant", {"regParam": 0.1}
    yield "iris_constant", {"regParam": 0.1, "elasticNetParam": 0.5, "standardization": False}
    yield "iris_constant", {"regParam": 0.1, "fitIntercept": False}


def bounds_cases():
    for reg, standardization in [(0.0, True), (0.1, True), (0.1, False)]:
        common = {"regParam": reg, "standardization": standardization}
        yield "breast_cancer", {**common, "lowerBoundsOnCoefficients": [[0.0] * 30]}
        yield "breast_cancer", {
            **common,
            "lowerBoundsOnCoefficients": [[-0.5] * 30], "upperBoundsOnCoefficients": [[0.1] * 30],
            "lowerBoundsOnIntercepts": [-1.0], "upperBoundsOnIntercepts": [2.0],
        }
        yield "iris", {**common, "upperBoundsOnCoefficients": [[0.5] * 4, [1.0] * 4, [1.5] * 4]}
        yield "iris", {
            **common,
            "lowerBoundsOnCoefficients": [[-1.0] * 4] * 3, "upperBoundsOnCoefficients": [[1.0] * 4] * 3,
            "lowerBoundsOnIntercepts": [0.0] * 3,
        }


def linear_cases():
    grid = [(0.0, 0.0)] + list(itertools.product([0.01, 0.3], [0.0, 0.5, 1.0]))
    for data, solver in itertools.product(["diabetes", "linear"], ["normal", "l-bfgs"]):
        for (reg, net), standardization, intercept in itertools.product(grid, [True, False], [True, False]):
            if not standardization and reg == 0.0:
                continue
            for weighted in [False, True]:
                if weighted and not standardization:
                    continue
                yield data, {
                    "solver": solver, "regParam": reg, "elasticNetParam": net, "standardization": standardization,
                    "fitIntercept": intercept, **({"weightCol": "weight"} if weighted else {}),
                }
    for data in ["diabetes", "linear"]:
        for reg, standardization, intercept, epsilon in itertools.product(
                [0.0, 0.3], [True, False], [True, False], [1.35, 2.0]):
            yield data, {
                "loss": "huber", "regParam": reg, "standardization": standardization,
                "fitIntercept": intercept, "epsilon": epsilon,
            }
        yield data, {"loss": "huber", "weightCol": "weight"}
    yield "diabetes_constant", {"regParam": 0.0}
    yield "diabetes_constant", {"regParam": 0.1, "solver": "l-bfgs"}
    yield "diabetes_constant", {"regParam": 0.1, "elasticNetParam": 0.5}


def describe_linear(model):
    summary = model.summary
    out = {
        "coefficients": numbers(model.coefficients.toArray()),
        "coefficientStorage": storage(model.coefficients),
        "intercept": number(model.intercept),
        "scale": number(model.scale),
        "objectiveHistory": numbers(summary.objectiveHistory),
        "totalIterations": summary.totalIterations,
        "summary": {
            name: number(getattr(summary, name))
            for name in ["explainedVariance", "meanAbsoluteError", "meanSquaredError", "rootMeanSquaredError",
                         "r2", "r2adj", "numInstances", "degreesOfFreedom"]
        },
    }
    out["summary"]["devianceResiduals"] = numbers(summary.devianceResiduals)
    try:
        for name in ["coefficientStandardErrors", "tValues", "pValues"]:
            out["summary"][name] = numbers(getattr(summary, name))
    except Exception:
        pass
    return out


def set_bounds(params):
    params = dict(params)
    for name in ["lowerBoundsOnCoefficients", "upperBoundsOnCoefficients"]:
        if name in params:
            rows = np.array(params[name])
            params[name] = DenseMatrix(rows.shape[0], rows.shape[1], rows.flatten("F"))
    for name in ["lowerBoundsOnIntercepts", "upperBoundsOnIntercepts"]:
        if name in params:
            params[name] = Vectors.dense(params[name])
    return params


def main():
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1").config("spark.driver.memory", "3g").getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    data = load_data()
    for name, table in data.items():
        with open(os.path.join(HERE, "data", name + ".json"), "w") as out:
            json.dump(table, out, separators=(",", ":"))
    frames = {name: frame(spark, table) for name, table in data.items()}
    results = {"spark": spark.version, "logistic": [], "linear": []}
    seen = {}
    for name, params in itertools.chain(logistic_cases(), bounds_cases()):
        df = frames[name]
        case = {"data": name, "params": params}
        deep = seen.setdefault(name, 0) < 1 or "thresholds" in params or "threshold" in params
        seen[name] += 1
        try:
            model = LogisticRegression(**set_bounds(params)).fit(df)
            case.update(describe_logistic(df, case, model, deep))
        except Exception as error:
            case["error"] = str(error)[:200]
        results["logistic"].append(case)
        print(len(results["logistic"]), name, params, case.get("totalIterations"), file=sys.stderr, flush=True)
    for name, params in linear_cases():
        case = {"data": name, "params": params}
        try:
            case.update(describe_linear(LinearRegression(**params).fit(frames[name])))
        except Exception as error:
            case["error"] = str(error)[:200]
        results["linear"].append(case)
        print(len(results["linear"]), name, params, case.get("totalIterations"), file=sys.stderr, flush=True)
    with open(os.path.join(HERE, "linear_models.json"), "w") as out:
        out.write('{"spark":%s,\n"logistic":[\n' % json.dumps(results["spark"]))
        out.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in results["logistic"]))
        out.write('\n],"linear":[\n')
        out.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in results["linear"]))
        out.write("\n]}\n")


if __name__ == "__main__":
    main()
