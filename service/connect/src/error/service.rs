//! This crate's own errors in Spark's terms.

use super::exception::{
    ILLEGAL_ARGUMENT, INVALID_PLAN, IO, ML_CACHE, ML_SUMMARY_LOST, NO_SUCH_ELEMENT, REQUIRE, RUNTIME, SECURITY, SPARK,
    SQL, UNSUPPORTED,
};
use super::report::Report;
use super::{Error, condition};

pub fn report(error: &Error) -> Report {
    let text = error.to_string();
    let of = |hierarchy, class: &str, parameters: &[(&str, &str)]| Report::of(hierarchy, class, parameters, &text);
    match error {
        Error::MalformedHandle { handle } => of(SQL, "INVALID_HANDLE.FORMAT", &[("handle", handle)]),
        Error::OperationNotFound { id } => of(SQL, "INVALID_HANDLE.OPERATION_NOT_FOUND", &[("handle", id)]),
        Error::OperationAbandoned { id } => of(SQL, "INVALID_HANDLE.OPERATION_ABANDONED", &[("handle", id)]),
        Error::OperationExists { id } => of(SQL, "INVALID_HANDLE.OPERATION_ALREADY_EXISTS", &[("handle", id)]),
        Error::SessionNotFound { id } => of(SQL, "INVALID_HANDLE.SESSION_NOT_FOUND", &[("handle", id)]),
        Error::SessionClosed { id } => of(SQL, "INVALID_HANDLE.SESSION_CLOSED", &[("handle", id)]),
        Error::SessionChanged { id } => of(SQL, "INVALID_HANDLE.SESSION_CHANGED", &[("handle", id)]),
        Error::CursorDisconnected { .. } => of(SQL, "INVALID_CURSOR.DISCONNECTED", &[]),
        Error::NotReattachable { .. } => of(SQL, "INVALID_CURSOR.NOT_REATTACHABLE", &[]),
        Error::CursorNotAvailable { response_id, index } => of(
            SQL,
            "INVALID_CURSOR.POSITION_NOT_AVAILABLE",
            &[("responseId", response_id), ("index", &index.to_string())],
        ),
        Error::CursorNotFound { response_id } => {
            of(SQL, "INVALID_CURSOR.POSITION_NOT_FOUND", &[("responseId", response_id)])
        }
        Error::Cancelled => of(SQL, "OPERATION_CANCELED", &[]),
        Error::NotSet { message, field } => of(
            INVALID_PLAN,
            "CONNECT_INVALID_PLAN.INVALID_ONE_OF_FIELD_NOT_SET",
            &[("fullName", message), ("name", field)],
        ),
        Error::UnknownEnumValue { enumeration, number } => of(
            INVALID_PLAN,
            "CONNECT_INVALID_PLAN.INVALID_ENUM",
            &[("fullName", enumeration), ("name", "UNRECOGNIZED"), ("number", &number.to_string())],
        ),
        Error::NotARelation | Error::NotSqlText => {
            of(INVALID_PLAN, "CONNECT_INVALID_PLAN.ASSERTION_FAILURE", &[("message", &text)])
        }
        Error::UnreadablePlan { detail } => {
            of(INVALID_PLAN, "CONNECT_INVALID_PLAN.CANNOT_PARSE", &[("errorMsg", detail)])
        }
        Error::PlanTooLarge { bytes, bytes_max } => of(
            INVALID_PLAN,
            "CONNECT_INVALID_PLAN.PLAN_SIZE_LARGER_THAN_MAX",
            &[("planSize", &bytes.to_string()), ("maxPlanSize", &bytes_max.to_string())],
        ),
        Error::NoHandlerForExtension { type_url } => {
            of(INVALID_PLAN, "CONNECT_INVALID_PLAN.NO_HANDLER_FOR_EXTENSION", &[("extensionTypeUrl", type_url)])
        }
        Error::InvalidTag { .. } => Report::plain(REQUIRE, &text),
        Error::InterruptWithoutTag => of(
            ILLEGAL_ARGUMENT,
            "INVALID_PARAMETER_VALUE.INTERRUPT_TYPE_TAG_REQUIRES_TAG",
            &[("parameter", "operation_tag"), ("functionName", "INTERRUPT_TYPE_TAG")],
        ),
        Error::InterruptWithoutOperation => of(
            ILLEGAL_ARGUMENT,
            "INVALID_PARAMETER_VALUE.INTERRUPT_TYPE_OPERATION_ID_REQUIRES_ID",
            &[("parameter", "operation_id"), ("functionName", "INTERRUPT_TYPE_OPERATION_ID")],
        ),
        Error::ConfNotFound { key } => {
            of(NO_SUCH_ELEMENT, "SQL_CONF_NOT_FOUND", &[("sqlConf", &condition::double_quoted(key))])
        }
        Error::CloneTargetMalformed { .. } | Error::CloneTargetClosed { .. } | Error::CloneTargetExists { .. } => {
            clone_report(error, &text)
        }
        Error::InvalidArtifactName { name } => of(RUNTIME, "INVALID_ARTIFACT_PATH", &[("name", name)]),
        Error::InvalidArtifactStream { .. } | Error::ArtifactsTooLarge { .. } => Report::plain(REQUIRE, &text),
        Error::LocalDestinationOff => {
            let text = "Uploading artifacts to a local file system is not allowed by the server's settings.";
            Report::plain(&UNSUPPORTED[1..], text)
        }
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Report::plain(SECURITY, &text)
        }
        Error::Io { .. } => Report::plain(IO, &text).caused_by(error),
        Error::ObjectNotFound { id } => {
            of(ML_CACHE, "CONNECT_ML.CACHE_INVALID", &[("objectName", id), ("evictTimeoutInMinutes", "15")])
        }
        Error::SummaryLost { id } => of(ML_SUMMARY_LOST, "CONNECT_ML.MODEL_SUMMARY_LOST", &[("objectName", id)]),
        Error::Unsupported { feature } => unsupported(feature),
        Error::Arrow { .. } | Error::Serve { .. } => Report::plain(SPARK, &text).caused_by(error),
        Error::InvalidConf { key, value, expected } => of(
            ILLEGAL_ARGUMENT,
            "INVALID_CONF_VALUE.REQUIREMENT",
            &[("confValue", value), ("confName", key), ("confRequirement", &format!("It must be {expected}."))],
        ),
        Error::Encode { .. } | Error::Task { .. } => Report::internal(&text).caused_by(error),
        Error::Panicked { message } => Report::internal(&format!("the operation panicked: {message}")),
        Error::Bug { .. } => Report::internal(&text),
        // `Report::from` sends these to their own tables.
        Error::Engine(_)
        | Error::Ml(_)
        | Error::Gang(_)
        | Error::Sql(_)
        | Error::Train(_)
        | Error::Model(_)
        | Error::Registry(_)
        | Error::InText { .. } => Report::from(error),
    }
}

fn clone_report(error: &Error, text: &str) -> Report {
    let (class, id) = match error {
        Error::CloneTargetMalformed { id } => ("INVALID_CLONE_SESSION_REQUEST.TARGET_SESSION_ID_FORMAT", id),
        Error::CloneTargetClosed { id } => ("INVALID_CLONE_SESSION_REQUEST.TARGET_SESSION_ID_ALREADY_CLOSED", id),
        Error::CloneTargetExists { id } => ("INVALID_CLONE_SESSION_REQUEST.TARGET_SESSION_ID_ALREADY_EXISTS", id),
        _ => return Report::internal(text),
    };
    Report::of(SQL, class, &[("targetSessionId", id)], text)
}

/// Spark has no subclass for "this server lacks it"; the class above all of them is the one to test for.
pub fn unsupported(feature: &str) -> Report {
    let text = format!("The feature is not supported: {feature}.");
    Report::with_text(UNSUPPORTED, "UNSUPPORTED_FEATURE", "0A000", &text)
}
