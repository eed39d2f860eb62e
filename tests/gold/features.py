"""Writes what real Spark 4.3 makes of small, awkward tables: features.json, and the models it saves in spark_models/.

Run with a Python that has pyspark 4.3 (with its jars):  python features.py
"""

import itertools
import json
import math
import os
import random
import shutil
import sys

from pyspark.ml import evaluation, feature
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.linalg import DenseVector, SparseVector, Vectors, VectorUDT
from pyspark.ml.regression import LinearRegression
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType, BooleanType, DoubleType, FloatType, IntegerType, LongType, StringType, StructField, StructType,
)

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "spark_models")
NAN, INF = math.nan, math.inf


def encode(value):
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, DenseVector):
        return {"dense": [encode(float(v)) for v in value.values]}
    if isinstance(value, SparseVector):
        return {
            "size": value.size, "indices": [int(i) for i in value.indices],
            "values": [encode(float(v)) for v in value.values],
        }
    if isinstance(value, (list, tuple)):
        return [encode(v) for v in value]
    return value


def table(df):
    return {"schema": df.schema.jsonValue()["fields"], "rows": [encode(list(row)) for row in df.collect()]}


def schema(**types):
    return StructType([StructField(name, kind, True) for name, kind in types.items()])


def sparse(size, **values):
    pairs = sorted((int(name[1:]), value) for name, value in values.items())
    return SparseVector(size, [i for i, _ in pairs], [v for _, v in pairs])


