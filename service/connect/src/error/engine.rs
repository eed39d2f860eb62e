//! The engine's errors in Spark's terms.

use ::engine::Error;

use super::condition::{double_quoted, quoted_id, quoted_name};
use super::exception::{
    ANALYSIS, ARITHMETIC, ARRAY_INDEX, CLASS_NOT_FOUND, DATE_TIME, Hierarchy, INVALID_PLAN, IO, NUMBER_FORMAT, PARSE,
    RUNTIME, SPARK, SQL,
};
use super::report::Report;
use super::service;

/// Where Spark says it looked for functions.
const FUNCTION_PATH: &str = "[`system`.`builtin`, `system`.`session`, `spark_catalog`.`default`]";
/// Where Spark says it looked for tables.
const TABLE_PATH: &str = "[`system`.`session`, `spark_catalog`.`default`]";

pub fn report(error: &Error) -> Report {
    let text = error.to_string();
    let analysis = |class: &str, parameters: &[(&str, &str)]| Report::of(ANALYSIS, class, parameters, &text);
    match error {
        Error::UnresolvedColumn { name, suggestions } => unresolved_column(name, suggestions, &text),
        Error::AmbiguousReference { name, candidates } => analysis(
            "AMBIGUOUS_REFERENCE",
            &[("name", &quoted_name(name)), ("referenceNames", &list(candidates.iter().map(|c| quoted_name(c))))],
        ),
        Error::ForeignColumn { name } => analysis("CANNOT_RESOLVE_DATAFRAME_COLUMN", &[("name", &double_quoted(name))]),
        Error::FieldNotFound { name, fields } => analysis(
            "FIELD_NOT_FOUND",
            &[
                ("fieldName", &quoted_id([name.as_str()])),
                ("fields", &comma_separated(fields.iter().map(|field| quoted_id([field.as_str()])))),
            ],
        ),
        Error::UnresolvedRoutine { name } => {
            analysis("UNRESOLVED_ROUTINE", &[("routineName", &quoted_name(name)), ("searchPath", FUNCTION_PATH)])
        }
        Error::WrongNumArgs { name, expected, found } => analysis(
            "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            &[("functionName", &quoted_name(name)), ("expectedNum", expected), ("actualNum", &found.to_string())],
        ),
        Error::DatatypeMismatch { kind, expression, detail } => datatype_mismatch(kind, expression, detail),
        Error::TableOrViewNotFound { name } => {
            analysis("TABLE_OR_VIEW_NOT_FOUND", &[("relationName", &quoted_name(name)), ("searchPath", TABLE_PATH)])
        }
        Error::TableOrViewAlreadyExists { name } => {
            analysis("TABLE_OR_VIEW_ALREADY_EXISTS", &[("relationName", &quoted_name(name))])
        }
        Error::SchemaNotFound { name } => analysis("SCHEMA_NOT_FOUND", &[("schemaName", &quoted_name(name))]),
        Error::SchemaAlreadyExists { name } => {
            analysis("SCHEMA_ALREADY_EXISTS", &[("schemaName", &quoted_name(name))])
        }
        Error::SchemaNotEmpty { name } => analysis("SCHEMA_NOT_EMPTY", &[("schemaName", &quoted_name(name))]),
        Error::TempViewAlreadyExists { name } => {
            analysis("TEMP_TABLE_OR_VIEW_ALREADY_EXISTS", &[("relationName", &quoted_name(name))])
        }
        Error::ColumnAlreadyExists { name } => {
            analysis("COLUMN_ALREADY_EXISTS", &[("columnName", &quoted_id([name.as_str()]))])
        }
        Error::PathNotFound { path } => analysis("PATH_NOT_FOUND", &[("path", path)]),
        Error::PathAlreadyExists { path } => analysis("PATH_ALREADY_EXISTS", &[("outputPath", path)]),
        Error::UnableToInferSchema { format } => analysis("UNABLE_TO_INFER_SCHEMA", &[("format", format)]),
        Error::DataSourceNotFound { name } => {
            Report::of(CLASS_NOT_FOUND, "DATA_SOURCE_NOT_FOUND", &[("provider", name)], &text)
        }
        Error::Syntax { near, line, position, message } => syntax(near, *line, *position, message),
        Error::UnboundParameter { name } => analysis("UNBOUND_SQL_PARAMETER", &[("name", &quoted_id([name.as_str()]))]),
        Error::InvalidDataType { text: schema, message } => Report::of(
            PARSE,
            "INVALID_SCHEMA.PARSE_ERROR",
            &[("inputSchema", &double_quoted(schema)), ("reason", message)],
            &text,
        ),
        Error::NumColumnsMismatch { operator, left, right } => analysis(
            "NUM_COLUMNS_MISMATCH",
            &[
                ("operator", operator),
                ("firstNumColumns", &left.to_string()),
                ("invalidOrdinalNum", "second"),
                ("invalidNumColumns", &right.to_string()),
            ],
        ),
        Error::IncompatibleColumnType { operator, column, left, right } => analysis(
            "INCOMPATIBLE_COLUMN_TYPE",
            &[
                ("operator", operator),
                ("columnOrdinalNumber", &ordinal(*column)),
                ("tableOrdinalNumber", "second"),
                ("dataType1", &double_quoted(right)),
                ("dataType2", &double_quoted(left)),
                ("hint", ""),
            ],
        ),
        Error::MissingAggregation { expression } => analysis(
            "MISSING_AGGREGATION",
            &[
                ("expression", &double_quoted(expression)),
                ("expressionAnyValue", &double_quoted(&format!("any_value({})", expression.trim_matches('"')))),
            ],
        ),
        Error::UserRaised { message } => {
            Report::of(RUNTIME, "USER_RAISED_EXCEPTION", &[("errorMessage", message)], &text)
        }
        Error::Row { class, message, parameters } => {
            let parameters: Vec<(&str, &str)> =
                parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Report::of(row_hierarchy(class, &parameters), class, &parameters, message)
        }
        Error::InvalidPlan { detail } => {
            Report::of(INVALID_PLAN, "CONNECT_INVALID_PLAN.ASSERTION_FAILURE", &[("message", detail)], &text)
        }
        Error::CannotModifyConf { key } => analysis("CANNOT_MODIFY_STATIC_CONFIG", &[("key", &double_quoted(key))]),
        Error::InvalidConfValue { key, value, detail } => Report::of(
            super::exception::ILLEGAL_ARGUMENT,
            conf_class(key),
            &[("confValue", value), ("confName", key), ("confRequirement", detail)],
            &text,
        ),
        Error::InvalidOption { option, value, detail, .. } => analysis(
            "STDS_INVALID_OPTION_VALUE.WITH_MESSAGE",
            &[("optionName", option), ("message", &format!("{value}: {detail}"))],
        ),
        Error::Unsupported { feature } => service::unsupported(feature),
        Error::PythonOff => service::unsupported(
            "Python functions, since this server was started without Python (key `python` of its configuration)",
        ),
        Error::Python { source } => super::python::report(source),
        Error::AggregatePlacement { functions } => analysis(
            "INVALID_PANDAS_UDF_PLACEMENT",
            &[("functionList", &comma_separated(functions.iter().map(|name| quoted_id([name.as_str()]))))],
        ),
        Error::ArrowTypeMismatch { operation, expected, found } => Report::of(
            SPARK,
            "ARROW_TYPE_MISMATCH",
            &[("operation", operation), ("outputTypes", expected), ("actualDataTypes", found)],
            &text,
        ),
        Error::Extension { source } => extension(source.as_ref()),
        Error::DataFusion { source } => data_fusion(source, error),
        Error::Sql { source } => super::sql::report(source),
        Error::Arrow { .. } | Error::Flight { .. } => Report::plain(SPARK, &text).caused_by(error),
        Error::Io { .. } | Error::ObjectStore { .. } => Report::plain(IO, &text).caused_by(error),
        Error::Cancelled => Report::of(SQL, "OPERATION_CANCELED", &[], &text),
        Error::Bug { .. } => Report::internal(&text),
    }
}

