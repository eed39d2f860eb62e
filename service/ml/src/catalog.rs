//! Every operator, one line each, and every rank program.

use train::RankProgram;

use crate::classification::{logistic_regression, multilayer_perceptron};
use crate::evaluation::{binary_classification, multiclass_classification, regression as regression_evaluator};
use crate::feature::{
    binarizer, bucketizer, count_vectorizer, dct, elementwise_product, feature_hasher, hashing_tf, idf, imputer,
    index_to_string, interaction, max_abs_scaler, min_max_scaler, n_gram, normalizer, one_hot_encoder,
    polynomial_expansion, quantile_discretizer, regex_tokenizer, robust_scaler, standard_scaler, string_indexer,
    tokenizer, variance_threshold_selector, vector_assembler, vector_slicer,
};
use crate::regression::linear_regression;
use crate::torch;
use crate::{Error, Operator, Result};

/// The operators, in Spark's own order of packages.
pub static OPERATORS: &[&Operator] = &[
    &logistic_regression::OPERATOR,
    &multilayer_perceptron::OPERATOR,
    &binarizer::OPERATOR,
    &bucketizer::OPERATOR,
    &count_vectorizer::OPERATOR,
    &dct::OPERATOR,
    &elementwise_product::OPERATOR,
    &feature_hasher::OPERATOR,
    &hashing_tf::OPERATOR,
    &idf::OPERATOR,
    &imputer::OPERATOR,
    &index_to_string::OPERATOR,
    &interaction::OPERATOR,
    &max_abs_scaler::OPERATOR,
    &min_max_scaler::OPERATOR,
    &n_gram::OPERATOR,
    &normalizer::OPERATOR,
    &one_hot_encoder::OPERATOR,
    &polynomial_expansion::OPERATOR,
    &quantile_discretizer::OPERATOR,
    &regex_tokenizer::OPERATOR,
    &robust_scaler::OPERATOR,
    &standard_scaler::OPERATOR,
    &string_indexer::OPERATOR,
    &tokenizer::OPERATOR,
    &variance_threshold_selector::OPERATOR,
    &vector_assembler::OPERATOR,
    &vector_slicer::OPERATOR,
    &linear_regression::OPERATOR,
    &torch::OPERATOR,
    &binary_classification::OPERATOR,
    &multiclass_classification::OPERATOR,
    &regression_evaluator::OPERATOR,
];

/// The programs that ranks run, by name.
pub static PROGRAMS: &[&RankProgram] = &[
    &logistic_regression::PROGRAM,
    &multilayer_perceptron::PROGRAM,
    &linear_regression::PROGRAM,
    &torch::PROGRAM,
    &count_vectorizer::PROGRAM,
    &idf::PROGRAM,
    &imputer::PROGRAM,
    &max_abs_scaler::PROGRAM,
    &min_max_scaler::PROGRAM,
    &one_hot_encoder::PROGRAM,
    &quantile_discretizer::PROGRAM,
    &robust_scaler::PROGRAM,
    &standard_scaler::PROGRAM,
    &string_indexer::PROGRAM,
    &variance_threshold_selector::PROGRAM,
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
