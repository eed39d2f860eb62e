"""TRAIN MODEL and the model registry through `spark.sql` of a stock client."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import data
from server import Server

TRAIN = "TRAIN MODEL {name} USING logistic_regression LABEL churned FEATURES(age, city) AS SELECT * FROM t"


def customers(rows: int = 1000, seed: int = 7) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    age = random.uniform(18, 80, rows).round(1)
    city = random.choice(["berlin", "lima", "oslo"], rows)
    score = (age - 45) / 10 + np.where(city == "lima", 1.5, -0.5) + random.logistic(size=rows)
    return pd.DataFrame({"id": np.arange(rows), "age": age, "city": city, "churned": np.where(score > 0, "y", "n")})


@pytest.fixture
def named(spark):
    """A session whose schema has no models yet, with the table `t`."""
    schema = f"s{time.monotonic_ns()}"
    spark.sql(f"CREATE DATABASE {schema}")
    spark.sql(f"USE {schema}")
    spark.createDataFrame(data.as_objects(customers())).createOrReplaceTempView("t")
    return spark


def error_of(run) -> PySparkException:
    with pytest.raises(PySparkException) as caught:
        run()
    return caught.value


def check_error(spark, text: str, condition: str, *words: str, args=None) -> PySparkException:
    error = error_of(lambda: spark.sql(text, args=args).collect() if args else spark.sql(text).collect())
    found = error.getErrorClass() if hasattr(error, "getErrorClass") else error.getCondition()
    assert found == condition, f"{text}\n{error}"
    for word in words:
        assert word in str(error), f"{word!r} is not in {error}"
    return error


def trainings(spark, name: str) -> list:
    return spark.sql(f"SHOW TRAININGS IN MODEL {name}").collect()


def test_1_a_statement_trains_once(named):
    frame = named.sql(TRAIN.format(name="m"))
    frame.show()
    row = frame.collect()[0]
    assert frame.count() == 1 and len(trainings(named, "m")) == 1
    assert (row.version, row.status, row.is_default, row.estimator) == (1, "SUCCEEDED", True, "logistic_regression")
    assert (row.task, row.label, row.features) == ("classification", "churned", ["age", "city"])
    assert (row.train_rows, row.validation_rows, row.test_rows, row.skipped_rows) == (800, 200, 0, 0)
    assert row.metrics["auc"] > 0.8 and row.seed == 42 and row.workers == 2
    assert frame.columns == [
        "training_id", "model", "version", "status", "is_default", "estimator", "task", "label", "features",
        "train_rows", "validation_rows", "test_rows", "skipped_rows", "metrics", "best_params", "seed", "workers",
        "started_at", "duration_ms", "warnings",
    ]  # fmt: skip


def test_2_unseen_and_missing_categories_are_answered(named):
    named.sql(TRAIN.format(name="m"))
    query = "SELECT prediction FROM ml_predict(MODEL m, TABLE(SELECT 30.0 age, 'unseen' city UNION ALL SELECT 30.0, NULL))"
    rows = named.sql(query).collect()
    assert len(rows) == 2 and all(row.prediction in ("y", "n") for row in rows)


def test_3_parameters_are_bound(named):
    text = (
        "TRAIN MODEL IDENTIFIER(:m) USING logistic_regression LABEL churned FEATURES(age, city) "
        "OPTIONS(max_iter = :n, reg_param 1e-3, tol = 0.0001) AS SELECT * FROM IDENTIFIER(:t)"
    )
    error = error_of(lambda: named.sql(text, args={"m": "bound", "t": "t"}).collect())
    assert error.getErrorClass() == "UNBOUND_SQL_PARAMETER" and "`n`" in str(error)
    assert named.sql(text, args={"m": "bound", "n": 5, "t": "t"}).first().status == "SUCCEEDED"
    created = named.sql("SHOW CREATE MODEL bound").first()[0]
    assert "IDENTIFIER('bound')" in created and "max_iter = 5" in created and ":" not in created
    assert named.sql("TRAIN MODEL p USING logistic_regression LABEL churned FEATURES(age) WITH ? WORKERS "
                     "AS SELECT * FROM t", args=[1]).first().workers == 1


def test_4_names_keep_their_spelling_and_match_in_any(named):
    frame = customers().rename(columns={"age": "Pclass_1", "city": "version", "churned": "label"})
    named.createDataFrame(data.as_objects(frame)).createOrReplaceTempView("train")
    named.sql(
        "TRAIN MODEL model USING logistic_regression LABEL label FEATURES(Pclass_1, version) "
        "AS SELECT label, Pclass_1, version FROM train"
    )
    schema = named.catalog.currentDatabase()
    for name in ("'model'", f"'{schema}.MODEL'", f"'`{schema}`.`model`@1'", "MODEL model VERSION 1", "MODEL Model"):
        query = f"SELECT * FROM ml_predict({name}, TABLE(SELECT Pclass_1 AS PCLASS_1, version FROM train))"
        result = named.sql(query)
        assert result.columns == ["PCLASS_1", "version", "prediction", "probability"]
        assert result.count() == 1000
    assert {row.feature for row in named.sql("SELECT feature FROM ml_weights('model')").collect()} == {
        "Pclass_1", "version", "__intercept__",
    }  # fmt: skip


def test_5_a_replacement_is_atomic_and_a_cancelled_one_changes_nothing(named, server):
    named.sql(TRAIN.format(name="m"))
    predictions = "SELECT sum(probability[1].prob) AS s FROM ml_predict('m', TABLE t)"
    before = named.sql(predictions).first().s
    other = SparkSession.builder.remote(server.remote).create()
    other.sql(f"USE {named.catalog.currentDatabase()}")
    named.createDataFrame(data.as_objects(customers())).createOrReplaceGlobalTempView("t_shared")
    seen, failures, stop = [], [], threading.Event()

    def predict():
        while not stop.is_set():
            try:
                seen.append(other.sql(predictions.replace("TABLE t", "TABLE global_temp.t_shared")).first().s)
            except Exception as error:
                failures.append(error)

    thread = threading.Thread(target=predict, daemon=True)
    thread.start()
    replace = TRAIN.format(name="m").replace("TRAIN", "TRAIN OR REPLACE").replace(" AS ", " OPTIONS(reg_param = 1.0) AS ")
    row = named.sql(replace).first()
    time.sleep(0.3)
    stop.set()
    thread.join()
    other.stop()
    assert row.version == 2 and not failures
    values = [round(value, 6) for value in seen]
    assert values[0] == round(before, 6) and len(set(values)) <= 2
    assert sum(left != right for left, right in zip(values, values[1:])) <= 1

    named.range(400_000).selectExpr(*[f"rand({n}) AS x{n}" for n in range(20)], "CAST(rand(99) > 0.5 AS INT) AS y") \
        .createOrReplaceTempView("large")
    errors = []

    def long_training():
        try:
            named.sql("TRAIN OR REPLACE MODEL m USING logistic_regression LABEL y OPTIONS(max_iter = 1000, tol = 0.0) "
                      "AS SELECT * FROM large")
        except PySparkException as error:
            errors.append(error)

    thread = threading.Thread(target=long_training, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not any(row.status == "RUNNING" for row in trainings(named, "m")):
        time.sleep(0.05)
    time.sleep(0.5)
    named.interruptAll()
    thread.join(20)
    assert errors and "OPERATION_CANCELED" in str(errors[0])
    versions = named.sql("SHOW VERSIONS IN MODEL m").collect()
    assert [(row.version, row.is_default) for row in versions] == [(1, False), (2, True)]
    server.wait_for_ranks(0)


def test_6_parts_do_not_depend_on_order_or_partitions(named):
    frame = named.createDataFrame(data.as_objects(customers()))
    results = []
    for name, partitions in (("one", 1), ("many", 64)):
        frame.orderBy(F.rand(partitions)).repartition(partitions).createOrReplaceTempView("shuffled")
        text = TRAIN.format(name=name).replace(" AS SELECT * FROM t", " SPLIT RANDOM(0.7, 0.2, 0.1) SEED 7 AS SELECT * FROM shuffled")
        row = named.sql(text).first()
        information = {r.col_name: r.data_type for r in named.sql(f"DESCRIBE MODEL EXTENDED {name}").collect()}
        results.append((row.train_rows, row.validation_rows, row.test_rows, information["Fingerprint"]))
        evaluated = named.sql(f"SELECT metric, value FROM ml_evaluate(MODEL {name}) WHERE class IS NULL AND split = 'test'")
        results[-1] += ({r.metric: r.value for r in evaluated.collect()},)
    assert results[0][:4] == results[1][:4] == (700, 200, 100, results[0][3])
    assert results[0][4] == pytest.approx(results[1][4], abs=1e-6)
    named.sql(TRAIN.format(name="limited").replace("FROM t", "FROM (SELECT * FROM t LIMIT 500)"))
    assert named.sql("SELECT * FROM ml_predict('limited', TABLE(SELECT * FROM t LIMIT 500))").count() == 500


def test_7_a_search_shows_its_trials(named):
    text = (
        "TRAIN MODEL tuned USING logistic_regression LABEL churned FEATURES(age, city) "
        "TUNE BY RANDOM(reg_param BETWEEN 1e-4 AND 1 LOG) MAXIMIZE auc TRIALS 9 SEED 3 EARLY STOP ASHA(min_iter 2) "
        "AS SELECT * FROM t"
    )
    row = named.sql(text).first()
    assert set(row.best_params) == {"reg_param"}
    trials = named.sql("SELECT * FROM ml_trial_info('tuned') ORDER BY trial_id").collect()
    assert len(trials) == 9 and sum(trial.is_optimal for trial in trials) == 1
    assert any(trial.stopped_early for trial in trials)
    best = next(trial for trial in trials if trial.is_optimal)
    assert best.params == row.best_params and not best.stopped_early
    assert best.value == pytest.approx(row.metrics["auc"])
    finished = [trial.value for trial in trials if trial.status == "SUCCEEDED"]
    assert best.value == max(finished)
    again = named.sql(text.replace("MODEL tuned", "MODEL again")).first()
    assert again.best_params == row.best_params and again.metrics == row.metrics
    named.sql(TRAIN.format(name="plain"))
    for function in ("ml_training_info", "ml_trial_info", "ml_weights", "ml_feature_info", "ml_confusion_matrix"):
        left, right = (named.sql(f"SELECT * FROM {function}('{name}')") for name in ("tuned", "plain"))
        assert left.dtypes == right.dtypes, function
        assert left.count() > 0, function


def test_7_folds_and_grids(named):
    row = named.sql(
        "TRAIN MODEL folded USING logistic_regression LABEL churned FEATURES(age, city) "
        "TUNE BY GRID(reg_param IN (0.001, 0.1, 10), fit_intercept IN (true, false)) FOLDS 3 MINIMIZE log_loss "
        "AS SELECT * FROM t"
    ).first()
    trials = named.sql("SELECT * FROM ml_trial_info('folded')").collect()
    assert len(trials) == 6 and all(len(trial.fold_values) == 3 for trial in trials)
    assert min(trials, key=lambda trial: trial.value).params == row.best_params
    assert len(named.sql("SELECT DISTINCT trial_id, fold FROM ml_training_info('folded') WHERE fold IS NOT NULL").collect()) == 18


def test_8_extra_columns_pass_and_no_excluded_one_is_asked_for(named):
    named.sql(TRAIN.format(name="m"))
    result = named.sql("SELECT * FROM ml_predict('m', TABLE(SELECT id, city, age FROM t))")
    assert result.columns == ["id", "city", "age", "prediction", "probability"]
    rows = result.collect()
    assert sorted(row.id for row in rows) == list(range(1000))
    assert all(abs(sum(p.prob for p in row.probability) - 1) < 1e-9 for row in rows[:10])
    assert [p.label for p in rows[0].probability] == ["n", "y"]
    named.sql("TRAIN MODEL a USING logistic_regression LABEL churned FEATURES(age) AS SELECT * FROM t")
    assert named.sql("SELECT * FROM ml_predict('a', TABLE(SELECT age FROM t))").count() == 1000


def test_9_columns_that_do_not_exist_are_pointed_at(named):
    text = "TRAIN MODEL m USING logistic_regression LABEL churnd AS SELECT * FROM t"
    error = check_error(named, text, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "`churned`", "== SQL ==")
    assert error.getSqlState() == "42703"
    assert "-" * text.index("churnd") + "^" * len("churnd") + "\n" in str(error)
    check_error(named, "TRAIN MODEL m USING logistic_regression LABEL churned FEATURES(age, not_exist) AS SELECT * FROM t",
                "UNRESOLVED_COLUMN.WITH_SUGGESTION", "`not_exist`")  # fmt: skip
    assert named.sql("SHOW TRAININGS IN MODEL m").count() == 0


def test_10_options_are_checked(named):
    train = "TRAIN MODEL m USING {} LABEL churned FEATURES(age) {} AS SELECT * FROM t"
    lr = "logistic_regression"
    check_error(named, train.format("logistic_regresion", ""), "ESTIMATOR_NOT_FOUND", "`logistic_regression`")
    check_error(named, train.format(lr, "OPTIONS(max_iter = 'x')"), "INVALID_MODEL_OPTION.TYPE", '"INT"', '"STRING"')
    check_error(named, train.format(lr, "OPTIONS(max_itr = 5)"), "INVALID_MODEL_OPTION.UNKNOWN", "`max_iter`")
    check_error(named, train.format(lr, "OPTIONS(reg_param = -1)"), "INVALID_MODEL_OPTION.RANGE", "`reg_param`")
    check_error(named, train.format(lr, "OPTIONS(max_iter = id + 1)"), "INVALID_MODEL_OPTION.NOT_FOLDABLE", "id + 1")
    check_error(named, train.format(lr, "OPTIONS(max_iter)"), "INVALID_MODEL_OPTION.NO_VALUE")
    check_error(named, train.format(lr, "OPTIONS(max_iter = 1, max_iter = 2)"), "DUPLICATE_KEY")
    check_error(named, train.format(lr, "OPTIONS(max_iter = 1) OPTIONS(tol = 2)"), "DUPLICATE_CLAUSES", "OPTIONS")
    check_error(named, train.format(lr, "OPTIONS(label_col = 'age')"), "INVALID_MODEL_OPTION.BESIDE_CLAUSE")
    check_error(named, train.format(lr, "WITH 64 WORKERS"), "INSUFFICIENT_TRAINING_RESOURCES", "64", "at most 4")
    check_error(named, train.format(lr, "SPLIT RANDOM(0.8, 0.3)"), "INVALID_MODEL_SPLIT.FRACTIONS", "(0.8, 0.3)")
    check_error(named, train.format(lr, "SPLIT RANDOM(0.8, 0.2) VALIDATE ON (SELECT * FROM t)"), "INVALID_MODEL_SPLIT.CONFLICT")
    check_error(named, train.format(lr, "SPLIT BY COLUMN city"), "INVALID_MODEL_SPLIT.VALUE")
    check_error(named, "TRAIN OR REPLACE MODEL IF NOT EXISTS m USING x AS TABLE t",
                "INVALID_SQL_SYNTAX.TRAIN_MODEL_WITH_IF_NOT_EXISTS_AND_REPLACE")  # fmt: skip
    check_error(named, "TRAIN MODEL my-model USING x AS TABLE t", "INVALID_IDENTIFIER", "`my-model`")
    check_error(named, "TRAIN MODEL m USING logistic_regression LABEL churned SELECT * FROM t", "PARSE_SYNTAX_ERROR", "^^^")
    tune = train.format(lr, "TUNE BY {}")
    for clause, condition in {
        "GRID(reg_param BETWEEN 0 AND 1)": "RANGE_IN_GRID",
        "RANDOM(reg_param IN (1)) MAXIMIZE rmse": "METRIC",
        "RANDOM(reg_param IN (1)) MINIMIZE auc": "DIRECTION",
        "GRID(reg_param IN (1)) TRIALS 0": "VALUE",
        "RANDOM(reg_param BETWEEN 0 AND 1) TRIALS 5000": "TOO_MANY_TRIALS",
        "RANDOM(reg_param BETWEEN 1 AND 0)": "RANGE",
    }.items():
        check_error(named, tune.format(clause), f"INVALID_MODEL_TUNING.{condition}")
    check_error(named, train.format(lr, "OPTIONS(reg_param = 1) TUNE BY GRID(reg_param IN (1, 2))"),
                "INVALID_MODEL_TUNING.FIXED_AND_TUNED")  # fmt: skip
    check_error(named, train.format(lr, "WARM START FROM MODEL m"), "UNSUPPORTED_MODEL_OPERATION")
    check_error(named, "TRAIN MODEL m USING logistic_regression AS SELECT age, churned FROM t", "MODEL_LABEL_MISSING")


def test_11_missing_values(named):
    frame = customers().astype({"churned": object, "age": object})
    frame.loc[frame.index[:3], "churned"] = None
    named.createDataFrame(frame.astype({"age": float})).createOrReplaceTempView("labels")
    check_error(named, TRAIN.format(name="m").replace("FROM t", "FROM labels"), "INVALID_TRAINING_DATA.NULL_LABEL",
                "3 of 1000 rows", "null_label = 'skip'")  # fmt: skip
    row = named.sql(TRAIN.format(name="m").replace(" AS ", " OPTIONS(null_label = 'skip') AS ").replace("FROM t", "FROM labels")).first()
    assert row.skipped_rows == 3 and row.train_rows + row.validation_rows == 997
    assert [w.code for w in row.warnings] == ["ROWS_SKIPPED"]

    named.sql("SELECT id, IF(id < 5, NULL, age) AS age, city, churned FROM t").createOrReplaceTempView("ages")
    ages = TRAIN.replace("FROM t", "FROM ages")
    option = " OPTIONS(handle_invalid = '{}') NO SPLIT AS "
    error = check_error(named, ages.format(name="e").replace(" AS ", option.format("error")),
                        "INVALID_TRAINING_DATA.NULL_FEATURE", "`age` in 5 rows", "handle_invalid = 'keep'")  # fmt: skip
    assert error.getSqlState() == "22000"
    row = named.sql(ages.format(name="k").replace(" AS ", " NO SPLIT AS ")).first()
    assert "MISSING_VALUES" in [w.code for w in row.warnings] and "5 of 1000" in row.warnings[0].message
    missing = "ml_predict('{}', TABLE(SELECT CAST(NULL AS DOUBLE) AS age, 'oslo' AS city) {})"
    assert named.sql(f"SELECT * FROM {missing.format('k', '')}").first().prediction in ("y", "n")
    row = named.sql(ages.format(name="s").replace(" AS ", option.format("skip"))).first()
    assert row.skipped_rows == 5 and row.train_rows == 995
    answer = named.sql(f"SELECT * FROM {missing.format('s', '')}").first()
    assert answer.prediction is None and answer.probability is None
    assert named.sql(f"SELECT * FROM {missing.format('s', ', on_invalid => ' + repr('skip'))}").count() == 0
    with pytest.raises(PySparkException, match="age is missing"):
        named.sql(f"SELECT * FROM {missing.format('s', ', on_invalid => ' + repr('error'))}").collect()


def test_12_inputs_that_do_not_fit_are_named(named):
    named.sql(TRAIN.format(name="m"))
    check_error(named, "SELECT * FROM ml_predict(MODEL m, TABLE(SELECT age FROM t))", "MODEL_FEATURE_NOT_FOUND", "[`city`]", "[`age`]")
    check_error(named, "SELECT * FROM ml_predict(MODEL m, TABLE(SELECT 'x' age, city FROM t))",
                "MODEL_DATATYPE_MISMATCH.INPUT", "`age`", "STRING")  # fmt: skip
    check_error(named, "SELECT * FROM ml_predict(MODEL m, TABLE(SELECT *, 1 AS prediction FROM t))", "COLUMN_ALREADY_EXISTS")
    assert "other" in named.sql("SELECT * FROM ml_predict(MODEL m, TABLE(SELECT *, 1 AS prediction FROM t), prediction_col => 'other')").columns
    check_error(named, "SELECT * FROM ml_predict(MODEL m, TABLE t, treshold => 1)", "UNRECOGNIZED_PARAMETER_NAME", "`threshold`")
    check_error(named, "SELECT * FROM ml_predict(MODEL m)", "REQUIRED_PARAMETER_NOT_FOUND", "`input`")
    check_error(named, "SELECT * FROM ml_predict('nobody', TABLE t)", "MODEL_NOT_FOUND")
    check_error(named, "SELECT * FROM ml_predict('m@9', TABLE t)", "MODEL_VERSION_NOT_FOUND", "[1]")
    check_error(named, "SELECT * FROM ml_evaluate(MODEL m, TABLE(SELECT age, city FROM t))", "UNRESOLVED_COLUMN.WITH_SUGGESTION")


def test_13_types_that_cannot_be_are_named_and_the_server_lives(named):
    check_error(named, "TRAIN MODEL m USING linear_regression LABEL city FEATURES(age) AS SELECT * FROM t",
                "MODEL_DATATYPE_MISMATCH.LABEL", "`city`")  # fmt: skip
    check_error(named, "TRAIN MODEL m USING logistic_regression LABEL churned AS SELECT age, churned, current_timestamp() AS ts FROM t",
                "MODEL_DATATYPE_MISMATCH.FEATURE", "`ts`", "EXCEPT (`ts`)")  # fmt: skip
    check_error(named, "TRAIN MODEL m USING logistic_regression LABEL churned AS SELECT t.*, t.id FROM t", "COLUMN_ALREADY_EXISTS", "`id`")
    assert named.range(3).count() == 3


def test_14_small_data(named):
    check_error(named, TRAIN.format(name="m").replace("FROM t", "FROM (SELECT * FROM t LIMIT 5)"),
                "INVALID_TRAINING_DATA.SPLIT_TOO_SMALL", "5 rows", "NO SPLIT")  # fmt: skip
    check_error(named, TRAIN.format(name="m").replace("FROM t", "FROM t WHERE churned = 'n'"), "INVALID_TRAINING_DATA.SINGLE_CLASS", "['n']")
    ten = "(SELECT CAST(id AS DOUBLE) AS age, 'x' AS city, IF(id % 2 = 0, 'y', 'n') AS churned FROM range(10))"
    row = named.sql(TRAIN.format(name="m").replace("FROM t", f"FROM {ten}")).first()
    assert (row.train_rows, row.validation_rows) == (8, 2)


def test_15_names_are_reserved_and_a_dead_server_frees_them():
    server = Server(slots=2, warm_workers=0)
    try:
        spark = SparkSession.builder.remote(server.remote).create()
        columns = [f"rand({n}) AS x{n}" for n in range(20)]
        spark.range(400_000).selectExpr(*columns, "CAST(rand(99) > 0.5 AS INT) AS y").write.saveAsTable("large")
        long = "TRAIN MODEL m USING logistic_regression LABEL y OPTIONS(max_iter = 100000, tol = 0.0) NOWAIT AS SELECT * FROM large"
        row = spark.sql(long).first()
        assert row.status == "RUNNING" and row.version is None
        check_error(spark, "SELECT * FROM ml_predict('m', TABLE large)", "MODEL_TRAINING_IN_PROGRESS", row.training_id)
        check_error(spark, long.replace("MODEL m", "MODEL IF NOT EXISTS m"), "MODEL_TRAINING_IN_PROGRESS", row.training_id)
        assert spark.sql("SHOW MODELS").count() == 0
        server.stop(signal.SIGKILL)
        server.start()
        # what is loaded later without naming a session must not go to a server that is gone
        spark.stop()
        spark = SparkSession.builder.remote(server.remote).create()
        found = spark.sql("SHOW TRAININGS").collect()
        assert [(r.training_id, r.status, r.error_class) for r in found] == [(row.training_id, "FAILED", "TRAINING_LOST")]
        short = "TRAIN MODEL m USING logistic_regression LABEL y FEATURES(x0, x1) AS SELECT * FROM large LIMIT 200"
        assert spark.sql(short).first().version == 1
        check_error(spark, short, "MODEL_ALREADY_EXISTS")
        skipped = spark.sql(short.replace("MODEL m", "MODEL IF NOT EXISTS m")).first()
        assert (skipped.status, skipped.version, skipped.train_rows) == ("SKIPPED", 1, 160)
        assert spark.sql(short.replace("TRAIN", "TRAIN OR REPLACE")).first().version == 2
        versions = spark.sql("SHOW VERSIONS IN MODEL m").collect()
        assert [(r.version, r.is_default) for r in versions] == [(1, False), (2, True)]
        spark.sql("DROP MODEL m")
        check_error(spark, "SELECT * FROM ml_predict('m', TABLE large)", "MODEL_NOT_FOUND")
        check_error(spark, "DROP MODEL m", "MODEL_NOT_FOUND")
        spark.sql("DROP MODEL IF EXISTS m")
        row = spark.sql(long.replace("MODEL m", "MODEL n")).first()
        spark.sql(f"CANCEL TRAINING '{row.training_id}'")
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            status = spark.sql("SHOW TRAININGS IN MODEL n").first().status
            if status != "RUNNING":
                break
            time.sleep(0.1)
        assert status == "CANCELLED"
        check_error(spark, "CANCEL TRAINING 'nobody'", "TRAINING_NOT_FOUND")
        check_error(spark, "SELECT * FROM ml_predict('n', TABLE large)", "MODEL_NOT_FOUND")
        spark.stop()
    finally:
        server.stop()


def test_versions_aliases_tags_and_names(named):
    named.sql(TRAIN.format(name="m").replace(" AS ", " ALIAS 'champion' TAGS(team = 'x') COMMENT 'first' AS "))
    row = named.sql(TRAIN.format(name="m").replace("TRAIN", "TRAIN OR REPLACE").replace(" AS ", " KEEP DEFAULT AS ")).first()
    assert (row.version, row.is_default) == (2, False)
    shown = named.sql("SHOW MODELS LIKE 'm*'").first()
    assert (shown.model_name, shown.default_version, shown.versions, shown.comment) == ("m", 1, 2, "first")
    assert shown.aliases == {"champion": 1} and shown.estimator == "logistic_regression"
    named.sql("ALTER MODEL m SET ALIAS 'challenger' TO VERSION 2")
    named.sql("ALTER MODEL m SET DEFAULT VERSION 'challenger'")
    named.sql("COMMENT ON MODEL m IS 'second'")
    named.sql("ALTER MODEL m SET TAGS (stage = 'prod')")
    named.sql("ALTER MODEL m UNSET TAGS (team)")
    information = {r.col_name: r.data_type for r in named.sql("DESCRIBE MODEL EXTENDED m VERSION 2").collect()}
    assert information["Tags"] == "stage=prod" and information["Is Default"] == "true"
    assert information["Positive Label"] == "y" and information["age"] == "double" and information["# Output"] == ""
    check_error(named, "DROP MODEL m VERSION 2", "MODEL_VERSION_IN_USE")
    for alias in ("7", "default", "a@b"):
        check_error(named, f"ALTER MODEL m SET ALIAS '{alias}' TO VERSION 1", "INVALID_MODEL_ALIAS")
    check_error(named, "DESCRIBE MODEL m VERSION 9", "MODEL_VERSION_NOT_FOUND", "[1, 2]", "`challenger`")
    named.sql("DROP MODEL m VERSION 1")
    named.sql(TRAIN.format(name="taken"))
    check_error(named, "ALTER MODEL m RENAME TO taken", "MODEL_ALREADY_EXISTS")
    check_error(named, "ALTER MODEL m RENAME TO default.m", "UNSUPPORTED_MODEL_OPERATION")
    named.sql("ALTER MODEL m RENAME TO n")
    assert [r.model_name for r in named.sql("SHOW MODELS").collect()] == ["n", "taken"]
    assert named.sql("SELECT * FROM ml_predict('n@challenger', TABLE t)").count() == 1000
    check_error(named, "SHOW MODELS IN nowhere", "SCHEMA_NOT_FOUND")
    check_error(named, "GRANT EXECUTE ON MODEL n TO analyst", "FEATURE_NOT_ENABLED")
    plan = named.sql("EXPLAIN TRAIN MODEL x USING logistic_regression LABEL churned AS SELECT * FROM t").first().plan
    assert "version 1" in plan and "SPLIT RANDOM(0.8, 0.2) SEED 42" in plan
    assert named.sql("SHOW TRAININGS IN MODEL x").count() == 0


def test_the_weights_are_those_of_scikit_learn(named):
    from sklearn.linear_model import LogisticRegression as Reference

    named.sql(TRAIN.format(name="m").replace(" AS ", " NO SPLIT OPTIONS(reg_param = 0.01, standardization = false, tol = 1e-10, max_iter = 500) AS "))
    weights = {(r.feature, r.category): r.weight for r in named.sql("SELECT * FROM ml_weights('m')").collect()}
    frame = customers()
    cities = sorted(frame.city.unique())
    inputs = np.column_stack([frame.age] + [(frame.city == city).astype(float) for city in cities])
    reference = Reference(C=1 / (0.01 * len(frame)), tol=1e-10, max_iter=10_000).fit(inputs, frame.churned)
    expected = dict(zip([("age", None)] + [("city", city) for city in cities], reference.coef_[0]))
    for key, value in expected.items():
        assert weights[key] == pytest.approx(value, abs=1e-4), key
    assert weights["__intercept__", None] == pytest.approx(reference.intercept_[0], abs=1e-3)
    scored = named.sql("SELECT id, probability FROM ml_predict('m', TABLE t) ORDER BY id").toPandas()
    probabilities = scored.probability.map(lambda p: p[1]["prob"]).to_numpy()
    assert probabilities == pytest.approx(reference.predict_proba(inputs)[:, 1], abs=1e-4)
    evaluated = {r.metric: r.value for r in named.sql("SELECT * FROM ml_evaluate('m', TABLE t) WHERE class IS NULL").collect()}
    from sklearn import metrics

    predicted = np.where(probabilities > 0.5, "y", "n")
    assert evaluated["auc"] == pytest.approx(metrics.roc_auc_score(frame.churned == "y", probabilities), abs=1e-9)
    assert evaluated["accuracy"] == pytest.approx(metrics.accuracy_score(frame.churned, predicted))
    assert evaluated["f1"] == pytest.approx(metrics.f1_score(frame.churned, predicted, pos_label="y"))
    assert evaluated["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(frame.churned, predicted))
    assert evaluated["log_loss"] == pytest.approx(metrics.log_loss(frame.churned, probabilities), abs=1e-9)
    moved = {r.metric: r.value for r in named.sql("SELECT * FROM ml_evaluate('m', TABLE t, threshold => 0.9)").collect() if r["class"] is None}
    assert moved["recall"] < evaluated["recall"]


def test_regression_weights_classes_and_penguins(spark, named):
    frame = data.penguins()
    named.createDataFrame(frame).createOrReplaceTempView("penguins")
    row = named.sql(
        "TRAIN MODEL species USING logistic_regression LABEL species OPTIONS(class_weight = 'balanced', reg_param = 0.001) "
        "SPLIT RANDOM(0.8, 0.2) STRATIFIED AS SELECT * EXCEPT (year) FROM penguins"
    ).first()
    assert row.metrics["accuracy"] > 0.95 and "auc" not in row.metrics
    assert {r["class"] for r in named.sql("SELECT class FROM ml_evaluate('species') WHERE class IS NOT NULL").collect()} == {
        "Adelie", "Chinstrap", "Gentoo",
    }  # fmt: skip
    row = named.sql(
        "TRAIN MODEL mass USING linear_regression LABEL body_mass_g "
        "AS SELECT * EXCEPT (year) FROM penguins WHERE body_mass_g IS NOT NULL"
    ).first()
    assert row.metrics["r2"] > 0.8
    assert named.sql("SELECT * FROM ml_predict('mass', TABLE penguins)").count() == len(frame)
    matrix = named.sql("SELECT sum(rows) AS n FROM ml_confusion_matrix('species')").first().n
    assert matrix == 69
    check_error(named, "SELECT * FROM ml_confusion_matrix('mass')", "UNSUPPORTED_MODEL_OPERATION")
    check_error(named, "TRAIN MODEL x USING logistic_regression LABEL species OPTIONS(class_weight = map('Emu', 2.0)) "
                       "AS SELECT * EXCEPT (year) FROM penguins", "INVALID_TRAINING_DATA.UNKNOWN_CLASS", "Emu")  # fmt: skip


def test_transform_is_fitted_kept_and_replayed(named):
    named.sql("SELECT id, IF(id < 50, NULL, age) AS age, city, id % 7 AS day, churned FROM t").createOrReplaceTempView("raw")
    text = (
        "TRAIN MODEL m USING logistic_regression LABEL churned SPLIT RANDOM(0.8, 0.2) SEED 3 TRANSFORM("
        "imputer(age, 'median') AS age, standard_scaler(imputer(age), with_mean => true) AS scaled, one_hot_encoder(city), "
        "one_hot_encoder(day) AS weekday, log1p(id) AS lid, age > 40 AS older) AS SELECT * FROM raw"
    )
    row = named.sql(text).first()
    assert row.features == ["age", "scaled", "city", "weekday", "lid", "older"]
    weights = {(r.feature, r.category) for r in named.sql("SELECT * FROM ml_weights('m')").collect()}
    assert {("age", None), ("scaled[0]", None), ("city", "lima"), ("weekday", "3"), ("lid", None), ("older", "true")} <= weights
    scored = named.sql("SELECT * FROM ml_predict('m', TABLE(SELECT city, day, age, id, 'x' AS extra FROM raw))")
    assert scored.columns == ["city", "day", "age", "id", "extra", "prediction", "probability"]
    assert scored.where("prediction IS NULL").count() == 0
    shown = named.sql("SELECT * FROM ml_transform('m', TABLE raw)")
    assert shown.columns == ["churned", "age", "scaled", "city", "weekday", "lid", "older"]
    frame = shown.toPandas()
    assert frame.age.notna().all() and frame.age[:50].nunique() == 1
    # the median is that of the training part alone
    raw = customers()
    assert abs(frame.age[0] - raw.age[50:].median()) < 3
    scaled = np.array([row.scaled[0] for row in shown.select("scaled").collect()])
    assert abs(scaled.mean()) < 0.1 and abs(scaled.std() - 1) < 0.1
    evaluated = {r.metric: r.value for r in named.sql("SELECT * FROM ml_evaluate('m', TABLE raw) WHERE class IS NULL").collect()}
    assert evaluated["auc"] == pytest.approx(row.metrics["auc"], abs=0.1)
    check_error(named, "SELECT * FROM ml_predict('m', TABLE(SELECT id, age, city FROM raw))", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "`day`")
    described = {r.col_name: r.comment for r in named.sql("DESCRIBE MODEL m").collect()}
    assert described["day"] == "input of TRANSFORM" and "scaled" not in described
    tuned = named.sql(text.replace("MODEL m", "MODEL n").replace("SPLIT", "TUNE BY GRID(reg_param IN (0.001, 1)) FOLDS 2 SPLIT")).first()
    assert set(tuned.best_params) == {"reg_param"}
    train = "TRAIN MODEL x USING logistic_regression LABEL churned TRANSFORM({}) AS SELECT * FROM raw"
    for items, condition in {
        "rand() AS r": "INVALID_MODEL_TRANSFORM.NOT_ROWWISE",
        "avg(age) AS a": "INVALID_MODEL_TRANSFORM.NOT_ROWWISE",
        "row_number() OVER (ORDER BY age) AS n": "INVALID_MODEL_TRANSFORM.NOT_ROWWISE",
        "(SELECT 1) AS s": "INVALID_MODEL_TRANSFORM.NOT_ROWWISE",
        "pca(age)": "INVALID_MODEL_TRANSFORM.UNKNOWN_STAGE",
        "string_indexer(churned)": "INVALID_MODEL_TRANSFORM.USES_LABEL",
        "imputer(age, id)": "INVALID_MODEL_TRANSFORM.STAGE_ARGUMENT",
        "imputer(age, 'middle')": "INVALID_MODEL_OPTION.RANGE",
        "age, age + 1 AS age": "COLUMN_ALREADY_EXISTS",
        "nothing": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    }.items():
        check_error(named, train.format(items), condition)
    every = train.replace("MODEL x", "MODEL every").format("* EXCEPT (id), bucketizer(id, array(0.0, 500.0, 1000.0)) AS half")
    assert named.sql(every).first().features == ["age", "city", "day", "half"]


def test_paths_of_models_by_name(named):
    from pyspark.ml.classification import LogisticRegressionModel

    named.sql(TRAIN.format(name="m"))
    model = LogisticRegressionModel.load("models:/m/1")
    assert model.numFeatures == 4 and LogisticRegressionModel.load("models:/m").coefficients == model.coefficients
    with pytest.raises(PySparkException, match="MODEL_VERSION_NOT_FOUND"):
        LogisticRegressionModel.load("models:/m/9")
    with pytest.raises(PySparkException, match="models: paths"):
        model.save("models:/other")


def test_export_and_import(named, tmp_path):
    from pyspark.ml.classification import LogisticRegressionModel

    named.sql(TRAIN.format(name="m"))
    row = named.sql(f"EXPORT MODEL m TO '{tmp_path}/native'").first()
    assert (row.format, row.files > 2) == ("native", True)
    check_error(named, f"EXPORT MODEL m TO '{tmp_path}/native'", "PATH_ALREADY_EXISTS")
    check_error(named, f"EXPORT MODEL m TO '{tmp_path}/x' USING onnx", "UNSUPPORTED_MODEL_FORMAT")
    check_error(named, f"IMPORT MODEL x FROM '{tmp_path}/nothing'", "PATH_NOT_FOUND")
    assert named.sql(f"IMPORT MODEL copy FROM '{tmp_path}/native'").first().version == 1
    sums = [named.sql(f"SELECT sum(probability[0].prob) AS s FROM ml_predict('{name}', TABLE t)").first().s for name in ("m", "copy")]
    assert sums[0] == sums[1]
    named.sql(f"EXPORT MODEL m TO '{tmp_path}/spark' USING spark_ml")
    model = LogisticRegressionModel.load(f"{tmp_path}/spark")
    features = named.sql("SELECT features FROM ml_transform('m', TABLE t)")
    total = sum(row.probability[0] for row in model.transform(features).select("probability").collect())
    assert total == pytest.approx(sums[0], abs=1e-9)
    part = next(p for p in (tmp_path / "native" / "model" / "data").iterdir() if p.suffix == ".parquet")
    part.write_bytes(part.read_bytes()[:-20])
    error = error_of(lambda: named.sql(f"IMPORT MODEL broken FROM '{tmp_path}/native'").collect())
    assert part.name in str(error)
    check_error(named, "SELECT * FROM ml_predict('broken', TABLE t)", "MODEL_NOT_FOUND")


def test_damaged_files_of_the_registry_are_named(named, server):
    named.sql(TRAIN.format(name="damaged"))
    models = os.path.join(server.data_dir, "models")
    schema = named.catalog.currentDatabase()
    folder = os.path.join(models, "models", schema, "damaged")
    newest = os.path.join(folder, max(os.listdir(folder)))
    content = open(newest).read()
    with open(newest, "w") as file:
        file.write(content[:50])
    check_error(named, "SELECT * FROM ml_predict('damaged', TABLE t)", "MODEL_CORRUPTED", os.path.basename(newest))
    with open(newest, "w") as file:
        file.write(content.replace('"format": 1', '"format": 9', 1))
    check_error(named, "DESCRIBE MODEL damaged", "MODEL_FORMAT_NOT_SUPPORTED", "format 9")
    with open(newest, "w") as file:
        file.write(content)
    assert named.sql("SELECT * FROM ml_predict('damaged', TABLE t)").count() == 1000


def test_references_to_dataframes_and_views(named):
    frame = named.createDataFrame(data.as_objects(customers(200)))
    text = "TRAIN MODEL m USING logistic_regression LABEL churned FEATURES(age) AS SELECT * FROM {df}"
    assert named.sql(text, df=frame).first().train_rows == 160
    assert named.sql("SELECT * FROM ml_predict('m', TABLE(SELECT * FROM {df}))", df=frame).count() == 200
    named.sql("SELECT * FROM ml_predict('m', TABLE t)").createOrReplaceTempView("scored")
    assert named.sql("SELECT count(*) AS n FROM scored WHERE prediction IS NOT NULL").first().n == 1000
    joined = named.sql("SELECT t.id FROM t JOIN ml_predict('m', TABLE t) AS p ON t.id = p.id WHERE p.prediction = t.churned")
    assert joined.count() > 600
