//! The errors of barrier jobs and of rank programs in Spark's terms.

use ::gang::{Class, Error, RankFailure};

use super::exception::{RUNTIME, SPARK, SQL};
use super::report::Report;

pub fn report(error: &Error) -> Report {
    let text = error.to_string();
    match error {
        Error::Cancelled { .. } => Report::of(SQL, "OPERATION_CANCELED", &[], &text),
        // Spark's own refusal of a barrier stage that can never fit has this class.
        Error::NotEnoughSlots { needs, has } => {
            let text = format!(
                "Barrier execution mode does not allow to run a barrier stage that requires more slots than the total number of slots in the cluster: it needs {needs}, the server has {has}."
            );
            Report::with_text(SPARK, "BARRIER_JOB_NEEDS_MORE_SLOTS", "53000", &text)
        }
        Error::QueueFull { .. } | Error::QueueTimeout { .. } => {
            Report::with_text(SPARK, "BARRIER_JOB_NOT_ADMITTED", "53000", &text)
        }
        // The program's own words, which say what is wrong with the data; `detail` is the error class it gives them.
        Error::RankFailed { cause: RankFailure::Program { message, class, detail, .. }, .. } if class == "user" => {
            let class = if detail.is_empty() { "BARRIER_JOB_FAILED" } else { detail.as_str() };
            let sql_state = if class == "USER_RAISED_EXCEPTION" { "P0001" } else { "22000" };
            let mut report = Report::with_text(RUNTIME, class, sql_state, message);
            report.causes.push(text);
            report
        }
        Error::RankFailed { .. } | Error::StartTimeout { .. } | Error::Launch { .. } => {
            Report::with_text(SPARK, "BARRIER_JOB_FAILED", "XX000", &text).caused_by(error)
        }
        error => match error.class() {
            Class::Ours => Report::internal(&text),
            Class::User | Class::External => {
                Report::with_text(SPARK, "BARRIER_JOB_FAILED", "XX000", &text).caused_by(error)
            }
        },
    }
}

pub fn train_report(error: &::train::Error) -> Report {
    let text = error.to_string();
    match error.class() {
        "OPERATION_CANCELED" => Report::of(SQL, "OPERATION_CANCELED", &[], &text),
        "INTERNAL_ERROR" => Report::internal(&text).caused_by(error),
        class => Report::with_text(SPARK, class, "XX000", &text),
    }
}
