//! Classifiers, a file each, over what they share: how raw scores become probabilities and classes.

pub mod logistic_regression;
pub mod multilayer_perceptron;
pub mod prediction;
