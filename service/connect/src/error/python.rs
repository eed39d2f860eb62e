//! Errors of Python functions in Spark's terms.

use ::engine::PythonError as Error;

use super::exception::{PYTHON, SPARK};
use super::report::Report;

pub fn report(error: &Error) -> Report {
    let text = error.to_string();
    match error {
        Error::Raised { traceback } => Report::of(PYTHON, "PYTHON_EXCEPTION", &[("traceback", traceback)], &text),
        Error::VersionMismatch { client, worker } => Report::of(
            SPARK,
            "PYTHON_VERSION_MISMATCH",
            &[("driver_version", client), ("worker_version", worker)],
            &text,
        ),
        Error::StageFailed { partition, source } => {
            let cause = report(source);
            let message = format!("Task {partition} of a barrier stage failed: {}", cause.message);
            Report { message, ..cause }
        }
        Error::Slots { source } => match source.downcast_ref::<::gang::Error>() {
            Some(error) => super::gang::report(error),
            None => Report::plain(SPARK, &text).caused_by(error),
        },
        _ => Report::plain(SPARK, &text).caused_by(error),
    }
}