fn unresolved_column(name: &str, suggestions: &[String], text: &str) -> Report {
    let name = quoted_name(name);
    if suggestions.is_empty() {
        return Report::of(ANALYSIS, "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", &[("objectName", &name)], text);
    }
    let proposal = comma_separated(suggestions.iter().map(|suggestion| quoted_name(suggestion)));
    let parameters = [("objectName", name.as_str()), ("proposal", proposal.as_str())];
    Report::of(ANALYSIS, "UNRESOLVED_COLUMN.WITH_SUGGESTION", &parameters, text)
}

fn datatype_mismatch(kind: &str, expression: &str, detail: &str) -> Report {
    let expression = double_quoted(expression);
    let text = format!("Cannot resolve {expression} due to data type mismatch: {detail}");
    let report = Report::with_text(ANALYSIS, &format!("DATATYPE_MISMATCH.{kind}"), "42K09", &text);
    Report { parameters: vec![("sqlExpr".to_string(), expression)], ..report }
}

/// Spark shows where the parser stopped, counting characters of a line from 0.
pub(super) fn syntax(near: &str, line: u64, position: u64, message: &str) -> Report {
    let is_end = near.is_empty() || near.eq_ignore_ascii_case("EOF") || near.eq_ignore_ascii_case("end of input");
    let near = if is_end { "end of input".to_string() } else { format!("'{}'", near.trim_matches('\'')) };
    let hint = if message.is_empty() { String::new() } else { format!(": {message}") };
    let report = Report::of(PARSE, "PARSE_SYNTAX_ERROR", &[("error", &near), ("hint", &hint)], message);
    let message = format!("\n{} (line {line}, pos {})", report.message, position.saturating_sub(1));
    Report { message, ..report }
}

