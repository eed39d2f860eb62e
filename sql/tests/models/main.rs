//! Statements about models: what each form of the grammar says, and where each error points.

use std::collections::BTreeMap;

use prost::Message;
use spark_connect_proto::expression::{ExprType, Literal, literal::LiteralType};
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Relation};
use sql::model::{
    Change, Constant, Domain, Features, ModelFunction, ModelStatement, Place, Resources, Search, Split, StopRule,
    Train, TransformItem, Version, model_of_text,
};
use sql::{Error, Parameters, Statement, parse};

fn statement(text: &str) -> ModelStatement {
    match parse(text, &Parameters::default()) {
        Ok(Statement::Model(statement)) => *statement,
        other => panic!("{text}: {other:?}"),
    }
}

fn train(text: &str) -> Train {
    match statement(text) {
        ModelStatement::Train(train) => *train,
        other => panic!("{text}: {other:?}"),
    }
}

fn refused(text: &str) -> Error {
    match parse(text, &Parameters::default()) {
        Err(error) => error,
        Ok(statement) => panic!("{text}: {statement:?}"),
    }
}

fn literal(value: LiteralType) -> Expression {
    let literal = Literal { data_type: None, literal_type: Some(value) };
    Expression { common: None, expr_type: Some(ExprType::Literal(literal)) }
}

#[test]
fn every_clause_is_read_in_any_order() {
    let train = train(
        "TRAIN OR REPLACE MODEL cat.db.churn USING logistic_regression COMMENT 'c' TAGS (team = 'x', n 1) ALIAS 'champion'
         KEEP DEFAULT WITH 4 WORKERS SPLIT RANDOM (0.7, 0.2, 0.1) BY (user_id, day) STRATIFIED SEED 7
         OPTIONS (reg_param 1e-3, tol = 0.0001, neg = -1, hidden_units = array(64, 32), class_weight = map('y', 5.0))
         FEATURES (* EXCEPT (id)) WEIGHT w LABEL churned NOWAIT AS SELECT * FROM t;",
    );
    assert_eq!(train.model.parts, ["cat", "db", "churn"]);
    assert!(train.replace && train.keep_default && train.nowait);
    assert_eq!(train.estimator.text, "logistic_regression");
    assert_eq!(train.label.unwrap().text, "churned");
    assert_eq!(train.weight.unwrap().text, "w");
    let Some(Features::AllExcept(except)) = train.features else { panic!("features") };
    assert_eq!(except[0].text, "id");
    let options: Vec<(&str, &Constant)> = train.options.iter().map(|p| (p.key.text.as_str(), &p.value)).collect();
    assert_eq!(options[0], ("reg_param", &Constant::Double(1e-3)));
    assert_eq!(options[1], ("tol", &Constant::Double(0.0001)));
    assert_eq!(options[2], ("neg", &Constant::Integer(-1)));
    assert_eq!(options[3].1, &Constant::Array(vec![Constant::Integer(64), Constant::Integer(32)]));
    assert_eq!(options[4].1, &Constant::Map(vec![(Constant::Text("y".into()), Constant::Double(5.0))]));
    let Some(Split::Random { fractions, by, is_stratified: true, seed: Some(7), .. }) = train.split else {
        panic!("split")
    };
    assert_eq!((fractions.as_slice(), by.len()), ([0.7, 0.2, 0.1].as_slice(), 2));
    assert!(matches!(train.resources, Some(Resources::Workers { number: 4, .. })));
    assert_eq!(train.alias.unwrap().text, "champion");
    assert_eq!((train.tags[0].key.text.as_str(), train.tags.len()), ("team", 2));
    assert_eq!(train.comment.as_deref(), Some("c"));
    assert!(matches!(train.query.rel_type, Some(RelType::Project(_))));
}

