//! Columns that a filter or sort names although the projection below it dropped them, which Spark allows.

use std::collections::HashSet;

use datafusion::logical_expr::Expr;

use super::build::{keep, project};
use crate::embedded::{Column, Frame};
use crate::{Error, Result};

/// What lies behind the projection that was resolved last.
#[derive(Debug, Clone)]
pub struct Behind {
    /// The projection's input.
    pub input: Frame,
    /// The projection's expressions over it, one a column of the projection's frame.
    pub exprs: Vec<Expr>,
}

impl Behind {
    /// The projection's columns, and as hidden ones those that it dropped.
    pub fn widened(&self, frame: &Frame) -> Frame {
        let kept: HashSet<&str> = frame.columns.iter().map(|column| column.internal.as_str()).collect();
        let dropped = self.input.columns.iter().filter(|column| !kept.contains(column.internal.as_str()));
        let dropped = dropped.map(|column| Column { is_hidden: true, ..column.clone() });
        Frame { plan: frame.plan.clone(), columns: frame.columns.iter().cloned().chain(dropped).collect() }
    }

    /// The projection again, with the dropped columns that the expressions use.
    pub fn with_dropped<'e>(&self, frame: &Frame, exprs: impl Iterator<Item = &'e Expr>) -> Result<Frame> {
        let used: HashSet<String> =
            exprs.flat_map(|expr| expr.column_refs().into_iter().map(|column| column.name.clone())).collect();
        let widened = self.widened(frame);
        let mut projection = self.exprs.clone();
        let mut columns = frame.columns.clone();
        for column in widened.columns.into_iter().skip(frame.columns.len()) {
            if used.contains(&column.internal) {
                projection.push(column.expr());
                columns.push(column);
            }
        }
        Ok(Frame { plan: project(self.input.plan.clone(), projection)?, columns })
    }
}

/// Whether an error may go away when more columns can be seen.
pub fn is_unresolved(error: &Error) -> bool {
    matches!(error, Error::UnresolvedColumn { .. } | Error::ForeignColumn { .. })
}

/// Takes the columns out again that were put in for a filter or sort.
pub fn without_dropped(widened: Frame, columns: Vec<Column>) -> Result<Frame> {
    if widened.columns.len() == columns.len() { Ok(widened) } else { keep(widened, columns) }
}
