//! Every operator, one line each, and every rank program.

use train::RankProgram;

use crate::classification::logistic_regression;
use crate::evaluation::{binary_classification, multiclass_classification, regression as regression_evaluator};
use crate::feature::{imputer, one_hot_encoder, standard_scaler, string_indexer, vector_assembler};
use crate::regression::linear_regression;
use crate::{Error, Operator, Result};

/// The operators, in Spark's own order of packages.
pub static OPERATORS: &[&Operator] = &[
    &logistic_regression::OPERATOR,
    &imputer::OPERATOR,
    &one_hot_encoder::OPERATOR,
    &standard_scaler::OPERATOR,
    &string_indexer::OPERATOR,
    &vector_assembler::OPERATOR,
    &linear_regression::OPERATOR,
    &binary_classification::OPERATOR,
    &multiclass_classification::OPERATOR,
    &regression_evaluator::OPERATOR,
];

/// The programs that ranks run, by name.
pub static PROGRAMS: &[&RankProgram] = &[
    &logistic_regression::PROGRAM,
    &linear_regression::PROGRAM,
    &imputer::PROGRAM,
    &one_hot_encoder::PROGRAM,
    &standard_scaler::PROGRAM,
    &string_indexer::PROGRAM,
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