#[test]
fn a_search_is_read_with_its_options() {
    let train = train(
        "TRAIN MODEL m USING e TUNE BY RANDOM (step_size BETWEEN 1e-4 AND 1e-1 LOG, age.strategy IN ('mean', 'median'))
         MAXIMIZE auc TRIALS 40 FOLDS 5 PARALLELISM 2 SEED 3 EARLY STOP ASHA (min_iter 4, reduction = 3) AS TABLE t",
    );
    let tune = train.tune.unwrap();
    assert_eq!(tune.search, Search::Random);
    let Domain::Between { low, high, is_log: true } = &tune.dimensions[0].domain else { panic!("range") };
    assert_eq!((low, high), (&Constant::Double(1e-4), &Constant::Double(0.1)));
    assert_eq!(tune.dimensions[1].key.text, "age.strategy");
    assert!(matches!(&tune.dimensions[1].domain, Domain::OneOf(values) if values.len() == 2));
    assert!(tune.metric.unwrap().is_maximized);
    assert_eq!((tune.trials.unwrap().0, tune.folds.unwrap().0, tune.parallelism.unwrap().0), (40, 5, 2));
    let stop = tune.early_stop.unwrap();
    assert_eq!((stop.rule, stop.options.len(), tune.seed), (StopRule::Asha, 2, Some(3)));
}

#[test]
fn the_other_forms_of_clauses_are_read() {
    let of = |clause: &str| train(&format!("TRAIN MODEL m USING e {clause} AS SELECT 1 AS a"));
    assert!(matches!(of("NO SPLIT").split, Some(Split::None { .. })));
    assert!(matches!(of("SPLIT BY COLUMN part").split, Some(Split::Column { .. })));
    assert!(matches!(of("SPLIT SEQUENTIAL ON ts (0.8, 0.2)").split, Some(Split::Sequential { .. })));
    assert!(of("VALIDATE ON (SELECT * FROM v)").validate.is_some());
    assert!(of("VALIDATE ON (SELECT * FROM v) NO SPLIT").validate.is_some());
    assert!(matches!(of("WITH 1 WORKER").resources, Some(Resources::Workers { number: 1, .. })));
    assert!(matches!(of("WITH RESOURCES (workers = 2)").resources, Some(Resources::Named(_))));
    let warm = of("WARM START FROM MODEL db.m VERSION 'best'").warm_start.unwrap();
    assert_eq!((warm.model.parts.len(), warm.version), (2, Some(Version::Alias("best".into()))));
    let Some(Features::Named(named)) = of("FEATURES (a, `b c`)").features else { panic!("features") };
    assert_eq!(named[1].text, "b c");
    let items = of("TRANSFORM (* EXCEPT (a), imputer(age, 'median') AS age, log1p(x) AS lx, one_hot_encoder(city))");
    let items = items.transform.unwrap();
    assert!(matches!(&items[0], TransformItem::Star { except, .. } if except.len() == 1));
    let TransformItem::Expression { text, alias, .. } = &items[1] else { panic!("item") };
    assert_eq!((text.as_str(), alias.as_ref().unwrap().text.as_str()), ("imputer(age, 'median')", "age"));
    assert!(of("TUNE BY GRID (reg_param IN (0.1, 1))").tune.unwrap().early_stop.is_none());
}

#[test]
fn new_words_are_no_reserved_words() {
    let train =
        train("TRAIN MODEL model USING logistic_regression LABEL label AS SELECT label, version, split FROM train");
    assert_eq!((train.model.parts[0].as_str(), train.label.unwrap().text.as_str()), ("model", "label"));
    let parsed = parse("SELECT model, train, features, `table` FROM model m, train", &Parameters::default());
    assert!(matches!(parsed, Ok(Statement::Query(_))), "{parsed:?}");
    let table = parse("DESCRIBE TABLE model m", &Parameters::default());
    assert!(table.is_err(), "{table:?}");
    assert!(matches!(parse("DESCRIBE model", &Parameters::default()), Ok(Statement::DescribeTable { .. })));
}

