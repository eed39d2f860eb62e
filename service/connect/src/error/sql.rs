//! The errors of SQL text in Spark's terms.

use ::sql::Error;

use super::condition::{double_quoted, quoted_id};
use super::engine::syntax;
use super::exception::{ANALYSIS, PARSE};
use super::report::Report;
use super::service;

pub fn report(error: &Error) -> Report {
    let text = error.to_string();
    let parse = |class: &str, parameters: &[(&str, &str)]| Report::of(PARSE, class, parameters, &text);
    let analysis = |class: &str, parameters: &[(&str, &str)]| Report::of(ANALYSIS, class, parameters, &text);
    match error {
        Error::Syntax { near, line, column, message } => syntax(near, *line, *column, message),
        Error::Empty => {
            let report = parse("PARSE_EMPTY_STATEMENT", &[]);
            Report { message: format!("\n{} (line 1, pos 0)", report.message), ..report }
        }
        Error::Unsupported { statement } => service::unsupported(statement),
        Error::UnsupportedSyntax { construct } => service::unsupported(construct),
        Error::UnboundParameter { name } => analysis("UNBOUND_SQL_PARAMETER", &[("name", &quoted_id([name.as_str()]))]),
        Error::InvalidLiteral { literal, type_name, .. } => {
            parse("INVALID_TYPED_LITERAL", &[("valueType", &double_quoted(type_name)), ("value", literal)])
        }
        Error::PositionOutOfRange { clause, position, columns } => {
            let class =
                if clause.starts_with("GROUP") { "GROUP_BY_POS_OUT_OF_RANGE" } else { "ORDER_BY_POS_OUT_OF_RANGE" };
            analysis(class, &[("index", &position.to_string()), ("size", &columns.to_string())])
        }
        Error::AggregateInGroupBy { expression } => {
            analysis("GROUP_BY_AGGREGATE", &[("sqlExpr", &double_quoted(expression))])
        }
        Error::UnknownWindow { name } => {
            analysis("MISSING_WINDOW_SPECIFICATION", &[("windowName", &quoted_id([name.as_str()]))])
        }
        Error::TooDeep { .. } | Error::TooLarge { .. } => parse("FAILED_TO_PARSE_TOO_COMPLEX", &[]),
        Error::InvalidLimit { .. } => Report::with_text(ANALYSIS, "INVALID_LIMIT_LIKE_EXPRESSION", "42K0E", &text),
        Error::ColumnCount { .. } => Report::with_text(ANALYSIS, "ASSIGNMENT_ARITY_MISMATCH", "42802", &text),
        Error::NoThread { .. } => Report::internal(&text),
        other => super::model::sql_report(other).unwrap_or_else(|| Report::internal(&text)),
    }
}
