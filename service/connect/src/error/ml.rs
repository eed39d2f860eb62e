//! The operators' errors in Spark's terms.

use ::engine::embedded::expression::order_by_similarity;
use ::ml::Error;

use super::condition::quoted_name;
use super::exception::{ANALYSIS, IO, ML_ATTRIBUTE, ML_UNSUPPORTED, NO_SUCH_ELEMENT, REQUIRE, SPARK};
use super::report::Report;

pub fn report(error: &Error) -> Report {
    let text = error.to_string();
    let unsupported = |message: &str| {
        Report::of(ML_UNSUPPORTED, "CONNECT_ML.UNSUPPORTED_EXCEPTION", &[("message", message)], message)
    };
    match error {
        Error::OperatorNotSupported { .. } | Error::Unsupported { .. } => unsupported(&text),
        Error::AttributeNotAllowed { class, method } => Report::of(
            ML_ATTRIBUTE,
            "CONNECT_ML.ATTRIBUTE_NOT_ALLOWED",
            &[("className", class), ("attribute", method)],
            &text,
        ),
        Error::ColumnNotFound { name, available } if available.is_empty() => {
            Report::of(ANALYSIS, "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", &[("objectName", &quoted_name(name))], &text)
        }
        Error::ColumnNotFound { name, available } => {
            let proposal = order_by_similarity(name, available.clone());
            let proposal: Vec<String> = proposal.iter().map(|name| quoted_name(name)).collect();
            Report::of(
                ANALYSIS,
                "UNRESOLVED_COLUMN.WITH_SUGGESTION",
                &[("objectName", &quoted_name(name)), ("proposal", &proposal.join(", "))],
                &text,
            )
        }
        Error::ParamNotSet { .. } | Error::UnknownParam { .. } => Report::plain(&NO_SUCH_ELEMENT[1..], &text),
        Error::InvalidParam { .. } | Error::ColumnType { .. } | Error::OutputColumnExists { .. } => {
            Report::plain(REQUIRE, &text)
        }
        Error::InvalidRow { .. } => Report::plain(SPARK, &text),
        Error::InvalidData { class, message } if class.is_empty() => Report::plain(REQUIRE, message),
        Error::InvalidData { class, message } => Report::with_text(SPARK, class, "XX000", message),
        Error::PathNotFound { path } => Report::of(ANALYSIS, "PATH_NOT_FOUND", &[("path", path)], &text),
        Error::PathExists { path } => {
            let text = format!(
                "Path {path} already exists. To overwrite it, please use write.overwrite().save(path) for Scala and use \
                 write().overwrite().save(path) for Java and Python."
            );
            Report::plain(IO, &text)
        }
        Error::Train { source } => super::gang::train_report(source),
        Error::Vector { .. } => Report::plain(REQUIRE, &text).caused_by(error),
        Error::Corrupted { .. } | Error::Arrow { .. } | Error::Parquet { .. } => {
            Report::plain(SPARK, &text).caused_by(error)
        }
        Error::Store { .. } => Report::plain(IO, &text).caused_by(error),
        Error::Bug { .. } => Report::internal(&text),
    }
}