#[test]
fn models_are_shown_described_and_changed() {
    assert!(matches!(statement("SHOW MODELS IN db LIKE 'ch*'"),
        ModelStatement::ShowModels { namespace, pattern: Some(_) } if namespace == ["db"]));
    assert!(matches!(statement("SHOW MODELS 'x'"), ModelStatement::ShowModels { pattern: Some(_), .. }));
    assert!(matches!(statement("SHOW VERSIONS IN MODEL m"), ModelStatement::ShowVersions { .. }));
    assert!(matches!(
        statement("SHOW CREATE MODEL m VERSION 2"),
        ModelStatement::ShowCreate { version: Some(Version::Number(2)), .. }
    ));
    assert!(matches!(statement("SHOW TRAININGS"), ModelStatement::ShowTrainings { model: None }));
    assert!(matches!(statement("SHOW TRAININGS IN MODEL m"), ModelStatement::ShowTrainings { model: Some(_) }));
    assert!(matches!(
        statement("DESC MODEL EXTENDED m VERSION AS OF 3"),
        ModelStatement::Describe { extended: true, version: Some(Version::Number(3)), .. }
    ));
    assert!(matches!(statement("DESCRIBE MODEL `extended`"), ModelStatement::Describe { extended: false, .. }));
    assert!(matches!(statement("DROP MODEL IF EXISTS m"), ModelStatement::Drop { if_exists: true, version: None, .. }));
    assert!(matches!(statement("DROP MODEL m VERSION 'old'"), ModelStatement::Drop { version: Some(_), .. }));
    let change = |text: &str| match statement(&format!("ALTER MODEL m {text}")) {
        ModelStatement::Alter { change, .. } => change,
        other => panic!("{other:?}"),
    };
    assert!(matches!(change("RENAME TO n"), Change::RenameTo(_)));
    assert!(matches!(change("SET TAGS (a = 'b')"), Change::SetTags(tags) if tags.len() == 1));
    assert!(
        matches!(change("UNSET TAGS IF EXISTS (a, b.c)"), Change::UnsetTags { if_exists: true, keys } if keys.len() == 2)
    );
    assert!(matches!(
        change("SET ALIAS 'champion' TO VERSION 3"),
        Change::SetAlias { version: Version::Number(3), .. }
    ));
    assert!(matches!(change("UNSET ALIAS 'x'"), Change::UnsetAlias { if_exists: false, .. }));
    assert!(matches!(change("SET DEFAULT VERSION 2"), Change::SetDefault(_)));
    assert!(matches!(
        statement("COMMENT ON MODEL m IS NULL"),
        ModelStatement::Alter { change: Change::Comment(None), .. }
    ));
    assert!(matches!(
        statement("EXPORT MODEL m VERSION 3 TO 's3://b/m' USING spark_ml"),
        ModelStatement::Export { format: Some(_), .. }
    ));
    assert!(matches!(statement("IMPORT OR REPLACE MODEL m FROM '/a'"), ModelStatement::Import { replace: true, .. }));
    assert!(matches!(
        statement("EXPLAIN FORMATTED TRAIN MODEL m USING e AS TABLE t"),
        ModelStatement::ExplainTrain { .. }
    ));
    assert!(matches!(
        statement("EXPLAIN LOGICAL TRAIN MODEL m USING e AS TABLE t"),
        ModelStatement::ExplainTrain { .. }
    ));
    assert!(matches!(
        statement("CANCEL TRAINING IF EXISTS 'id'"),
        ModelStatement::CancelTraining { if_exists: true, .. }
    ));
    assert!(matches!(statement("GRANT EXECUTE ON MODEL m TO analyst"), ModelStatement::Grant { is_revoke: false, .. }));
    assert!(matches!(
        statement("REVOKE MANAGE ON MODEL m FROM analyst"),
        ModelStatement::Grant { is_revoke: true, .. }
    ));
}

#[test]
fn parameters_are_bound_and_stand_in_the_text() {
    let parameters = Parameters {
        positional: Vec::new(),
        named: BTreeMap::from([
            ("m".to_string(), literal(LiteralType::String("db.it's".into()))),
            ("n".to_string(), literal(LiteralType::Integer(5))),
            ("t".to_string(), literal(LiteralType::String("t".into()))),
        ]),
    };
    let text = "TRAIN MODEL IDENTIFIER(:m) USING logistic_regression OPTIONS(max_iter = :n) SPLIT RANDOM(0.8, 0.2) SEED :n\n\
                AS SELECT * FROM IDENTIFIER(:t)";
    let Ok(Statement::Model(statement)) = parse(text, &parameters) else { panic!("{:?}", parse(text, &parameters)) };
    let ModelStatement::Train(train) = *statement else { panic!("no training") };
    assert_eq!(train.model.parts, ["db", "it's"]);
    assert_eq!(train.options[0].value, Constant::Integer(5));
    assert_eq!(
        train.text,
        "TRAIN MODEL IDENTIFIER('db.it\\'s') USING logistic_regression OPTIONS(max_iter = 5) SPLIT RANDOM(0.8, 0.2) SEED 5\n\
         AS SELECT * FROM IDENTIFIER('t')"
    );
    let without = Parameters {
        named: BTreeMap::from([("m".to_string(), literal(LiteralType::String("m".into())))]),
        ..parameters
    };
    assert_eq!(parse(text, &without), Err(Error::UnboundParameter { name: "n".into() }));
    let positional = Parameters { positional: vec![literal(LiteralType::Long(3))], named: BTreeMap::new() };
    assert!(parse("TRAIN MODEL m USING e WITH ? WORKERS AS TABLE t", &positional).is_ok());
    assert!(parse("DROP MODEL m VERSION ?", &positional).is_ok());
}

