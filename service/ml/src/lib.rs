//! Spark ML's operators: estimators, transformers, models and evaluators, over Arrow columns.
//!
//! Adding an operator is one file in `classification/`, `regression/`, `feature/` or `evaluation/` and one line in
//! [`catalog`]. An estimator plans its fit from a schema, names the rank program that trains, and makes the model from what
//! rank 0 returns. A model says, as functions of columns, what it appends to a relation.
//!
//! Knows: Spark ML's params, attributes and save format; Arrow; rank programs. Must not know: gRPC, plans and engines,
//! gangs and processes.

pub mod attribute;
pub mod catalog;
pub mod classification;
pub mod error;
pub mod estimator;
pub mod evaluation;
pub mod evaluator;
pub mod feature;
pub mod linear;
pub mod ml_attr;
pub mod model;
pub mod operator;
pub mod param;
pub mod persist;
pub mod regression;
pub mod summary;
pub mod torch;
pub mod transformer;

pub use attribute::{Argument, Attribute};
pub use error::{Error, Result};
pub use estimator::{Estimator, FitPlan};
pub use evaluator::{Accumulator, Evaluator};
pub use model::Model;
pub use operator::{Kind, Operator};
pub use param::{Check, Param, ParamType, Params, Value};
pub use summary::{Summary, SummaryAttribute};
pub use transformer::{ColumnFunction, TransformStep, Transformer};
