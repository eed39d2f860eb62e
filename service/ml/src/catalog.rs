//! Every operator, one line each, and every rank program.

use train::RankProgram;

use crate::{Error, Operator, Result};

/// The operators, in Spark's own order of packages.
pub static OPERATORS: &[&Operator] = &[
];

/// The programs that ranks run, by name.
pub static PROGRAMS: &[&RankProgram] = &[
];

/// Finds an operator by Spark's class name, of itself or of its model.
///
/// # Errors
/// [`Error::OperatorNotSupported`]
pub fn operator(class: &str) -> Result<&'static Operator> {
    let found = OPERATORS.iter().find(|operator| operator.class == class || operator.model_class == Some(class));
    found.copied().ok_or_else(|| Error::OperatorNotSupported { class: class.into() })
}

/// Finds a rank program by name.
pub fn program(name: &str) -> Option<&'static RankProgram> {
    PROGRAMS.iter().find(|program| program.name == name).copied()
}