fn call(text: &str) -> ModelFunction {
    let Ok(Statement::Query(plan)) = parse(text, &Parameters::default()) else {
        panic!("{text}: {:?}", parse(text, &Parameters::default()))
    };
    let mut relation: &Relation = &plan;
    loop {
        relation = match relation.rel_type.as_ref().unwrap() {
            RelType::Project(project) => project.input.as_deref().unwrap(),
            RelType::SubqueryAlias(alias) => alias.input.as_deref().unwrap(),
            RelType::Filter(filter) => filter.input.as_deref().unwrap(),
            RelType::Extension(any) => return ModelFunction::decode(any.value.as_slice()).unwrap(),
            other => panic!("{other:?}"),
        };
    }
}

#[test]
fn functions_take_models_and_tables_in_every_form() {
    for text in [
        "SELECT * FROM ml_predict('db.m@3', TABLE(SELECT a FROM t), threshold => 0.3)",
        "SELECT * FROM ml_predict(MODEL db.m VERSION 3, TABLE (t), threshold => 0.3)",
        "SELECT p.* FROM ML_PREDICT(model => MODEL db.m VERSION AS OF 3, input => TABLE t, threshold => 0.3) AS p",
        "SELECT * FROM ml_predict(input => TABLE(WITH c AS (SELECT 1 AS a) SELECT * FROM c), model => '`db`.`m`@3', threshold => 0.3)",
        "WITH c AS (SELECT 1 AS a) SELECT * FROM ml_predict(MODEL IDENTIFIER('db.m') VERSION 3, TABLE(SELECT * FROM c), threshold => 0.3) WHERE a > 0",
    ] {
        let call = call(text);
        assert_eq!(
            (call.model.as_slice(), call.version.as_str()),
            (["db".to_string(), "m".to_string()].as_slice(), "3"),
            "{text}"
        );
        assert!(call.input.is_some() && call.arguments.len() == 1, "{text}");
    }
    assert_eq!(call("SELECT * FROM ml_weights('m')").function, "ml_weights");
    assert_eq!(call("SELECT * FROM ml_evaluate(MODEL m VERSION 'best')").version, "best");
    assert_eq!(model_of_text("`a@b`.m@x"), (vec!["a@b".to_string(), "m".to_string()], "x".to_string()));
}

#[test]
fn bad_arguments_of_functions_are_named() {
    let check = |text: &str, expected: fn(&Error) -> bool| {
        let error = refused(text);
        assert!(expected(&error), "{text}: {error:?}");
    };
    check("SELECT * FROM ml_predict('m')", |e| matches!(e, Error::RequiredParameter { parameter: "input", .. }));
    check("SELECT * FROM ml_predict(input => TABLE t)", |e| {
        matches!(e, Error::RequiredParameter { parameter: "model", .. })
    });
    check("SELECT * FROM ml_predict(a || 'x', TABLE t)", |e| matches!(e, Error::NotAConstantString { .. }));
    check(
        "SELECT * FROM ml_predict('m', TABLE t, treshold => 1)",
        |e| matches!(e, Error::UnrecognizedParameter { parameter, .. } if parameter == "treshold"),
    );
    check("SELECT * FROM ml_weights('m', TABLE t)", |e| matches!(e, Error::UnrecognizedParameter { .. }));
    check("SELECT * FROM ml_predict('m', TABLE t, model => 'n')", |e| matches!(e, Error::ParameterTwice { .. }));
    check("SELECT * FROM ml_predict('m', TABLE t PARTITION BY a)", |e| matches!(e, Error::Syntax { .. }));
}

/// The error's place, as text with the place's characters in brackets.
fn pointed(text: &str) -> (Error, String) {
    let error = refused(text);
    let place = error.place().unwrap_or(Place::default());
    let line = text.lines().nth(place.line.saturating_sub(1) as usize).unwrap_or_default();
    let (from, length) = (place.column.saturating_sub(1) as usize, place.length as usize);
    (error, line.chars().skip(from).take(length).collect())
}

