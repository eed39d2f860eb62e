"""The feature operators through a stock client: figures by hand, pipelines, and what is saved and loaded."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import (
    DCT,
    IDF,
    Binarizer,
    Bucketizer,
    CountVectorizer,
    CountVectorizerModel,
    ElementwiseProduct,
    FeatureHasher,
    HashingTF,
    IndexToString,
    Interaction,
    MaxAbsScaler,
    MinMaxScaler,
    NGram,
    Normalizer,
    PolynomialExpansion,
    QuantileDiscretizer,
    RegexTokenizer,
    RobustScaler,
    StringIndexer,
    Tokenizer,
    VarianceThresholdSelector,
    VectorSlicer,
)
from pyspark.ml.linalg import DenseVector, SparseVector, Vectors


@pytest.fixture
def vectors(spark):
    rows = [(Vectors.dense([1.0, -2.0, 0.0]),), (Vectors.dense([3.0, 4.0, 0.0]),), (Vectors.sparse(3, [0], [5.0]),)]
    return spark.createDataFrame(rows, ["v"])


@pytest.fixture
def texts(spark):
    return spark.createDataFrame([("Red green RED",), ("green blue",), ("blue",)], ["text"])


def column(frame, name="out"):
    return [row[name] for row in frame.select(name).collect()]


def arrays(frame, name="out"):
    return np.array([value.toArray() for value in column(frame, name)])


def test_scalers_scale(vectors):
    scaled = MinMaxScaler(inputCol="v", outputCol="out").fit(vectors)
    assert scaled.originalMin.toArray().tolist() == [1.0, -2.0, 0.0]
    np.testing.assert_allclose(arrays(scaled.transform(vectors)), [[0, 0, 0.5], [0.5, 1, 0.5], [1, 1 / 3, 0.5]])
    model = MaxAbsScaler(inputCol="v", outputCol="out").fit(vectors)
    np.testing.assert_allclose(arrays(model.transform(vectors)), [[0.2, -0.5, 0], [0.6, 1, 0], [1, 0, 0]])
    model = RobustScaler(inputCol="v", outputCol="out").fit(vectors)
    np.testing.assert_allclose(arrays(model.transform(vectors)), [[0.25, -1 / 3, 0], [0.75, 2 / 3, 0], [1.25, 0, 0]])


def test_vectors_are_changed_element_by_element(vectors):
    weighted = ElementwiseProduct(inputCol="v", outputCol="out", scalingVec=Vectors.dense([2.0, 0.5, 1.0]))
    np.testing.assert_allclose(arrays(weighted.transform(vectors)), [[2, -1, 0], [6, 2, 0], [10, 0, 0]])
    np.testing.assert_allclose(arrays(Normalizer(inputCol="v", outputCol="out", p=1.0).transform(vectors))[0],
                               [1 / 3, -2 / 3, 0])
    binary = Binarizer(inputCol="v", outputCol="out", threshold=2.5).transform(vectors)
    np.testing.assert_allclose(arrays(binary), [[0, 0, 0], [1, 1, 0], [1, 0, 0]])
    sliced = VectorSlicer(inputCol="v", outputCol="out", indices=[1]).transform(vectors)
    assert column(sliced) == [DenseVector([-2.0]), DenseVector([4.0]), SparseVector(1, [], [])]
    expanded = PolynomialExpansion(inputCol="v", outputCol="out", degree=2).transform(vectors)
    np.testing.assert_allclose(arrays(expanded)[0], [1, 1, -2, -2, 4, 0, 0, 0, 0])
    back = DCT(inputCol="out", outputCol="back", inverse=True)
    forth = DCT(inputCol="v", outputCol="out").transform(vectors)
    np.testing.assert_allclose(arrays(back.transform(forth), "back"), arrays(vectors, "v"), atol=1e-12)
    varied = VarianceThresholdSelector(featuresCol="v", outputCol="out").fit(vectors)
    assert varied.selectedFeatures == [0, 1]


def test_numbers_are_put_into_buckets(spark):
    frame = spark.createDataFrame([(float(i),) for i in range(1, 9)], ["x"])
    split = Bucketizer(splits=[-float("inf"), 3.0, 6.0, float("inf")], inputCol="x", outputCol="out")
    assert column(split.transform(frame)) == [0, 0, 1, 1, 1, 2, 2, 2]
    quarters = QuantileDiscretizer(numBuckets=4, inputCol="x", outputCol="out").fit(frame)
    assert column(quarters.transform(frame)) == [0, 1, 1, 2, 2, 3, 3, 3]


def test_words_are_counted(texts):
    words = Tokenizer(inputCol="text", outputCol="words").transform(texts)
    assert column(words, "words")[0] == ["red", "green", "red"]
    counted = CountVectorizer(inputCol="words", outputCol="out").fit(words)
    assert sorted(counted.vocabulary) == ["blue", "green", "red"]
    given = CountVectorizerModel.from_vocabulary(["red", "blue"], inputCol="words", outputCol="out")
    assert column(given.transform(words)) == [SparseVector(2, {0: 2.0}), SparseVector(2, {1: 1.0}), SparseVector(2, {1: 1.0})]
    idf = IDF(inputCol="out", outputCol="weighted").fit(given.transform(words))
    np.testing.assert_allclose(idf.idf.toArray(), [np.log(4 / 2), np.log(4 / 3)])
    assert idf.numDocs == 3
    pairs = NGram(n=2, inputCol="words", outputCol="out").transform(words)
    assert column(pairs) == [["red green", "green red"], ["green blue"], []]
    split = RegexTokenizer(inputCol="text", outputCol="out", pattern="e+", toLowercase=False).transform(texts)
    assert column(split)[1] == ["gr", "n blu"]
    hashed = column(HashingTF(inputCol="words", outputCol="out", numFeatures=1 << 18).transform(words))
    assert hashed[0] == SparseVector(1 << 18, {10564: 2.0, 159799: 1.0})  # as in Spark 4.3


def test_categories_go_to_numbers_and_back(spark):
    frame = spark.createDataFrame([("a", 1.0, True), ("b", 2.0, False), ("b", 3.0, True)], ["c", "x", "flag"])
    indexed = StringIndexer(inputCol="c", outputCol="i").fit(frame).transform(frame)
    assert column(IndexToString(inputCol="i", outputCol="out").transform(indexed)) == ["a", "b", "b"]
    hashed = FeatureHasher(inputCols=["c", "x", "flag"], outputCol="out").transform(frame)
    assert all(len(value.values) == 3 for value in column(hashed))
    crossed = Interaction(inputCols=["x", "i"], outputCol="out").transform(indexed)
    assert [value.toArray().tolist() for value in column(crossed)] == [[0.0, 1.0], [2.0, 0.0], [3.0, 0.0]]


def test_a_pipeline_of_features_is_saved_and_loaded(texts, tmp_path):
    pipeline = Pipeline(stages=[
        Tokenizer(inputCol="text", outputCol="words"),
        CountVectorizer(inputCol="words", outputCol="counts"),
        IDF(inputCol="counts", outputCol="weights"),
        MaxAbsScaler(inputCol="weights", outputCol="out"),
    ])
    model = pipeline.fit(texts)
    expected = column(model.transform(texts))
    model.write().overwrite().save(str(tmp_path / "model"))
    again = PipelineModel.load(str(tmp_path / "model"))
    assert column(again.transform(texts)) == expected
