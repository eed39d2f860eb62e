//! TRANSFORM: row-wise expressions, which the engine computes, and stages, which learn from the training rows.
//!
//! Expressions are projected over the input under hidden names, in training and at prediction alike. Stages are operators of
//! the catalogue over such columns; each is fitted on the rows that the ones before have been applied to.

mod fitted;
mod plan;

pub use fitted::{Stages, all_steps, apply, files, fit, read};
pub use plan::{TransformPlan, plan};

use prost::Message;
use serde::{Deserialize, Serialize};
use spark_connect_proto::expression::ExprType;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::{Expression, Project, Relation, expression};

use super::document::KeptColumn;
use crate::{Error, Result};

/// Columns of TRANSFORM's own have this prefix.
pub const HIDDEN: &str = "__phalanx_transform_";

/// What is kept of TRANSFORM beside the stages' own files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptTransform {
    /// The columns of the query that it reads.
    pub inputs: Vec<KeptColumn>,
    pub projected: Vec<Projected>,
    /// How many stages there are.
    pub num_stages: usize,
    /// The column of each feature, in their order.
    pub columns: Vec<String>,
}

/// An expression, and the hidden column that it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Projected {
    pub column: String,
    /// Spark Connect's message, in hexadecimal digits.
    expression: String,
    /// As it was written, for people.
    pub text: String,
}

impl Projected {
    pub fn new(column: String, expression: &Expression, text: &str) -> Projected {
        let bytes = expression.encode_to_vec();
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Projected { column, expression: digits, text: text.to_string() }
    }

    fn message(&self) -> Result<Expression> {
        let corrupted = |detail: String| {
            Error::Registry(registry::Error::Corrupted { path: format!("the expression {}", self.text), detail })
        };
        let digits = self.expression.as_bytes();
        let byte = |pair: &[u8]| {
            let text = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(text, 16).ok()
        };
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        let bytes = bytes.ok_or_else(|| corrupted("its digits are damaged".into()))?;
        Expression::decode(bytes.as_slice()).map_err(|error| corrupted(error.to_string()))
    }
}

/// The input with the expressions behind its columns.
///
/// # Errors
/// An expression that is damaged.
pub fn projection(input: Relation, projected: &[Projected]) -> Result<Relation> {
    if projected.is_empty() {
        return Ok(input);
    }
    let wrap = |expr_type: ExprType| Expression { common: None, expr_type: Some(expr_type) };
    let mut expressions = vec![wrap(ExprType::UnresolvedStar(expression::UnresolvedStar::default()))];
    for one in projected {
        let expr = Some(Box::new(one.message()?));
        let alias = expression::Alias { expr, name: vec![one.column.clone()], metadata: None };
        expressions.push(wrap(ExprType::Alias(Box::new(alias))));
    }
    let project = Project { input: Some(Box::new(input)), expressions };
    Ok(Relation { common: None, rel_type: Some(RelType::Project(Box::new(project))) })
}