#[test]
fn errors_point_at_their_cause() {
    let check = |text: &str, place: &str, expected: fn(&Error) -> bool| {
        let (error, found) = pointed(text);
        assert!(expected(&error), "{text}: {error:?}");
        assert_eq!(found, place, "{text}: {error:?}");
    };
    let with = |clause: &str| format!("TRAIN MODEL m USING e\n  {clause}\nAS SELECT 1 AS a");
    check("TRAIN MODEL m USING e SELECT 1", "SELECT", |e| matches!(e, Error::Syntax { .. }));
    check(
        "TRAIN MODEL my-model USING e AS TABLE t",
        "my-model",
        |e| matches!(e, Error::InvalidIdentifier { name, .. } if name == "my-model"),
    );
    check("TRAIN OR REPLACE MODEL IF NOT EXISTS m USING e AS TABLE t", "OR REPLACE", |e| {
        matches!(e, Error::TrainReplaceAndIfNotExists { .. })
    });
    check(&with("LABEL a LABEL b"), "LABEL", |e| matches!(e, Error::DuplicateClause { clause: "LABEL", .. }));
    check(&with("OPTIONS (a = 1) OPTIONS (b = 2)"), "OPTIONS", |e| {
        matches!(e, Error::DuplicateClause { clause: "OPTIONS", .. })
    });
    check(&with("TUNE BY RANDOM (a IN (1)) TRIALS 3 TRIALS 4"), "TRIALS", |e| {
        matches!(e, Error::DuplicateClause { clause: "TRIALS", .. })
    });
    check(&with("OPTIONS (a = 1, A = 2)"), "A", |e| matches!(e, Error::DuplicateKey { .. }));
    check(&with("OPTIONS (max_iter, tol = 1)"), "max_iter", |e| matches!(e, Error::OptionWithoutValue { .. }));
    check(&with("OPTIONS (max_iter = x + 1)"), "x + 1", |e| matches!(e, Error::OptionNotFoldable { .. }));
    check(
        &with("SPLIT RANDOM (0.8, 0.3)"),
        "SPLIT RANDOM (0.8, 0.3)".get(13..).unwrap(),
        |e| matches!(e, Error::SplitFractions { found, .. } if found == "(0.8, 0.3)"),
    );
    check(&with("SPLIT RANDOM (1.0, 0.0)"), "(1.0, 0.0)", |e| matches!(e, Error::SplitFractions { .. }));
    check(&with("SPLIT RANDOM (0.8, 0.2) VALIDATE ON (SELECT 1)"), "VALIDATE", |e| {
        matches!(e, Error::SplitConflict { .. })
    });
    check(&with("TUNE BY GRID (a BETWEEN 1 AND 2)"), "a BETWEEN 1 AND 2", |e| matches!(e, Error::RangeInGrid { .. }));
    check(&with("TUNE BY RANDOM (a BETWEEN 2 AND 1)"), "2 AND 1", |e| matches!(e, Error::TuneRange { .. }));
    check(&with("TUNE BY RANDOM (a BETWEEN 0 AND 1 LOG)"), "0 AND 1", |e| matches!(e, Error::TuneRange { .. }));
    check(&with("WITH 'x' WORKERS"), "'x'", |e| matches!(e, Error::NotAConstant { .. }));
    check(&with("ALIAS 7"), "7", |e| matches!(e, Error::NotAConstant { .. }));
    check(&with("SOMETHING else"), "SOMETHING", |e| matches!(e, Error::Syntax { .. }));
    check(&with("TUNE BY CHANCE (a IN (1))"), "CHANCE", |e| matches!(e, Error::Syntax { .. }));
    check("TRAIN MODEL m LABEL a AS TABLE t", "LABEL", |e| matches!(e, Error::Syntax { .. }));
    check("ALTER MODEL m SET NOTHING", "SET", |e| matches!(e, Error::Syntax { .. }));
    check("DROP MODEL m VERSION", "", |e| matches!(e, Error::Syntax { .. }));
    check("SHOW MODELS LIKE", "", |e| matches!(e, Error::Syntax { .. }));
    check("EXPORT MODEL m", "", |e| matches!(e, Error::Syntax { .. }));
}