def frames(spark):
    one = [
        # id, i, l, f, d, b, s, v, w
        (0, 3, 10, 0.5, 1.0, True, "b", Vectors.dense(1.0, -2.0, 0.0), sparse(6, _1=2.0)),
        (1, -1, 10, 0.1, 0.0, False, "a", Vectors.dense(0.0, 0.0, 0.0), sparse(6)),
        (2, 0, -7, 1e10, 1e-5, True, "a", Vectors.dense(3.5, 4.0, 7.0), Vectors.dense(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),
        (3, 3, 2**40, -0.0, -3.25, False, "e", Vectors.dense(3.5, -2.0, 7.0), sparse(6, _0=-1.0, _5=0.5)),
        (4, 7, 0, 2.5, 1e7, False, "c", Vectors.dense(1.0, 8.0, 7.0), sparse(6, _2=4.0, _3=0.0)),
        (5, 7, 0, 2.5, 12.5, True, "c", Vectors.dense(-6.0, 1e-3, 7.0), sparse(6, _1=-2.0, _4=1.5)),
        (6, 7, 1, 2.5, 0.1, True, "B", Vectors.dense(2.0, 2.0, 7.0), sparse(6, _0=3.0)),
        (7, 0, 1, 0.5, 1.0, True, "a b", Vectors.dense(0.1, 0.2, 7.0), Vectors.dense(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
    ]
    vector = VectorUDT()
    plain = spark.createDataFrame(one, schema(
        id=IntegerType(), i=IntegerType(), l=LongType(), f=FloatType(), d=DoubleType(), b=BooleanType(), s=StringType(),
        v=vector, w=vector,
    ))
    holes = spark.createDataFrame([
        (0, 1.0, 1, 1.5, "x", Vectors.dense(1.0, 2.0)),
        (1, None, 2, NAN, None, Vectors.dense(3.0, NAN)),
        (2, NAN, None, 2.5, "", Vectors.dense(3.0, 0.0)),
        (3, 4.0, 4, None, "y", None),
        (4, -1.0, 2, 0.5, "x", sparse(2, _1=3.0)),
        (5, 4.0, -1, 4.5, "z", sparse(2)),
        (6, 1.0, 9, -INF, "y", Vectors.dense(0.0, 0.0)),
    ], schema(id=IntegerType(), d=DoubleType(), i=IntegerType(), f=FloatType(), s=StringType(), v=vector))
    seen = spark.createDataFrame(
        [(0, "x", 0.0), (1, "y", 1.0), (2, "x", 1.0), (3, "z", 2.0)],
        schema(id=IntegerType(), s=StringType(), c=DoubleType()),
    )
    unseen = spark.createDataFrame(
        [(0, "x", 2.0), (1, "q", 5.0), (2, None, None), (3, "z", 0.0)],
        schema(id=IntegerType(), s=StringType(), c=DoubleType()),
    )
    odd = spark.createDataFrame(
        [(0, 0.5, -1.0), (1, 1.0, 2.0)], schema(id=IntegerType(), half=DoubleType(), minus=DoubleType()),
    )
    indexed = feature.StringIndexer(inputCols=["s", "i"], outputCols=["s_index", "i_index"]).fit(plain).transform(plain)
    encoded = feature.OneHotEncoder(inputCols=["s_index"], outputCols=["s_hot"]).fit(indexed).transform(indexed)
    encoded = feature.VectorAssembler(inputCols=["d", "b"], outputCol="pair").transform(encoded)
    nameless = feature.StringIndexer(inputCol="s", outputCol="s_index", handleInvalid="skip").fit(holes).transform(holes)
    sized = feature.VectorSizeHint(inputCol="v", size=2, handleInvalid="optimistic").transform(holes)
    words = spark.createDataFrame([
        (0, "Spark  is fast", ["a", "b", "a", "c"]),
        (1, "", []),
        (2, " leading and\ttrailing ", ["c", "d"]),
        (3, "ÄÖ,ß;x-y", ["日本", "a", "😀", "", "Straße"]),
        (4, "one", ["a"]),
    ], schema(id=IntegerType(), text=StringType(), words=ArrayType(StringType())))
    generator = random.Random(7)
    scored = []
    for i in range(80):
        label = float(generator.randrange(3))
        raw = [round(generator.gauss(0.0, 1.0), 1) for _ in range(3)]
        weights = [math.exp(v) for v in raw]
        probability = [v / sum(weights) for v in weights]
        prediction = float(max(range(3), key=lambda k: raw[k] + (1.0 if k == label else 0.0)))
        scored.append((
            i, label, float(label > 0), prediction, raw[1], Vectors.dense(raw), Vectors.dense(probability),
            round(label + generator.gauss(0.0, 0.7), 3), generator.choice([0.5, 1.0, 2.0, 3.25]),
        ))
    scored = spark.createDataFrame(scored, schema(
        id=IntegerType(), label=DoubleType(), binary=DoubleType(), prediction=DoubleType(), score=DoubleType(),
        rawPrediction=vector, probability=vector, estimate=DoubleType(), weight=DoubleType(),
    ))
    many = spark.createDataFrame(
        [(i, generator.choice([0.0, 1.0]), generator.gauss(0.0, 1.0)) for i in range(2600)],
        schema(id=IntegerType(), binary=DoubleType(), score=DoubleType()),
    )
    found = {
        "plain": plain, "holes": holes, "seen": seen, "unseen": unseen, "odd": odd, "encoded": encoded, "sized": sized,
        "nameless": nameless,
        "words": words, "scored": scored, "many": many,
    }
    return {name: df.coalesce(1).cache() for name, df in found.items()}


def cases():
    """(name, class, params, table to fit and transform, another table to transform)"""
    for name, params in [
        ("numbers", {"inputCols": ["i", "l", "f", "d", "b"]}),
        ("vectors", {"inputCols": ["w", "d", "v"]}),
        ("sparse", {"inputCols": ["w", "b"]}),
        ("missing_column", {"inputCols": ["i", "nothing"]}),
        ("text", {"inputCols": ["i", "s"]}),
    ]:
        yield f"assembler_{name}", "VectorAssembler", {**params, "outputCol": "out"}, "plain", None
    yield "assembler_attributes", "VectorAssembler", {
        "inputCols": ["s_index", "i_index", "s_hot", "pair", "d"], "outputCol": "out"}, "encoded", None
    for invalid in ["error", "skip", "keep"]:
        for columns in [["d", "i"], ["f", "v"], ["i"], ["v"]]:
            for name in ["holes", "sized"]:
                if name == "sized" and "v" not in columns:
                    continue
                yield f"assembler_{name}_{invalid}_{'_'.join(columns)}", "VectorAssembler", {
                    "inputCols": columns, "outputCol": "out", "handleInvalid": invalid}, name, None
    for order in ["frequencyDesc", "frequencyAsc", "alphabetDesc", "alphabetAsc"]:
        yield f"indexer_{order}", "StringIndexer", {
            "inputCols": ["s", "i", "f", "d", "b", "l"], "outputCols": ["s1", "i1", "f1", "d1", "b1", "l1"],
            "stringOrderType": order}, "plain", None
    yield "indexer_numbers", "StringIndexer", {
        "inputCols": ["s", "i", "f", "d", "l"], "outputCols": ["s1", "i1", "f1", "d1", "l1"]}, "plain", None
    yield "indexer_one", "StringIndexer", {"inputCol": "s", "outputCol": "out"}, "plain", None
    for invalid in ["error", "skip", "keep"]:
        yield f"indexer_unseen_{invalid}", "StringIndexer", {
            "inputCol": "s", "outputCol": "out", "handleInvalid": invalid}, "seen", "unseen"
        yield f"indexer_null_{invalid}", "StringIndexer", {
            "inputCol": "s", "outputCol": "out", "handleInvalid": invalid}, "holes", None
    yield "indexer_bad_lengths", "StringIndexer", {"inputCols": ["s", "i"], "outputCols": ["x"]}, "plain", None
    yield "indexer_no_column", "StringIndexer", {"inputCol": "nothing", "outputCol": "out"}, "plain", None
    yield "indexer_output_exists", "StringIndexer", {"inputCol": "s", "outputCol": "i"}, "plain", None
    for invalid, drop in itertools.product(["error", "keep"], [True, False]):
        yield f"one_hot_metadata_{invalid}_{drop}", "OneHotEncoder", {
            "inputCols": ["s_index", "i_index"], "outputCols": ["s1", "i1"], "handleInvalid": invalid,
            "dropLast": drop}, "encoded", None
        yield f"one_hot_data_{invalid}_{drop}", "OneHotEncoder", {
            "inputCol": "c", "outputCol": "out", "handleInvalid": invalid, "dropLast": drop}, "seen", "seen"
        yield f"one_hot_unseen_{invalid}_{drop}", "OneHotEncoder", {
            "inputCol": "c", "outputCol": "out", "handleInvalid": invalid, "dropLast": drop}, "seen", "unseen"
    yield "one_hot_nameless", "OneHotEncoder", {"inputCol": "s_index", "outputCol": "out"}, "nameless", None
    yield "one_hot_half", "OneHotEncoder", {"inputCol": "half", "outputCol": "out"}, "odd", None
    yield "one_hot_minus", "OneHotEncoder", {"inputCol": "minus", "outputCol": "out"}, "odd", None
    yield "one_hot_text", "OneHotEncoder", {"inputCol": "s", "outputCol": "out"}, "plain", None
    yield "one_hot_null", "OneHotEncoder", {"inputCol": "d", "outputCol": "out"}, "holes", None
    for mean, std, column in itertools.product([True, False], [True, False], ["v", "w"]):
        yield f"standard_{mean}_{std}_{column}", "StandardScaler", {
            "inputCol": column, "outputCol": "out", "withMean": mean, "withStd": std}, "plain", None
    yield "standard_number", "StandardScaler", {"inputCol": "d", "outputCol": "out"}, "plain", None
    yield "standard_attributes", "StandardScaler", {"inputCol": "pair", "outputCol": "out"}, "encoded", None
    for strategy in ["mean", "median", "mode"]:
        for missing in [NAN, 4.0, -1.0]:
            yield f"imputer_{strategy}_{missing}", "Imputer", {
                "inputCols": ["d", "i", "f"], "outputCols": ["d1", "i1", "f1"], "strategy": strategy,
                "missingValue": missing}, "holes", None
    yield "imputer_one", "Imputer", {"inputCol": "l", "outputCol": "out", "strategy": "median"}, "plain", None
    yield "imputer_text", "Imputer", {"inputCol": "s", "outputCol": "out"}, "plain", None
    for column in ["v", "w"]:
        yield f"min_max_{column}", "MinMaxScaler", {"inputCol": column, "outputCol": "out"}, "plain", None
        yield f"max_abs_{column}", "MaxAbsScaler", {"inputCol": column, "outputCol": "out"}, "plain", None
        for p in [1.0, 2.0, 3.5, INF]:
            yield f"normalizer_{column}_{p}", "Normalizer", {"inputCol": column, "outputCol": "out", "p": p}, "plain", None
        for centering, scaling in itertools.product([True, False], [True, False]):
            yield f"robust_{column}_{centering}_{scaling}", "RobustScaler", {
                "inputCol": column, "outputCol": "out", "withCentering": centering, "withScaling": scaling}, "plain", None
        yield f"elementwise_{column}", "ElementwiseProduct", {
            "inputCol": column, "outputCol": "out",
            "scalingVec": Vectors.dense([2.0, 0.0, -1.0] if column == "v" else [1.0, 2.0, 3.0, 0.0, 5.0, 0.5])}, "plain", None
        for degree in [1, 2, 3]:
            yield f"polynomial_{column}_{degree}", "PolynomialExpansion", {
                "inputCol": column, "outputCol": "out", "degree": degree}, "plain", None
        yield f"slicer_{column}", "VectorSlicer", {"inputCol": column, "outputCol": "out", "indices": [2, 0]}, "plain", None
        yield f"dct_{column}", "DCT", {"inputCol": column, "outputCol": "out"}, "plain", None
        yield f"dct_inverse_{column}", "DCT", {"inputCol": column, "outputCol": "out", "inverse": True}, "plain", None
        for threshold in [0.0, 9.0]:
            yield f"variance_{column}_{threshold}", "VarianceThresholdSelector", {
                "featuresCol": column, "outputCol": "out", "varianceThreshold": threshold}, "plain", None
    yield "min_max_range", "MinMaxScaler", {"inputCol": "v", "outputCol": "out", "min": -1.0, "max": 5.0}, "plain", None
    yield "min_max_bad_range", "MinMaxScaler", {"inputCol": "v", "outputCol": "out", "min": 2.0, "max": 1.0}, "plain", None
    yield "slicer_names", "VectorSlicer", {
        "inputCol": "pair", "outputCol": "out", "indices": [1], "names": ["d"]}, "encoded", None
    yield "slicer_bad", "VectorSlicer", {"inputCol": "pair", "outputCol": "out", "indices": [7]}, "encoded", None
    yield "elementwise_bad", "ElementwiseProduct", {
        "inputCol": "v", "outputCol": "out", "scalingVec": Vectors.dense([2.0])}, "plain", None
    splits = [-INF, 0.0, 1.0, 10.0, INF]
    yield "bucketizer", "Bucketizer", {"inputCol": "d", "outputCol": "out", "splits": splits}, "plain", None
    yield "bucketizer_many", "Bucketizer", {
        "inputCols": ["d", "i"], "outputCols": ["d1", "i1"], "splitsArray": [splits, [-5.0, 0.0, 8.0]]}, "plain", None
    yield "bucketizer_outside", "Bucketizer", {"inputCol": "d", "outputCol": "out", "splits": [0.0, 1.0, 2.0]}, "plain", None
    for invalid in ["error", "skip", "keep"]:
        yield f"bucketizer_{invalid}", "Bucketizer", {
            "inputCol": "d", "outputCol": "out", "splits": splits, "handleInvalid": invalid}, "holes", None
    yield "binarizer", "Binarizer", {"inputCol": "d", "outputCol": "out", "threshold": 0.1}, "plain", None
    yield "binarizer_vector", "Binarizer", {"inputCol": "w", "outputCol": "out", "threshold": 1.5}, "plain", None
    yield "binarizer_vector_minus", "Binarizer", {"inputCol": "w", "outputCol": "out", "threshold": -1.0}, "plain", None
    yield "binarizer_many", "Binarizer", {
        "inputCols": ["d", "i", "v"], "outputCols": ["d1", "i1", "v1"], "thresholds": [0.1, 2.0, 3.0]}, "plain", None
    yield "binarizer_holes", "Binarizer", {"inputCol": "d", "outputCol": "out"}, "holes", None
    yield "to_string", "IndexToString", {"inputCol": "s_index", "outputCol": "out"}, "encoded", None
    yield "to_string_labels", "IndexToString", {
        "inputCol": "c", "outputCol": "out", "labels": ["one", "two", "three"]}, "seen", None
    yield "to_string_bad", "IndexToString", {"inputCol": "c", "outputCol": "out", "labels": ["one"]}, "seen", None
    yield "tokenizer", "Tokenizer", {"inputCol": "text", "outputCol": "out"}, "words", None
    yield "regex_default", "RegexTokenizer", {"inputCol": "text", "outputCol": "out"}, "words", None
    yield "regex_tokens", "RegexTokenizer", {
        "inputCol": "text", "outputCol": "out", "pattern": "\\w+", "gaps": False, "minTokenLength": 2,
        "toLowercase": False}, "words", None
    for n in [1, 2, 3]:
        yield f"ngram_{n}", "NGram", {"inputCol": "words", "outputCol": "out", "n": n}, "words", None
    yield "hashing", "HashingTF", {"inputCol": "words", "outputCol": "out"}, "words", None
    yield "hashing_binary", "HashingTF", {
        "inputCol": "words", "outputCol": "out", "binary": True, "numFeatures": 7}, "words", None
    yield "count", "CountVectorizer", {"inputCol": "words", "outputCol": "out"}, "words", None
    yield "count_limits", "CountVectorizer", {
        "inputCol": "words", "outputCol": "out", "minDF": 2.0, "minTF": 0.3, "binary": True}, "words", None
    yield "count_share", "CountVectorizer", {
        "inputCol": "words", "outputCol": "out", "minDF": 0.3, "maxDF": 0.5}, "words", None
    yield "count_size", "CountVectorizer", {"inputCol": "words", "outputCol": "out", "vocabSize": 2}, "words", None
    for column in ["v", "w"]:
        yield f"idf_{column}", "IDF", {"inputCol": column, "outputCol": "out"}, "plain", None
        yield f"idf_min_{column}", "IDF", {"inputCol": column, "outputCol": "out", "minDocFreq": 3}, "plain", None
    yield "interaction", "Interaction", {"inputCols": ["d", "v", "s_hot"], "outputCol": "out"}, "encoded", None
    yield "interaction_nominal", "Interaction", {"inputCols": ["s_index", "pair"], "outputCol": "out"}, "encoded", None
    yield "hasher", "FeatureHasher", {"inputCols": ["i", "d", "b", "s"], "outputCol": "out"}, "plain", None
    yield "hasher_categorical", "FeatureHasher", {
        "inputCols": ["i", "d", "b", "s", "f", "l"], "outputCol": "out", "numFeatures": 50,
        "categoricalCols": ["i", "d"]}, "plain", None
    yield "hasher_holes", "FeatureHasher", {"inputCols": ["i", "d", "s"], "outputCol": "out"}, "holes", None
    yield "quantiles", "QuantileDiscretizer", {"inputCol": "d", "outputCol": "out", "numBuckets": 3}, "plain", None
    for invalid in ["skip", "keep"]:
        yield f"quantiles_{invalid}", "QuantileDiscretizer", {
            "inputCols": ["d", "i"], "outputCols": ["d1", "i1"], "numBuckets": 3, "handleInvalid": invalid}, "holes", None


SAVED = {
    "indexer_numbers", "indexer_unseen_keep", "one_hot_metadata_keep_False", "standard_True_True_v", "imputer_mean_nan",
    "imputer_median_4.0", "min_max_range", "max_abs_w", "robust_v_True_True", "variance_w_9.0", "count", "idf_w",
}
FITTED = [
    "mean", "std", "originalMin", "originalMax", "maxAbs", "median", "range", "labels", "labelsArray", "categorySizes",
    "surrogateDF", "idf", "docFreq", "numDocs", "vocabulary", "selectedFeatures",
]


def attributes(model):
    found = {}
    for name in FITTED:
        if isinstance(getattr(type(model), name, None), property):
            try:
                value = getattr(model, name)
                found[name] = table(value) if name == "surrogateDF" else encode(value)
            except Exception:
                pass
    return found


def root_message(error):
    """The message of the first cause that is Spark's own."""
    origin = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if origin is None:
        return str(error)
    message, seen = origin.getMessage(), origin
    while seen.getCause() is not None:
        seen = seen.getCause()
        message = seen.getMessage() or message
    return message


def outputs(df, transformed):
    new = [name for name in transformed.columns if name not in df.columns or name == "id"]
    if len(new) == 1:
        new = transformed.columns
    return table(transformed.select(new))


def run(case, tables):
    name, kind, params, first, second = case
    out = {"name": name, "class": kind, "params": encode_params(params), "table": first, "applied": second or first}
    try:
        operator = getattr(feature, kind)(**params)
        operator._resetUid("uid")
        applied = tables[second or first]
        if hasattr(operator, "fit"):
            model = operator.fit(tables[first])
            out["fitted"] = attributes(model)
            out["toString"] = model._java_obj.toString()
            out["modelUid"] = model.uid
            if name in SAVED:
                save(model, name)
                out["saved"] = name
            operator = model
        out["output"] = outputs(applied, operator.transform(applied))
    except Exception as error:
        out["error"] = root_message(error)
    return out


def encode_params(params):
    def one(value):
        return [one(v) for v in value] if isinstance(value, list) else encode(value)
    return {name: one(value) for name, value in params.items()}


def save(model, name):
    path = os.path.join(MODELS, name)
    model.write().overwrite().save(path)
    for folder, _, files in os.walk(path):
        for file in files:
            if file.endswith(".crc"):
                os.remove(os.path.join(folder, file))


def evaluator_cases():
    for metric, column, weight, bins in itertools.product(
            ["areaUnderROC", "areaUnderPR"], ["rawPrediction", "score"], [None, "weight"], [1000, 0, 7]):
        yield "BinaryClassificationEvaluator", {
            "metricName": metric, "rawPredictionCol": column, "labelCol": "binary", "numBins": bins,
            **({"weightCol": weight} if weight else {})}, "scored"
    for metric, bins in itertools.product(["areaUnderROC", "areaUnderPR"], [1000, 0, 100]):
        yield "BinaryClassificationEvaluator", {
            "metricName": metric, "rawPredictionCol": "score", "labelCol": "binary", "numBins": bins}, "many"
    for metric, weight in itertools.product([
            "f1", "accuracy", "weightedPrecision", "weightedRecall", "weightedTruePositiveRate",
            "weightedFalsePositiveRate", "weightedFMeasure", "truePositiveRateByLabel", "falsePositiveRateByLabel",
            "precisionByLabel", "recallByLabel", "fMeasureByLabel", "logLoss", "hammingLoss"], [None, "weight"]):
        yield "MulticlassClassificationEvaluator", {
            "metricName": metric, "metricLabel": 1.0, "beta": 0.5, **({"weightCol": weight} if weight else {})}, "scored"
    for metric, weight, origin in itertools.product(
            ["rmse", "mse", "r2", "mae", "var"], [None, "weight"], [True, False]):
        yield "RegressionEvaluator", {
            "metricName": metric, "predictionCol": "estimate", "throughOrigin": origin,
            **({"weightCol": weight} if weight else {})}, "scored"


def main():
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1").config("spark.sql.codegen.wholeStage", "false")
        .config("spark.driver.memory", "2g").getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    shutil.rmtree(MODELS, ignore_errors=True)
    tables = frames(spark)
    found = []
    for case in cases():
        found.append(run(case, tables))
        print(case[0], found[-1].get("error", "")[:150], file=sys.stderr, flush=True)
    metrics = []
    for kind, params, name in evaluator_cases():
        value = getattr(evaluation, kind)(**params).evaluate(tables[name])
        metrics.append({"class": kind, "params": params, "table": name, "metric": encode(value)})
    bare = tables["scored"].drop("rawPrediction", "probability", "prediction")
    data = feature.VectorAssembler(inputCols=["score", "estimate"], outputCol="features").transform(bare)
    tables["assembled"] = data
    for name, estimator in [
        ("logistic_binary", LogisticRegression(labelCol="binary", regParam=0.1)),
        ("logistic_multinomial", LogisticRegression(regParam=0.1, elasticNetParam=0.5)),
        ("linear", LinearRegression(regParam=0.1)),
    ]:
        model = estimator.fit(data)
        save(model, name)
        found.append({
            "name": name, "class": type(estimator).__name__, "table": "assembled", "applied": "assembled", "saved": name,
            "modelUid": model.uid, "toString": model._java_obj.toString(), "output": outputs(data, model.transform(data)),
        })
    with open(os.path.join(HERE, "features.json"), "w") as out:
        out.write('{"spark":%s,\n"tables":{\n' % json.dumps(spark.version))
        out.write(",\n".join("%s:%s" % (json.dumps(n), json.dumps(table(df), separators=(",", ":"))) for n, df in tables.items()))
        out.write('\n},"cases":[\n')
        out.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in found))
        out.write('\n],"metrics":[\n')
        out.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in metrics))
        out.write("\n]}\n")


if __name__ == "__main__":
    main()
