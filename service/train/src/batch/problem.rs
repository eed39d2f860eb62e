//! What is wrong with the data, found on one rank and told on all.

use std::fmt::{Display, Formatter};

use collective::Group;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Why some rows cannot be trained on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Whether Spark would raise this for a row it reads, as against for the data as a whole.
    pub is_raised_by_a_row: bool,
    pub text: String,
    /// The column it was seen in, and in how many rows.
    pub place: Option<(String, u64)>,
}

impl Problem {
    /// Of rows of a column.
    pub fn user(column: &str, count: u64, text: String) -> Problem {
        Problem { is_raised_by_a_row: true, text, place: Some((column.into(), count)) }
    }

    /// Of the data as a whole.
    pub fn data(text: String) -> Problem {
        Problem { is_raised_by_a_row: false, text, place: None }
    }

    pub fn into_error(self) -> Error {
        let class = if self.is_raised_by_a_row { "USER_RAISED_EXCEPTION" } else { "INVALID_TRAINING_DATA" };
        Error::InvalidData { class, message: self.to_string() }
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Some((column, 1)) => write!(f, "{} (1 row of column {column})", self.text),
            Some((column, count)) => write!(f, "{} ({count} rows of column {column})", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Tells every rank whether all are well. Where some are not, all return the first rank's problem, with the rows of all
/// ranks that have the same counted, so that nobody is left waiting in the next collective.
///
/// # Errors
/// [`Error::InvalidData`] on every rank when any has a problem; what the collective fails with.
pub fn agree<T>(group: &Group, local: std::result::Result<T, Problem>) -> Result<T> {
    let mine = match &local {
        Ok(_) => Vec::new(),
        Err(problem) => serde_json::to_vec(problem).map_err(|source| Error::Spec { program: "data check", source })?,
    };
    let mut first: Option<Problem> = None;
    for bytes in group.all_gather_bytes(&mine)?.into_iter().filter(|bytes| !bytes.is_empty()) {
        let problem: Problem =
            serde_json::from_slice(&bytes).map_err(|source| Error::Spec { program: "data check", source })?;
        match (&mut first, problem.place) {
            (None, place) => first = Some(Problem { place, ..problem }),
            (Some(Problem { text, place: Some((column, count)), .. }), Some((other_column, more)))
                if *text == problem.text && *column == other_column =>
            {
                *count += more;
            }
            _ => {}
        }
    }
    match (first, local) {
        (Some(problem), _) | (None, Err(problem)) => Err(problem.into_error()),
        (None, Ok(value)) => Ok(value),
    }
}
