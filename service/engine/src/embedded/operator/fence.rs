//! A node that keeps the projections above and below it apart, and is nothing when the plan runs.
//!
//! The optimizer puts a projection into the one above it. Along a chain where each column builds on the last that makes one
//! expression as deep as the chain is long, which every rule walks and prints anew at each step.

use std::cmp::Ordering;
use std::fmt;

use datafusion::common::DFSchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

/// So many projections may become one.
const CHAIN_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FenceNode {
    input: LogicalPlan,
}

impl FenceNode {
    /// The plan, with a fence on top where a long chain of projections ends in it.
    pub fn after_chain(plan: LogicalPlan) -> LogicalPlan {
        let mut below = &plan;
        for _ in 0..CHAIN_MAX {
            let LogicalPlan::Projection(projection) = below else { return plan };
            below = &projection.input;
        }
        LogicalPlan::Extension(Extension { node: std::sync::Arc::new(FenceNode { input: plan }) })
    }
}

impl PartialOrd for FenceNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for FenceNode {
    fn name(&self) -> &str {
        "Fence"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fence")
    }

    /// Filters pass: rows stay what they are.
    fn prevent_predicate_push_down_columns(&self) -> std::collections::HashSet<String> {
        std::collections::HashSet::new()
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.pop().ok_or_else(|| DataFusionError::Internal("a fence has one input".to_owned()))?;
        Ok(FenceNode { input })
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![output_columns.to_vec()])
    }
}