/// Which exception Spark throws for a value it refuses.
fn row_hierarchy(class: &str, parameters: &[(&str, &str)]) -> Hierarchy {
    let target = parameters.iter().find(|(name, _)| *name == "targetType").map_or("", |(_, value)| *value);
    match class {
        "CAST_INVALID_INPUT" if target.contains("DATE") || target.contains("TIME") => DATE_TIME,
        "CAST_INVALID_INPUT" if target.contains("BOOLEAN") => RUNTIME,
        "CAST_INVALID_INPUT" => NUMBER_FORMAT,
        "DIVIDE_BY_ZERO" | "REMAINDER_BY_ZERO" | "CAST_OVERFLOW" | "DATETIME_OVERFLOW" | "INTERVAL_DIVIDED_BY_ZERO" => {
            ARITHMETIC
        }
        "INVALID_ARRAY_INDEX" | "INVALID_ARRAY_INDEX_IN_ELEMENT_AT" => ARRAY_INDEX,
        "CANNOT_PARSE_TIMESTAMP" | "INVALID_TIMEZONE" | "DATETIME_FIELD_OUT_OF_BOUNDS" => DATE_TIME,
        class if class.starts_with("DATETIME_FIELD_OUT_OF_BOUNDS") => DATE_TIME,
        class if class.contains("OVERFLOW") || class.starts_with("NUMERIC_VALUE_OUT_OF_RANGE") => ARITHMETIC,
        _ => RUNTIME,
    }
}

fn conf_class(key: &str) -> &'static str {
    if key == "spark.sql.session.timeZone" { "INVALID_CONF_VALUE.TIME_ZONE" } else { "INVALID_CONF_VALUE.REQUIREMENT" }
}

/// An error of this or a lower crate that crossed the engine.
fn extension(source: &(dyn std::error::Error + Send + Sync + 'static)) -> Report {
    if let Some(error) = source.downcast_ref::<super::Error>() {
        return Report::from(error);
    }
    if let Some(error) = source.downcast_ref::<::ml::Error>() {
        return super::ml::report(error);
    }
    if let Some(error) = source.downcast_ref::<::gang::Error>() {
        return super::gang::report(error);
    }
    if let Some(error) = source.downcast_ref::<::train::Error>() {
        return super::gang::train_report(error);
    }
    if let Some(error) = source.downcast_ref::<Error>() {
        return report(error);
    }
    Report::plain(SPARK, &source.to_string()).caused_by(source)
}

/// An error that DataFusion found or carried: ours may be deep inside it.
fn data_fusion(outer: &(dyn std::error::Error + 'static), error: &Error) -> Report {
    let mut source = Some(outer);
    while let Some(cause) = source {
        if let Some(ours) = cause.downcast_ref::<Error>() {
            return report(ours);
        }
        if let Some(ours) = cause.downcast_ref::<super::Error>() {
            return Report::from(ours);
        }
        if let Some(ours) = cause.downcast_ref::<::ml::Error>() {
            return super::ml::report(ours);
        }
        source = cause.source();
    }
    Report::plain(SPARK, &error.to_string()).caused_by(error)
}

fn list(names: impl Iterator<Item = String>) -> String {
    format!("[{}]", comma_separated(names))
}

fn comma_separated(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Spark's words for the position of a column, from 0.
fn ordinal(index: usize) -> String {
    match index {
        0 => "first".to_string(),
        1 => "second".to_string(),
        2 => "third".to_string(),
        n => format!("{}th", n + 1),
    }
}
