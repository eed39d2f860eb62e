//! Statements against the messages they become: `cases.txt` holds a statement a line and its tree on the next.
//!
//! `SQL_UPDATE_CASES=1` writes the trees anew, for a person to read the difference.

mod render;

use std::collections::BTreeMap;

use spark_connect_proto::expression::{ExprType, Literal, literal::LiteralType};
use spark_connect_proto::{Expression, Relation};
use sql::{Error, Parameters, Statement, parse, parse_expression};

const CASES: &str = include_str!("cases.txt");

fn rendered(text: &str) -> String {
    match parse(text, &Parameters::default()) {
        Ok(Statement::Query(plan)) => render::relation(&plan),
        Ok(other) => without_trees(&other),
        Err(error) => format!("error: {error}"),
    }
}

/// A command as its debug text, with its query rendered.
fn without_trees(statement: &Statement) -> String {
    let shown = |name: &str, plan: &Relation, rest: String| format!("{name} {rest} <- {}", render::relation(plan));
    match statement {
        Statement::CreateTempView { name, replace, global, columns, query, .. } => {
            shown("CreateTempView", query, format!("{name:?} replace {replace} global {global} columns {columns:?}"))
        }
        Statement::InsertInto { name, columns, overwrite, query } => {
            shown("InsertInto", query, format!("{name:?} columns {columns:?} overwrite {overwrite}"))
        }
        Statement::DescribeQuery { query } => shown("DescribeQuery", query, String::new()),
        Statement::Explain { mode, query } => shown("Explain", query, format!("{mode:?}")),
        Statement::CacheTable { name, lazy, query: Some(query) } => {
            shown("CacheTable", query, format!("{name:?} lazy {lazy}"))
        }
        Statement::CreateTable(table) => {
            let query = table.query.as_ref().map(render::relation).unwrap_or_default();
            let mut table = table.clone();
            table.query = None;
            format!("{table:?} <- {query}")
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn statements_become_the_messages_that_a_dataframe_would_send() {
    let mut updated = String::new();
    let mut wrong = Vec::new();
    let mut lines = CASES.lines().filter(|line| !line.is_empty()).peekable();
    while let Some(text) = lines.next() {
        let found = rendered(text).trim_end().to_string();
        let expected = lines.next_if(|line| line.starts_with("    ")).map(str::trim).unwrap_or_default();
        if found != expected {
            wrong.push(format!("{text}\n  found    {found}\n  expected {expected}"));
        }
        updated.push_str(&format!("{text}\n    {found}\n"));
    }
    if std::env::var_os("SQL_UPDATE_CASES").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/statements/cases.txt"), updated).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

fn literal(value: LiteralType) -> Expression {
    let literal = Literal { data_type: None, literal_type: Some(value) };
    Expression { common: None, expr_type: Some(ExprType::Literal(literal)) }
}

#[test]
fn parameters_are_bound_in_the_order_of_the_text_and_by_name() {
    let parameters = Parameters {
        positional: vec![literal(LiteralType::Integer(1)), literal(LiteralType::String("b".into()))],
        named: BTreeMap::from([("limit".to_string(), literal(LiteralType::Integer(7)))]),
    };
    let Ok(Statement::Query(plan)) = parse("SELECT ? FROM t WHERE s = ? LIMIT :limit", &parameters) else {
        panic!("not a query")
    };
    assert_eq!(render::relation(&plan), "Limit 7(Project[1](Filter[==(s, \"b\")](t)))");
    assert_eq!(parse("SELECT ?, ?, ?", &parameters), Err(Error::UnboundParameter { name: "2".into() }));
    assert_eq!(parse("SELECT :nobody", &parameters), Err(Error::UnboundParameter { name: "nobody".into() }));
}

#[test]
fn expressions_stand_alone_with_an_alias_or_without() {
    let check = |text: &str, expected: &str| {
        assert_eq!(parse_expression(text).map(|expr| render::expression(&expr)).unwrap(), expected, "{text}");
    };
    check("a + 1 AS b", "+(a, 1) as b");
    check("sum(a)", "sum(a)");
    check("*", "*");
    check("explode(m) AS (k, v)", "explode(m) as k,v");
    assert!(parse_expression("a +").is_err());
    assert!(parse_expression("a b c").is_err());
    assert!(parse_expression("").is_err());
}

#[test]
fn a_syntax_error_says_where_it_is() {
    let Err(Error::Syntax { near, line, column, .. }) = parse("SELECT a\nFROM t WHERE ,", &Parameters::default())
    else {
        panic!("not a syntax error")
    };
    assert_eq!((near.as_str(), line, column), ("','", 2, 14));
    let Err(Error::Syntax { near, .. }) = parse("SELECT a FROM", &Parameters::default()) else {
        panic!("not a syntax error")
    };
    assert_eq!(near, "end of input");
}

#[test]
fn deep_nesting_is_an_error_and_never_a_crash() {
    let none = Parameters::default();
    let is_refused = |text: String| matches!(parse(&text, &none), Err(Error::TooDeep { .. } | Error::Syntax { .. }));
    assert!(is_refused(format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000))));
    assert!(is_refused(format!("SELECT {}1", "- ".repeat(100_000))));
    assert!(is_refused(format!("SELECT a{}", "[0]".repeat(10_000))));
    assert!(is_refused(format!("SELECT {}true", "NOT ".repeat(100_000))));
    assert!(is_refused(format!("SELECT 1{}", " + 1".repeat(5_000))));
    assert!(is_refused(format!("SELECT 1{}", " + 1".repeat(100_000))));
    assert!(is_refused(format!("SELECT * FROM {}t{}", "(SELECT * FROM ".repeat(5_000), ")".repeat(5_000))));
    assert!(is_refused(format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(5_000), " END".repeat(5_000))));
    assert!(is_refused(format!("SELECT CAST(1 AS {}int{})", "array<".repeat(100_000), ">".repeat(99_999))));
}

#[test]
fn long_lists_and_chains_are_taken() {
    let none = Parameters::default();
    let rows = (0..2_000).map(|n| format!("({n}, 'x')")).collect::<Vec<_>>().join(", ");
    assert!(parse(&format!("SELECT * FROM VALUES {rows} AS v(a, b)"), &none).is_ok());
    let tests = (0..3_000).map(|n| format!("a = {n}")).collect::<Vec<_>>().join(" OR ");
    assert!(parse(&format!("SELECT * FROM t WHERE {tests}"), &none).is_ok());
    let unions = vec!["SELECT 1"; 1_000].join(" UNION ALL ");
    assert!(parse(&unions, &none).is_ok());
}

#[test]
fn no_damaged_statement_panics() {
    let none = Parameters::default();
    for text in CASES.lines().filter(|line| !line.is_empty() && !line.starts_with("    ")) {
        let words: Vec<&str> = text.split(' ').collect();
        for cut in 0..words.len() {
            // The error or the plan does not matter, only that one comes back.
            let _ = parse(&words[..cut].join(" "), &none);
            let _ = parse(&words[cut..].join(" "), &none);
            let mut without = words.clone();
            without.remove(cut);
            let _ = parse(&without.join(" "), &none);
            let mut doubled = words.clone();
            doubled.insert(cut, words[cut]);
            let _ = parse(&doubled.join(" "), &none);
        }
        for at in 0..text.len() {
            if text.is_char_boundary(at) {
                let _ = parse(&text[..at], &none);
                let _ = parse_expression(&text[at..]);
            }
        }
    }
}

#[test]
fn items_that_double_are_refused_before_they_fill_the_memory() {
    let mut text = "SELECT sum(a) AS x0".to_string();
    for n in 1..60 {
        text.push_str(&format!(", x{0} + x{0} AS x{n}", n - 1));
    }
    assert!(matches!(parse(&format!("{text} FROM t"), &Parameters::default()), Err(Error::TooLarge { .. })));
}

#[test]
fn ctes_that_double_are_refused_before_they_fill_the_memory() {
    let mut text = "WITH c0 AS (SELECT 1 AS a)".to_string();
    for n in 1..60 {
        text.push_str(&format!(", c{n} AS (SELECT x.a FROM c{0} x, c{0} y)", n - 1));
    }
    text.push_str(" SELECT * FROM c59");
    assert!(matches!(parse(&text, &Parameters::default()), Err(Error::TooLarge { .. })));
}
